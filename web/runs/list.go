package runs

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	grlv1 "grl/proto/grl/v1"
	"grl/proto/grl/v1/grlv1connect"
	"grl/web/format"
	"grl/web/page"
)

const (
	listRows = 25
	// mostNameText bounds what is typed as the name of a policy or service.
	mostNameText = "200"
)

// listView is the page of all runs.
type listView struct {
	Configurator configuratorView
	Rows         []runRow
	URL          string // of this page of the table
	Older        string // URL; empty: none
	Newest       string // URL of the first page; empty: this is it
	Asked        *askedView
	MayAsk       bool
	Policy       string // what was typed
	Service      string
	DryRun       bool
	Refusal      page.Refusal // its Title is empty where nothing was refused
}

// configuratorView says how the configurator is.
type configuratorView struct {
	Kind, Icon, Word string // of its state
	Text             string // what that means
	Command          string // that ends it; "": none
	Facts            []fact
	Problem          string // of the repository
	Conflicts        []string
	More             string // of conflicts that are not shown
}

// fact is a name with a value or a time, ready to print.
type fact struct {
	Name, Value string
	At          format.Stamp // zero: Value is shown
	Path        string       // of where it leads; empty: nowhere
}

// runRow is one line of the table of runs.
type runRow struct {
	Number, Path     string
	Started          format.Stamp
	Kind, Icon, Word string // of its state
	Why              string // trigger and who asked
	Found            string // counts by outcome
	Made             string // revision, and whether it is active
	Commit           string
	Note             string // why it failed
}

// askedView is what became of a request for a run.
type askedView struct {
	Begun bool
	Run   string // its number
	Path  string
}

func (s site) serveList(w http.ResponseWriter, r *http.Request) {
	s.renderList(w, r, http.StatusOK, listView{})
}

// renderList fills v and shows it.
func (s site) renderList(w http.ResponseWriter, r *http.Request, status int, v listView) {
	ctx, q := r.Context(), r.URL.Query()
	before := number(q, "before")
	list, err := s.Services.RLC.ListRuns(ctx, &grlv1.ListRunsRequest{Before: before, PageSize: listRows + 1})
	if err != nil {
		s.Fail(w, r, err)
		return
	}
	v.fill(list.GetRuns(), before)
	configurator, err := s.Services.RLC.GetConfigurator(ctx, &grlv1.GetConfiguratorRequest{})
	if err != nil {
		s.Fail(w, r, err)
		return
	}
	v.Configurator = newConfiguratorView(configurator, time.Now())
	if id := q.Get("asked"); id != "" {
		asked, err := s.Services.RLC.ListRuns(ctx, &grlv1.ListRunsRequest{RequestId: id, PageSize: 1})
		if err != nil {
			s.Fail(w, r, err)
			return
		}
		v.Asked = newAskedView(asked.GetRuns())
		v.URL = listPath(before, id)
	}
	if page.Fragment(r) {
		s.Render(w, r, status, runsRegion(v))
		return
	}
	v.MayAsk = page.May(ctx, grlv1connect.RLCServiceRequestRunProcedure)
	s.Render(w, r, status, listPage(s.Page(r, "RLC runs", "/rlc"), v))
}

// listPath returns the address of a page of the table of runs, with what became
// of a request.
func listPath(before uint64, asked string) string {
	q := url.Values{}
	if before > 0 {
		q.Set("before", strconv.FormatUint(before, 10))
	}
	if asked != "" {
		q.Set("asked", asked)
	}
	if len(q) == 0 {
		return "/rlc"
	}
	return "/rlc?" + q.Encode()
}

// fill sets the rows; of those runs the last one only says that there are more.
func (v *listView) fill(runs []*grlv1.Run, before uint64) {
	v.URL = listPath(before, "")
	if len(runs) > listRows {
		runs = runs[:listRows]
		v.Older = listPath(runs[listRows-1].GetId(), "")
	}
	if before > 0 {
		v.Newest = listPath(0, "")
	}
	for _, run := range runs {
		v.Rows = append(v.Rows, newRunRow(run))
	}
}

func newAskedView(runs []*grlv1.Run) *askedView {
	if len(runs) == 0 {
		return &askedView{}
	}
	return &askedView{Begun: true, Run: strconv.FormatUint(runs[0].GetId(), 10), Path: runPath(runs[0].GetId())}
}

func newRunRow(run *grlv1.Run) runRow {
	r := runRow{
		Number: strconv.FormatUint(run.GetId(), 10), Path: runPath(run.GetId()), Started: moment(run.GetStartedAtMs()),
		Why: whyRun(run), Found: found(run), Commit: cutCommit(run.GetCommit()), Note: format.Printable(run.GetError()),
	}
	r.Kind, r.Icon, r.Word = stateOf(run)
	if run.GetRevision() > 0 {
		r.Made = fmt.Sprintf("r%d", run.GetRevision())
		if verified := format.Printable(run.GetVerified()); verified != "" {
			r.Made += ", " + verified
		}
	}
	return r
}

// stateOf says how a run is, in a word with its shape.
func stateOf(run *grlv1.Run) (kind, icon, word string) {
	switch {
	case run.GetState() == grlv1.Run_STATE_FAILED:
		return "over", "over", "Failed"
	case run.GetState() == grlv1.Run_STATE_RUNNING:
		word = "Running"
		if run.GetBuckets() > 0 {
			word += " " + progress(run)
		}
		return "waiting", "clock", word
	case run.GetDryRun():
		return "plain", "rlc", "Dry run"
	case run.GetRevision() > 0:
		return "good", "ok", "Applied"
	case outcome(run, grlv1.RunOutcome_RUN_OUTCOME_PROPOSED) > 0:
		return "plain", "rlc", "Proposed"
	}
	return "plain", "ok", "Nothing to change"
}

// progress is how far a run is: "1,200 of 5,000".
func progress(run *grlv1.Run) string {
	return format.Count(int(run.GetDone())) + " of " + format.Count(int(run.GetBuckets()))
}

// whyRun says what a run was for, and who asked.
func whyRun(run *grlv1.Run) string {
	text := format.Printable(run.GetTrigger())
	if run.GetAuthor() != "" {
		text += " by " + format.Printable(run.GetAuthor())
	}
	return text
}

// outcome returns how many results of a run have an outcome.
func outcome(run *grlv1.Run, o grlv1.RunOutcome) int {
	if counts := run.GetOutcomes(); int(o) < len(counts) {
		return int(counts[o])
	}
	return 0
}

// outcomeNames are the words for outcomes, what needs a person first.
var outcomeNames = []struct {
	outcome grlv1.RunOutcome
	name    string
}{
	{grlv1.RunOutcome_RUN_OUTCOME_PROPOSED, "proposed"},
	{grlv1.RunOutcome_RUN_OUTCOME_FAILED, "failed"},
	{grlv1.RunOutcome_RUN_OUTCOME_REFUSED, "refused"},
	{grlv1.RunOutcome_RUN_OUTCOME_APPLIED, "applied"},
	{grlv1.RunOutcome_RUN_OUTCOME_SHADOWED, "in shadow"},
	{grlv1.RunOutcome_RUN_OUTCOME_PROMOTED, "promoted"},
	{grlv1.RunOutcome_RUN_OUTCOME_LEFT, "left"},
	{grlv1.RunOutcome_RUN_OUTCOME_UNCHANGED, "unchanged"},
}

// outcomeName is the word for an outcome.
func outcomeName(o grlv1.RunOutcome) string {
	for _, n := range outcomeNames {
		if n.outcome == o {
			return n.name
		}
	}
	return "unknown"
}

// found says how many results have each outcome: "46 proposed, 24 refused".
func found(run *grlv1.Run) string {
	var parts []string
	for _, n := range outcomeNames {
		if count := outcome(run, n.outcome); count > 0 {
			parts = append(parts, format.Count(count)+" "+n.name)
		}
	}
	return strings.Join(parts, ", ")
}

// cutCommit cuts the name of a commit as git does.
func cutCommit(commit string) string {
	const most = 10
	text := []rune(format.Printable(commit))
	return string(text[:min(len(text), most)])
}

// mostConflicts is how many disagreements of repository and edits are listed.
const mostConflicts = 10

func newConfiguratorView(c *grlv1.GetConfiguratorResponse, now time.Time) configuratorView {
	s, holder, seen := c.GetStatus(), format.Printable(c.GetHolder()), moment(c.GetSeenAtMs())
	v := configuratorView{Kind: "good", Icon: "ok", Word: "At work", Problem: format.Printable(s.GetRepositoryProblem())}
	switch {
	case holder == "":
		return configuratorView{
			Kind: "waiting", Icon: "clock", Word: "None yet",
			Text: "No configurator has attended yet: limits stay as people write them. Start one:", Command: "grl serve --role configurator",
		}
	case c.GetAbsent():
		v.Kind, v.Icon, v.Word = "over", "clock", "Absent"
		v.Text = "None has attended for " + format.Age(now.Sub(time.UnixMilli(c.GetSeenAtMs()))) + ". Limits stay as they are; hourly ones go on by their table."
	case s.GetRun() > 0:
		v.Kind, v.Icon, v.Word = "waiting", "clock", "Computing"
	}
	v.Facts = []fact{{Name: "Holder", Value: holder}, {Name: "Seen", At: seen}}
	if s.GetRun() > 0 && !c.GetAbsent() {
		v.Facts = append(v.Facts, fact{
			Name: "Run " + strconv.FormatUint(s.GetRun(), 10), Path: runPath(s.GetRun()),
			Value: format.Count(int(s.GetDone())) + " of " + format.Count(int(s.GetBuckets())),
		})
	}
	v.Facts = append(v.Facts, statusFacts(s)...)
	v.conflicts(s.GetConflicts())
	return v
}

// statusFacts are what a configurator says of itself.
func statusFacts(s *grlv1.ConfiguratorStatus) []fact {
	facts := []fact{{Name: "History from", Value: sourceName(s.GetSource())}}
	if s.GetRepository() == "" {
		facts = append(facts, fact{Name: "Repository", Value: "none"})
	} else {
		facts = append(facts, fact{Name: "Repository", Value: format.Printable(s.GetRepository())})
		if s.GetCommit() != "" {
			facts = append(facts, fact{Name: "Commit", Value: cutCommit(s.GetCommit())})
		}
		if s.GetSyncedAtMs() > 0 {
			facts = append(facts, fact{Name: "In step since", At: moment(s.GetSyncedAtMs())})
		}
	}
	if s.GetNextAtMs() > 0 {
		facts = append(facts, fact{Name: "Next run", At: moment(s.GetNextAtMs())})
	}
	return append(facts, fact{Name: "Version", Value: format.Printable(s.GetVersion())})
}

// sourceName says where history comes from.
func sourceName(source string) string {
	switch source {
	case "":
		return "unknown"
	case "history":
		return "the controller"
	}
	return format.Printable(source)
}

// conflicts lists where files and later edits disagree.
func (v *configuratorView) conflicts(all []*grlv1.Conflict) {
	for _, c := range all[:min(len(all), mostConflicts)] {
		v.Conflicts = append(v.Conflicts, fmt.Sprintf("%s: changed in r%d by %s, and otherwise in the repository",
			format.Printable(c.GetBucket()), c.GetRevision().GetNumber(), format.Printable(c.GetRevision().GetAuthor())))
	}
	if more := len(all) - mostConflicts; more > 0 {
		v.More = "and " + format.Count(more) + " more"
	}
}

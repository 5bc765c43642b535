package runs

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	grlv1 "grl/proto/grl/v1"
	"grl/proto/grl/v1/grlv1connect"
	"grl/web/format"
	"grl/web/page"
)

const (
	resultRows = 50
	// mostResults is how many of an outcome are looked through: what one call
	// returns.
	mostResults = 10_000
)

// runView is the page of one run.
type runView struct {
	Query            query
	Number           string
	Kind, Icon, Word string // of its state
	Running          bool
	Progress         string
	Facts            []fact
	Stats            []stat
	Error            string
	Notices          []page.Notice
	Tabs             []tab
	Rows             []row
	Pager            page.Pager
	Empty            string // why there are no rows
	Policies         []page.Choice
	LeftOut          string // that more results are there than were looked through
	MayDecide        bool   // rows of this page can be chosen
	Chosen           chosenView
	ChooseAll        string // URL; empty: nothing to choose
	ChooseNone       string // URL; empty: nothing is chosen
	ChooseCount      string
	Spared           string // what "choose all" leaves out
	Elsewhere        bool   // all is chosen, and other pages have some of it
	MayForce         bool
	Force            bool // ticked
	Reason           string
	ReasonProblem    string
	Refusal          page.Refusal
	RollBack         string // URL; empty: nothing to roll back, or not allowed
	Viewer           bool   // looks, and may not decide
	MayAsk           bool
}

// stat is a number of the page.
type stat struct{ Name, Value, More string }

// tab is a link to some of the results.
type tab struct {
	Name, Count, URL string
	Current          bool
}

// chosenView says what is ticked, and what that would do.
type chosenView struct {
	Count       int
	Text, Other string
	Buckets     []string // ticked ones that the page does not show
}

func (s site) serveRun(w http.ResponseWriter, r *http.Request) {
	s.renderRun(w, r, http.StatusOK, runView{Query: queryOf(r)}, nil)
}

// renderRun fills v and shows it; ticked are the buckets that are chosen.
func (s site) renderRun(w http.ResponseWriter, r *http.Request, status int, v runView, ticked map[string]bool) {
	if v.Query.ID == 0 {
		s.Fail(w, r, errNoRun())
		return
	}
	run, results, err := s.read(r.Context(), &v)
	if err != nil {
		s.Fail(w, r, err)
		return
	}
	v.head(run)
	if page.Fragment(r) {
		s.Render(w, r, status, headRegion(v))
		return
	}
	v.Viewer = !page.May(r.Context(), grlv1connect.RLCServiceDecideProposalsProcedure)
	v.MayAsk = page.May(r.Context(), grlv1connect.RLCServiceRequestRunProcedure)
	v.MayForce = page.MayForce(r.Context())
	if page.May(r.Context(), grlv1connect.ConfigServiceRollbackProcedure) && madeRevision(run, results) {
		v.RollBack = fmt.Sprintf("/rlc/rollback?id=%d", run.GetId())
	}
	s.decided(r, &v, run, results)
	v.fill(run, results, s.editable(r.Context()), ticked)
	p := s.Page(r, "RLC run "+v.Number, "/rlc")
	p.Crumbs = []page.Crumb{{Name: "RLC runs", Path: "/rlc"}, {Name: "Run " + v.Number}}
	s.Render(w, r, status, runPage(p, v))
}

// read returns the run, and the results that its tab is made of; of proposals
// all, since three tabs share them. A run that is not too large is read at once.
func (s site) read(ctx context.Context, v *runView) (*grlv1.Run, []*grlv1.RunResult, error) {
	get := func(o grlv1.RunOutcome) (*grlv1.GetRunResponse, error) {
		return s.Services.RLC.GetRun(ctx, &grlv1.GetRunRequest{Id: v.Query.ID, Outcome: o, PageSize: mostResults})
	}
	all, err := get(grlv1.RunOutcome_RUN_OUTCOME_UNSPECIFIED)
	if err != nil {
		return nil, nil, err
	}
	if v.Query.Tab == "" {
		v.Query.Tab = firstTab(all.GetRun())
	}
	if all.GetTotal() <= mostResults {
		return all.GetRun(), all.GetResults(), nil
	}
	wanted := []grlv1.RunOutcome{grlv1.RunOutcome_RUN_OUTCOME_PROPOSED}
	if !decides(v.Query.Tab) {
		wanted = append(wanted, outcomesOf(v.Query.Tab)...)
	}
	var results []*grlv1.RunResult
	for _, o := range wanted {
		some, err := get(o)
		if err != nil {
			return nil, nil, err
		}
		results = append(results, some.GetResults()...)
		if some.GetTotal() > mostResults {
			v.LeftOut = fmt.Sprintf("Of %s results the first %s are looked through.", format.Count(int(some.GetTotal())), format.Count(mostResults))
		}
	}
	return all.GetRun(), results, nil
}

// firstTab is the tab of what most likely is looked for.
func firstTab(run *grlv1.Run) string {
	for _, t := range tabs {
		for _, o := range t.outcomes {
			if outcome(run, o) > 0 {
				return t.tab
			}
		}
	}
	return tabProposed
}

// madeRevision reports whether something of a run is in the configuration.
func madeRevision(run *grlv1.Run, results []*grlv1.RunResult) bool {
	return run.GetBaseRevision() > 0 && (run.GetRevision() > 0 ||
		slices.ContainsFunc(results, func(m *grlv1.RunResult) bool { return m.GetRevision() > 0 }))
}

// head sets what is said of the run as a whole.
func (v *runView) head(run *grlv1.Run) {
	v.Number = strconv.FormatUint(run.GetId(), 10)
	v.Kind, v.Icon, v.Word = stateOf(run)
	v.Running = run.GetState() == grlv1.Run_STATE_RUNNING
	v.Progress = progress(run)
	v.Error = format.Printable(run.GetError())
	v.Facts = []fact{{Name: "started", At: moment(run.GetStartedAtMs())}}
	if run.GetFinishedAtMs() > 0 {
		v.Facts = append(v.Facts, fact{Name: "took", Value: format.Age(time.Duration(run.GetFinishedAtMs()-run.GetStartedAtMs()) * time.Millisecond)})
	}
	v.Facts = append(v.Facts,
		fact{Name: "by", Value: whyRun(run)},
		fact{Name: "history from", Value: sourceName(run.GetSource())},
		fact{Name: "policies", Value: fmt.Sprintf("version %d", run.GetPolicyRevision())},
		fact{Name: "compared with", Value: fmt.Sprintf("r%d", run.GetBaseRevision())})
	if run.GetRevision() > 0 {
		v.Facts = append(v.Facts, fact{Name: "made", Value: strings.TrimSuffix(fmt.Sprintf("r%d, %s", run.GetRevision(), format.Printable(run.GetVerified())), ", ")})
	}
	if run.GetCommit() != "" {
		v.Facts = append(v.Facts, fact{Name: "commit", Value: cutCommit(run.GetCommit())})
	}
	taken := outcome(run, grlv1.RunOutcome_RUN_OUTCOME_APPLIED) + outcome(run, grlv1.RunOutcome_RUN_OUTCOME_SHADOWED) + outcome(run, grlv1.RunOutcome_RUN_OUTCOME_PROMOTED)
	v.Stats = []stat{
		{Name: "Buckets looked at", Value: format.Count(int(run.GetDone()))},
		{Name: "Unchanged", Value: format.Count(outcome(run, grlv1.RunOutcome_RUN_OUTCOME_UNCHANGED)), More: "right as they are"},
		{Name: "Proposed", Value: format.Count(outcome(run, grlv1.RunOutcome_RUN_OUTCOME_PROPOSED)), More: "a person decides"},
		{Name: "Taken", Value: format.Count(taken), More: takenText(run)},
		{Name: "Refused", Value: format.Count(outcome(run, grlv1.RunOutcome_RUN_OUTCOME_REFUSED)), More: "history is not fit"},
		{Name: "Failed", Value: format.Count(outcome(run, grlv1.RunOutcome_RUN_OUTCOME_FAILED))},
	}
}

// takenText says how limits were taken.
func takenText(run *grlv1.Run) string {
	var parts []string
	for _, o := range []grlv1.RunOutcome{grlv1.RunOutcome_RUN_OUTCOME_APPLIED, grlv1.RunOutcome_RUN_OUTCOME_SHADOWED, grlv1.RunOutcome_RUN_OUTCOME_PROMOTED} {
		if n := outcome(run, o); n > 0 {
			parts = append(parts, format.Count(n)+" "+outcomeName(o))
		}
	}
	return strings.Join(parts, ", ")
}

// fill sets tabs, rows and what is chosen.
func (v *runView) fill(run *grlv1.Run, results []*grlv1.RunResult, may func(service string) bool, ticked map[string]bool) {
	v.tabs(run, results)
	v.policies(results)
	var shown []*grlv1.RunResult
	for _, m := range results {
		if slices.Contains(outcomesOf(v.Query.Tab), m.GetOutcome()) && v.Query.selects(m) {
			shown = append(shown, m)
		}
	}
	slices.SortStableFunc(shown, func(a, b *grlv1.RunResult) int { return rank(a) - rank(b) })
	pager, from, to := page.NewPager(len(shown), resultRows, v.Query.Page, func(n int) string { return v.Query.at(n).path() })
	v.Pager = pager
	decidable := decides(v.Query.Tab) && !v.Running && !run.GetDryRun()
	mayChoose := func(m *grlv1.RunResult) bool { return decidable && waits(m) && may(serviceOf(m.GetBucket())) }
	if v.Query.All {
		ticked = make(map[string]bool)
		for _, m := range shown {
			if mayChoose(m) && v.Query.chosen(m) {
				ticked[m.GetBucket()] = true
			}
		}
	}
	for i, m := range shown[from:to] {
		r := newRow(m, i)
		r.May = mayChoose(m)
		r.Ticked = r.May && ticked[r.Bucket]
		v.Rows = append(v.Rows, r)
	}
	v.choose(shown, mayChoose)
	v.chosen(results, shown[from:to], ticked)
	if len(shown) == 0 {
		v.Empty = "Nothing here"
		if v.Query.narrowed() {
			v.Empty = "Nothing matches"
		}
	}
}

// rank puts what waits first, then what was decided, then what is superseded.
func rank(m *grlv1.RunResult) int {
	switch m.GetState() {
	case grlv1.ProposalState_PROPOSAL_STATE_PENDING, grlv1.ProposalState_PROPOSAL_STATE_UNSPECIFIED:
		return 0
	case grlv1.ProposalState_PROPOSAL_STATE_SUPERSEDED:
		return 2
	}
	return 1
}

// tabs sets the tabs with their counts, those without results left out but for
// that which is shown.
func (v *runView) tabs(run *grlv1.Run, results []*grlv1.RunResult) {
	falls, leaps := 0, 0
	for _, m := range results {
		if m.GetOutcome() != grlv1.RunOutcome_RUN_OUTCOME_PROPOSED {
			continue
		}
		if lower(m) {
			falls++
		}
		if large(m) {
			leaps++
		}
	}
	for _, t := range tabs {
		count := 0
		for _, o := range t.outcomes {
			count += outcome(run, o)
		}
		switch t.tab {
		case tabLower:
			count = falls
		case tabLarge:
			count = leaps
		}
		if current := v.Query.Tab == t.tab; count > 0 || current || t.tab == tabProposed {
			v.Tabs = append(v.Tabs, tab{Name: t.name, Count: format.Count(count), URL: v.Query.in(t.tab).path(), Current: current})
		}
	}
}

// policies sets by which policies one can filter.
func (v *runView) policies(results []*grlv1.RunResult) {
	var names []string
	seen := make(map[string]bool)
	for _, m := range results {
		if p := m.GetPolicy(); p != "" && !seen[p] {
			seen[p] = true
			names = append(names, p)
		}
	}
	slices.Sort(names)
	for _, name := range names[:min(len(names), mostChoices)] {
		v.Policies = append(v.Policies, page.Choice{Value: name, Name: format.Printable(name)})
	}
}

// mostChoices bounds a select.
const mostChoices = 200

// choose sets how to choose all that the tab shows.
func (v *runView) choose(shown []*grlv1.RunResult, may func(*grlv1.RunResult) bool) {
	all, lowered, leaping := 0, 0, 0
	for _, m := range shown {
		switch {
		case !may(m):
		case v.Query.chosen(m):
			all++
		case lower(m):
			lowered++
		default:
			leaping++
		}
	}
	v.MayDecide = all+lowered+leaping > 0
	q := v.Query
	if v.Query.All {
		q.All = false
		v.ChooseNone = q.path()
	} else if all > 0 {
		q.All = true
		v.ChooseAll, v.ChooseCount = q.path(), format.Count(all)
	}
	var spared []string
	if lowered > 0 {
		spared = append(spared, format.Count(lowered)+" lower")
	}
	if leaping > 0 {
		spared = append(spared, format.Count(leaping)+" over ±20%")
	}
	if len(spared) > 0 {
		v.Spared = "Without " + strings.Join(spared, " and ") + ": they have tabs of their own."
	}
}

// chosen says what the ticked ones would do together.
func (v *runView) chosen(results, shown []*grlv1.RunResult, ticked map[string]bool) {
	higher, falling, fresh, over, days := 0, 0, 0, 0, 0
	onPage := make(map[string]bool, len(shown))
	for _, m := range shown {
		onPage[m.GetBucket()] = true
	}
	for _, m := range results {
		if !ticked[m.GetBucket()] || m.GetOutcome() != grlv1.RunOutcome_RUN_OUTCOME_PROPOSED {
			continue
		}
		v.Chosen.Count++
		before, after, known := moved(m)
		switch {
		case !known:
			fresh++
		case after < before:
			falling++
		default:
			higher++
		}
		o, k := daysOver(m)
		over, days = over+o, days+k
		if !onPage[m.GetBucket()] {
			v.Elsewhere = true
			if !v.Query.All {
				v.Chosen.Buckets = append(v.Chosen.Buckets, m.GetBucket())
			}
		}
	}
	if v.Chosen.Count == 0 {
		return
	}
	v.Chosen.Text = format.Count(v.Chosen.Count) + " chosen"
	var parts []string
	for _, n := range []struct {
		count int
		word  string
	}{{higher, "higher"}, {falling, "lower"}, {fresh, "new"}} {
		if n.count > 0 {
			parts = append(parts, format.Count(n.count)+" "+n.word)
		}
	}
	v.Chosen.Other = strings.Join(parts, ", ") + overText(over, days)
}

// overText says on how many days the highest minute was above the new limits.
func overText(over, days int) string {
	if days == 0 {
		return "; their history is not known"
	}
	if over == 0 {
		return "; no day’s highest minute was above its new limit"
	}
	return fmt.Sprintf("; the highest minute of %s of %s days was above its new limit", format.Count(over), format.Count(days))
}

package policies

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"grl/policy"
	grlv1 "grl/proto/grl/v1"
	"grl/proto/grl/v1/grlv1connect"
	"grl/web/diff"
	"grl/web/format"
	"grl/web/page"
)

// listView is the page of all policies.
type listView struct {
	Rows     []policyRow
	Versions []versionRow
	Older    string // URL; empty: none
	Notices  []page.Notice
	Refusal  page.Refusal
	MayNew   bool
}

// policyRow is one policy, ready to print.
type policyRow struct {
	Name, Path, What string
	Buckets          string
	BucketsPath      string
	Here             bool
}

// versionRow is a revision of the policies.
type versionRow struct {
	Number, Path string
	Author       string
	Reason       string
	At           format.Stamp
	Active       bool
}

// oneView is the page of one policy.
type oneView struct {
	Name, Title string
	New         bool
	Note        string
	Rows        []policyRow
	Base        string // revision that the form was made from
	YAML        bool   // as YAML; else as a form
	OnlyYAML    string // why there is no form; "": there is one
	Text        string // YAML
	Values      values
	Faults      faults
	Lost        bool // a form edit loses comments
	Fields      formView
	Matches     string
	BucketsPath string
	May         bool
	MayDelete   bool
	Viewer      string // why there is no form
	Notices     []page.Notice
	Refusal     page.Refusal
	Conflict    *conflictView
	Reason      string
	Delete      string // reason typed into the form that deletes
	// DeleteProblem is what is wrong with that reason; "": nothing.
	DeleteProblem string
	Cell          cellQuery
	Trial         *trialView // nil: asked for by the page
	TrialURL      string
	Versions      []versionRow
	// VersionsNote says that not all were looked through.
	VersionsNote string
	FormURL      string
	YAMLURL      string
	Next         string // number of the version that saving makes
}

// conflictView is both versions of a policy that two people changed.
type conflictView struct {
	Theirs, Yours         string // headings
	TheirsNote, YoursNote string
	TheirLines, OurLines  []diff.Line
	Keep                  string // URL
}

const versionRows = 20

func (s site) serveList(w http.ResponseWriter, r *http.Request) {
	s.renderList(w, r, http.StatusOK, listView{})
}

func (s site) renderList(w http.ResponseWriter, r *http.Request, status int, v listView) {
	ctx, q := r.Context(), r.URL.Query()
	all, err := s.read(ctx, 0)
	if err != nil {
		s.Fail(w, r, err)
		return
	}
	v.Rows = all.rows("")
	versions, err := s.Services.Policy.ListPolicyRevisions(ctx, &grlv1.ListPolicyRevisionsRequest{Before: number(q, "before"), PageSize: versionRows + 1})
	if err != nil {
		s.Fail(w, r, err)
		return
	}
	list := versions.GetRevisions()
	if len(list) > versionRows {
		list = list[:versionRows]
		v.Older = path("/policies", "before", digits(list[versionRows-1].GetNumber()))
	}
	for _, n := range list {
		v.Versions = append(v.Versions, newVersionRow(n, all.revision.GetNumber()))
	}
	v.MayNew = page.May(ctx, grlv1connect.PolicyServiceApplyPoliciesProcedure)
	if n := number(q, "done"); n > 0 && r.Method == http.MethodGet {
		v.Notices = append(v.Notices, doneNotice(list, n, all.revision.GetNumber()))
	}
	s.Render(w, r, status, listPage(s.Page(r, "Policies", "/policies"), v))
}

// doneNotice says what a revision did, as it can be read back.
func doneNotice(list []*grlv1.Revision, number, active uint64) page.Notice {
	for _, n := range list {
		if n.GetNumber() == number {
			title := fmt.Sprintf("Saved as version %d", number)
			if number == active {
				title += " and active"
			}
			return page.Notice{Kind: "good", Title: title, Text: format.Printable(n.GetReason())}
		}
	}
	return page.Notice{Kind: "warn", Title: fmt.Sprintf("Version %d is not there", number), Text: fmt.Sprintf("Version %d is active.", active)}
}

func newVersionRow(n *grlv1.Revision, active uint64) versionRow {
	return versionRow{
		Number: digits(n.GetNumber()), Path: path("/policies/version", "number", digits(n.GetNumber())), Author: format.Printable(n.GetAuthor()),
		Reason: format.Printable(n.GetReason()), At: moment(n.GetAtMs()), Active: n.GetNumber() == active,
	}
}

// rows lists the policies in the order of matching; those that cannot be read
// come last, since they compute nothing.
func (s set) rows(here string) []policyRow {
	var rows []policyRow
	add := func(p *grlv1.Policy) {
		rows = append(rows, policyRow{
			Name: format.Printable(p.GetName()), Path: path("/policies/show", "name", p.GetName()), What: kindText(p),
			Buckets: format.Count(int(p.GetBuckets())), BucketsPath: path("/policies/buckets", "name", p.GetName()), Here: p.GetName() == here,
		})
	}
	for i := range s.specs {
		if p := s.of(s.specs[i].Name); p != nil {
			add(p)
		}
	}
	for _, p := range s.policies {
		if s.spec(p.GetName()) == nil {
			add(p)
		}
	}
	return rows
}

func (s site) serveOne(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	all, err := s.read(r.Context(), 0)
	if err != nil {
		s.Fail(w, r, err)
		return
	}
	v := oneView{Name: q.Get("name"), YAML: q.Get("as") == "yaml", Cell: cellQuery{q.Get("bucket"), q.Get("instance"), q.Get("caller")}}
	if n := number(q, "saved"); n > 0 {
		v.Notices = append(v.Notices, s.savedNotice(r, v.Name, n, all))
	}
	s.renderOne(w, r, http.StatusOK, v, all)
}

// savedNotice says that a policy was saved, as it is read back.
func (s site) savedNotice(r *http.Request, name string, revision uint64, all set) page.Notice {
	was, err := s.at(r.Context(), revision)
	if err != nil {
		return page.Notice{Kind: "warn", Title: fmt.Sprintf("Version %d is not there", revision)}
	}
	saved, is := was.of(name), all.of(name)
	n := page.Notice{Kind: "good", Title: fmt.Sprintf("Saved as version %d and active", revision), Text: "The next cycle computes by it."}
	switch {
	case saved == nil:
		return page.Notice{Kind: "warn", Title: fmt.Sprintf("Version %d does not have this policy", revision)}
	case is == nil || string(is.GetData()) != string(saved.GetData()):
		n.Title, n.Text = fmt.Sprintf("Saved as version %d", revision), fmt.Sprintf("It was changed since: version %d is active.", all.revision.GetNumber())
	}
	return n
}

func (s site) serveNew(w http.ResponseWriter, r *http.Request) {
	all, err := s.read(r.Context(), 0)
	if err != nil {
		s.Fail(w, r, err)
		return
	}
	v := oneView{New: true, YAML: r.URL.Query().Get("as") == "yaml", Values: values{"kind": "peak", "mode": "propose"}}
	if v.YAML {
		v.Text = exampleYAML
	}
	s.renderOne(w, r, http.StatusOK, v, all)
}

// exampleYAML is what a new policy begins as.
const exampleYAML = `name: nightly
kind: peak
mode: propose        # a person approves each change
match: {service: "*"}
`

// renderOne fills v, as far as it is not filled, and shows it.
func (s site) renderOne(w http.ResponseWriter, r *http.Request, status int, v oneView, all set) {
	ctx := r.Context()
	p, spec := all.of(v.Name), all.spec(v.Name)
	if p == nil && !v.New && v.Base == "" {
		s.Fail(w, r, errNoPolicy())
		return
	}
	v.Title, v.Rows = format.Printable(v.Name), all.rows(v.Name)
	if v.Base == "" {
		v.Base = digits(all.revision.GetNumber())
	}
	v.Next = digits(all.revision.GetNumber() + 1)
	v.may(ctx, s, spec)
	v.content(p)
	if v.New {
		v.Title = "New policy"
		v.FormURL, v.YAMLURL = "/policies/new", "/policies/new?as=yaml"
	} else {
		v.FormURL, v.YAMLURL = path("/policies/show", "name", v.Name), path("/policies/show", "name", v.Name, "as", "yaml")
		v.BucketsPath = path("/policies/buckets", "name", v.Name)
		v.Note = kindText(p)
	}
	v.Fields = newFormView(v)
	if spec != nil && v.Matches == "" && !v.New {
		v.Matches = s.match(spec, all.specs).text()
	}
	if v.Trial == nil && spec != nil && !v.New {
		v.TrialURL = path("/policies/trial", "name", v.Name, "bucket", v.Cell.Bucket, "instance", v.Cell.Instance, "caller", v.Cell.Caller)
	}
	if err := s.versions(ctx, &v, all.revision.GetNumber()); err != nil {
		s.Fail(w, r, err)
		return
	}
	pg := s.Page(r, v.Title, "/policies")
	pg.Crumbs = []page.Crumb{{Name: "Policies", Path: "/policies"}, {Name: v.Title}}
	s.Render(w, r, status, onePage(pg, v))
}

// may sets what who looks may do.
func (v *oneView) may(ctx context.Context, s site, spec *policy.Spec) {
	may := page.May(ctx, grlv1connect.PolicyServiceApplyPoliciesProcedure)
	switch {
	case v.New:
		v.May = may
	default:
		v.May = s.mayEdit(ctx, spec)
		v.MayDelete = v.May
	}
	switch {
	case v.May:
	case may:
		v.Viewer = "You can look, not change: this needs the right to change the one service that the policy names, or the role admin."
	default:
		v.Viewer = "You can look, not change: your role is viewer."
	}
}

// content sets the form or the text.
func (v *oneView) content(p *grlv1.Policy) {
	if v.Text == "" {
		v.Text = string(p.GetData())
	}
	fields, ok := valuesOf(p.GetData())
	switch {
	case v.Values != nil || v.New:
	case ok:
		v.Values = fields
	default:
		v.YAML, v.OnlyYAML = true, "It has more than the form shows: it is edited as YAML."
	}
	if !v.YAML && p != nil {
		_, v.Lost = compose(p.GetData(), v.Values)
	}
}

// lookedThrough is how many of the newest versions are looked through for those
// that changed one policy.
const lookedThrough = 100

// versions sets who changed this policy, of the newest versions of all.
func (s site) versions(ctx context.Context, v *oneView, active uint64) error {
	if v.New {
		return nil
	}
	list, err := s.Services.Policy.ListPolicyRevisions(ctx, &grlv1.ListPolicyRevisionsRequest{Name: v.Name, PageSize: lookedThrough})
	if err != nil {
		return err
	}
	for i, n := range list.GetRevisions()[:min(len(list.GetRevisions()), versionRows)] {
		row := newVersionRow(n, active)
		row.Active = i == 0
		v.Versions = append(v.Versions, row)
	}
	if active > lookedThrough {
		v.VersionsNote = "of the newest " + format.Count(lookedThrough)
	}
	return nil
}

// formView is the form, ready to print.
type formView struct {
	Name, Kind, Mode          page.Field
	Kinds, Modes, Discovers   []page.Choice
	Match, Main, More         []page.Field
	MoreOpen                  bool // something is wrong with one of More or Discover
	DiscoverBy, DiscoverLeast page.Field
	Lists                     []listForm
	ShowMain                  bool // Main has something to say: a quota looks at no history
}

// listForm is a list of the form: the items there are, and one more to fill in.
type listForm struct {
	Title, Hint string
	Items       [][]page.Field
	Open        bool // it has items
}

// kindNames say what a kind does.
var kindNames = map[string]string{
	"peak":     "peak: peak of the history, with a learnt buffer",
	"forecast": "forecast: a limit for each hour of the day",
	"live":     "live: every 5 minutes, from the last 2 hours",
	"quota":    "quota: as agreed",
}

// labels are the words for the fields.
var labels = map[string]page.Field{
	"match.service": {Label: "Service", Hint: "A name, a beginning and *, or * for all."},
	"match.caller":  {Label: "Caller", Hint: "Of the bucket’s own match."},
	"match.bucket":  {Label: "Bucket", Hint: "Its name in the service."},
	"history":       {Label: "History", Hint: "1 to 26 weeks, as 4w or 28d. Empty: 4w."},
	"max_step":      {Label: "Largest step down", Number: true, Hint: "A share of the limit a cycle, at most 1. Empty: 0.2."},
	"floor":         {Label: "Floor", Number: true, Unit: "rps"},
	"ceiling":       {Label: "Ceiling", Number: true, Unit: "rps"},
	"cycle":         {Label: "Cycle", Hint: "Five fields of cron. Empty: as the kind needs."},
	"time_zone":     {Label: "Time zone", Hint: "Such as Europe/Berlin. Empty: UTC."},
	"round":         {Label: "Significant digits", Number: true, Hint: "0 to 6; 0: not rounded. Empty: 2."},
	"promote_after": {Label: "Promote after", Hint: "Clean days in shadow, as 14d. Empty: a person promotes."},
	"params.second_over_minute": {
		Label: "Highest second over the minute’s mean", Number: true, Hint: "Where the history has no seconds. Empty: as measured.",
	},
	"discover.min_rps": {Label: "From", Number: true, Unit: "rps", Hint: "Mean of an hour."},
	"name":             {Label: "Name"}, "from": {Label: "From"}, "to": {Label: "To"}, "factor": {Label: "Factor", Number: true},
	"rps": {Label: "Limit", Number: true, Unit: "rps"}, "reason": {Label: "Reason"}, "service": {Label: "Service"}, "regions": {Label: "Regions"},
}

func newFormView(v oneView) formView {
	field := func(key, label string) page.Field {
		f := labels[label]
		f.Name, f.Value, f.Error = key, v.Values[key], v.Faults.at[key]
		return f
	}
	fields := func(keys ...string) (all []page.Field) {
		for _, key := range keys {
			all = append(all, field(key, key))
		}
		return all
	}
	f := formView{
		Name: field("name", "name"), Kind: field("kind", ""), Mode: field("mode", ""),
		Match: fields("match.service", "match.caller", "match.bucket"),
		Main:  fields("history", "max_step", "floor", "ceiling"),
		More:  fields("cycle", "time_zone", "round", "promote_after", "params.second_over_minute"),
		Modes: []page.Choice{
			{Value: "propose", Name: "propose: a person approves"}, {Value: "shadow", Name: "shadow: written as candidate"}, {Value: "apply", Name: "apply: at once"},
		},
		Discovers:     []page.Choice{{Value: "", Name: "does not"}, {Value: "caller", Name: "by caller"}, {Value: "procedure", Name: "by procedure"}, {Value: "both", Name: "by both"}},
		DiscoverBy:    field("discover.by", ""),
		DiscoverLeast: field("discover.min_rps", "discover.min_rps"),
	}
	f.ShowMain = v.Values["kind"] != "quota" || slices.ContainsFunc(f.Main, func(f page.Field) bool { return f.Value != "" || f.Error != "" })
	f.Kind.Label, f.Mode.Label, f.DiscoverBy.Label = "Limit from", "Mode", "Discovers buckets"
	f.Name.Required = true
	for _, k := range policy.Kinds() {
		f.Kinds = append(f.Kinds, page.Choice{Value: k.Name, Name: kindNames[k.Name]})
	}
	if v.Values["mode"] == "" {
		f.Mode.Value = "propose"
	}
	f.MoreOpen = slices.ContainsFunc(append(slices.Clone(f.More), f.DiscoverBy, f.DiscoverLeast), func(f page.Field) bool { return f.Error != "" })
	f.Lists = listForms(v, field)
	return f
}

// listForms are the lists that the kind has.
func listForms(v oneView, field func(key, label string) page.Field) []listForm {
	var out []listForm
	for _, l := range []struct{ key, title, hint string }{
		{"quota", "Agreed limits", "The first that is valid holds. Regions as eu: 600, us: 300. From and to as 2026-11-27 or 2026-11-27 18:00."},
		{"events", "Events", "Times in which the load is expected to be factor times what it is."},
		{"capacity", "Planned capacity", "The ceiling from then on, in the order of time."},
		{"ignore", "Times that do not teach", "Incidents, attacks, outages; of one service if it says so."},
	} {
		n := v.Values.items(l.key)
		if quota := v.Values["kind"] == "quota"; n == 0 && quota != (l.key == "quota") {
			continue
		}
		form := listForm{Title: l.title, Hint: l.hint, Open: n > 0 || l.key == "quota"}
		for i := range min(n+1, mostItems) {
			var item []page.Field
			for _, name := range fieldsOf(lists, l.key) {
				f := field(fmt.Sprintf("%s[%d].%s", l.key, i, name), name)
				f.Label += " " + strconv.Itoa(i+1)
				item = append(item, f)
			}
			form.Items = append(form.Items, item)
		}
		out = append(out, form)
	}
	return out
}

// trigger is when the trial is asked for: while one types, and at once where it
// is not there yet.
func trigger(v oneView) string {
	const typing = "input delay:300ms from:#edit"
	if v.Trial == nil && v.TrialURL != "" {
		return "load, " + typing
	}
	return typing
}

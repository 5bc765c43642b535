package fleet

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	"grl/web/format"
	"grl/web/page"
)

const (
	branchRows = 50 // hosts of a zone, or zones of a region, on one page of it
	fewRows    = 8  // of them where a branch opens by itself
	fewZones   = 12 // a fleet with so many is shown unfolded
	maxName    = 80 // bytes of a name that are shown
)

// fleetView is the page, ready to print.
type fleetView struct {
	Stats   statsView
	Query   query
	URL     string
	Rows    []nodeRow
	Pager   *page.Pager // of a list; nil: it is a tree
	Any     bool        // there is a node besides the controller
	Cut     bool        // not all rows of the tree are shown
	Rollout *rolloutView
	Notices []page.Notice
	// Versions are the choices of the filter.
	Versions     []page.Choice
	Configurator *configuratorView // nil: not known
	MayFinish    bool              // the rollout
}

// nodeRow is one line of the table, every value ready to print.
type nodeRow struct {
	ID                          string // of the element, which stays that of the node
	Depth                       int
	Fold                        *fold // nil: nothing is below it
	Name, Role, Version         string
	State                       nodeState
	StateText                   string
	Revision                    string
	Behind                      bool
	ReportAge, Hosts            string
	Reports, BytesIn, BytesSent string // a second; "": not known
	Remark                      string
	More                        *more // in place of all else, if it is not nil
}

// fold opens a branch, or folds it.
type fold struct {
	URL, Label string
	Open       bool
}

// more leads to the rows of a branch that are not shown.
type more struct {
	Text, URL string // URL "": no link
	Pager     *page.Pager
}

// look makes the page of what a query wants.
func look(v *view, q query) fleetView {
	out := fleetView{Stats: v.stats(), Query: q, URL: q.url(), Any: len(v.fleet.Nodes)+len(v.fleet.SilentZones) > 0, Rollout: v.rollout(), Notices: v.notices()}
	out.Versions = append(out.Versions, page.Choice{Name: "Any"})
	for _, version := range v.all.sortedVersions() {
		out.Versions = append(out.Versions, page.Choice{Value: version, Name: format.Printable(cmp.Or(shorten(version, maxName), "not known"))})
	}
	if q.narrowed() {
		out.list(v)
		return out
	}
	t := tree{view: v, query: q}
	t.root()
	out.Rows, out.Cut = t.rows, t.cut
	return out
}

// list fills in the nodes that a filter lets through.
func (o *fleetView) list(v *view) {
	q := o.Query
	at := func(number int) string {
		q.In, q.Page = "", number
		return q.url()
	}
	lower := q
	lower.Text = strings.ToLower(q.Text)
	nodes, p := v.window(lower.wants, branchRows, q.page(""), at)
	o.Pager = &p
	for _, i := range nodes {
		n := &v.fleet.Nodes[i]
		r := v.row(n, v.state(n), 0)
		r.Role = join(", ", r.Role, format.Printable(shorten(n.Zone, maxName)), format.Printable(shorten(n.Region, maxName)))
		o.Rows = append(o.Rows, r)
	}
}

// tree is the table while it is made.
type tree struct {
	*view
	query query
	rows  []nodeRow
	size  int  // of the rows, in bytes, about
	cut   bool // there was no room for all
}

// add adds a row, if there is room.
func (t *tree) add(r nodeRow) bool {
	const frame, most = 1100, 150_000 // bytes of a row, and of all
	t.size += frame + 2*len(r.Name) + len(r.Role) + 3*len(r.Version) + len(r.Remark)
	if r.Fold != nil {
		t.size += len(r.Fold.URL) + len(r.Fold.Label)
	}
	if t.cut = t.cut || t.size > most; t.cut {
		return false
	}
	t.rows = append(t.rows, r)
	return true
}

// root adds the controller that answers, and what is below it.
func (t *tree) root() {
	t.add(t.controllerRow())
	few := len(t.zones) <= fewZones
	for _, r := range t.regions {
		if r.name == "" && len(r.heads) == 0 { // zones without a region
			t.zonesOf(r, 1, true)
			continue
		}
		t.region(r, few)
	}
}

// region adds a region, with its controller if it has one.
func (t *tree) region(r *branch, few bool) {
	key := "r." + r.name
	byItself := few || r.worst.trouble()
	row := t.branchRow(r, 1, key, "region")
	for _, i := range r.heads {
		n := &t.fleet.Nodes[i]
		t.fill(&row, n, t.state(n))
		row.Role = "controller, regional"
	}
	if len(r.heads) == 0 {
		row.State, row.StateText = r.worst, t.sayZones(r)
	}
	if t.silent["region "+r.name] {
		row.State, row.StateText, row.Remark = nodeCutOff, t.cutOffFor("region "+r.name), t.sayCutOff("region "+r.name)
	}
	row.Hosts = format.Count(r.hosts)
	if len(r.zones) > 0 {
		row.Fold = t.fold(key, byItself, row.Name)
	}
	if t.add(row) && len(r.zones) > 0 && t.query.isOpen(key, byItself) {
		t.zonesOf(r, 2, t.query.In == key || slices.Contains(t.query.Open, key) || few)
	}
}

// zonesOf adds the zones of a region: all, or those that need a look.
func (t *tree) zonesOf(r *branch, depth int, whole bool) {
	key := "r." + r.name
	shown := r.zones
	if !whole {
		shown = shown[:min(len(shown), max(troubled(shown), 1))]
	}
	at := func(number int) string { return t.query.whole(key, number) }
	p, from, to := page.NewPager(len(shown), branchRows, t.query.page(key), at)
	shown = shown[from:to]
	for _, z := range shown {
		t.zone(z, depth)
	}
	switch {
	case p.Previous != "" || p.Next != "":
		t.add(nodeRow{ID: idOf("more", key), Depth: depth, More: &more{Pager: &p, Text: "zones of " + printName(r.name)}})
	case len(shown) < len(r.zones):
		rest := len(r.zones) - len(shown)
		t.add(nodeRow{ID: idOf("more", key), Depth: depth, More: &more{Text: format.Plural(rest, "other zone") + ", all live", URL: at(1)}})
	}
}

// troubled returns how many branches, which come first, need a look.
func troubled(all []*branch) int {
	n := 0
	for _, b := range all {
		if b.worst.trouble() {
			n++
		}
	}
	return n
}

// zone adds a zone, with its aggregator if it has just one, and its hosts.
func (t *tree) zone(z *branch, depth int) {
	key := "z." + z.name
	byItself := z.worst.trouble() && z.worst != nodeCutOff
	row := t.branchRow(z, depth, key, "zone")
	switch len(z.heads) {
	case 0:
	case 1:
		n := &t.fleet.Nodes[z.heads[0]]
		t.fill(&row, n, t.state(n))
		row.Role = join(", ", "aggregator", printName(n.Name))
	default:
		row.Role = format.Plural(len(z.heads), "aggregator")
	}
	switch state := row.State; {
	case t.silent[z.name]:
		row.State, row.StateText, row.Remark = nodeCutOff, t.cutOffFor(z.name), t.sayCutOff(z.name)
	case z.worst < state:
		row.State, row.StateText = z.worst, z.sayWorst(t.view)
	}
	row.Hosts = format.Count(z.hosts)
	row.rate(z.rate, z.rated)
	if z.nodes > 0 {
		row.Fold = t.fold(key, byItself, row.Name)
	}
	if !t.add(row) || z.nodes == 0 || !t.query.isOpen(key, byItself) {
		return
	}
	t.hostsOf(z, key, depth+1, t.query.In == key || slices.Contains(t.query.Open, key))
}

// hostsOf adds the hosts of a zone, and its aggregators if it has several: all
// of them, or those that need a look.
func (t *tree) hostsOf(z *branch, key string, depth int, whole bool) {
	one := len(z.heads) == 1
	wanted := func(n *page.Node, s nodeState) bool {
		return n.Zone == z.name && n.Region == z.region && n.Role != "controller" && (whole || s.trouble()) && !(one && n.Role == "aggregator")
	}
	at := func(number int) string { return t.query.whole(key, number) }
	size := branchRows
	if !whole {
		size = fewRows
	}
	nodes, p := t.window(wanted, size, t.query.page(key), at)
	for _, i := range nodes {
		n := &t.fleet.Nodes[i]
		t.add(t.row(n, t.state(n), depth))
	}
	switch {
	case !whole && z.hosts > 0:
		t.add(nodeRow{ID: idOf("more", key), Depth: depth, More: &more{Text: "All " + format.Plural(z.hosts, "host") + " of " + printName(z.name), URL: at(1)}})
	case p.Previous != "" || p.Next != "":
		t.add(nodeRow{ID: idOf("more", key), Depth: depth, More: &more{Pager: &p, Text: "hosts of " + printName(z.name)}})
	}
}

func (t *tree) fold(key string, byItself bool, name string) *fold {
	f := &fold{URL: t.query.folded(key, byItself), Open: t.query.isOpen(key, byItself), Label: "Open " + name}
	if f.Open {
		f.Label = "Fold " + name
	}
	return f
}

// branchRow is a branch without a node of its own.
func (t *tree) branchRow(b *branch, depth int, key, role string) nodeRow {
	return nodeRow{
		ID: idOf(key), Depth: depth, Name: cmp.Or(printName(b.name), "no "+role), Role: role,
		State: nodeLive, StateText: "Live",
	}
}

func (v *view) cutOffFor(zone string) string {
	if since, ok := v.fleet.SilentFor[zone]; ok {
		return "Cut off " + format.Age(since)
	}
	return "Cut off"
}

// sayWorst says what is wrong with nodes of a branch.
func (b *branch) sayWorst(v *view) string {
	n := format.Count(b.states[b.worst])
	switch b.worst {
	case nodeRefused:
		return n + " refused"
	case nodeLate:
		return n + " without report"
	case nodeOff:
		return n + " drop nothing"
	case nodeBehind:
		return n + " behind"
	case nodeWaiting:
		return fmt.Sprintf("Waits for r%d", v.fleet.Revision)
	}
	return "Live"
}

// sayZones says how the zones are of a region that has no controller.
func (t *tree) sayZones(r *branch) string {
	if r.worst != nodeCutOff {
		return r.sayWorst(t.view)
	}
	cut := 0
	for _, z := range r.zones {
		if t.silent[z.name] {
			cut++
		}
	}
	return format.Count(cut) + " of " + format.Plural(len(r.zones), "zone") + " cut off"
}

// row is a node of its own.
func (v *view) row(n *page.Node, s nodeState, depth int) nodeRow {
	r := nodeRow{ID: idOf(n.Role, n.Zone, n.Name), Depth: depth, Name: printName(n.Name), Role: printName(n.Role)}
	v.fill(&r, n, s)
	rate, ok := v.sample.rate(v.now, n)
	r.rate(rate, ok)
	if n.Role != "client" {
		r.Hosts = format.Count(n.Hosts)
	}
	return r
}

// fill takes over what a node says of itself.
func (v *view) fill(r *nodeRow, n *page.Node, s nodeState) {
	r.State = s
	r.StateText, r.Remark = v.say(n, s)
	r.Version, r.Revision, r.Behind = printName(n.Version), revision(n.Revision), n.Revision < v.fleet.Revision
	r.ReportAge = format.Age(n.ReportAge)
	if n.Role != "client" {
		rate, ok := v.sample.rate(v.now, n)
		r.rate(rate, ok)
	}
}

func (r *nodeRow) rate(c counts, known bool) {
	r.Reports, r.BytesIn, r.BytesSent = "", "", ""
	if known {
		r.Reports, r.BytesIn, r.BytesSent = format.RPS(c.reports), perSecond(c.in), perSecond(c.out)
	}
}

// controllerRow is the controller that answers: it has no report to wait for.
func (v *view) controllerRow() nodeRow {
	n := &v.fleet.Controller
	r := nodeRow{
		ID: "answers", Name: printName(n.Name), Role: "controller, leads", Version: printName(n.Version), Revision: revision(n.Revision),
		State: nodeLive, StateText: "Live", Hosts: format.Count(v.fleet.Hosts()),
	}
	if v.fleet.Epoch > 0 {
		r.StateText = fmt.Sprintf("Leads, epoch %d", v.fleet.Epoch)
	}
	switch {
	case v.fleet.Follows:
		r.Role, r.StateText = "controller, follows", "Follows"
	case v.fleet.WarmingUp:
		r.State, r.StateText = nodeWarming, "Warming up"
	}
	if v.fleet.Alone {
		r.Remark = "Its parent is silent; global limits hold with the last share of this region."
	}
	var sum counts
	known := false
	for i := range v.fleet.Nodes {
		child := &v.fleet.Nodes[i]
		if child.Role == "client" {
			continue
		}
		if rate, ok := v.sample.rate(v.now, child); ok {
			sum, known = sum.plus(rate), true
		}
	}
	r.rate(sum, known)
	return r
}

// brief is what a narrow screen shows in place of the columns.
func (r nodeRow) brief() string { return join(", ", r.ReportAge, r.Version) }

// wants reports whether a filter, with a text in lower case, lets a node
// through.
func (q query) wants(n *page.Node, s nodeState) bool {
	switch q.Show {
	case "trouble":
		if !s.trouble() {
			return false
		}
	case "late":
		if s != nodeLate && s != nodeCutOff {
			return false
		}
	case "refused":
		if n.RefusedRevision == 0 {
			return false
		}
	case "behind":
		if s != nodeBehind && s != nodeWaiting {
			return false
		}
	case "off":
		if !n.DisabledHere {
			return false
		}
	}
	if q.Version != "" && n.Version != q.Version {
		return false
	}
	return q.Text == "" || contains(n.Name, q.Text) || contains(n.Zone, q.Text) || contains(n.Region, q.Text)
}

// contains reports whether a name has a text in it, whatever the case of either;
// text is in lower case.
func contains(name, text string) bool { return strings.Contains(strings.ToLower(name), text) }

// join joins the texts that are not empty.
func join(separator string, texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(s string) bool { return s == "" }), separator)
}

func revision(n uint64) string {
	if n == 0 {
		return "none"
	}
	return "r" + strconv.FormatUint(n, 10)
}

func printName(name string) string { return format.Printable(shorten(name, maxName)) }

func perSecond(bytes float64) string { return format.Bytes(uint64(bytes)) + "/s" }

// idOf returns an id for an element of what is named, whatever the names are.
func idOf(names ...string) string {
	h := fnv.New64a()
	for _, n := range names {
		_, _ = h.Write([]byte(n))
		_, _ = h.Write([]byte{0})
	}
	return "n" + strconv.FormatUint(h.Sum64(), 36)
}

// pad is the class that moves a row to the right.
func (r nodeRow) pad() string { return "tree__pad--" + strconv.Itoa(r.Depth) }

func (f *fold) expanded() string { return strconv.FormatBool(f.Open) }

func orDash(text string) string { return cmp.Or(text, "–") }

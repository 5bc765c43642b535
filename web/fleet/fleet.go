package fleet

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"grl/web/format"
	"grl/web/page"
)

const (
	fleetRows  = 50
	lateReport = 3 * time.Second // a report is due each second
)

// fleetView is the table of nodes.
type fleetView struct {
	Rows  []nodeRow
	Pager page.Pager
	URL   string // of this page of the table
	Any   bool   // there is a node besides the controller
}

// nodeRow is one line of it, every value ready to print.
// view is a fleet with what is said of its nodes.
type view struct{ *page.Fleet }

type nodeRow struct {
	Name, Role, Place, Version       string
	State                            nodeState
	StateText                        string
	Revision                         string
	Behind                           bool
	ReportAge, DirectiveAge, Hosts   string
	BytesReceived, BytesSent, Remark string
}

// nodeState says how a node is, the ones that need a look first.
type nodeState int

const (
	nodeCutOff nodeState = iota
	nodeRefused
	nodeLate
	nodeWarming
	nodeLive
)

func newFleetView(state page.Fleet, number int) fleetView {
	f := view{&state}
	// The controller that answers is always the first row.
	v := fleetView{Any: len(f.Nodes) > 0, Rows: []nodeRow{f.controllerRow()}}
	url := func(page int) string {
		if page <= 1 {
			return "/fleet"
		}
		return fmt.Sprintf("/fleet?page=%d", page)
	}
	p, from, to := page.NewPager(len(f.Nodes), fleetRows, number, url)
	v.Pager, v.URL = p, url(from/fleetRows+1)
	for _, i := range f.window(from, to) {
		v.Rows = append(v.Rows, f.row(&f.Nodes[i]))
	}
	return v
}

// window returns the places of the nodes from up to, not including, to: those
// that need a look first, then by where they are.
func (f view) window(from, to int) []int {
	states, all := make([]nodeState, len(f.Nodes)), make([]int, len(f.Nodes))
	for i := range f.Nodes {
		states[i], all[i] = f.state(&f.Nodes[i]), i
	}
	return page.Window(all, from, to, func(i, j int) int {
		if states[i] != states[j] {
			return cmp.Compare(states[i], states[j])
		}
		a, b := &f.Nodes[i], &f.Nodes[j]
		return cmp.Or(
			strings.Compare(a.Region, b.Region),
			strings.Compare(a.Zone, b.Zone),
			cmp.Compare(roleRank(a.Role), roleRank(b.Role)),
			strings.Compare(a.Name, b.Name),
		)
	})
}

// brief is what a narrow screen shows in place of the columns.
func (r nodeRow) brief() string {
	if r.ReportAge == "" || r.Version == "" {
		return r.ReportAge + r.Version
	}
	return r.ReportAge + ", " + r.Version
}

func roleRank(role string) int {
	return slices.Index([]string{"controller", "aggregator", "client"}, role)
}

func (f view) state(n *page.Node) nodeState {
	switch {
	case n.Zone != "" && slices.Contains(f.SilentZones, n.Zone):
		return nodeCutOff
	case n.RefusedRevision > 0:
		return nodeRefused
	case n.ReportAge > lateReport:
		return nodeLate
	}
	return nodeLive
}

func (f view) row(n *page.Node) nodeRow {
	r := f.baseRow(n)
	r.ReportAge = format.Age(n.ReportAge)
	if n.DirectiveAge > 0 {
		r.DirectiveAge = format.Age(n.DirectiveAge)
	}
	r.State = f.state(n)
	switch r.State {
	case nodeCutOff:
		r.StateText = "Cut off " + r.ReportAge
		r.Remark = "It goes on alone with its last share, then its hosts hold their last ratios, decay and open; it counts with its last rates for 30 s."
	case nodeRefused:
		r.StateText = fmt.Sprintf("Refused r%d", n.RefusedRevision)
		r.Remark = "Keeps " + r.Revision + ": “" + format.Printable(n.RefusedReason) + "”"
		if n.Revision == 0 {
			r.Remark = "Limits nothing: “" + format.Printable(n.RefusedReason) + "”"
		}
	case nodeLate:
		r.StateText = "No report " + r.ReportAge
	default:
		r.StateText = "Live"
	}
	return r
}

// controllerRow is the controller itself: it has no report and no directive to
// wait for.
func (f view) controllerRow() nodeRow {
	r := f.baseRow(&f.Controller)
	r.State, r.StateText = nodeLive, "Live"
	r.Hosts = format.Count(f.Hosts())
	if f.Controller.BytesReceived+f.Controller.BytesSent == 0 { // not counted
		r.BytesReceived, r.BytesSent = "", ""
	}
	if f.Epoch > 0 {
		r.StateText = fmt.Sprintf("Leads, epoch %d", f.Epoch)
	}
	if f.Alone {
		r.Remark = "Its parent is silent; global limits hold with the last share of this region."
	}
	if f.WarmingUp {
		r.State, r.StateText = nodeWarming, "Warming up"
	}
	return r
}

// baseRow fills what all nodes have.
func (f view) baseRow(n *page.Node) nodeRow {
	r := nodeRow{
		Name:          format.Printable(n.Name),
		Role:          format.Printable(n.Role),
		Place:         format.Printable(n.Zone),
		Version:       format.Printable(n.Version),
		Behind:        n.Revision < f.Revision,
		Hosts:         format.Count(n.Hosts),
		BytesReceived: format.Bytes(n.BytesReceived),
		BytesSent:     format.Bytes(n.BytesSent),
	}
	r.Revision = "none"
	if n.Revision > 0 {
		r.Revision = fmt.Sprintf("r%d", n.Revision)
	}
	if n.Role == "client" {
		r.Hosts = "" // it is one
	}
	switch {
	case n.Zone == "":
		r.Place = format.Printable(n.Region)
	case n.Region != "" && n.Region != n.Zone:
		r.Place = format.Printable(n.Region) + "/" + r.Place
	}
	return r
}

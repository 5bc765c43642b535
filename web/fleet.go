package web

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Fleet is the state of the tree as one controller sees it.
type Fleet struct {
	Epoch    uint64    // counts leaders or starts of the controller
	Revision uint64    // active; 0: none yet
	Loaded   time.Time // when it became active; zero: not known
	// LoadError is why the limits directory was refused, a line an error;
	// empty: it was not.
	LoadError string
	// WarmingUp says that not every node has reported since the start.
	WarmingUp  bool
	Controller Node   // which answers; its ages and Hosts are not looked at
	Nodes      []Node // below the controller, in any order
	// SilentZones are those from which no report comes any more, each once; a
	// region is one of them as "region NAME".
	SilentZones []string
	// Alone says that the controller decides its part of global limits itself,
	// since its parent is silent.
	Alone bool
}

// Node is one process of the tree, as it reports about itself.
type Node struct {
	Role                        string // controller, aggregator, client
	Name, Zone, Region, Version string // empty: not known
	Revision                    uint64 // held; 0: none
	RefusedRevision             uint64 // 0: none
	RefusedReason               string
	ReportAge                   time.Duration // since its last report
	DirectiveAge                time.Duration // since it took its last directive; 0: not known
	BytesReceived, BytesSent    uint64        // since its start
	Hosts                       int           // of an aggregator: live ones below it
}

const (
	fleetRows  = 50
	lateReport = 3 * time.Second // a report is due each second
)

// fleetView is the table of nodes.
type fleetView struct {
	Rows  []nodeRow
	Pager pager
	URL   string // of this page of the table
	Any   bool   // there is a node besides the controller
}

// nodeRow is one line of it, every value ready to print.
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

func newFleetView(f Fleet, number int) fleetView {
	// The controller that answers is always the first row.
	v := fleetView{Any: len(f.Nodes) > 0, Rows: []nodeRow{f.controllerRow()}}
	url := func(page int) string {
		if page <= 1 {
			return "/fleet"
		}
		return fmt.Sprintf("/fleet?page=%d", page)
	}
	p, from, to := newPager(len(f.Nodes), fleetRows, number, url)
	v.Pager, v.URL = p, url(from/fleetRows+1)
	for _, i := range f.window(from, to) {
		v.Rows = append(v.Rows, f.row(&f.Nodes[i]))
	}
	return v
}

// window returns the places of the nodes from up to, not including, to: those
// that need a look first, then by where they are.
func (f *Fleet) window(from, to int) []int {
	states, all := make([]nodeState, len(f.Nodes)), make([]int, len(f.Nodes))
	for i := range f.Nodes {
		states[i], all[i] = f.state(&f.Nodes[i]), i
	}
	return window(all, from, to, func(i, j int) int {
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

// hosts counts the hosts that report; each is below one aggregator. A silent
// zone's do not.
func (f *Fleet) hosts() int {
	hosts := 0
	for i := range f.Nodes {
		if f.Nodes[i].Role == "aggregator" && !slices.Contains(f.SilentZones, f.Nodes[i].Zone) {
			hosts += f.Nodes[i].Hosts
		}
	}
	return hosts
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

func (f *Fleet) state(n *Node) nodeState {
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

func (f *Fleet) row(n *Node) nodeRow {
	r := f.baseRow(n)
	r.ReportAge = formatAge(n.ReportAge)
	if n.DirectiveAge > 0 {
		r.DirectiveAge = formatAge(n.DirectiveAge)
	}
	r.State = f.state(n)
	switch r.State {
	case nodeCutOff:
		r.StateText = "Cut off " + r.ReportAge
		r.Remark = "It goes on alone with its last share, then its hosts hold their last ratios, decay and open; it counts with its last rates for 30 s."
	case nodeRefused:
		r.StateText = fmt.Sprintf("Refused r%d", n.RefusedRevision)
		r.Remark = "Keeps " + r.Revision + ": “" + printable(n.RefusedReason) + "”"
		if n.Revision == 0 {
			r.Remark = "Limits nothing: “" + printable(n.RefusedReason) + "”"
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
func (f *Fleet) controllerRow() nodeRow {
	r := f.baseRow(&f.Controller)
	r.State, r.StateText = nodeLive, "Live"
	r.Hosts = formatCount(f.hosts())
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
func (f *Fleet) baseRow(n *Node) nodeRow {
	r := nodeRow{
		Name:          printable(n.Name),
		Role:          printable(n.Role),
		Place:         printable(n.Zone),
		Version:       printable(n.Version),
		Behind:        n.Revision < f.Revision,
		Hosts:         formatCount(n.Hosts),
		BytesReceived: formatBytes(n.BytesReceived),
		BytesSent:     formatBytes(n.BytesSent),
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
		r.Place = printable(n.Region)
	case n.Region != "" && n.Region != n.Zone:
		r.Place = printable(n.Region) + "/" + r.Place
	}
	return r
}

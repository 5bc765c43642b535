package command

import (
	"fmt"
	"strings"
	"time"

	grlv1 "grl/proto/grl/v1"
	"grl/roles/command/terminal"
)

const (
	lateReport  = 3 * time.Second // a report is due each second
	mostUnusual = 20              // unusual hosts of an aggregator that are shown without --hosts
)

// tree returns the table of nodes: the controller, and below it each aggregator
// or regional controller with those below that.
func (s *status) tree() string {
	t := treeTable{status: s, Table: terminal.Table{
		Columns: []string{"node", "zone", "version", ">revision", ">report", ">directive", ">received", ">sent", ">hosts", "state"},
	}}
	t.top()
	for _, n := range s.fleet.GetNodes() {
		t.node(n)
	}
	t.skipped()
	return t.String()
}

// treeTable is the table while it is made.
type treeTable struct {
	terminal.Table
	status *status
	region string // of the regional controller last added
	depth  int    // of the aggregator last added
	shown  int    // hosts of that
	left   int    // of them, not shown
}

// top adds the controller that answers.
func (t *treeTable) top() {
	f := t.status.fleet
	state := "follows"
	switch {
	case f.GetAlone():
		state = "alone: its parent is silent"
	case f.GetLeads():
		state = "leads"
	}
	t.Add("controller "+dash(f.GetName()), "region "+dash(f.GetRegion()), dash(f.GetVersion()), revisionText(f.GetRevision(), f.GetSerial()), "-", "-", "-", "-", "-", state)
}

// node adds a node. Those below it come after it.
func (t *treeTable) node(n *grlv1.Node) {
	switch n.GetRole() {
	case grlv1.Role_ROLE_CONTROLLER:
		t.skipped()
		t.region, t.depth = n.GetRegion(), 1
		t.add(1, "controller "+n.GetName(), n)
	case grlv1.Role_ROLE_AGGREGATOR:
		t.skipped()
		if t.depth = 1; t.region != "" && n.GetRegion() == t.region {
			t.depth = 2
		}
		t.add(t.depth, "aggregator "+n.GetName(), n)
	default:
		if !t.status.hosts && (t.status.state(n) == usual || t.shown == mostUnusual) {
			t.left++
			return
		}
		t.shown++
		t.add(t.depth+1, "host "+n.GetName(), n)
	}
}

// skipped says how many hosts of the last aggregator are not shown.
func (t *treeTable) skipped() {
	if t.left > 0 {
		name := count(t.left, "host")
		if t.shown > 0 {
			name = "… and " + name
		}
		t.Add(strings.Repeat("  ", t.depth+1)+name, "", "", "", "", "", "", "", "", t.rest())
	}
	t.shown, t.left = 0, 0
}

// rest says what is with the hosts that are not shown.
func (t *treeTable) rest() string {
	if t.shown == mostUnusual {
		return "see --hosts"
	}
	return usual
}

func (t *treeTable) add(depth int, name string, n *grlv1.Node) {
	directive := "-"
	if n.GetDirectiveAgeMs() > 0 {
		directive = span(milliseconds(int64(n.GetDirectiveAgeMs())))
	}
	zone := dash(n.GetZone())
	if n.GetRole() == grlv1.Role_ROLE_CONTROLLER {
		zone = "region " + n.GetRegion()
	}
	hosts := "-"
	if n.GetRole() != grlv1.Role_ROLE_CLIENT {
		hosts = countText(n.GetHosts())
	}
	t.Add(strings.Repeat("  ", depth)+name, zone, dash(n.GetVersion()), revisionText(n.GetConfigRevision(), n.GetConfigSerial()),
		span(milliseconds(int64(n.GetReportAgeMs()))), directive, size(n.GetBytesReceived()), size(n.GetBytesSent()), hosts, t.status.state(n))
}

// usual is the state of a node of which there is nothing to say.
const usual = "ok"

// state says what is not as usual with a node.
func (s *status) state(n *grlv1.Node) string {
	f := s.fleet
	var parts []string
	if age := milliseconds(int64(n.GetReportAgeMs())); age > lateReport {
		parts = append(parts, "silent for "+span(age))
	}
	switch {
	case n.GetRefusedRevision() > 0:
		parts = append(parts, fmt.Sprintf("refused r%d: %s", n.GetRefusedRevision(), n.GetRefusedReason()))
	case n.GetConfigRevision() == 0:
		parts = append(parts, "no configuration yet")
	case n.GetConfigRevision() != f.GetRevision() && !s.rollingOut():
		parts = append(parts, "holds another revision")
	case n.GetConfigSerial() != f.GetSerial():
		parts = append(parts, "caps or what is disabled not there yet")
	}
	if n.GetDisabledHere() {
		parts = append(parts, "drops nothing: disabled by its switch file")
	}
	if len(parts) == 0 {
		return usual
	}
	return strings.Join(parts, "; ")
}

// rollingOut reports whether nodes may hold another revision than the last one.
func (s *status) rollingOut() bool {
	r := s.fleet.GetRollout()
	return r != nil && r.GetState() != grlv1.Rollout_STATE_DONE
}

// revisionText is "r12", or "r12.3" where caps or what is disabled changed three
// times.
func revisionText(revision, serial uint64) string {
	text := "r" + countText(revision)
	if serial > 0 {
		text += "." + countText(serial)
	}
	return text
}

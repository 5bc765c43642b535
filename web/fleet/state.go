package fleet

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"grl/web/format"
	"grl/web/page"
)

const (
	lateReport = 3 * time.Second // a report is due each second

	// What is cut off goes on so long by default: aggregator.autonomy, client.hold
	// and client.decay.
	autonomy = 30 * time.Second
	hold     = 10 * time.Second
	decay    = 10 * time.Second

	maxReason = 300 // bytes of a reason that are shown
)

// nodeState says how a node is, the ones that need a look first.
type nodeState int

const (
	nodeCutOff nodeState = iota
	nodeRefused
	nodeLate
	nodeOff
	nodeBehind
	nodeWarming
	nodeWaiting
	nodeLive
)

// trouble reports whether somebody should look.
func (s nodeState) trouble() bool { return s < nodeWarming }

// state returns how a node is.
func (f *view) state(n *page.Node) nodeState {
	switch {
	case n.Zone != "" && f.silent[n.Zone]:
		return nodeCutOff
	case n.RefusedRevision > 0:
		return nodeRefused
	case n.ReportAge > lateReport:
		return nodeLate
	case n.DisabledHere:
		return nodeOff
	case n.Revision < f.fleet.Revision && f.waits(n):
		return nodeWaiting
	case n.Revision < f.fleet.Revision:
		return nodeBehind
	}
	return nodeLive
}

// waits reports whether a node holds an older revision since the present one is
// on its way, or was stopped.
func (f *view) waits(n *page.Node) bool {
	r := f.fleet.Rollout
	return r != nil && n.Revision >= r.From && (slices.Contains(r.Waiting, n.Zone) || slices.Contains(r.Waiting, "region "+n.Region))
}

// say returns the state in words, and what there is to know about it; "":
// nothing.
func (f *view) say(n *page.Node, s nodeState) (text, remark string) {
	reason := "“" + shorten(format.Printable(n.RefusedReason), maxReason) + "”"
	switch s {
	case nodeCutOff:
		return "Cut off", ""
	case nodeRefused:
		if n.Revision == 0 {
			return fmt.Sprintf("Refused r%d", n.RefusedRevision), "Limits nothing: " + reason + ". Take back what it cannot read, or update it."
		}
		return fmt.Sprintf("Refused r%d", n.RefusedRevision),
			fmt.Sprintf("Keeps r%d: %s. Take back what it cannot read, or update it.", n.Revision, reason)
	case nodeLate:
		return "No report " + format.Age(n.ReportAge), ""
	case nodeOff:
		return "Drops nothing", "Its switch file has it admit everything, of all services or of some. Remove the file to end that."
	case nodeBehind:
		return "Behind", ""
	case nodeWaiting:
		return fmt.Sprintf("Waits for r%d", f.fleet.Revision), ""
	}
	return "Live", ""
}

// sayCutOff says what a zone of which nothing is heard does now, for how long
// still, and what comes next.
func (f *view) sayCutOff(zone string) string {
	since, known := f.fleet.SilentFor[zone]
	heard := ""
	if known {
		heard = " Nothing was heard since " + f.now.Add(-since).UTC().Format("15:04:05 UTC") + "."
	}
	held, faded := autonomy+hold, autonomy+hold+decay
	switch {
	case !known || since < autonomy:
		left := "for a while"
		if known {
			left = "for " + format.Age((autonomy - since).Truncate(time.Second)) + " more"
		}
		return "Autonomous " + left + ": enforces its last share of each wider limit, if its aggregator runs. " +
			"Then its hosts hold their last ratios for 10 s, decay for 10 s and open." + heard
	case since < held:
		return "Hosts hold their last ratios for " + format.Age((held - since).Truncate(time.Second)) + " more, then decay for 10 s and open." + heard
	case since < faded:
		return "The last ratios of its hosts decay; in " + format.Age((faded - since).Truncate(time.Second)) + " they admit everything." + heard
	}
	return "Its hosts admit everything by now." + heard + " Start its aggregator, or connect it again."
}

// shorten cuts a text to most bytes, at a character.
func shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

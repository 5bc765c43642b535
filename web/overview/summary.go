package overview

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"grl/web/format"
	"grl/web/page"
)

const (
	shownZones     = 6    // silent zones named in a sentence
	shownErrorText = 4000 // bytes of a load error that are shown
)

// summaryView is what stands above every page: what is wrong, and the few
// numbers that say how the fleet is.
type summaryView struct {
	WarmingUp bool
	Load      *loadView // nil: the limits directory was accepted
	Silent    string    // "zones eu-2 and us-1"; empty: none

	Over, Near, Cells string // counts
	AnyOver           bool
	Dropped, Virtual  string // rps
	AnyDropped        bool
	AnyVirtual        bool
	Hosts             string
	Slowest           string // age of the oldest directive in force; empty: not known
	Zones, ZonesOf    string // live, known
	AnySilent         bool
	Revision          string // "r1482"; empty: none yet
	OnRevision, Nodes string // counts of nodes
	BehindNote        string // "1 behind, 1 refused"
	AnyRefused        bool
	Loaded            format.Stamp
	LoadedKnown       bool
}

// loadView is a refused limits directory.
type loadView struct {
	Title string
	Text  string // lines
	More  string // what was cut off; empty: nothing
}

// summarize computes the summary. Dropped and virtual drops are summed over
// all cells; offered is not, since a request counts in each cell that it
// reaches.
func summarize(cells []page.Cell, f page.Fleet, now time.Time) summaryView {
	v := summaryView{WarmingUp: f.WarmingUp, Load: newLoadView(f)}

	var over, near int
	var dropped, virtual float64
	for i := range cells {
		switch cells[i].State() {
		case page.Over:
			over++
		case page.Near:
			near++
		}
		dropped += cells[i].DroppedRPS
		virtual += cells[i].ShadowDroppedRPS
	}
	v.Over, v.Near, v.Cells, v.AnyOver = format.Count(over), format.Count(near), format.Count(len(cells)), over > 0
	v.Dropped, v.AnyDropped = format.RPS(dropped), dropped > 0
	v.Virtual, v.AnyVirtual = format.RPS(virtual), virtual > 0

	v.addNodes(f)
	if f.Revision > 0 {
		v.Revision = fmt.Sprintf("r%d", f.Revision)
	}
	if !f.Loaded.IsZero() {
		v.Loaded, v.LoadedKnown = format.NewStamp(f.Loaded, now), true
	}
	return v
}

// addNodes counts hosts, zones and revisions.
func (v *summaryView) addNodes(f page.Fleet) {
	zones := make(map[string]bool)
	for _, z := range f.SilentZones {
		zones[z] = true
	}
	var slowest time.Duration
	var on, behind, refused int
	for i := range f.Nodes {
		n := &f.Nodes[i]
		if n.Zone != "" {
			zones[n.Zone] = true
		}
		switch {
		case n.RefusedRevision > 0:
			refused++
		case n.Revision < f.Revision:
			behind++
		default:
			on++
		}
		if !slices.Contains(f.SilentZones, n.Zone) {
			slowest = max(slowest, n.DirectiveAge)
		}
	}
	v.Hosts = format.Count(f.Hosts())
	if slowest > 0 {
		v.Slowest = format.Age(slowest)
	}
	v.Zones, v.ZonesOf = format.Count(len(zones)-len(f.SilentZones)), format.Count(len(zones))
	v.Silent, v.AnySilent = namedZones(f.SilentZones), len(f.SilentZones) > 0
	v.OnRevision, v.Nodes = format.Count(on), format.Count(len(f.Nodes))
	v.AnyRefused = refused > 0
	var notes []string
	if behind > 0 {
		notes = append(notes, format.Count(behind)+" behind")
	}
	if refused > 0 {
		notes = append(notes, format.Count(refused)+" refused")
	}
	v.BehindNote = strings.Join(notes, ", ")
}

// namedZones returns "zone eu-2", "zones a, b and c", "zone eu-2 and region us"
// or, of many, the first and how many more.
func namedZones(zones []string) string {
	zones = slices.Clone(zones)
	slices.SortStableFunc(zones, func(a, b string) int { return isRegion(a) - isRegion(b) })
	names := make([]string, 0, shownZones+1)
	for _, z := range zones[:min(len(zones), shownZones)] {
		names = append(names, format.Printable(z))
	}
	if more := len(zones) - len(names); more > 0 {
		names = append(names, format.Count(more)+" more")
	}
	last := len(names) - 1
	if last < 0 {
		return ""
	}
	word := "zones "
	switch {
	case isRegion(zones[0]) == 1:
		word = ""
	case last == 0 || isRegion(zones[1]) == 1:
		word = "zone "
	}
	if last == 0 {
		return word + names[0]
	}
	return word + strings.Join(names[:last], ", ") + " and " + names[last]
}

// isRegion returns 1 if a silent zone is a region, which says so, else 0.
func isRegion(zone string) int {
	if strings.HasPrefix(zone, "region ") {
		return 1
	}
	return 0
}

func newLoadView(f page.Fleet) *loadView {
	if f.LoadError == "" {
		return nil
	}
	v := &loadView{Title: "The limits directory was refused: no limit is in force", Text: strings.TrimSpace(f.LoadError)}
	if f.Revision > 0 {
		v.Title = fmt.Sprintf("The limits directory was refused: r%d stays active", f.Revision)
	}
	if len(v.Text) > shownErrorText {
		cut := shownErrorText
		if end := strings.LastIndexByte(v.Text[:cut], '\n'); end > 0 {
			cut = end
		}
		more := strings.Count(strings.Trim(v.Text[cut:], "\n"), "\n") + 1
		v.Text, v.More = v.Text[:cut], fmt.Sprintf("%s more lines are in the log of the controller.", format.Count(more))
	}
	lines := strings.Split(v.Text, "\n")
	for i, l := range lines {
		lines[i] = format.Printable(l)
	}
	v.Text = strings.Join(lines, "\n")
	return v
}

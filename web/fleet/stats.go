package fleet

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"grl/web/format"
	"grl/web/page"
)

// statsView is the few numbers of the fleet, ready to print.
type statsView struct {
	Hosts, HostsNote       string
	Zones, ZonesOf, Silent string
	AnySilent              bool
	Revision               string // "r1482"; "": none yet
	On, OnNote             string // per cent of the nodes
	AnyRefused             bool
	Slowest, Median        string // directives; "": none
	Reports, Up, Down      string // a second; "": not known
	Versions, VersionsNote string
}

func (v *view) stats() statsView {
	a, f := &v.all, v.fleet
	s := statsView{Hosts: format.Count(f.Hosts()), Revision: "", Versions: format.Count(len(a.versions))}
	if late := a.states[nodeLate]; late > 0 {
		s.HostsNote = format.Plural(late, "node") + " without a report"
	}
	if f.Unheard > 0 {
		s.HostsNote = join(", ", s.HostsNote, format.Count(f.Unheard)+" more in silent zones")
	}
	known := len(v.zones)
	if v.zones[""] != nil { // nodes that are in none
		known--
	}
	for _, r := range v.regions {
		if v.silent["region "+r.name] {
			known++
		}
	}
	s.Zones, s.ZonesOf = format.Count(known-len(f.SilentZones)), format.Count(known)
	s.AnySilent = len(f.SilentZones) > 0
	if s.AnySilent {
		s.Silent = format.Count(len(f.SilentZones)) + " cut off"
		if len(f.SilentZones) == 1 {
			s.Silent = printName(f.SilentZones[0]) + " cut off"
		}
	}
	if f.Revision > 0 {
		s.Revision = revision(f.Revision)
	}
	v.addRevision(&s)
	v.addDirectives(&s)
	v.addRates(&s)
	if most := a.sortedVersions(); len(most) > 1 {
		s.VersionsNote = format.Share(float64(a.versions[most[0]])/float64(a.nodes)) + " on " + cmp.Or(printName(most[0]), "one not known")
	} else if len(most) == 1 {
		s.VersionsNote = "all on " + cmp.Or(printName(most[0]), "one not known")
	}
	return s
}

// addRevision counts who holds the active revision.
func (v *view) addRevision(s *statsView) {
	a := &v.all
	off := 0
	for i := range v.fleet.Nodes {
		if v.fleet.Nodes[i].Revision < v.fleet.Revision {
			off++
		}
	}
	s.On = "100%"
	if a.nodes > 0 {
		s.On = format.Share(float64(a.nodes-off) / float64(a.nodes))
	}
	var notes []string
	if len(v.fleet.SilentZones) > 0 {
		notes = append(notes, "of those that report")
	}
	if off > 0 {
		notes = append(notes, format.Count(off)+" behind")
	}
	if refused := a.states[nodeRefused]; refused > 0 {
		notes = append(notes, format.Count(refused)+" refused")
		s.AnyRefused = true
	}
	if n := v.fleet.Unheard; n > 0 {
		notes = append(notes, format.Plural(n, "host")+" not heard")
	}
	s.OnNote = strings.Join(notes, ", ")
}

// addDirectives takes the slowest and the median of those in force; zones that
// are cut off have their own sentence.
func (v *view) addDirectives(s *statsView) {
	var ages []time.Duration
	for i := range v.fleet.Nodes {
		if n := &v.fleet.Nodes[i]; n.DirectiveAge > 0 && !v.silent[n.Zone] {
			ages = append(ages, n.DirectiveAge)
		}
	}
	if len(ages) == 0 {
		return
	}
	slices.Sort(ages)
	s.Slowest, s.Median = format.Age(ages[len(ages)-1]), format.Age(ages[len(ages)/2])
}

// addRates sums what all nodes say to what is above them.
func (v *view) addRates(s *statsView) {
	var sum counts
	known := false
	for i := range v.fleet.Nodes {
		if rate, ok := v.sample.rate(v.now, &v.fleet.Nodes[i]); ok {
			sum, known = sum.plus(rate), true
		}
	}
	if known {
		s.Reports, s.Up, s.Down = format.Size(sum.reports), perSecond(sum.in), perSecond(sum.out)
	}
}

// sortedVersions returns the versions in use, the most frequent first.
func (s *sums) sortedVersions() []string {
	return slices.SortedFunc(maps.Keys(s.versions), func(a, b string) int {
		return cmp.Or(cmp.Compare(s.versions[b], s.versions[a]), strings.Compare(a, b))
	})
}

// notices say what concerns all of the fleet.
func (v *view) notices() []page.Notice {
	var out []page.Notice
	if v.fleet.AllDisabled {
		out = append(out, page.Notice{Kind: "bad", Title: "Nothing is dropped anywhere: the kill switch is on", Link: page.Crumb{Name: "Caps", Path: "/caps"}})
	}
	if v.fleet.WarmingUp && !v.fleet.Follows {
		out = append(out, page.Notice{Kind: "warn", Title: "Warming up: not every node has reported yet", Text: "Hosts go on with the drop ratios they have."})
	}
	for _, n := range v.fleet.Silence().Notices(v.now) {
		n.Link = page.Crumb{} // it is below
		out = append(out, n)
	}
	if n := v.all.states[nodeOff]; n > 0 {
		out = append(out, page.Notice{Kind: "warn", Title: fmt.Sprintf("%s by a switch file", dropNothing(n)), Link: page.Crumb{Name: "Which", Path: "/fleet?show=off"}})
	}
	return out
}

func dropNothing(n int) string {
	if n == 1 {
		return "1 host drops nothing,"
	}
	return format.Count(n) + " hosts drop nothing,"
}

package fleet

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"grl/web/page"
)

// view is a fleet while it is looked at: what one pass over its nodes finds.
type view struct {
	fleet  *page.Fleet
	now    time.Time
	sample *sample
	silent map[string]bool // zones

	regions []*branch // the one without a name last
	zones   map[string]*branch
	all     sums
}

// branch is a region, or a zone in one.
type branch struct {
	name, region string
	heads        []int // nodes: controllers of a region, aggregators of a zone
	zones        []*branch
	sums
}

// sums is what is counted below a branch.
type sums struct {
	hosts, nodes int
	states       [nodeLive + 1]int // by state
	rate         counts            // of what hosts say to aggregators
	rated        bool
	versions     map[string]int
	worst        nodeState
}

// newView goes once through the nodes.
func newView(f *page.Fleet, s *sample, now time.Time) *view {
	v := &view{fleet: f, now: now, sample: s, silent: make(map[string]bool), zones: make(map[string]*branch)}
	v.all.versions = make(map[string]int)
	v.all.worst = nodeLive
	regions := make(map[string]*branch)
	region := func(name string) *branch {
		b := regions[name]
		if b == nil {
			b = &branch{name: name}
			b.worst = nodeLive
			regions[name] = b
			v.regions = append(v.regions, b)
		}
		return b
	}
	zone := func(name, in string) *branch {
		z := v.zones[name]
		if z == nil {
			z = &branch{name: name, region: in}
			z.worst = nodeLive
			v.zones[name] = z
			r := region(in)
			r.zones = append(r.zones, z)
		}
		return z
	}
	for _, name := range f.SilentZones {
		v.silent[name] = true
	}
	for i := range f.Nodes {
		n := &f.Nodes[i]
		state := v.state(n)
		v.all.add(v, n, state)
		v.all.versions[n.Version]++
		r := region(n.Region)
		if n.Role == "controller" {
			r.heads = append(r.heads, i)
			r.worst = min(r.worst, state)
			continue
		}
		z := zone(n.Zone, n.Region)
		if n.Role == "aggregator" {
			z.heads = append(z.heads, i)
		}
		z.add(v, n, state)
		r.add(v, n, state)
	}
	v.addSilent(region, zone)
	v.sort()
	return v
}

// addSilent adds the zones and regions of which nothing is left but that they
// are silent.
func (v *view) addSilent(region func(string) *branch, zone func(name, in string) *branch) {
	for _, name := range v.fleet.SilentZones {
		if r, ok := strings.CutPrefix(name, "region "); ok {
			region(r).worst = nodeCutOff
			continue
		}
		z := zone(name, v.fleet.SilentIn[name])
		z.worst = nodeCutOff
		region(z.region).worst = nodeCutOff
	}
}

func (s *sums) add(v *view, n *page.Node, state nodeState) {
	s.nodes++
	s.states[state]++
	s.worst = min(s.worst, state)
	if n.Role != "client" {
		return
	}
	s.hosts++
	if rate, ok := v.sample.rate(v.now, n); ok {
		s.rate, s.rated = s.rate.plus(rate), true
	}
}

// sort puts what needs a look first, then by name.
func (v *view) sort() {
	byNeed := func(a, b *branch) int {
		return cmp.Or(
			cmp.Compare(boolRank(!a.worst.trouble()), boolRank(!b.worst.trouble())),
			cmp.Compare(boolRank(a.name == ""), boolRank(b.name == "")),
			strings.Compare(a.name, b.name),
		)
	}
	slices.SortFunc(v.regions, byNeed)
	for _, r := range v.regions {
		slices.SortFunc(r.zones, byNeed)
	}
}

func boolRank(b bool) int {
	if b {
		return 1
	}
	return 0
}

// window returns the places of those nodes from up to, not including, to that
// are wanted, those that need a look first, then by where they are.
func (v *view) window(wanted func(*page.Node, nodeState) bool, size, number int, url func(page int) string) ([]int, page.Pager) {
	states, all := make([]nodeState, len(v.fleet.Nodes)), []int(nil)
	for i := range v.fleet.Nodes {
		n := &v.fleet.Nodes[i]
		if s := v.state(n); wanted(n, s) {
			states[i] = s
			all = append(all, i)
		}
	}
	p, from, to := page.NewPager(len(all), size, number, url)
	return page.Window(all, from, to, func(i, j int) int {
		a, b := &v.fleet.Nodes[i], &v.fleet.Nodes[j]
		return cmp.Or(
			cmp.Compare(states[i], states[j]),
			strings.Compare(a.Region, b.Region),
			strings.Compare(a.Zone, b.Zone),
			cmp.Compare(roleRank(a.Role), roleRank(b.Role)),
			strings.Compare(a.Name, b.Name),
		)
	}), p
}

func roleRank(role string) int {
	return slices.Index([]string{"controller", "aggregator", "client"}, role)
}

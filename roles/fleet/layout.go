package fleet

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"grl/limiter"
)

// layout is who is there: cells, what has the limits of them, and hosts.
type layout struct {
	zones   []string
	regions []string
	cells   []cell
	gates   []gate
	hosts   []host
	loads   []*profile // by group of hosts
	byCell  map[limiter.CellID]int32
	byGate  map[limiter.CellID]int32
}

// gate is what has a limit: a bucket in one instance of its scope, or a caller
// of it.
type gate struct {
	id    limiter.CellID
	limit float64 // requests per second
	cells []int32
	means []mean // whose sum is the load
}

// mean is a part of the load of a gate.
type mean struct {
	load  *profile
	scale float64
}

// cell is one cell of the fleet.
type cell struct {
	id      limiter.CellID
	bucket  *limiter.Bucket
	gate    int32
	service int32
	number  uint32     // among the cells of each host that has it
	zone    int32      // whose hosts have it; -1: those of all zones
	region  int32      // the same
	decider int8       // 0: the global controller; 1+r: that of region r
	loads   []*profile // by group of hosts
	scale   float64    // of them
}

// newLayout lays out the fleet of a plan.
func newLayout(o *Options, p *Plan, r *random) (*layout, error) {
	services := o.services()
	l := &layout{zones: names("zone", o.Zones, nil), regions: names("region", o.Regions, regionsOf(services))}
	l.byCell, l.byGate = make(map[limiter.CellID]int32), make(map[limiter.CellID]int32)
	for _, load := range p.Loads {
		l.loads = append(l.loads, newProfile(load.Knots))
	}
	l.hosts = make([]host, o.Hosts)
	n := len(services)
	// Hosts are kept in the order in which their timers turn, for the caches,
	// so who they are must not depend on their index.
	phases, who := make([]time.Duration, o.Hosts), make([]int, o.Hosts)
	for i := range phases {
		phases[i], who[i] = r.below(o.Delta), i
	}
	slices.Sort(phases)
	rand.New(r).Shuffle(o.Hosts, func(i, j int) { who[i], who[j] = who[j], who[i] })
	for i := range l.hosts {
		h := &l.hosts[i]
		service, place := who[i]%n, who[i]/n
		h.index, h.service = int32(i), int32(service)
		h.zone = int32(place % o.Zones)
		h.aggregator = h.zone*int32(o.Aggregators) + int32(place/o.Zones%o.Aggregators)
		h.group = groupOf(p.Loads, place, (o.Hosts-service+n-1)/n)
		h.weight = 0.5 + r.unit()
		h.phase = phases[i]
		l.give(o, p, h, services[service].Buckets)
	}
	if len(l.cells) == 0 {
		return nil, fmt.Errorf("%w: no bucket has a limit", ErrOptions)
	}
	l.divide()
	return l, nil
}

// services returns what the fleet serves.
func (o *Options) services() []limiter.Service {
	if len(o.Configuration) > 0 {
		return o.Configuration
	}
	services := make([]limiter.Service, o.Services)
	for i := range services {
		name := fmt.Sprintf("service-%d", i+1)
		services[i] = limiter.Service{Name: name, Buckets: []limiter.Bucket{
			{Service: name, Name: "everything", LimitRPS: o.LimitRPS, Behavior: limiter.Deny},
		}}
	}
	return services
}

// names returns n names, first those known, then numbered ones.
func names(kind string, n int, known []string) []string {
	out := known[:min(n, len(known))]
	for i := len(out); i < n; i++ {
		out = append(out, fmt.Sprintf("%s-%d", kind, i+1))
	}
	return out
}

// regionsOf returns the regions that have limits of their own.
func regionsOf(services []limiter.Service) []string {
	all := make(map[string]bool)
	for i := range services {
		for _, b := range services[i].Buckets {
			for name := range b.Regions {
				all[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// region returns the region of a zone.
func (l *layout) region(zone int32) int32 { return zone % int32(len(l.regions)) }

// groupOf returns the group of the host at a place among n.
func groupOf(loads []Load, place, n int) int32 {
	for g := range max(0, len(loads)-1) {
		size := max(1, int(loads[g].Hosts*float64(n)+0.5))
		if place < size {
			return int32(g)
		}
		place -= size
	}
	return int32(max(0, len(loads)-1))
}

// give gives a host the cells of its service.
func (l *layout) give(o *Options, p *Plan, h *host, buckets []limiter.Bucket) {
	zone, region := l.zones[h.zone], l.regions[l.region(h.zone)]
	for i := range buckets {
		b := &buckets[i]
		if b.Block {
			continue
		}
		for _, d := range demandsOf(o, b) {
			id := limiter.CellID{Bucket: b.FullName(), Instance: b.Instance(zone, region), Caller: d.Caller, Class: d.Class}
			c, ok := l.byCell[id]
			if !ok {
				c = l.add(o, p, b, id, d.Share)
				l.place(c, h, b.Scope)
				l.byCell[id] = c
			}
			t := traffic{cell: c, retryTo: len(h.cells)}
			if p.Retries > 0 {
				t.back, t.next = make([]int, p.Retries), make([]int, p.Retries)
			}
			h.cells = append(h.cells, t)
		}
	}
	l.pair(h)
}

// pair finds the cells of retries.
func (l *layout) pair(h *host) {
	for k := range h.cells {
		c := &l.cells[h.cells[k].cell]
		id := c.id
		if !c.bucket.ShedRetriesFirst || retries(id.Class) {
			continue
		}
		if id.Class == limiter.First {
			id.Class = limiter.Retry
		} else {
			id.Class += "/" + limiter.Retry
		}
		if i, ok := l.byCell[id]; ok {
			h.cells[k].retryTo = int(l.cells[i].number)
		}
	}
}

// retries reports whether a class is one of retries.
func retries(class string) bool {
	return class == limiter.Retry || strings.HasSuffix(class, "/"+limiter.Retry)
}

// place says who has a cell that was added for a host, and who decides it.
func (l *layout) place(i int32, h *host, s limiter.Scope) {
	c := &l.cells[i]
	c.service, c.number = h.service, uint32(len(h.cells))
	c.zone, c.region = -1, -1
	if s == limiter.Zone {
		c.zone = h.zone
	}
	if s != limiter.Global {
		c.region = l.region(h.zone)
		if len(l.regions) > 1 {
			c.decider = int8(1 + c.region)
		}
	}
}

// add adds a cell with its part of the load.
func (l *layout) add(o *Options, p *Plan, b *limiter.Bucket, id limiter.CellID, share float64) int32 {
	c := cell{id: id, bucket: b, gate: l.gate(b, b.Gate(id))}
	g := &l.gates[c.gate]
	g.cells = append(g.cells, int32(len(l.cells)))
	c.scale = share * g.limit / o.LimitRPS
	c.loads = l.loads
	if len(p.Loads) == 0 {
		m := b.Match
		if id.Caller != "" {
			m.Caller = limiter.Pattern(id.Caller)
			share = classShare(b, id.Class)
		}
		c.loads = []*profile{newProfile(o.Trace.knots(m))}
		c.scale = share
	}
	l.cells = append(l.cells, c)
	return int32(len(l.cells) - 1)
}

// classShare returns the share of a caller's requests that one class has.
func classShare(b *limiter.Bucket, class string) float64 {
	first := 0
	for _, c := range b.Classes() {
		if !retries(c) {
			first++
		}
	}
	if first == 0 {
		return 1
	}
	return shareOf(nil, b, "", class) / float64(first)
}

func (l *layout) gate(b *limiter.Bucket, id limiter.CellID) int32 {
	if i, ok := l.byGate[id]; ok {
		return i
	}
	i := int32(len(l.gates))
	l.byGate[id] = i
	l.gates = append(l.gates, gate{id: id, limit: b.Limit(id.Instance)})
	return i
}

// divide divides the load of each cell among the hosts that have it, and adds
// up the means of the gates.
func (l *layout) divide() {
	sums := make([][]float64, len(l.cells)) // by cell and group
	for i := range l.cells {
		sums[i] = make([]float64, len(l.cells[i].loads))
	}
	for i := range l.hosts {
		for _, t := range l.hosts[i].cells {
			sums[t.cell][l.hosts[i].group] += l.hosts[i].weight
		}
	}
	for i := range l.hosts {
		h := &l.hosts[i]
		for k := range h.cells {
			t := &h.cells[k]
			t.scale = l.cells[t.cell].scale * h.weight / sums[t.cell][h.group]
			t.load = l.cells[t.cell].loads[h.group]
		}
	}
	for i := range l.cells {
		c := &l.cells[i]
		for g, load := range c.loads {
			if sums[i][g] > 0 { // else no host is in that group
				l.gates[c.gate].means = append(l.gates[c.gate].means, mean{load, c.scale})
			}
		}
	}
}

// between returns the mean of what is offered to a gate from a to b, without
// retries.
func (g *gate) between(a, b time.Duration) float64 {
	var sum float64
	for _, m := range g.means {
		sum += m.scale * m.load.between(a, b)
	}
	return sum
}

// DefaultCallers are who calls a bucket that tells callers apart, if its
// pattern and its weights name nobody.
func DefaultCallers() []string { return []string{"caller-1", "caller-2", "caller-3", "caller-4"} }

// mostTraceCallers bounds the callers of a trace that have cells of their own.
const mostTraceCallers = 50

// demandsOf returns the cells of a bucket in one instance; their shares add up
// to 1 within each limit.
func demandsOf(o *Options, b *limiter.Bucket) []Demand {
	callers, classes := []string{""}, []string{""}
	if b.HasCallers() {
		callers = callersOf(o, b)
	}
	if b.HasClasses() {
		classes = b.Classes()
	}
	var out []Demand
	for _, caller := range callers {
		for _, class := range classes {
			out = append(out, Demand{Caller: caller, Class: class, Share: shareOf(o.Demands, b, caller, class)})
		}
	}
	sums := make(map[limiter.CellID]float64)
	gateOf := func(d Demand) limiter.CellID { return b.Gate(limiter.CellID{Caller: d.Caller, Class: d.Class}) }
	for _, d := range out {
		sums[gateOf(d)] += d.Share
	}
	for i := range out {
		out[i].Share /= sums[gateOf(out[i])]
	}
	return slices.DeleteFunc(out, func(d Demand) bool { return !(d.Share > 0) && !retries(d.Class) })
}

// shareOf adds up the demands that go to one cell of a bucket.
func shareOf(demands []Demand, b *limiter.Bucket, caller, class string) float64 {
	if demands == nil {
		if retries(class) {
			return 0
		}
		return 1
	}
	var sum float64
	for _, d := range demands {
		if (caller == "" || d.Caller == caller) && (class == "" || d.Class == class || d.Class == "" && b.Rank(class) == 0) {
			sum += d.Share
		}
	}
	return sum
}

func callersOf(o *Options, b *limiter.Bucket) []string {
	known := slices.Sorted(maps.Keys(b.Weights))
	switch {
	case b.Match.Caller != "" && !strings.HasSuffix(string(b.Match.Caller), "*"):
		return []string{string(b.Match.Caller)}
	case o.Plan == nil && o.Scenario == Replay:
		return o.Trace.callers(b.Match)
	case o.Demands != nil:
		known = nil
		for _, d := range o.Demands {
			known = append(known, cmp.Or(d.Caller, limiter.UnknownCaller))
		}
	default:
		known = append(known, DefaultCallers()[min(len(known), len(DefaultCallers())):]...)
	}
	slices.Sort(known)
	return slices.Compact(known)
}

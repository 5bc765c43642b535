package fleet

import (
	"math"
	"slices"
	"testing"
	"time"

	"grl/limiter"
)

// divided is a configuration with each way of having cells.
func divided() []limiter.Service {
	return []limiter.Service{{Name: "pay", Buckets: []limiter.Bucket{
		{Service: "pay", Name: "plain", LimitRPS: 1000},
		{Service: "pay", Name: "tiers", LimitRPS: 500, Tiers: []limiter.Tier{{Name: "gold"}, {Name: "rest"}}},
		{Service: "pay", Name: "fair", LimitRPS: 400, Share: limiter.MaxMin, Weights: map[string]float64{"big": 2}},
		{Service: "pay", Name: "each", LimitRPS: 10, PerCaller: true, Match: limiter.Match{Caller: "shop"}},
		{Service: "pay", Name: "again", LimitRPS: 100, ShedRetriesFirst: true},
		{Service: "pay", Name: "zonal", LimitRPS: 50, Scope: limiter.Zone},
		{Service: "pay", Name: "regional", LimitRPS: 60, Scope: limiter.Region, Regions: map[string]float64{"eu": 30}},
		{Service: "pay", Name: "blocked", Block: true},
	}}}
}

func laidOut(t *testing.T, o Options, p Plan) *layout {
	t.Helper()
	o = o.withDefaults()
	l, err := newLayout(&o, &p, newRandom(1, 0))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// flat is a plan of twice the limit.
func flat(o Options) Plan {
	o = o.withDefaults()
	return Plan{Length: time.Minute, Loads: all(Knot{0, 2 * o.LimitRPS})}
}

func TestLayoutOffersEachLimitItsLoad(t *testing.T) {
	o := Options{Hosts: 40, Regions: 2, Configuration: divided()}
	l := laidOut(t, o, flat(o))
	limits := make(map[limiter.CellID]float64)
	for i := range l.gates {
		g := &l.gates[i]
		limits[g.id] = g.limit
		if got, want := g.between(0, time.Second), 2*g.limit; math.Abs(got-want) > 1e-6 {
			t.Errorf("%v is offered %v a second, want %v", g.id, got, want)
		}
	}
	want := map[limiter.CellID]float64{
		{Bucket: "pay/plain"}: 1000, {Bucket: "pay/tiers"}: 500, {Bucket: "pay/fair"}: 400,
		{Bucket: "pay/each", Caller: "shop"}: 10, {Bucket: "pay/again"}: 100,
		{Bucket: "pay/zonal", Instance: "zone-1"}: 50, {Bucket: "pay/zonal", Instance: "zone-2"}: 50,
		{Bucket: "pay/zonal", Instance: "zone-3"}: 50, {Bucket: "pay/zonal", Instance: "zone-4"}: 50,
		{Bucket: "pay/regional", Instance: "eu"}: 30, {Bucket: "pay/regional", Instance: "region-2"}: 60,
	}
	for id, limit := range want {
		if limits[id] != limit {
			t.Errorf("%v has the limit %v, want %v", id, limits[id], limit)
		}
	}
	if len(limits) != len(want) {
		t.Errorf("%d limits, want %d: %v", len(limits), len(want), limits)
	}
	sums := make([]float64, len(l.cells))
	for i := range l.hosts {
		for _, at := range l.hosts[i].cells {
			sums[at.cell] += at.scale * at.load.between(0, time.Second)
		}
	}
	for i := range l.cells {
		c := &l.cells[i]
		want := 2 * l.gates[c.gate].limit / float64(len(l.gates[c.gate].cells))
		if c.bucket.ShedRetriesFirst { // one of its two cells is for retries
			want = map[string]float64{limiter.First: 200, limiter.Retry: 0}[c.id.Class]
		}
		if math.Abs(sums[i]-want) > 1e-6 {
			t.Errorf("hosts are offered %v a second of %v, want %v", sums[i], c.id, want)
		}
	}
}

func TestLayoutDealsOutHosts(t *testing.T) {
	o := Options{Hosts: 1000, Zones: 5, Aggregators: 2, Services: 4}
	l := laidOut(t, o, flat(o))
	aggregators, services := make([]int, 10), make([]int, 4)
	for i := range l.hosts {
		h := &l.hosts[i]
		if h.aggregator/2 != h.zone {
			t.Fatalf("host %d of zone %d begins at aggregator %d", i, h.zone, h.aggregator)
		}
		if i > 0 && h.phase < l.hosts[i-1].phase {
			t.Fatalf("host %d turns before host %d", i, i-1)
		}
		aggregators[h.aggregator]++
		services[h.service]++
	}
	if least, most := slices.Min(aggregators), slices.Max(aggregators); least < 96 || most > 104 {
		t.Errorf("aggregators have %v hosts, want about 100 each", aggregators)
	}
	if least, most := slices.Min(services), slices.Max(services); least != 250 || most != 250 {
		t.Errorf("services have %v hosts, want 250 each", services)
	}
}

func TestLayoutGroups(t *testing.T) {
	load := func(hosts float64) Load { return Load{Hosts: hosts, Knots: []Knot{{0, 1}}} }
	tests := []struct {
		name  string
		loads []Load
		want  []int // hosts of each group, of 40
	}{
		{"one", []Load{load(1)}, []int{40}},
		{"halves", []Load{load(0.5), load(0.5)}, []int{20, 20}},
		{"one alone", []Load{load(0), load(1)}, []int{1, 39}},
		{"the last has the rest", []Load{load(0.25), load(0.25), load(0)}, []int{10, 10, 20}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := laidOut(t, Options{Hosts: 40}, Plan{Length: time.Second, Loads: tt.loads})
			got := make([]int, len(tt.loads))
			for i := range l.hosts {
				got[l.hosts[i].group]++
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("groups have %v hosts, want %v", got, tt.want)
			}
		})
	}
}

func TestLayoutSendsRetriesToTheirClass(t *testing.T) {
	o := Options{Hosts: 4, Configuration: divided()}
	p := flat(o)
	p.Retries = 2
	l := laidOut(t, o, p)
	for k, at := range l.hosts[0].cells {
		id := l.cells[at.cell].id
		to := l.cells[l.hosts[0].cells[at.retryTo].cell].id
		want := id
		if id.Class == limiter.First {
			want.Class = limiter.Retry
		}
		if to != want {
			t.Errorf("retries of cell %d, %v, go to %v, want %v", k, id, to, want)
		}
	}
}

func TestDemands(t *testing.T) {
	o := Options{Demands: []Demand{{Caller: "a", Share: 3}, {Caller: "b", Share: 1}, {Caller: "a", Class: "rest", Share: 2}}}
	tests := []struct {
		name   string
		bucket limiter.Bucket
		want   []Demand
	}{
		{"plain", limiter.Bucket{}, []Demand{{Share: 1}}},
		{"callers share a limit", limiter.Bucket{Share: limiter.MaxMin}, []Demand{{Caller: "a", Share: 5. / 6}, {Caller: "b", Share: 1. / 6}}},
		{"callers have one each", limiter.Bucket{PerCaller: true}, []Demand{{Caller: "a", Share: 1}, {Caller: "b", Share: 1}}},
		{
			"classes",
			limiter.Bucket{Tiers: []limiter.Tier{{Name: "gold"}, {Name: "rest"}}},
			[]Demand{{Class: "gold", Share: 4. / 6}, {Class: "rest", Share: 2. / 6}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := demandsOf(&o, &tt.bucket)
			if len(got) != len(tt.want) {
				t.Fatalf("demands %v, want %v", got, tt.want)
			}
			for i, d := range got {
				if w := tt.want[i]; d.Caller != w.Caller || d.Class != w.Class || math.Abs(d.Share-w.Share) > 1e-9 {
					t.Errorf("demand %v, want %v", d, w)
				}
			}
		})
	}
}

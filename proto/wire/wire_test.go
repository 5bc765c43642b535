package wire

import (
	"cmp"
	"reflect"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"grl/limiter"
	grlv1 "grl/proto/grl/v1"
)

var name = rapid.StringMatching(`[a-z]{1,3}`)

func pattern() *rapid.Generator[limiter.Pattern] {
	return rapid.Map(rapid.SampledFrom([]string{"", "*", "a", "a*", "b", "Charges/*"}), func(s string) limiter.Pattern { return limiter.Pattern(s) })
}

func match() *rapid.Generator[limiter.Match] {
	return rapid.Custom(func(t *rapid.T) limiter.Match {
		return limiter.Match{Caller: pattern().Draw(t, "caller"), Procedure: pattern().Draw(t, "procedure")}
	})
}

func limit() *rapid.Generator[float64] { return rapid.Float64Range(0.001, 1e9) }

// bucket draws a bucket that holds. Each field takes every kind of value.
func bucket(service string) *rapid.Generator[limiter.Bucket] {
	return rapid.Custom(func(t *rapid.T) limiter.Bucket {
		b := limiter.Bucket{
			Service:   service,
			Name:      name.Draw(t, "name"),
			Match:     match().Draw(t, "match"),
			PerCaller: rapid.Bool().Draw(t, "per caller"),
			Scope:     rapid.SampledFrom([]limiter.Scope{limiter.Global, limiter.Region, limiter.Zone}).Draw(t, "scope"),
			Block:     rapid.Bool().Draw(t, "block"),
			Behavior:  rapid.SampledFrom([]limiter.Behavior{limiter.Allow, limiter.Deny}).Draw(t, "behavior"),
			Verified:  rapid.Bool().Draw(t, "verified"),
		}
		switch rapid.IntRange(0, 2).Draw(t, "cost") {
		case 1:
			b.Cost.Fixed = rapid.Uint32Range(1, 1_000_000).Draw(t, "fixed")
		case 2:
			b.Cost.Header = name.Draw(t, "header")
		}
		if !b.Block {
			b.LimitRPS = limit().Draw(t, "limit")
			if b.Scope == limiter.Region && rapid.Bool().Draw(t, "regions") {
				b.Regions = rapid.MapOfN(name, limit(), 1, 3).Draw(t, "of regions")
			}
			share(t, &b)
		}
		b.HoldOnSilence = rapid.Bool().Draw(t, "hold")
		if !b.Block && b.Behavior == limiter.Deny && rapid.Bool().Draw(t, "has candidate") {
			b.CandidateRPS = limit().Draw(t, "candidate")
		}
		return b
	})
}

// share draws how a bucket that does not block divides its limit.
func share(t *rapid.T, b *limiter.Bucket) {
	b.ShedRetriesFirst, b.Coherent = rapid.Bool().Draw(t, "retries"), rapid.Bool().Draw(t, "coherent")
	if !b.PerCaller && rapid.Bool().Draw(t, "max-min") {
		b.Share = limiter.MaxMin
		if rapid.Bool().Draw(t, "has weights") {
			b.Weights = rapid.MapOfN(name, rapid.Float64Range(0.001, 1000), 1, 3).Draw(t, "weights")
		}
	}
	if !rapid.Bool().Draw(t, "has tiers") {
		return
	}
	for _, n := range rapid.SliceOfNDistinct(name, 2, 8, rapid.ID).Draw(t, "tiers") {
		tier := limiter.Tier{Name: n, Callers: []limiter.Pattern{"a", "b*"}}
		if rapid.Bool().Draw(t, "by header") {
			tier.Header, tier.Values = "x-priority", []string{"high", "1"}
		}
		b.Tiers = append(b.Tiers, tier)
	}
}

func service() *rapid.Generator[limiter.Service] {
	return rapid.Custom(func(t *rapid.T) limiter.Service {
		s := limiter.Service{
			Name:    name.Draw(t, "service"),
			Owner:   rapid.SampledFrom([]string{"", "team-a"}).Draw(t, "owner"),
			Enforce: rapid.SampledFrom([]limiter.Enforce{limiter.Inbound, limiter.Outbound}).Draw(t, "enforce"),
		}
		if rapid.Bool().Draw(t, "has routes") {
			s.Routes = rapid.SliceOfN(rapid.SampledFrom([]string{"GET /a/{id}", "POST /b"}), 1, 2).Draw(t, "routes")
		}
		if rapid.Bool().Draw(t, "has exempt") {
			s.Exempt = rapid.SliceOfN(match(), 1, 2).Draw(t, "exempt")
		}
		type rule struct {
			match     limiter.Match
			perCaller bool
			scope     limiter.Scope
		}
		rules, names := make(map[rule]bool), make(map[string]bool)
		for range rapid.IntRange(0, 4).Draw(t, "buckets") {
			b := bucket(s.Name).Draw(t, "bucket")
			r := rule{b.Match, b.PerCaller, b.Scope}
			if !rules[r] && !names[b.Name] { // else refused as the same twice
				rules[r], names[b.Name] = true, true
				s.Buckets = append(s.Buckets, b)
			}
		}
		return s
	})
}

func configuration() *rapid.Generator[*limiter.Configuration] {
	return rapid.Custom(func(t *rapid.T) *limiter.Configuration {
		services := rapid.SliceOfNDistinct(service(), 0, 4, func(s limiter.Service) string { return s.Name }).Draw(t, "services")
		return &limiter.Configuration{
			Epoch:    rapid.Uint64Range(0, MaxEpoch).Draw(t, "epoch"),
			Revision: rapid.Uint64Range(1, 1<<40).Draw(t, "revision"),
			Services: sorted(services),

			Serial:      rapid.Uint64Range(0, 1<<40).Draw(t, "serial"),
			Caps:        rapid.SliceOfNDistinct(cap(), 0, 3, func(c limiter.Cap) string { return c.ID }).Draw(t, "caps"),
			AllDisabled: rapid.Bool().Draw(t, "all disabled"),
			Disabled:    rapid.SliceOfNDistinct(name, 0, 2, rapid.ID).Draw(t, "disabled"),
		}
	})
}

// cap draws a cap that holds.
func cap() *rapid.Generator[limiter.Cap] {
	return rapid.Custom(func(t *rapid.T) limiter.Cap {
		c := limiter.Cap{
			ID:      rapid.StringMatching(`[0-9]{1,4}`).Draw(t, "id"),
			Service: name.Draw(t, "service"),
			Match:   match().Draw(t, "match"),
			Block:   rapid.Bool().Draw(t, "block"),
			Author:  name.Draw(t, "author"),
			Reason:  name.Draw(t, "reason"),
			Ends:    time.Now().Add(time.Duration(rapid.Int64Range(int64(-time.Minute), int64(24*time.Hour)).Draw(t, "left"))),
		}
		if !c.Block {
			c.LimitRPS = limit().Draw(t, "limit")
		}
		return c
	})
}

// sorted returns services by name: a configuration is the same in any order.
func sorted(services []limiter.Service) []limiter.Service {
	return slices.SortedFunc(slices.Values(services), func(a, b limiter.Service) int { return cmp.Compare(a.Name, b.Name) })
}

func check(t *rapid.T, got, want *limiter.Configuration) {
	got.Services = sorted(got.Services)
	// What is left of a cap travels in milliseconds, and takes a moment to do so.
	near := cmpopts.EquateApproxTime(5 * time.Second)
	if diff := gocmp.Diff(want, got, near, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("configuration differs (-want +got):\n%s", diff)
	}
}

// over sends a message over the wire.
func over[M proto.Message](t *rapid.T, m, into M) M {
	data, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	if err := proto.Unmarshal(data, into); err != nil {
		t.Fatal(err)
	}
	return into
}

// E2: a field lost on the way.
func TestConfigurationRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := configuration().Draw(t, "configuration")
		if err := want.Validate(); err != nil {
			t.Fatalf("the generator is wrong: %v", err)
		}
		m := over(t, FromConfiguration(want), &grlv1.Configuration{})
		got, err := ToConfiguration(&limiter.Configuration{Revision: 7}, m)
		if err != nil {
			t.Fatal(err)
		}
		check(t, got, want)
	})
}

// Fails when a field is added that nobody carries: sets each field, alone, to
// something else, and sends it.
func TestEachFieldIsCarried(t *testing.T) {
	full := func() limiter.Service {
		return limiter.Service{
			Name: "pay", Owner: "team", Enforce: limiter.Outbound,
			Routes: []string{"GET /a"}, Exempt: []limiter.Match{{Caller: "c", Procedure: "p"}},
			Buckets: []limiter.Bucket{{
				Service: "pay", Name: "b", Match: limiter.Match{Caller: "c", Procedure: "p"}, PerCaller: true,
				Scope: limiter.Region, LimitRPS: 5, Regions: map[string]float64{"eu": 4}, Behavior: limiter.Deny,
				Verified: true, Cost: limiter.Cost{Fixed: 3},
				Share: limiter.MaxMin, Weights: map[string]float64{"c": 2},
				Tiers:            []limiter.Tier{{Name: "t", Callers: []limiter.Pattern{"c*"}, Header: "x-priority", Values: []string{"high"}}},
				ShedRetriesFirst: true, Coherent: true, HoldOnSilence: true, CandidateRPS: 4,
			}},
		}
	}
	round := func(t *testing.T, s limiter.Service) limiter.Service {
		t.Helper()
		data, err := proto.Marshal(FromService(&s))
		if err != nil {
			t.Fatal(err)
		}
		m := &grlv1.Service{}
		if err := proto.Unmarshal(data, m); err != nil {
			t.Fatal(err)
		}
		got, err := ToService(m)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	// What lies behind an alternative that full does not take.
	behind := map[string]func(*limiter.Service){
		"Service.Buckets.Block":       func(s *limiter.Service) { b := &s.Buckets[0]; b.LimitRPS, b.Regions, b.Block = 0, nil, true },
		"Service.Buckets.Cost.Header": func(s *limiter.Service) { s.Buckets[0].Cost = limiter.Cost{Header: "x-cost"} },
	}
	var walk func(path string, v reflect.Value)
	walk = func(path string, v reflect.Value) {
		switch path {
		case "Service.Buckets.Cap":
			return // made by the receiver, of a cap
		case "Service.Buckets.Hourly", "Service.Buckets.RegionHourly", "Service.Buckets.TimeZone":
			return // the controller sends what holds now
		}
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				walk(path+"."+v.Type().Field(i).Name, v.Field(i))
			}
			return
		case reflect.Slice:
			walk(path, v.Index(0))
			return
		}
		if set, ok := behind[path]; ok {
			s := full()
			set(&s)
			if got := round(t, s); !reflect.DeepEqual(got, s) {
				t.Errorf("%s is not carried: sent %+v, got %+v", path, s, got)
			}
			return
		}
		if v.IsZero() {
			t.Errorf("%s: set it in this test, so that it is seen to be carried", path)
		}
	}
	s := full()
	walk("Service", reflect.ValueOf(s))
	if got := round(t, s); !reflect.DeepEqual(got, s) {
		t.Errorf("sent %+v, got %+v", s, got)
	}
}

func TestChange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base, next := configuration().Draw(t, "base"), configuration().Draw(t, "next")
		if rapid.Bool().Draw(t, "keep some") { // as most changes do
			for i := range base.Services {
				if j := slices.IndexFunc(next.Services, func(s limiter.Service) bool { return s.Name == base.Services[i].Name }); j >= 0 {
					next.Services[j] = base.Services[i]
				}
			}
		}
		m := over(t, Change(base, next), &grlv1.Configuration{})
		got, err := ToConfiguration(base, m)
		if err != nil {
			t.Fatal(err)
		}
		check(t, got, next)
		for _, s := range m.GetServices() {
			for i := range base.Services {
				old := &base.Services[i]
				j := slices.IndexFunc(next.Services, func(n limiter.Service) bool { return n.Name == s.GetName() })
				if old.Name == s.GetName() && reflect.DeepEqual(*old, next.Services[j]) {
					t.Fatalf("service %q is sent although it did not change", old.Name)
				}
			}
		}

		other := *base
		other.Revision++
		if _, err := ToConfiguration(&other, m); !NeedsWhole(err) {
			t.Fatalf("change of r%d applied to r%d: error %v, want one that needs a whole configuration", base.Revision, other.Revision, err)
		}
		if _, err := ToConfiguration(&other, FromConfiguration(next)); err != nil {
			t.Fatalf("a whole one after another: %v", err)
		}
	})
}

func TestToConfigurationRefuses(t *testing.T) {
	good := func() *grlv1.Bucket {
		return &grlv1.Bucket{
			Name: "b", Scope: grlv1.Scope_SCOPE_GLOBAL, Behavior: grlv1.Behavior_BEHAVIOR_DENY,
			Gate: &grlv1.Bucket_Limit{Limit: &grlv1.Limit{Rps: 5}},
		}
	}
	tests := []struct {
		name string
		edit func(*grlv1.Service, *grlv1.Bucket)
	}{
		{"no name", func(s *grlv1.Service, _ *grlv1.Bucket) { s.Name = "" }},
		{"no enforce", func(s *grlv1.Service, _ *grlv1.Bucket) { s.Enforce = 0 }},
		{"enforce of a later version", func(s *grlv1.Service, _ *grlv1.Bucket) { s.Enforce = 77 }},
		{"no scope", func(_ *grlv1.Service, b *grlv1.Bucket) { b.Scope = 0 }},
		{"scope of a later version", func(_ *grlv1.Service, b *grlv1.Bucket) { b.Scope = 77 }},
		{"no behavior", func(_ *grlv1.Service, b *grlv1.Bucket) { b.Behavior = 0 }},
		{"behavior of a later version", func(_ *grlv1.Service, b *grlv1.Bucket) { b.Behavior = 77 }},
		{"share of a later version", func(_ *grlv1.Service, b *grlv1.Bucket) { b.Share = 77 }},
		{"one tier", func(_ *grlv1.Service, b *grlv1.Bucket) { b.Tiers = []*grlv1.Tier{{Name: "t"}} }},
		{"weights without max-min", func(_ *grlv1.Service, b *grlv1.Bucket) { b.Weights = map[string]float64{"a": 1} }},
		{"no limit", func(_ *grlv1.Service, b *grlv1.Bucket) { b.Gate = nil }},
		{"limit 0", func(_ *grlv1.Service, b *grlv1.Bucket) { b.GetLimit().Rps = 0 }},
		{"block false", func(_ *grlv1.Service, b *grlv1.Bucket) { b.Gate = &grlv1.Bucket_Block{} }},
		{"cost above all", func(_ *grlv1.Service, b *grlv1.Bucket) {
			b.Cost = &grlv1.Cost{Source: &grlv1.Cost_Fixed{Fixed: 1 << 31}}
		}},
		{"the same bucket twice", func(s *grlv1.Service, b *grlv1.Bucket) { s.Buckets = append(s.Buckets, b) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := good()
			s := &grlv1.Service{Name: "s", Enforce: grlv1.Enforce_ENFORCE_INBOUND, Buckets: []*grlv1.Bucket{b}}
			m := &grlv1.Configuration{Revision: 1, Whole: true, Services: []*grlv1.Service{s}}
			if _, err := ToConfiguration(&limiter.Configuration{}, m); err != nil {
				t.Fatalf("before the edit: %v", err)
			}
			tt.edit(s, b)
			if c, err := ToConfiguration(&limiter.Configuration{}, m); err == nil || NeedsWhole(err) {
				t.Errorf("taken: %+v, error %v", c, err)
			}
		})
	}
}

func TestFilter(t *testing.T) {
	c := &limiter.Configuration{Epoch: 3, Revision: 4, Services: []limiter.Service{
		{Name: "a"}, {Name: "b", Enforce: limiter.Outbound}, {Name: "c"}, {Name: "d", Enforce: limiter.Outbound},
	}}
	tests := []struct {
		name  string
		hello *grlv1.Hello
		want  []string
	}{
		{"all", &grlv1.Hello{AllServices: true}, []string{"a", "b", "c", "d"}},
		{"none", &grlv1.Hello{}, nil},
		{"one", &grlv1.Hello{Services: []string{"a"}}, []string{"a"}},
		{"one that is not there", &grlv1.Hello{Services: []string{"x"}}, nil},
		{"a caller", &grlv1.Hello{Callers: []string{"web"}}, []string{"b", "d"}},
		{"both", &grlv1.Hello{Services: []string{"c", "d"}, Callers: []string{"web"}}, []string{"b", "c", "d"}},
		{"nothing said", nil, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := Filter(c, tt.hello)
			var names []string
			for _, s := range got.Services {
				names = append(names, s.Name)
			}
			if !slices.Equal(names, tt.want) || got.Epoch != 3 || got.Revision != 4 {
				t.Errorf("services %v of %d.%d, want %v of 3.4", names, got.Epoch, got.Revision, tt.want)
			}
		})
	}
}

func FuzzConfiguration(f *testing.F) {
	whole := FromConfiguration(&limiter.Configuration{Epoch: 1, Revision: 2, Services: []limiter.Service{{
		Name: "pay", Routes: []string{"GET /a"}, Exempt: []limiter.Match{{Caller: "c"}},
		Buckets: []limiter.Bucket{
			{Service: "pay", Name: "b", LimitRPS: 5, Scope: limiter.Region, Regions: map[string]float64{"eu": 1}},
			{Service: "pay", Name: "x", Block: true, PerCaller: true, Match: limiter.Match{Caller: "*"}},
		},
	}}})
	for _, m := range []*grlv1.Configuration{whole, {Base: 2, Removed: []string{"pay"}}} {
		data, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	held, err := ToConfiguration(&limiter.Configuration{}, whole)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m := &grlv1.Configuration{}
		if proto.Unmarshal(data, m) != nil {
			return
		}
		c, err := ToConfiguration(held, m)
		if err != nil {
			return
		}
		// What was taken holds, can be installed, and can be passed on.
		var l limiter.Limiter
		if err := l.Install(*c); err != nil {
			t.Fatalf("taken, but not installed: %v", err)
		}
		again, err := ToConfiguration(held, Change(held, c))
		if err != nil {
			if held.Revision == m.GetBase() || m.GetWhole() {
				t.Fatalf("taken, but not passed on: %v", err)
			}
			return
		}
		if !reflect.DeepEqual(again.ByName(), c.ByName()) {
			t.Fatalf("passed on %+v, want %+v", again, c)
		}
	})
}

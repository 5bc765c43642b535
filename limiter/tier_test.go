package limiter

import (
	"fmt"
	"maps"
	"testing"
	"time"
)

// tiered is a bucket of three tiers, by caller and by header.
func tiered(name string) Bucket {
	b := deny(name, "", "")
	b.Tiers = []Tier{
		{Name: "high", Callers: []Pattern{"checkout", "pay-*"}, Header: "x-priority", Values: []string{"high", "urgent"}},
		{Name: "middle", Header: "x-priority", Values: []string{"high", "middle"}},
		{Name: "low"},
	}
	return b
}

func TestClassesAndRank(t *testing.T) {
	plain, tiers, retries := deny("b", "", ""), tiered("b"), deny("b", "", "")
	retries.ShedRetriesFirst = true
	both := tiers
	both.ShedRetriesFirst = true
	tests := []struct {
		name   string
		bucket Bucket
		want   []string
	}{
		{"plain", plain, nil},
		{"tiers", tiers, []string{"high", "middle", "low"}},
		{"retries", retries, []string{"first", "retry"}},
		{"both", both, []string{"high", "middle", "low", "high/retry", "middle/retry", "low/retry"}},
	}
	for _, test := range tests {
		got := test.bucket.Classes()
		if fmt.Sprint(got) != fmt.Sprint(test.want) {
			t.Errorf("%s: Classes() = %v, want %v", test.name, got, test.want)
		}
		for i, class := range got {
			if rank := test.bucket.Rank(class); rank != i {
				t.Errorf("%s: Rank(%q) = %d, want %d", test.name, class, rank, i)
			}
		}
	}
}

func TestServiceTier(t *testing.T) {
	other := tiered("other")
	other.Tiers[2].Header, other.Tiers[2].Values = "X-Priority", []string{"low", "middle"}
	s := Service{Name: "s", Buckets: []Bucket{deny("plain", "a", ""), tiered("b"), other}}
	if got := s.TierHeader(); got != "x-priority" {
		t.Errorf("TierHeader() = %q, want x-priority", got)
	}
	for value, want := range map[string]uint32{"": 0, "none": 0, "High": 0, "high": 1, "urgent": 2, "middle": 3, "low": 4} {
		if got := s.Tier(value); got != want {
			t.Errorf("Tier(%q) = %d, want %d", value, got, want)
		}
	}
	if none := (&Service{}); none.TierHeader() != "" || none.Tier("high") != 0 {
		t.Error("a service without tiers has a tier header or a tier")
	}
}

// classCounts returns the offered requests of each class of a bucket.
func classCounts(l *Limiter, bucket string) map[string]uint64 {
	counts := map[string]uint64{}
	for c := range l.Cells() {
		if n := c.Counts().Offered; c.ID().Bucket == "s/"+bucket && n > 0 {
			counts[c.ID().Class] += n
		}
	}
	return counts
}

func TestTierOfRequest(t *testing.T) {
	s := Service{Name: "s", Buckets: []Bucket{tiered("b")}}
	s.Buckets[0].ShedRetriesFirst = true
	tests := []struct {
		name, caller, header string
		attempt              uint32
		want                 string
	}{
		{"nothing selects", "web", "", 0, "low"},
		{"unknown value", "web", "huge", 0, "low"},
		{"no caller", "", "", 0, "low"},
		{"caller", "checkout", "", 0, "high"},
		{"prefix", "pay-1", "", 0, "high"},
		{"header", "web", "urgent", 0, "high"},
		{"value of two tiers", "web", "high", 0, "high"},
		{"second tier", "web", "middle", 0, "middle"},
		{"caller before header", "checkout", "middle", 0, "high"},
		{"retry", "checkout", "", 3, "high/retry"},
		{"retry of the rest", "web", "", 1, "low/retry"},
	}
	for _, test := range tests {
		// With room for names and without.
		for _, maxNames := range []int{0, 1} {
			l := New(Options{MaxNames: maxNames})
			install(t, l, s)
			send(l, 1, "somebody", "y")
			l.Decide(Request{Service: "s", Caller: test.caller, Procedure: "x", Tier: s.Tier(test.header), Attempt: test.attempt})
			l.Collect(at(0))
			want := map[string]uint64{"low": 1}
			want[test.want]++
			if got := classCounts(l, "b"); !maps.Equal(got, want) {
				t.Errorf("%s, %d names: offered by class = %v, want %v", test.name, maxNames, got, want)
			}
		}
	}
}

// TestShedsByClass: the ratio of a class drops that class alone.
func TestShedsByClass(t *testing.T) {
	l := New(Options{})
	b := tiered("b")
	b.ShedRetriesFirst = true
	s := Service{Name: "s", Buckets: []Bucket{b}}
	install(t, l, s)
	l.Cell(CellID{Bucket: "s/b", Class: "low"}).SetRatio(1)
	l.Cell(CellID{Bucket: "s/b", Class: "high/retry"}).SetRatio(1)
	for _, r := range []struct {
		request Request
		dropped bool
	}{
		{Request{Caller: "checkout"}, false},
		{Request{Caller: "checkout", Attempt: 1}, true},
		{Request{Caller: "web"}, true},
		{Request{Caller: "web", Tier: s.Tier("middle")}, false},
		{Request{Caller: "web", Tier: s.Tier("middle"), Attempt: 1}, false},
		{Request{Caller: "web", Tier: 99}, true}, // of another configuration
	} {
		if d := l.Service("s").DecideRequest(r.request); d.Dropped != r.dropped {
			t.Errorf("%+v: dropped = %v, want %v", r.request, d.Dropped, r.dropped)
		}
	}
}

// TestShadowDropsNothing: whatever divides a bucket in shadow, it only counts.
func TestShadowDropsNothing(t *testing.T) {
	l := New(Options{})
	b := tiered("b")
	b.Behavior, b.Share, b.ShedRetriesFirst, b.Coherent, b.HoldOnSilence = Allow, MaxMin, true, true, true
	s := Service{Name: "s", Buckets: []Bucket{b}}
	install(t, l, s)
	sent := uint64(0)
	for round := range uint32(3) {
		for c := range l.Cells() {
			c.SetRatio(1)
		}
		for _, caller := range []string{"", "checkout", "web"} {
			for attempt := range uint32(2) {
				for tier := range uint32(4) {
					r := Request{Service: "s", Caller: caller, Procedure: "x", Attempt: attempt, Tier: tier, TraceID: trace(1, uint64(round))}
					if l.Decide(r).Dropped {
						t.Fatalf("%+v is dropped in shadow", r)
					}
					sent++
				}
			}
		}
		l.Collect(at(time.Duration(round)))
	}
	var sum Counts
	for c := range l.Cells() {
		sum.add(c.Counts())
	}
	// No cell was there in the first round.
	if want := (Counts{Offered: sent, ShadowDropped: sent / 3 * 2}); sum != want {
		t.Errorf("counts = %+v, want %+v", sum, want)
	}
}

// TestMaxMinHasCallersCells: as for a limit for each caller, but for requests
// without a caller too, since they take from the limit that all share.
func TestMaxMinHasCallersCells(t *testing.T) {
	for _, match := range []string{"", "*"} {
		l := New(Options{MaxNames: 1})
		b := deny("b", match, "")
		b.Share, b.Weights = MaxMin, map[string]float64{"weighty": 2}
		install(t, l, Service{Name: "s", Buckets: []Bucket{b}})
		for _, caller := range []string{"a", "c", "weighty", "", "d"} {
			send(l, 1, caller, "x")
		}
		l.Collect(at(0))
		for caller, want := range map[string]uint64{"a": 1, Other: 2, UnknownCaller: 1, "weighty": 1} {
			wantCounts(t, l, "b", caller, Counts{Offered: want})
		}
		if l.Cell(CellID{Bucket: "s/b"}) != nil {
			t.Error("a bucket with cells for callers has one without")
		}
	}
}

// TestCellOfClass: cells of classes are there from the beginning, those of
// callers come to be, and neither under a name that the bucket has not.
func TestCellOfClass(t *testing.T) {
	l := New(Options{Zone: "z1"})
	b, each, zone := tiered("b"), tiered("each"), tiered("zone")
	each.Match.Caller, each.PerCaller = "a*", true
	zone.Match.Procedure, zone.Scope = "x", Zone
	install(t, l, Service{Name: "s", Buckets: []Bucket{b, each, zone}})
	if n := len(l.allCells()); n != 6 {
		t.Errorf("%d cells at first, want the 3 of b and the 3 of zone", n)
	}
	tests := []struct {
		id   CellID
		want bool
	}{
		{CellID{Bucket: "s/b", Class: "high"}, true},
		{CellID{Bucket: "s/b"}, false},
		{CellID{Bucket: "s/b", Class: "high/retry"}, false},
		{CellID{Bucket: "s/b", Class: "high", Caller: "a"}, false},
		{CellID{Bucket: "s/each", Class: "low", Caller: "ab"}, true},
		{CellID{Bucket: "s/each", Class: "low", Caller: Other}, true},
		{CellID{Bucket: "s/each", Class: "low", Caller: "b"}, false},
		{CellID{Bucket: "s/each", Caller: "ab"}, false},
		{CellID{Bucket: "s/zone", Class: "low", Instance: "z1"}, true},
		{CellID{Bucket: "s/zone", Class: "low", Instance: "z2"}, false},
	}
	for _, test := range tests {
		if got := l.Cell(test.id) != nil; got != test.want {
			t.Errorf("Cell(%+v) exists = %v, want %v", test.id, got, test.want)
		}
	}
	// Cells stay over a configuration that keeps them, and go with their tier.
	kept := l.Cell(CellID{Bucket: "s/b", Class: "low"})
	b.Tiers = b.Tiers[1:]
	install(t, l, Service{Name: "s", Buckets: []Bucket{b}})
	if l.Cell(kept.ID()) != kept || l.Cell(CellID{Bucket: "s/b", Class: "high"}) != nil {
		t.Error("a new configuration replaced the cell of a tier that stayed, or kept that of one that went")
	}
}

// TestRetriesAreCounted: for every service, whatever limits it.
func TestRetriesAreCounted(t *testing.T) {
	l := New(Options{})
	blocked := deny("blocked", "blocked", "")
	blocked.Block, blocked.LimitRPS = true, 0
	install(t, l, Service{Name: "s", Buckets: []Bucket{blocked, deny("b", "", "")}, Exempt: []Match{{Caller: "free"}}})
	for _, caller := range []string{"a", "blocked", "free", ""} {
		for attempt := range uint32(3) {
			l.Decide(Request{Service: "s", Caller: caller, Procedure: "x", Attempt: attempt})
			l.Decide(Request{Service: "unlimited", Caller: caller, Procedure: "x", Attempt: attempt, Verified: true})
		}
	}
	l.Decide(Request{Service: "patient", Caller: "a", Procedure: "x"})
	l.Collect(at(0))
	if got, want := maps.Collect(l.Retries()), map[string]uint64{"s": 8, "unlimited": 8}; !maps.Equal(got, want) {
		t.Errorf("Retries() = %v, want %v", got, want)
	}
}

// TestVariantsAreBounded: header values and attempts multiply no bound.
func TestVariantsAreBounded(t *testing.T) {
	const names = 10
	l := New(Options{MaxNames: names})
	each := deny("each", "*", "")
	each.PerCaller = true
	b := tiered("b")
	s := Service{Name: "s", Buckets: []Bucket{each, b, deny("named", "late", "rare")}}
	install(t, l, s)
	sent := uint64(0)
	for caller := range 20 {
		for procedure := range 20 {
			for tier := range uint32(4) {
				for attempt := range uint32(2) {
					l.Decide(Request{Service: "s", Caller: fmt.Sprintf("c%d", caller), Procedure: fmt.Sprintf("p%d", procedure), Tier: tier, Attempt: attempt})
					sent++
				}
			}
		}
	}
	l.Decide(Request{Service: "s", Caller: "late", Procedure: "rare", Attempt: 1, Tier: s.Tier("middle")})
	l.Collect(at(0))
	tab := l.Service("s").table.Load()
	if tab.count[own] > maxOwnLeaves*names+1 || tab.count[byCaller] > maxMixedLeaves*names || tab.count[byClass] > 2*8 {
		t.Errorf("leaves by level = %v, want at most 41, 40 and 16", tab.count)
	}
	wantCounts(t, l, "named", "", Counts{Offered: 1})
	if got, want := classCounts(l, "b"), map[string]uint64{"high": sent / 2, "middle": sent/4 + 1, "low": sent / 4}; !maps.Equal(got, want) {
		t.Errorf("offered by class = %v, want %v", got, want)
	}
	if got := maps.Collect(l.Retries())["s"]; got != sent/2+1 {
		t.Errorf("%d retries, want %d", got, sent/2+1)
	}
	// The last resort gives up tiers and attempts before it gives up names.
	tab.full[byClass].Store(true)
	late := Request{Service: "s", Caller: "late", Procedure: "rare", Attempt: 1, Tier: 2}
	if p, _ := tab.find(&late); p.view != &tab.views[0] || p.level != own {
		t.Errorf("beyond all bounds a retry of a named pair is at level %d of variant %d, want own of 0", p.level, p.view.number)
	}
}

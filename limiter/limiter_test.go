package limiter

import (
	"fmt"
	"math"
	"testing"
	"time"
)

func deny(name, caller, procedure string) Bucket {
	return Bucket{Name: name, Match: Match{Pattern(caller), Pattern(procedure)}, LimitRPS: 10, Behavior: Deny}
}

func allow(name, caller, procedure string) Bucket {
	b := deny(name, caller, procedure)
	b.Behavior = Allow
	return b
}

// cell returns an existing cell of service "s".
func cell(t testing.TB, l *Limiter, bucket, caller string) *Cell {
	t.Helper()
	c := l.Cell(CellID{Bucket: "s/" + bucket, Caller: caller})
	if c == nil {
		t.Fatalf("Cell(s/%s, %q) = nil", bucket, caller)
	}
	return c
}

func wantCounts(t testing.TB, l *Limiter, bucket, caller string, want Counts) {
	t.Helper()
	if got := cell(t, l, bucket, caller).Counts(); got != want {
		t.Errorf("counts of %s %q = %+v, want %+v", bucket, caller, got, want)
	}
}

// at is a time of Collect.
func at(d time.Duration) time.Time { return time.Unix(1000, 0).Add(d) }

func send(l *Limiter, n int, caller, procedure string) (dropped int) {
	for range n {
		if l.Service("s").Decide(caller, procedure).Dropped {
			dropped++
		}
	}
	return dropped
}

func TestZeroValueAdmits(t *testing.T) {
	var l Limiter
	for range l.Cells() {
		t.Error("the zero Limiter has a cell")
	}
	if d := l.Decide(Request{}); d != (Decision{}) {
		t.Errorf("Decide = %+v, want admitted", d)
	}
	if d := l.Service("s").Decide("", ""); d.Dropped {
		t.Error("Callee.Decide drops")
	}
	if d := l.Handle("s", "a", "x").Decide(); d.Dropped {
		t.Error("Handle.Decide drops")
	}
	if d := new(Handle).Decide(); d.Dropped {
		t.Error("the zero Handle drops")
	}
	if c := l.Cell(CellID{Bucket: "s/b"}); c.Bucket() != nil {
		t.Error("a cell that does not exist has a bucket")
	}
	l.Collect(at(0))
	if l.Service("s").Configuration() != nil {
		t.Error("a service without configuration has one")
	}
	l.CountPanic("s")
	got := map[UnlimitedKey]uint64{}
	for k, n := range l.Unlimited() {
		got[k] = n
	}
	want := map[UnlimitedKey]uint64{{"", NoLimits}: 1, {"s", NoLimits}: 2, {"s", Panicked}: 1}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("Unlimited = %v, want %v", got, want)
	}
}

// TestTightRuleDoesNotUseUpWideOne and its reverse are case O1, and A17: gates
// in a row act on what is left, so their ratios do not add up by accident.
func TestTightRuleDoesNotUseUpWideOne(t *testing.T) {
	l := New(Options{})
	install(t, l, Service{Name: "s", Buckets: []Bucket{deny("wide", "", ""), deny("tight", "a", "x")}})
	cell(t, l, "tight", "").SetRatio(1)
	if n := send(l, 10, "a", "x"); n != 10 {
		t.Errorf("dropped %d of 10, want all", n)
	}
	if n := send(l, 4, "b", "x"); n != 0 {
		t.Errorf("dropped %d of 4 others, want none", n)
	}
	l.Collect(at(0))
	wantCounts(t, l, "tight", "", Counts{Offered: 10, Dropped: 10})
	wantCounts(t, l, "wide", "", Counts{Offered: 4})
}

func TestWideRuleComesAfterTightOne(t *testing.T) {
	l := New(Options{})
	install(t, l, Service{Name: "s", Buckets: []Bucket{deny("tight", "a", "x"), deny("wide", "", "")}})
	cell(t, l, "wide", "").SetRatio(1)
	if d := l.Service("s").Decide("a", "x"); !d.Dropped || d.Bucket.Name != "wide" || d.Service.Name != "s" {
		t.Errorf("Decide = %+v, want dropped by wide of s", d)
	}
	l.Collect(at(0))
	wantCounts(t, l, "tight", "", Counts{Offered: 1})
	wantCounts(t, l, "wide", "", Counts{Offered: 1, Dropped: 1})
}

// TestGatesInARow: 50 % of what is offered, then 50 % of what is left.
func TestGatesInARow(t *testing.T) {
	l := New(Options{})
	install(t, l, Service{Name: "s", Buckets: []Bucket{deny("tight", "a", "x"), deny("wide", "", "")}})
	cell(t, l, "tight", "").SetRatio(0.5)
	cell(t, l, "wide", "").SetRatio(0.5)
	const n = 10_000
	send(l, n, "a", "x")
	l.Collect(at(0))
	tight, wide := cell(t, l, "tight", "").Counts(), cell(t, l, "wide", "").Counts()
	if wide.Offered != n-tight.Dropped {
		t.Errorf("offered to wide = %d, want the %d that tight let through", wide.Offered, n-tight.Dropped)
	}
	// Seven standard deviations of the coin, on each shard.
	slack := float64(shardCount()) * (1 + 0.21*math.Sqrt(n))
	if off := math.Abs(float64(tight.Dropped) - n/2); off > slack {
		t.Errorf("tight drops %d of %d, want half within %.0f", tight.Dropped, n, slack)
	}
	if off := math.Abs(float64(wide.Dropped) - float64(wide.Offered)/2); off > slack {
		t.Errorf("wide drops %d of %d, want half within %.0f", wide.Dropped, wide.Offered, slack)
	}
}

func TestShadowNeverDropsNorEndsTheWalk(t *testing.T) {
	l := New(Options{})
	block := allow("block", "a", "x")
	block.Block, block.LimitRPS = true, 0
	install(t, l, Service{Name: "s", Buckets: []Bucket{block, allow("shadow", "a", ""), deny("wide", "", "")}})
	cell(t, l, "shadow", "").SetRatio(1)
	if n := send(l, 10, "a", "x"); n != 0 {
		t.Errorf("dropped %d, want none", n)
	}
	l.Collect(at(0))
	wantCounts(t, l, "block", "", Counts{Offered: 10, ShadowDropped: 10})
	wantCounts(t, l, "shadow", "", Counts{Offered: 10, ShadowDropped: 10})
	wantCounts(t, l, "wide", "", Counts{Offered: 10})
}

func TestExemptWins(t *testing.T) {
	l := New(Options{})
	block := deny("block", "", "")
	block.Block, block.LimitRPS = true, 0
	install(t, l, Service{Name: "s", Buckets: []Bucket{block}, Exempt: []Match{{Caller: "health*"}}})
	if send(l, 5, "healthcheck", "x") != 0 || send(l, 5, "a", "x") != 5 {
		t.Error("want exempt callers admitted and all others dropped")
	}
	l.Collect(at(0))
	for k, n := range l.Unlimited() {
		if k != (UnlimitedKey{"s", Exempt}) || n != 5 {
			t.Errorf("Unlimited yields %v %d, want exempt 5", k, n)
		}
	}
}

func TestBlockNeedsNoDirective(t *testing.T) {
	l := New(Options{})
	block := deny("b", "a", "")
	block.Block, block.LimitRPS = true, 0
	install(t, l, Service{Name: "s", Buckets: []Bucket{block}})
	c := cell(t, l, "b", "")
	c.SetRatio(0)
	c.SetOpen()
	if send(l, 5, "a", "x") != 5 {
		t.Error("a block bucket admits")
	}
	l.Collect(at(0))
	for k, n := range l.Unlimited() {
		t.Errorf("Unlimited yields %v %d, want nothing: a block is live", k, n)
	}
	// As a limit again, it has the ratio that was set.
	install(t, l, Service{Name: "s", Buckets: []Bucket{deny("b", "a", "")}})
	if send(l, 5, "a", "x") != 0 {
		t.Error("drops after the block was lifted")
	}
}

func TestSetRatioRefusesWhatIsNoRatio(t *testing.T) {
	l := New(Options{})
	install(t, l, Service{Name: "s", Buckets: []Bucket{deny("b", "", "")}})
	for _, p := range []float64{math.NaN(), -1, math.Inf(1), math.Inf(-1), 1.5} {
		cell(t, l, "b", "").SetRatio(1)
		cell(t, l, "b", "").SetRatio(p)
		if n := send(l, 100, "a", "x"); n != 0 {
			t.Errorf("SetRatio(%v) drops %d of 100, want none", p, n)
		}
	}
}

func TestFailOpenIsCounted(t *testing.T) {
	l := New(Options{})
	install(t, l, Service{Name: "s", Buckets: []Bucket{deny("b", "", ""), allow("shadow", "a", "")}})
	steps := []struct {
		name   string
		change func(*Cell)
		want   uint64 // cumulative
	}{
		{"never directed", func(*Cell) {}, 3},
		{"directed to 0", func(c *Cell) { c.SetRatio(0) }, 3},
		{"opened", (*Cell).SetOpen, 6},
	}
	for _, step := range steps {
		step.change(cell(t, l, "b", ""))
		send(l, 3, "a", "x")
		l.Collect(at(0))
		var got uint64
		for k, n := range l.Unlimited() {
			if k.Reason == FailOpen {
				got = n
			}
		}
		if got != step.want {
			t.Errorf("%s: fail_open = %d, want %d", step.name, got, step.want)
		}
	}
}

// TestZeroRatioTouchesNoCoin: no random number is drawn, since each draw moves
// the coin.
func TestZeroRatioTouchesNoCoin(t *testing.T) {
	l := New(Options{})
	install(t, l, Service{Name: "s", Buckets: []Bucket{deny("b", "", "")}})
	c := cell(t, l, "b", "")
	touched := func() bool {
		for i := 0; i < len(c.coins); i += c.stride {
			if c.coins[i].Load() != 0 {
				return true
			}
		}
		return false
	}
	send(l, 1000, "a", "x")
	if touched() {
		t.Error("the coin moved at ratio 0")
	}
	c.SetRatio(0.5)
	send(l, 1000, "a", "x")
	if !touched() {
		t.Error("the coin did not move at ratio 0.5")
	}
}

func TestDecideAllocatesNothing(t *testing.T) {
	l := New(Options{MaxNames: 4})
	blocked := deny("blocked", "blocked", "")
	blocked.Block, blocked.LimitRPS = true, 0
	coherent := tiered("tiers")
	coherent.Match.Caller, coherent.Coherent, coherent.ShedRetriesFirst = "journey", true, true
	install(t, l, Service{Name: "s", Buckets: []Bucket{deny("b", "half*", ""), blocked, coherent, deny("rest", "", "")}})
	cell(t, l, "b", "").SetRatio(0.05)
	for c := range l.Cells() {
		if c.ID().Class != "" {
			c.SetRatio(0.5)
		}
	}
	names := make([]string, 100)
	for i := range names {
		names[i] = fmt.Sprintf("stranger-%d", i)
		send(l, 1, names[i], "x")
	}
	s, h, i := l.Service("s"), l.Handle("s", "a", "x"), 0
	tests := []struct {
		name   string
		decide func()
	}{
		{"ratio 0", func() { s.Decide("a", "x") }},
		{"ratio 0.05", func() { s.Decide("half-1", "x") }},
		{"dropped", func() { s.Decide("blocked", "x") }},
		{"no caller", func() { s.Decide("", "x") }},
		{"overflow", func() { s.Decide(names[i%len(names)], "x"); i++ }},
		{"overflow, verified", func() { l.Decide(Request{Service: "s", Caller: names[i%len(names)], Verified: true}); i++ }},
		{"request", func() { l.Decide(Request{Service: "s", Caller: "half-1", Procedure: "x", Cost: 3}) }},
		{"handle", func() { h.Decide() }},
		{"trace, tier and attempt", func() {
			l.Decide(Request{Service: "s", Caller: "journey", Procedure: "x", Attempt: 1, Tier: 1, TraceID: trace(1, uint64(i))})
			i++
		}},
		{"coherent without a trace", func() { s.Decide("journey", "x") }},
	}
	for _, test := range tests {
		if n := testing.AllocsPerRun(1000, test.decide); n != 0 {
			t.Errorf("%s: %v allocations, want 0", test.name, n)
		}
	}
}

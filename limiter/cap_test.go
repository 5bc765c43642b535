package limiter

import (
	"strings"
	"testing"
	"time"
)

var capEnd = time.Unix(5000, 0)

// limitCap returns a cap on service "s".
func limitCap(id, caller, procedure string) Cap {
	return Cap{ID: id, Service: "s", Match: Match{Pattern(caller), Pattern(procedure)}, LimitRPS: 10, Ends: capEnd, Author: "ann", Reason: "surge"}
}

func blockCap(id, caller, procedure string) Cap {
	c := limitCap(id, caller, procedure)
	c.Block, c.LimitRPS = true, 0
	return c
}

func installCaps(t testing.TB, l *Limiter, services []Service, caps ...Cap) {
	t.Helper()
	if err := l.Install(Configuration{Services: services, Caps: caps}); err != nil {
		t.Fatal(err)
	}
}

func TestCapComesFirst(t *testing.T) {
	l := New(Options{})
	s := Service{Name: "s", Buckets: []Bucket{deny("b", "a", "x")}, Exempt: []Match{{Procedure: "health"}}}
	installCaps(t, l, []Service{s}, limitCap("wide", "", ""), limitCap("narrow", "a", ""))
	cell(t, l, "b", "").SetRatio(1)
	cell(t, l, "_cap-wide", "").SetRatio(1)
	if d := l.Service("s").Decide("a", "x"); !d.Dropped || d.Bucket.FullName() != "s/_cap-wide" || d.Bucket.Cap.Reason != "surge" {
		t.Errorf("Decide = %+v, want dropped by the cap", d)
	}
	if l.Service("s").Decide("a", "health").Dropped {
		t.Error("a cap drops what is exempt")
	}
	l.Collect(at(0))
	wantCounts(t, l, "_cap-narrow", "", Counts{Offered: 1})
	wantCounts(t, l, "_cap-wide", "", Counts{Offered: 1, Dropped: 1})
	wantCounts(t, l, "b", "", Counts{})
}

func TestCapOnAServiceWithoutLimits(t *testing.T) {
	l := New(Options{})
	h := l.Handle("s", "a", "x")
	h.Decide()
	installCaps(t, l, nil, blockCap("1", "", ""))
	if d := h.Decide(); !d.Dropped || d.Service != nil {
		t.Errorf("Decide = %+v, want dropped, without a configuration", d)
	}
	l.Collect(at(0))
	if d := l.Detail(); len(d.Services) != 1 || d.Services[0].Pairs[0].Offered != 2 {
		t.Errorf("Detail = %+v, want both requests of a service without limits", d)
	}
	installCaps(t, l, nil)
	if h.Decide().Dropped {
		t.Error("drops after the cap was lifted")
	}
}

// A cap's end is known anew with each message; what does not change otherwise
// keeps its leaves, and a ratio never has a gap.
func TestInstallLeavesUnchangedCapsAlone(t *testing.T) {
	l := New(Options{})
	services := []Service{{Name: "s", Buckets: []Bucket{deny("b", "", "")}}, {Name: "t", Buckets: []Bucket{deny("b", "", "")}}}
	installCaps(t, l, services, limitCap("1", "", ""), limitCap("2", "a", ""))
	held, other := l.Service("s").table.Load(), l.Service("t").table.Load()

	moved := []Cap{limitCap("2", "a", ""), limitCap("1", "", "")}
	moved[0].Ends, moved[1].Ends = capEnd.Add(time.Second), capEnd.Add(-time.Second)
	installCaps(t, l, services, moved...)
	if l.Service("s").table.Load() != held {
		t.Error("ends that moved by a second disturb the service")
	}
	cell(t, l, "_cap-1", "").SetRatio(1)
	moved[1].Ends = capEnd.Add(-1001 * time.Millisecond)
	installCaps(t, l, services, moved...)
	c := cell(t, l, "_cap-1", "")
	if got := c.Bucket().Cap.Ends; !got.Equal(moved[1].Ends) {
		t.Errorf("the cap ends at %v, want %v", got, moved[1].Ends)
	}
	if !l.Service("s").Decide("z", "x").Dropped {
		t.Error("the ratio is gone")
	}
	if l.Service("t").table.Load() != other {
		t.Error("caps of one service disturb another")
	}
	if l.Service("s").Configuration() != held.config {
		t.Error("caps change the configuration of their service")
	}
}

func TestSetRamp(t *testing.T) {
	l := New(Options{})
	installCaps(t, l, nil, blockCap("1", "", ""))
	c := cell(t, l, "_cap-1", "")
	c.SetRatio(0.2)
	if n := send(l, 100, "a", "x"); n != 100 {
		t.Errorf("a cap that blocks drops %d of 100", n)
	}
	c.SetRamp(0.5)
	if n := send(l, 1000, "a", "x"); n < 490 || n > 510 {
		t.Errorf("drops %d of 1000 at a ramp of 0.5", n)
	}
	// Another cap has the leaves made anew; the first one goes on to ramp out.
	installCaps(t, l, nil, blockCap("1", "", ""), limitCap("2", "", ""))
	if n := send(l, 1000, "a", "x"); n < 490 || n > 510 {
		t.Errorf("drops %d of 1000 after Install, want the ramp to go on", n)
	}
	c.SetRamp(0)
	if n := send(l, 100, "a", "x"); n != 0 {
		t.Errorf("drops %d of 100 after the ramp", n)
	}
	c.SetRatio(0)
	if n := send(l, 100, "a", "x"); n != 100 {
		t.Errorf("drops %d of 100 when it blocks again", n)
	}
}

func TestRampOfABlockThatIsNoCap(t *testing.T) {
	l := New(Options{})
	block := deny("b", "", "")
	block.Block, block.LimitRPS = true, 0
	install(t, l, Service{Name: "s", Buckets: []Bucket{block}})
	cell(t, l, "b", "").SetRamp(0)
	if n := send(l, 10, "a", "x"); n != 10 {
		t.Errorf("a configured block drops %d of 10 after SetRamp, want all", n)
	}
}

// A cap that has ramped out does not make requests count as fail open, and does
// not hide that they are.
func TestFailOpenPassesOverSpentCaps(t *testing.T) {
	failOpen := func(services ...Service) (n uint64) {
		l := New(Options{})
		installCaps(t, l, services, limitCap("1", "", ""))
		cell(t, l, "_cap-1", "").SetRamp(0)
		send(l, 1, "a", "x")
		l.Collect(at(0))
		for k, count := range l.Unlimited() {
			if k.Reason == FailOpen {
				n += count
			}
		}
		return n
	}
	if n := failOpen(); n != 0 {
		t.Errorf("%d requests fail open where there was only the cap", n)
	}
	if n := failOpen(Service{Name: "s", Buckets: []Bucket{deny("b", "", "")}}); n != 1 {
		t.Errorf("%d requests fail open where a bucket has no directive, want 1", n)
	}
}

func TestDisabled(t *testing.T) {
	block := blockCap("1", "a", "")
	services := []Service{{Name: "s", Buckets: []Bucket{deny("b", "", "")}}, {Name: "t", Buckets: []Bucket{deny("b", "", "")}}}
	// Both services would drop everything.
	dropped := func(l *Limiter) (both [2]bool) {
		for c := range l.Cells() {
			c.SetRatio(1)
		}
		return [2]bool{l.Service("s").Decide("a", "x").Dropped, l.Service("t").Decide("a", "x").Dropped}
	}
	tests := []struct {
		name     string
		all      bool
		disabled []string
		local    func(*Limiter)
		want     [2]bool
	}{
		{"nothing", false, nil, func(*Limiter) {}, [2]bool{true, true}},
		{"all", true, nil, func(*Limiter) {}, [2]bool{}},
		{"a service", false, []string{"s"}, func(*Limiter) {}, [2]bool{false, true}},
		{"here all", false, nil, func(l *Limiter) { l.SetDisabled(true) }, [2]bool{}},
		{"here one, the other everywhere", false, []string{"s"}, func(l *Limiter) { l.SetDisabled(false, "t", "unknown") }, [2]bool{}},
		{"here no more", false, nil, func(l *Limiter) { l.SetDisabled(true); l.SetDisabled(false) }, [2]bool{true, true}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := New(Options{})
			tt.local(l)
			if err := l.Install(Configuration{Services: services, Caps: []Cap{block}, AllDisabled: tt.all, Disabled: tt.disabled}); err != nil {
				t.Fatal(err)
			}
			tt.local(l)
			if got := dropped(l); got != tt.want {
				t.Errorf("dropped %v, want %v", got, tt.want)
			}
			if got, want := l.Disabled(), tt.want != [2]bool{true, true}; got != want {
				t.Errorf("Disabled() = %v, want %v", got, want)
			}
		})
	}
}

// What is disabled counts what it would drop, at each cell of the way.
func TestDisabledCountsShadowDrops(t *testing.T) {
	var l Limiter
	l.SetDisabled(true)
	installCaps(t, &l, []Service{{Name: "s", Buckets: []Bucket{deny("b", "", "")}}}, blockCap("1", "", ""))
	cell(t, &l, "b", "").SetRatio(1)
	if n := send(&l, 5, "a", "x"); n != 0 {
		t.Errorf("dropped %d of 5", n)
	}
	l.Collect(at(0))
	wantCounts(t, &l, "_cap-1", "", Counts{Offered: 5, ShadowDropped: 5})
	wantCounts(t, &l, "b", "", Counts{Offered: 5, ShadowDropped: 5})
	l.SetDisabled(false)
	if n := send(&l, 5, "a", "x"); n != 5 {
		t.Errorf("dropped %d of 5 when enabled again", n)
	}
	l.Collect(at(time.Second))
	wantCounts(t, &l, "_cap-1", "", Counts{Offered: 10, ShadowDropped: 5, Dropped: 5})
	wantCounts(t, &l, "b", "", Counts{Offered: 5, ShadowDropped: 5})
}

func TestDecisionSaysTheClass(t *testing.T) {
	l := New(Options{})
	s := Service{Name: "s", Buckets: []Bucket{tiered("b")}}
	install(t, l, s)
	for c := range l.Cells() {
		c.SetRatio(1)
	}
	if d := l.Decide(Request{Service: "s", Caller: "a", Tier: s.Tier("middle")}); d.Class() != "middle" {
		t.Errorf("Decide = %+v, want the class middle", d)
	}
}

func TestValidateCaps(t *testing.T) {
	change := func(f func(*Cap)) []Cap {
		c := limitCap("1", "a", "x")
		f(&c)
		return []Cap{c}
	}
	tests := []struct {
		name string
		caps []Cap
		want string // "": valid
	}{
		{"good", change(func(*Cap) {}), ""},
		{"good block", []Cap{blockCap("1", "", "")}, ""},
		{"no id", change(func(c *Cap) { c.ID = "" }), `cap "": its id is not`},
		{"long id", change(func(c *Cap) { c.ID = strings.Repeat("a", 65) }), "its id is not"},
		{"slash in the id", change(func(c *Cap) { c.ID = "a/b" }), "its id is not"},
		{"no service", change(func(c *Cap) { c.Service = "" }), "service: empty"},
		{"no limit", change(func(c *Cap) { c.LimitRPS = 0 }), `cap "1": limit missing`},
		{"limit too large", change(func(c *Cap) { c.LimitRPS = 1e10 }), "is not in"},
		{"block and limit", change(func(c *Cap) { c.Block = true }), "blocks and has a limit"},
		{"long pattern", change(func(c *Cap) { c.Match.Caller = Pattern(strings.Repeat("a", 257)) }), "caller pattern has 257 bytes"},
		{"long reason", change(func(c *Cap) { c.Reason = strings.Repeat("a", 1025) }), "reason of 1025 bytes"},
		{"author that is no text", change(func(c *Cap) { c.Author = "\xff" }), "author of 1 bytes, not"},
		{"no end", change(func(c *Cap) { c.Ends = time.Time{} }), "no end"},
		{"twice", []Cap{limitCap("1", "", ""), limitCap("1", "a", "")}, `cap "1": id used twice`},
		{"too many", make([]Cap, maxCaps+1), "1001 caps, at most 1000"},
	}
	for _, tt := range tests {
		err := (&Configuration{Caps: tt.caps}).Validate()
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: Validate = %.200v, want %q", tt.name, err, tt.want)
		}
	}
}

func TestValidateDisabled(t *testing.T) {
	for _, tt := range []struct {
		disabled []string
		want     string
	}{
		{[]string{strings.Repeat("a", 257)}, "name has 257 bytes"},
		{[]string{""}, "name missing"},
		{make([]string, maxDisabled+1), "10001 services disabled, at most 10000"},
	} {
		if err := (&Configuration{Disabled: tt.disabled}).Validate(); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Validate = %.200v, want %q", err, tt.want)
		}
	}
}

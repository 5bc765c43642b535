package law

import (
	"fmt"
	"math"
	"testing"
	"time"
)

// at returns a host with a steady rate, which it has told in report 1.
func at(rps float64) *Host {
	h := &Host{}
	for range 400 {
		h.Step(rps*Delta.Seconds(), Delta)
	}
	h.Reported(1)
	return h
}

func TestHostEvent(t *testing.T) {
	near := Verdict{Admit: 1.2, Offered: 20_000, Hosts: 200}
	tests := []struct {
		name    string
		verdict Verdict
		to      float64 // requests per second, from 100
		want    bool
	}{
		{"doubles, nothing decided yet", Verdict{}, 200, true},
		{"within chance, nothing decided yet", Verdict{}, 115, false},
		{"falls, nothing decided yet", Verdict{}, 20, false},
		{"doubles near the limit", near, 200, true},
		{"falls near the limit", near, 20, false},
		{"falls while dropping", Verdict{Admit: 0.5, Offered: 20_000, Hosts: 200}, 20, true},
		{"doubles, a tenth of the limit", Verdict{Admit: 10, Offered: 20_000, Hosts: 200}, 200, false},
		{"ten times, a tenth of the limit", Verdict{Admit: 10, Offered: 20_000, Hosts: 200}, 1000, true},
		{"doubles, small among its likes", Verdict{Admit: 1.5, Offered: 200_000, Hosts: 200}, 200, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := at(100)
			h.Verdict = tt.verdict
			got := false
			for range 12 {
				h.Step(tt.to*Delta.Seconds(), Delta)
				got = got || h.Event()
			}
			if got != tt.want {
				t.Errorf("event is %v, want %v", got, tt.want)
			}
			if h.Reported(2); h.Event() {
				t.Error("event again after it was reported")
			}
		})
	}
}

// Trap 3: a fall that is told sooner than the rise before it makes sums low, one
// told later makes them high.
func TestHostEventsAreSymmetric(t *testing.T) {
	told := func(from, to float64) bool {
		h := Host{sent: from, rate: to, Verdict: Verdict{Admit: 1, Offered: from, Hosts: 1}}
		return h.Event()
	}
	for _, low := range []float64{0, 0.5, 1, 5, 15, 100, 10_000} {
		first := math.Inf(1)
		for high := low; high <= 2*low+30; high += 0.01 + low/1000 {
			up, down := told(low, high), told(high, low)
			if up != down {
				t.Fatalf("a rise from %v to %v rps is told: %v; the fall back: %v", low, high, up, down)
			}
			if up {
				first = min(first, high)
			}
		}
		if math.IsInf(first, 1) {
			t.Errorf("from %v rps no rise is told", low)
		}
	}
}

func TestHostRatio(t *testing.T) {
	half := Verdict{Admit: 0.5, Offered: 20_000, Hosts: 200} // of hosts with 100 rps each
	room := Verdict{Admit: 1.5, Offered: 20_000, Hosts: 200}
	tests := []struct {
		name      string
		verdict   Verdict
		offered   float64 // in an interval; 5 is what was reported
		contained uint64
		guard     float64
		want      float64
	}{
		{"nothing decided", Verdict{}, 500, 1, Guard, 0},
		{"the formula", half, 5, 1, Guard, 0.5},
		{"twice as much, as the guard allows", half, 10, 1, Guard, 0.5},
		{"fifteen times: trimmed to 2 * 0.5 * 5", half, 75, 1, Guard, 1 - 5.0/75},
		{"fifteen times, no guard", half, 75, 1, 0, 0.5},
		{"fifteen times with room: trimmed to 2 * 1.5 * 5", room, 75, 1, Guard, 1 - 15.0/75},
		{"with room", room, 5, 1, Guard, 0},
		{"nothing", half, 0, 1, Guard, 0.5}, // a count of 5 may be 0 by chance
		{"no report contained: a mean host's rate", half, 75, 0, Guard, 1 - 5.0/75},
		{"no rate to compare with", Verdict{Admit: 1e6}, 500, 1, Guard, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := at(100)
			if tt.verdict.Offered == 0 {
				h = &Host{} // nobody had traffic, this host neither
			}
			h.Verdict = tt.verdict
			if got := h.Ratio(tt.offered, Delta, tt.contained, tt.guard); math.Abs(got-tt.want) > 1e-9 {
				t.Errorf("Ratio = %v, want %v", got, tt.want)
			}
		})
	}
}

func TestHostStopsDroppingWhenItsLoadFalls(t *testing.T) {
	h := at(10_000) // 500 an interval, of which 60 are admitted
	h.Verdict = Verdict{Admit: 0.12, Offered: 2e6, Hosts: 200}
	for _, tt := range []struct{ offered, want float64 }{
		{500, 0.88}, {300, 0.88}, {280, 1 - 60.0/280}, {100, 1 - 60.0/100}, {60, 0}, {10, 0}, {0, 0},
	} {
		if got := h.Ratio(tt.offered, Delta, 1, Guard); math.Abs(got-tt.want) > 1e-9 {
			t.Errorf("Ratio(%v) = %v, want %v", tt.offered, got, tt.want)
		}
	}
}

// Trap 1: the ceiling is paired with the rate that the directive contains.
// With the newest rate the guard would be off in a surge.
func TestHostPairsTheCeilingWithTheDirective(t *testing.T) {
	h := at(100)
	h.Verdict = Verdict{Admit: 2, Offered: 20_000, Hosts: 200}
	for range 8 {
		h.Step(75, Delta) // fifteen times
	}
	h.Reported(2)
	trimmed := h.Ratio(75, Delta, 1, Guard) // sums of before the surge
	if want := 1 - 20.0/75; math.Abs(trimmed-want) > 1e-9 {
		t.Errorf("before its report is contained the host drops %v, want %v", trimmed, want)
	}
	if got := h.Ratio(75, Delta, 2, Guard); got != 0 {
		t.Errorf("when its report is contained, with room, the host drops %v, want 0", got)
	}
}

func TestHostRemembersWhatItTold(t *testing.T) {
	h := &Host{}
	for i := range uint64(100) {
		h.rate = float64(i)
		h.Reported(10 * i)
	}
	for _, tt := range []struct {
		sequence uint64
		want     float64
		known    bool
	}{{990, 99, true}, {5000, 99, true}, {989, 98, true}, {680, 68, true}, {679, 0, false}, {0, 0, false}} {
		if got, known := h.included(tt.sequence); got != tt.want || known != tt.known {
			t.Errorf("included(%d) = %v, %v, want %v, %v", tt.sequence, got, known, tt.want, tt.known)
		}
	}
	h.Reopen()
	if _, known := h.included(5000); known || h.Sent() != 0 {
		t.Error("a new stream was told something")
	}
}

// Trap 5, at the host: a jump that chance made is soon forgotten.
func TestHostForgetsAFalseJump(t *testing.T) {
	h := at(5)
	h.Step(15, Delta) // a burst
	if h.Rate() < 100 {
		t.Fatalf("rate %v after 15 requests in an interval, want a jump", h.Rate())
	}
	for range 20 {
		h.Step(5*Delta.Seconds(), Delta)
	}
	// The mean of the second since the burst is 20.
	if h.Rate() > 25 {
		t.Errorf("rate %v a second after a burst of 15, want about 20", h.Rate())
	}
}

func TestBudget(t *testing.T) {
	var b Budget
	now := time.Unix(1e9, 0)
	take := func() (n int) {
		for b.Take(now) {
			n++
		}
		return n
	}
	if n := take(); n != EventBurst {
		t.Errorf("%d at once, want %d", n, EventBurst)
	}
	for range 10 {
		now = now.Add(time.Second)
		if n := take(); n != EventRefill {
			t.Errorf("%d after a second, want %d", n, EventRefill)
		}
	}
	now = now.Add(time.Hour)
	if n := take(); n != EventBurst {
		t.Errorf("%d after an hour, want %d", n, EventBurst)
	}
}

// Whatever comes in, a ratio is in [0, 1), and never NaN.
func FuzzHostRatio(f *testing.F) {
	f.Add(0.5, 100.0, 3.0, 10.0, 5.0, 2.0)
	f.Add(1e6, 0.0, 0.0, 0.0, 1e12, 2.0)
	f.Add(math.NaN(), math.Inf(1), -1.0, 0.0, 0.0, 0.0)
	f.Fuzz(func(t *testing.T, admit, offered, hosts, told, n, guard float64) {
		h := Host{Verdict: Verdict{Admit: admit, Offered: offered, Hosts: hosts}}
		h.Step(math.Max(0, math.Min(told, 1e9)), Delta)
		h.Reported(1)
		n = math.Max(0, math.Min(n, 1e12))
		if math.IsNaN(n) {
			n = 0
		}
		for contained := range uint64(2) {
			got := h.Ratio(n, Delta, contained, math.Abs(guard))
			if !(got >= 0 && got < 1) {
				t.Fatalf("Ratio = %v of %+v, offered %v", got, h.Verdict, n)
			}
		}
	})
}

func BenchmarkHost(b *testing.B) {
	for _, reports := range []int{1, 100} {
		b.Run(fmt.Sprint(reports, " reports"), func(b *testing.B) {
			h := at(100)
			for i := range reports {
				h.Reported(uint64(i + 2))
			}
			h.Verdict = Verdict{Admit: 0.5, Offered: 20_000, Hosts: 200}
			for b.Loop() {
				h.Step(5, Delta)
				h.Event()
				h.Ratio(5, Delta, uint64(reports), Guard)
			}
		})
	}
}

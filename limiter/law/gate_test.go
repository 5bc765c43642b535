package law

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// hosts offer a load to one cell, report it on events and each period, each in
// a phase of its own, and a gate decides on what they reported.
type hosts struct {
	random *rand.Rand
	hosts  []Host
	mean   Gate
	now    time.Time
	step   int
}

func newHosts(r *rand.Rand, n int) *hosts {
	return &hosts{random: r, hosts: make([]Host, n), now: time.Unix(1e9, 0)}
}

// offer turns the timer of all hosts once, at a rate together, and returns what
// was offered and what of it is admitted.
func (h *hosts) offer(rps, limit float64) (offered, admit float64) {
	var sum float64
	for i := range h.hosts {
		at := &h.hosts[i]
		n := poisson(h.random, rps/float64(len(h.hosts))*Delta.Seconds())
		offered += n
		at.Step(n, Delta)
		if at.Event() || (h.step+i)%int(period(at.Verdict.Hot)/Delta) == 0 {
			at.Reported(uint64(h.step + 1))
		}
		sum += at.Sent()
	}
	h.step++
	h.now = h.now.Add(Delta)
	admit = h.mean.Step(h.now, sum, limit)
	for i := range h.hosts {
		h.hosts[i].Verdict = Verdict{Admit: admit, Offered: sum, Hosts: float64(len(h.hosts)), Hot: h.mean.Hot()}
	}
	return offered, admit
}

// dropped returns the share that is dropped of a constant load over d, after
// the hosts had time to report it.
func (h *hosts) dropped(rps, limit float64, warm, d time.Duration) float64 {
	for range warm / Delta {
		h.offer(rps, limit)
	}
	var offered, dropped float64
	for range d / Delta {
		n, admit := h.offer(rps, limit)
		offered += n
		dropped += n * Ratio(admit)
	}
	return dropped / offered
}

// Property 1.
func TestGateDropsNothingWithinTheLimit(t *testing.T) {
	tests := []struct {
		name       string
		rps, limit float64
		hosts      int
		most       float64 // share of requests
	}{
		{"0.95 of 1,000", 950, 1000, 20, 0.0005},
		{"0.98 of 44,000", 43_120, 44_000, 200, 0},
		{"0.95 of 100", 95, 100, 20, 0.001},
		{"0.9 of 5", 4.5, 5, 3, 0.01},
		{"0.9 of 5, more hosts than the limit", 4.5, 5, 50, 0.01},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			// A false jump is rare and costs seconds, so one run alone may be
			// beyond the bound; the mean of some is not.
			const runs = 10
			var sum float64
			for seed := range uint64(runs) {
				h := newHosts(source(t, seed), tt.hosts)
				sum += h.dropped(tt.rps, tt.limit, 2*T, 3*time.Minute)
			}
			if got := sum / runs; got > tt.most {
				t.Errorf("dropped %.4f %% of %v rps, limit %v, want at most %.3f %%", 100*got, tt.rps, tt.limit, 100*tt.most)
			}
		})
	}
}

// Properties 2 and 3: the formula is the truth.
func TestGateIsTheFormula(t *testing.T) {
	tests := []struct {
		name       string
		rps, limit float64
		hosts      int
		over       time.Duration
		within     float64 // of the limit
	}{
		{"1.1 times 44,000", 48_400, 44_000, 200, 30 * time.Second, 0.003},
		{"8.3 times 44,000", 367_000, 44_000, 200, 30 * time.Second, 0.003},
		{"1.5 times 10,000", 15_000, 10_000, 100, 10 * time.Second, 0.01},
		{"1.5 times 1,000", 1500, 1000, 20, 30 * time.Second, 0.02},
		{"10 times 1,000", 10_000, 1000, 20, 30 * time.Second, 0.02},
		{"twice 5", 10, 5, 5, 10 * time.Minute, 0.05},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := newHosts(source(t, 1), tt.hosts)
			got := 1 - h.dropped(tt.rps, tt.limit, 2*T, tt.over)
			if want := tt.limit / tt.rps; math.Abs(got-want) > tt.within*want {
				t.Errorf("admits %.5f of %v rps, limit %v, want %.5f within %.1f %%", got, tt.rps, tt.limit, want, 100*tt.within)
			}
		})
	}
}

// start returns a mean that has been at a rate for a while, and the time.
func start(rate, limit float64) (*Gate, time.Time) {
	m, now := &Gate{}, time.Unix(1e9, 0)
	for range 400 {
		now = now.Add(T / 4)
		m.Step(now, rate, limit)
	}
	return m, now
}

func TestGateHysteresis(t *testing.T) {
	const limit = 100.0 // two deviations are 100 + 2*sqrt(100/(2*21)) = 103.1
	tests := []struct {
		name   string
		before float64 // rate
		rate   float64
		drops  bool
	}{
		{"above, not significantly", 90, 102, false},
		{"significantly above", 90, 104, true},
		{"still above", 150, 102, true},
		{"at the limit", 150, 100, false},
		{"below", 150, 90, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, now := start(tt.before, limit)
			var admit float64
			for range 4000 { // long enough for the mean to arrive
				now = now.Add(T / 4)
				admit = m.Step(now, tt.rate, limit)
			}
			if drops := Ratio(admit) > 0; drops != tt.drops {
				t.Errorf("at %v rps after %v, limit %v: admit %v", tt.rate, tt.before, limit, admit)
			}
		})
	}
}

func TestGateNeverDropsAtOrBelowTheLimit(t *testing.T) {
	random := source(t, 3)
	for range 200 {
		limit := math.Exp(random.Float64()*20 - 6)
		m, now := &Gate{}, time.Unix(1e9, 0)
		for range 200 {
			now = now.Add(time.Duration(random.IntN(2000)) * time.Millisecond)
			admit := m.Step(now, limit*random.Float64()*2, limit)
			if m.mean.rate <= limit && admit < 1 {
				t.Fatalf("admits %v at a mean of %v rps, limit %v", admit, m.mean.rate, limit)
			}
			if !(admit > 0 && admit <= 1e6*(1+1e-12)) {
				t.Fatalf("admits %v at a mean of %v rps, limit %v", admit, m.mean.rate, limit)
			}
		}
	}
}

func TestGateJumpsAtOnce(t *testing.T) {
	m, now := start(22_000, 44_000)
	if got, want := m.Step(now.Add(50*time.Millisecond), 367_000, 44_000), 44.0/367; math.Abs(got-want) > 1e-9 {
		t.Errorf("admits %v right after the published surge, want %v", got, want)
	}
	if got := m.Step(now.Add(100*time.Millisecond), 22_000, 44_000); got < 1 {
		t.Errorf("admits %v right after it ended, want all", got)
	}
}

// Trap 5: after a jump the mean is over the time since it, not over the long
// window, so a false one is forgotten.
func TestGateForgetsAFalseJump(t *testing.T) {
	const limit = 5.0
	m, now := start(4.5, limit)
	m.Step(now.Add(T), 30, limit) // one host said so, by chance
	now = now.Add(T)
	seconds := 0.0
	for Ratio(m.Step(now.Add(T/10), 4.5, limit)) > 0 {
		now = now.Add(T / 10)
		if seconds += 0.1; seconds > 60 {
			break
		}
	}
	if seconds > 5 {
		t.Errorf("dropped for %.1f s after a false jump, want at most 5", seconds)
	}
}

func TestGateTakesANewLimit(t *testing.T) {
	m, now := start(1000, 2000)
	if got := m.Step(now.Add(T), 1000, 500); math.Abs(got-0.5) > 1e-9 {
		t.Errorf("admits %v of 1000 rps after the limit fell to 500, want half", got)
	}
	if got := m.Step(now.Add(2*T), 1000, 1000); got != 1 {
		t.Errorf("admits %v of 1000 rps after the limit rose to 1000, want all", got)
	}
}

func FuzzGate(f *testing.F) {
	f.Add(100.0, 5.0, int64(time.Second))
	f.Add(1e13, 0.001, int64(1))
	f.Fuzz(func(t *testing.T, offered, limit float64, step int64) {
		if !(offered >= 0 && offered <= 1e13 && limit >= 0.001 && limit <= 1e9) || step < 0 || step > int64(time.Hour) {
			return
		}
		var m Gate
		now := time.Unix(1e9, 0)
		for i := range 20 {
			now = now.Add(time.Duration(step))
			load := offered
			if i%5 == 4 {
				load = 0
			}
			if admit := m.Step(now, load, limit); !(admit > 0 && admit <= 1e6*(1+1e-12)) || !(Ratio(admit) >= 0 && Ratio(admit) < 1) {
				t.Fatalf("admits %v of %v, limit %v", admit, load, limit)
			}
		}
	})
}

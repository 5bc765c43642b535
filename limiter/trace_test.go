package limiter

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"
)

// trace returns the trace id with these halves.
func trace(high, low uint64) (id [16]byte) {
	binary.BigEndian.PutUint64(id[:8], high)
	binary.BigEndian.PutUint64(id[8:], low)
	return id
}

// TestTraceDraw holds the values of docs/concepts.md, by which other languages
// check theirs.
func TestTraceDraw(t *testing.T) {
	tests := []struct {
		salt, high, low, want uint64
	}{
		{0, 0, 1, 0x2aea2ec8},
		{1, 0, 1, 0x2c51bc45},
		{0, 0x4bf92f3577b34da6, 0xa3ce929d0e0e4736, 0xdea16cc9},
		{0xfedcba9876543210, 0x4bf92f3577b34da6, 0xa3ce929d0e0e4736, 0x223a29b8},
	}
	for _, test := range tests {
		if got := TraceDraw(test.salt, trace(test.high, test.low)); got != test.want {
			t.Errorf("TraceDraw(%#x, %016x%016x) = %#08x, want %#08x", test.salt, test.high, test.low, got, test.want)
		}
	}
}

// ids are kinds of trace ids, by name: the n-th of each.
func ids(r *rand.Rand) map[string]func(n int) [16]byte {
	return map[string]func(int) [16]byte{
		"random":            func(int) [16]byte { return trace(r.Uint64(), r.Uint64()) },
		"counted":           func(n int) [16]byte { return trace(0, uint64(n)) },
		"counted in front":  func(n int) [16]byte { return trace(uint64(n)<<32, 7) },
		"of 64 bits":        func(int) [16]byte { return trace(0, r.Uint64()) },
		"both halves equal": func(int) [16]byte { id := r.Uint64(); return trace(id, id) },
	}
}

// TestTraceDrawIsUniform sorts the draws of each kind of id into 64 parts.
func TestTraceDrawIsUniform(t *testing.T) {
	const draws, parts = 64_000, 64
	for _, seed := range seeds(t) {
		r := rand.New(rand.NewPCG(seed, 0))
		salt := r.Uint64()
		for kind, id := range ids(r) {
			var counts [parts]float64
			for n := range draws {
				counts[TraceDraw(salt, id(n+1))*parts/One]++
			}
			chi := 0.0
			for _, c := range counts {
				chi += (c - draws/parts) * (c - draws/parts) / (draws / parts)
			}
			// Mean 63, deviation sqrt(2*63); six of them.
			if limit := 63 + 6*math.Sqrt(2*63); chi > limit {
				t.Errorf("seed %d: ids %s: chi² = %.0f, want below %.0f", seed, kind, chi, limit)
			}
		}
	}
}

// hop is a service of its own process, with one coherent or plain bucket.
func hop(t testing.TB, coherent bool, ratio float64, salt uint64) *Limiter {
	t.Helper()
	l := New(Options{})
	b := deny("b", "", "")
	b.Coherent = coherent
	install(t, l, Service{Name: "s", Buckets: []Bucket{b}})
	cell(t, l, "b", "").SetRatio(ratio)
	l.SetSalt(salt)
	return l
}

func drops(l *Limiter, trace [16]byte) bool {
	return l.Decide(Request{Service: "s", Caller: "a", Procedure: "x", TraceID: trace}).Dropped
}

// TestTenHopsBreakTenPercent is what coherent drops are for.
func TestTenHopsBreakTenPercent(t *testing.T) {
	const journeys, hops, ratio = 20_000, 10, 0.1
	for _, test := range []struct {
		name     string
		coherent bool
		want     float64 // share of journeys that at least one hop drops
	}{
		{"coherent", true, ratio},
		{"each by itself", false, 1 - math.Pow(1-ratio, hops)}, // 0.65
	} {
		for _, seed := range seeds(t) {
			r := rand.New(rand.NewPCG(seed, 0))
			salt := r.Uint64()
			var services [hops]*Limiter
			for i := range services {
				services[i] = hop(t, test.coherent, ratio, salt)
			}
			broken := 0
			for range journeys {
				id, whole := trace(r.Uint64(), r.Uint64()), true
				for _, l := range services {
					whole = !drops(l, id) && whole
				}
				if !whole {
					broken++
				}
			}
			got, sd := float64(broken)/journeys, math.Sqrt(test.want*(1-test.want)/journeys)
			if math.Abs(got-test.want) > 4*sd {
				t.Errorf("seed %d: %s: %.4f of journeys break, want %.4f ± %.4f", seed, test.name, got, test.want, 4*sd)
			}
		}
	}
}

// TestHigherRatioDropsTheSameAndMore: what a hop drops at 10 % every hop drops
// at 20 %, and another salt makes it others.
func TestHigherRatioDropsTheSameAndMore(t *testing.T) {
	for _, seed := range seeds(t) {
		r := rand.New(rand.NewPCG(seed, 0))
		salt := r.Uint64()
		low, high, other := hop(t, true, 0.1, salt), hop(t, true, 0.2, salt), hop(t, true, 0.1, salt+1)
		both, either := 0, 0
		for range 5000 {
			id := trace(r.Uint64(), r.Uint64())
			a, b, c := drops(low, id), drops(high, id), drops(other, id)
			if a && !b {
				t.Fatalf("seed %d: trace %x is dropped at 0.1 and not at 0.2", seed, id)
			}
			if a || c {
				either++
			}
			if a && c {
				both++
			}
		}
		// Sets of 0.1 that do not know of each other share 0.1 of either.
		if both == 0 || both > either/8 {
			t.Errorf("seed %d: two salts drop %d journeys in common of %d, want about 1 in 19", seed, both, either)
		}
	}
}

// TestLimitHoldsBehindCoherentHop: a hop that is only offered what another one
// let through drops its share of that.
func TestLimitHoldsBehindCoherentHop(t *testing.T) {
	const n = 200_000
	for _, seed := range []uint64{1, 2, rand.Uint64()} {
		r := rand.New(rand.NewPCG(seed, 0))
		var first, second Coin
		offered, dropped := 0, 0
		for i := range n {
			draw := r.Uint64() >> 32
			var drop bool
			if drop, first = first.FlipTrace(FixedRatio(0.5), draw); drop {
				continue
			}
			drop, second = second.FlipTrace(FixedRatio(0.2), draw)
			if i < n/2 {
				continue // while the coin learns
			}
			offered++
			if drop {
				dropped++
			}
		}
		if got := float64(dropped) / float64(offered); math.Abs(got-0.2) > 0.01 {
			t.Errorf("seed %d: the second hop drops %.3f of what it is offered, want 0.200 ± 0.010", seed, got)
		}
	}
}

// TestFlipTraceCount: the count of drops is that of a coin without memory, also
// where a journey is many requests, and no debt lasts.
func TestFlipTraceCount(t *testing.T) {
	for _, seed := range seeds(t) {
		r := rand.New(rand.NewPCG(seed, 0))
		for _, p := range []float64{0, 0.01, 0.1, 0.5, 0.9, 0.999, 1} {
			const n = 100_000
			var c Coin
			dropped := 0
			for range n {
				var drop bool
				if drop, c = c.FlipTrace(FixedRatio(p), r.Uint64()>>32); drop {
					dropped++
				}
			}
			// Seven deviations and not four, for the fresh seed.
			if off, most := math.Abs(float64(dropped)-n*p), 7*math.Sqrt(n*p*(1-p)); off > most {
				t.Errorf("seed %d: p = %v: off by %.0f drops of %d, want at most %.0f", seed, p, off, n, most)
			}
		}
	}
}

// TestLongJourneyHardlyMatters: one trace that sends ten thousand requests in a
// row may not make others pay for it.
func TestLongJourneyHardlyMatters(t *testing.T) {
	ratio := FixedRatio(0.1)
	var c Coin
	for range 10_000 {
		_, c = c.FlipTrace(ratio, One-1) // never dropped
	}
	if drop, _ := c.FlipTrace(ratio, One/6); drop {
		t.Error("a draw of 0.167 is dropped at a ratio of 0.1")
	}
}

// TestRequestWithoutTrace: coherent buckets drop their share of requests that
// belong to no journey, by every way in.
func TestRequestWithoutTrace(t *testing.T) {
	const n = 20_000
	l := hop(t, true, 0.25, 7)
	h := l.Handle("s", "a", "x")
	ways := map[string]func() bool{
		"names":   func() bool { return l.Service("s").Decide("a", "x").Dropped },
		"handle":  func() bool { return h.Decide().Dropped },
		"request": func() bool { return drops(l, [16]byte{}) },
	}
	for way, dropped := range ways {
		count := 0.0
		for range n {
			if dropped() {
				count++
			}
		}
		// Seven deviations, since the draws have no seed.
		if sd := math.Sqrt(n * 0.25 * 0.75); math.Abs(count-n*0.25) > 7*sd {
			t.Errorf("%s: dropped %.0f of %d, want %d ± %.0f", way, count, n, n/4, 7*sd)
		}
	}
}

// TestCoherenceBegins: a bucket that becomes coherent, or ceases to be, starts
// with coins that owe nothing.
func TestCoherenceBegins(t *testing.T) {
	l := hop(t, true, 0.5, 1)
	c := cell(t, l, "b", "")
	for i := range c.coins {
		c.coins[i].Store(uint64(500 * One))
	}
	b := deny("b", "", "")
	install(t, l, Service{Name: "s", Buckets: []Bucket{b}})
	if n := send(l, 1000, "a", "x"); n < 490 || n > 510 {
		t.Errorf("dropped %d of 1000 at 0.5 after a debt of 500 from traces", n)
	}
}

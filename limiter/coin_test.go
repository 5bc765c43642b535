package limiter

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// TestCoinCount checks the bound on the count of drops that control-law
// promises, for ratios and numbers of requests of all sizes.
func TestCoinCount(t *testing.T) {
	for _, seed := range []uint64{1, 2, 3} {
		checkCoinCount(t, rand.New(rand.NewPCG(seed, 0)), seed, 0.12)
	}
	// The published bound is four standard deviations, which luck passes now
	// and then; seven it does not.
	fresh := rand.Uint64()
	t.Logf("fresh seed %d", fresh)
	checkCoinCount(t, rand.New(rand.NewPCG(fresh, 0)), fresh, 0.21)
}

func checkCoinCount(t *testing.T, r *rand.Rand, seed uint64, slack float64) {
	t.Helper()
	ratios := []float64{0, 1e-9, 0.0001, 0.05, 1. / 3, 0.5, 0.9, 0.9999, 1}
	for range 20 {
		ratios = append(ratios, r.Float64())
	}
	for _, p := range ratios {
		for _, n := range []int{1, 2, 10, 100, 1000, 30_000} {
			drops := toss(r, p, n)
			if off, bound := math.Abs(float64(drops)-float64(n)*p), 1+slack*math.Sqrt(float64(n)); off >= bound {
				t.Errorf("seed %d: p = %v, n = %d: %d drops, off by %.2f, want below %.2f", seed, p, n, drops, off, bound)
			}
		}
	}
}

func toss(r *rand.Rand, p float64, n int) int {
	var c Coin
	drops := 0
	for range n {
		var drop bool
		if drop, c = c.Flip(FixedRatio(p), r.Uint64()); drop {
			drops++
		}
	}
	return drops
}

// TestCoinIsFairToPeriodicTraffic sends two kinds of request in turn: plain
// error diffusion would drop one kind more often.
func TestCoinIsFairToPeriodicTraffic(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	for _, p := range []float64{0.1, 0.25, 0.5, 0.75} {
		var c Coin
		var admitted [2]float64
		for i := range 10_000 {
			var drop bool
			if drop, c = c.Flip(FixedRatio(p), r.Uint64()); !drop {
				admitted[i%2]++
			}
		}
		if got := admitted[0] / admitted[1]; math.Abs(got-1) > 0.05 {
			t.Errorf("p = %v: %.0f and %.0f of two alternating kinds admitted, want the same within 5 %%", p, admitted[0], admitted[1])
		}
	}
}

func TestCoinAtTheEnds(t *testing.T) {
	for _, debt := range []Coin{0, Coin(One) / 2, -Coin(One) / 2} {
		for _, random := range []uint64{0, math.MaxUint64} {
			if drop, next := debt.Flip(0, random); drop || next != debt {
				t.Errorf("Coin(%d).Flip(0, %d) = %v, %d, want an untouched coin and no drop", debt, random, drop, next)
			}
			if drop, next := debt.Flip(One, random); !drop || next != debt {
				t.Errorf("Coin(%d).Flip(One, %d) = %v, %d, want an untouched coin and a drop", debt, random, drop, next)
			}
		}
	}
}

func TestFixedRatio(t *testing.T) {
	tests := []struct {
		p    float64
		want uint64
	}{
		{0, 0},
		{1, One},
		{0.5, One / 2},
		{1. / (1 << 32), 1},
		{-0.1, 0},
		{1.0001, 0},
		{math.NaN(), 0},
		{math.Inf(1), 0},
		{math.Inf(-1), 0},
	}
	for _, test := range tests {
		if got := FixedRatio(test.p); got != test.want {
			t.Errorf("FixedRatio(%v) = %d, want %d", test.p, got, test.want)
		}
	}
}

// A limit of 0.001 against 1e9 requests a second still lets a few pass: a ratio
// below 1 never becomes a block.
func TestRatioBelowOneIsNoBlock(t *testing.T) {
	for _, p := range []float64{1 - 1e-12, math.Nextafter(1, 0)} {
		if got := FixedRatio(p); got >= One {
			t.Errorf("FixedRatio(%v) = %d, want below %d", p, got, One)
		}
	}
}

// A caller that is not UTF-8 is counted as Other, as one too long is.
func TestCallerThatIsNoTextIsOther(t *testing.T) {
	l := New(Options{})
	err := l.Install(Configuration{Revision: 1, Services: []Service{{Name: "s", Buckets: []Bucket{
		{Service: "s", Name: "each", Match: Match{Caller: "*"}, PerCaller: true, LimitRPS: 1},
	}}}})
	if err != nil {
		t.Fatal(err)
	}
	l.Service("s").Decide("web\xff", "p")
	l.Collect(time.Now())
	for c := range l.Cells() {
		if c.ID().Caller != Other || c.Counts().Offered != 1 {
			t.Errorf("cell %+v has %+v, want one request of %q", c.ID(), c.Counts(), Other)
		}
	}
}

package law

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// Requests that come all at once, now and then, are no change of the rate: what
// is estimated is their mean, from the second of them on.
func TestEstimateOfBursts(t *testing.T) {
	for _, size := range []float64{6, 10, 100, 1000} {
		for _, gap := range []time.Duration{100 * time.Millisecond, 167 * time.Millisecond, 333 * time.Millisecond, 500 * time.Millisecond, time.Second} {
			for _, split := range []float64{1, 0.6} { // of the burst, before a turn of the timer
				t.Run(fmt.Sprintf("%v each %v, %v before the turn", size, gap, split), func(t *testing.T) {
					var e Estimate
					mean := size / gap.Seconds()
					var sum, worst float64
					n, last := 0, -1
					carried := 0.0
					for step := range 400 { // 20 s
						at := time.Duration(step) * Delta
						offered := carried
						carried = 0
						if burst := int(at / gap); burst != last {
							last = burst
							offered += math.Round(size * split)
							carried = size - math.Round(size*split)
						}
						rate := e.Step(offered, Delta, T)
						if at < 4*time.Second {
							continue
						}
						sum += rate
						n++
						worst = max(worst, math.Abs(rate-mean)/mean)
					}
					if got := sum / float64(n); math.Abs(got-mean) > 0.1*mean {
						t.Errorf("mean of the estimate %.4g, want %.4g", got, mean)
					}
					// The mean over a period swings with each burst in it.
					if most := 0.25 + gap.Seconds(); worst > most {
						t.Errorf("estimate is off by %.0f %% at worst, want %.0f %% at most", 100*worst, 100*most)
					}
				})
			}
		}
	}
}

// Bursts at random times, of random sizes.
func TestEstimateOfRandomBursts(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for _, size := range []float64{10, 100} {
		var e Estimate
		const often = 6.0 // a second
		var offered, estimated float64
		n := 0
		for step := range 20 * 60 * 10 { // ten minutes
			var now float64
			if r.Float64() < often*Delta.Seconds() {
				now = math.Round(size * (0.5 + r.Float64()))
			}
			rate := e.Step(now, Delta, T)
			if step > 100 {
				offered += now
				estimated += rate
				n++
			}
		}
		mean, got := offered/(float64(n)*Delta.Seconds()), estimated/float64(n)
		if math.Abs(got-mean) > 0.1*mean {
			t.Errorf("bursts of %v: mean of the estimate %.4g, want %.4g", size, got, mean)
		}
	}
}

// A burst that comes once is forgotten, and a change of the rate is still seen
// at once.
func TestSurgeAfterABurst(t *testing.T) {
	var e Estimate
	for range 100 {
		e.Step(5, Delta, T)
	}
	e.Step(60, Delta, T)
	for range 20 {
		e.Step(5, Delta, T)
	}
	for i := range 8 {
		if rate := e.Step(100, Delta, T); rate > 1800 {
			if i > 2 {
				t.Errorf("a surge to 2,000 seen after %d intervals", i+1)
			}
			return
		}
	}
	t.Error("a surge to 2,000 not seen within 8 intervals")
}

package fleet

import (
	"math"
	"math/rand/v2"
	"time"
)

// random draws numbers. Each use has one of its own, so that more of one kind
// do not change the others.
type random struct{ rand.PCG }

func newRandom(seed, use uint64) *random {
	r := &random{}
	r.Seed(seed, use)
	return r
}

// unit returns a number in [0, 1).
func (r *random) unit() float64 { return float64(r.Uint64()>>11) / (1 << 53) }

// below returns a duration in [0, d), 0 if d is 0.
func (r *random) below(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return time.Duration(r.unit() * float64(d))
}

// inverted is the mean up to which a Poisson count is drawn by inversion.
const inverted = 10

// poisson returns a count with that mean.
func (r *random) poisson(mean float64) int {
	switch {
	case !(mean > 0):
		return 0
	case mean < inverted:
		return r.poissonInverted(mean)
	default:
		return r.poissonRejected(mean)
	}
}

func (r *random) poissonInverted(mean float64) int {
	u := r.unit()
	p := math.Exp(-mean)
	sum, k := p, 0
	for u >= sum && p > 0 {
		k++
		p *= mean / float64(k)
		sum += p
	}
	return k
}

// poissonRejected is the algorithm PTRS of W. Hörmann, The transformed
// rejection method for generating Poisson random variables, 1993.
func (r *random) poissonRejected(mean float64) int {
	b := 0.931 + 2.53*math.Sqrt(mean)
	a := -0.059 + 0.02483*b
	squeeze := 0.9277 - 3.6224/(b-2)
	for {
		u, v := r.unit()-0.5, r.unit()
		us := 0.5 - math.Abs(u)
		k := math.Floor((2*a/us+b)*u + mean + 0.43)
		if us >= 0.07 && v <= squeeze {
			return int(k)
		}
		if k < 0 || us < 0.013 && v > us {
			continue
		}
		inverse := 1.1239 + 1.1328/(b-3.4)
		fact, _ := math.Lgamma(k + 1)
		if math.Log(v*inverse/(a/(us*us)+b)) <= k*math.Log(mean)-mean-fact {
			return int(k)
		}
	}
}

// spread puts n things, drawn without replacement from bins that hold counts,
// into out: how many came from each bin. n is at most the sum of counts.
func (r *random) spread(n int, counts, out []int) {
	left := 0
	for _, c := range counts {
		left += c
	}
	clear(out)
	for range n {
		at := int(r.unit() * float64(left))
		for i, c := range counts {
			if at -= c - out[i]; at < 0 {
				out[i]++
				break
			}
		}
		left--
	}
}

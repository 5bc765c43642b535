package fleet

import (
	"math"
	"testing"
)

func TestPoissonHasItsMeanAndVariance(t *testing.T) {
	const seed, n = 11, 200_000
	for _, mean := range []float64{0.01, 0.5, 3, 9.99, 10, 40, 1000, 1e6} {
		r := newRandom(seed, 0)
		sum, squares := 0.0, 0.0
		for range n {
			d := float64(r.poisson(mean)) - mean
			sum += d
			squares += d * d
		}
		// The variance of the sample's variance is about (mean + 2 mean²) / n.
		if sd := math.Sqrt(mean / n); math.Abs(sum/n) > 4.5*sd {
			t.Errorf("seed %d: mean of poisson(%v) is off by %v, deviation %v", seed, mean, sum/n, sd)
		}
		if sd := math.Sqrt((mean + 2*mean*mean) / n); math.Abs(squares/n-mean) > 4.5*sd {
			t.Errorf("seed %d: variance of poisson(%v) = %v, deviation %v", seed, mean, squares/n, sd)
		}
	}
}

func TestPoissonHasItsDistribution(t *testing.T) {
	const seed, n = 12, 500_000
	for _, mean := range []float64{2, 12} {
		r := newRandom(seed, 0)
		counts := make([]float64, 100)
		for range n {
			counts[r.poisson(mean)]++
		}
		for k, got := range counts {
			fact, _ := math.Lgamma(float64(k + 1))
			want := n * math.Exp(float64(k)*math.Log(mean)-mean-fact)
			if math.Abs(got-want) > 5*math.Sqrt(want)+2 {
				t.Errorf("seed %d: poisson(%v) was %d %v times, want about %.0f", seed, mean, k, got, want)
			}
		}
	}
}

func TestPoissonOfNothing(t *testing.T) {
	r := newRandom(1, 0)
	for _, mean := range []float64{0, -1, math.NaN()} {
		if got := r.poisson(mean); got != 0 {
			t.Errorf("poisson(%v) = %d, want 0", mean, got)
		}
	}
}

func TestSpreadTakesEachThingOnce(t *testing.T) {
	const seed = 13
	r := newRandom(seed, 0)
	counts, out := []int{5, 0, 20, 75}, make([]int, 4)
	sums := make([]float64, 4)
	const times, take = 4000, 40
	for range times {
		r.spread(take, counts, out)
		total := 0
		for i, c := range out {
			if c < 0 || c > counts[i] {
				t.Fatalf("seed %d: %d of %d things of bin %d", seed, c, counts[i], i)
			}
			total += c
			sums[i] += float64(c)
		}
		if total != take {
			t.Fatalf("seed %d: %d things, want %d", seed, total, take)
		}
	}
	for i, c := range counts {
		want := take * float64(c) / 100
		if got := sums[i] / times; math.Abs(got-want) > 0.2 {
			t.Errorf("seed %d: bin %d had %.2f in the mean, want %.2f", seed, i, got, want)
		}
	}
	r.spread(100, counts, out)
	for i := range out {
		if out[i] != counts[i] {
			t.Errorf("all: bin %d had %d, want %d", i, out[i], counts[i])
		}
	}
}

func TestRandomsOfOneSeedDiffer(t *testing.T) {
	if a, b := newRandom(1, 1), newRandom(1, 2); a.Uint64() == b.Uint64() {
		t.Error("two uses of one seed draw the same number")
	}
}

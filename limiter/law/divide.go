package law

import (
	"cmp"
	"slices"

	"grl/limiter"
)

// Demand is what one of several cells that share a limit is offered.
type Demand struct {
	Rate   float64 // mean, requests per second
	Weight float64 // among the cells of its rank, under limiter.MaxMin; positive
	Rank   int     // 0 is served first
}

// leastAdmit keeps a cell for which nothing is left from being dropped whole: a
// few requests always pass.
const leastAdmit = 1e-6

// Divide shares a limit among demands and appends to admits, for each, the
// share of it that is admitted. Ranks are served one after the other; the
// demands of the one that does not fit share what is left in proportion, or by
// weighted max-min: a = min(rate, weight * level), where level is such that the
// limit is used up. If all demands fit, each is admitted limit / sum.
func Divide(admits []float64, limit float64, share limiter.Share, demands []Demand) []float64 {
	var sum float64
	for _, d := range demands {
		sum += d.Rate
	}
	from := len(admits)
	for range demands {
		admits = append(admits, Admit(sum, limit))
	}
	if sum <= limit {
		return admits
	}
	out := admits[from:]
	order := make([]int, len(demands))
	for i := range order {
		order[i] = i
	}
	// Within a rank by rate / weight: who wants least for its weight is the
	// first to be served in full.
	slices.SortFunc(order, func(a, b int) int {
		x, y := demands[a], demands[b]
		return cmp.Or(cmp.Compare(x.Rank, y.Rank), cmp.Compare(x.Rate/x.Weight, y.Rate/y.Weight), cmp.Compare(a, b))
	})
	left := limit
	for len(order) > 0 {
		n := 1
		for n < len(order) && demands[order[n]].Rank == demands[order[0]].Rank {
			n++
		}
		left = divideRank(out, left, share, demands, order[:n])
		order = order[n:]
	}
	return admits
}

// divideRank serves the demands of one rank, in the order of rate / weight, and
// returns what is left for the next.
func divideRank(out []float64, left float64, share limiter.Share, demands []Demand, order []int) float64 {
	var sum, weights float64
	for _, i := range order {
		sum += demands[i].Rate
		weights += demands[i].Weight
	}
	if sum <= left {
		for _, i := range order {
			out[i] = 1
		}
		return left - sum
	}
	if share == limiter.Proportional {
		for _, i := range order {
			out[i] = max(left/sum, leastAdmit)
		}
		return 0
	}
	for _, i := range order {
		d := demands[i]
		level := left / weights
		got := min(d.Rate, d.Weight*level)
		out[i] = 1
		if got < d.Rate {
			out[i] = max(got/d.Rate, leastAdmit)
		}
		left, weights = max(0, left-got), weights-d.Weight
	}
	return 0
}

package policy

import (
	"math"
	"time"
)

const (
	// mostGrowth is the growth of a week that counts at most.
	mostGrowth = 1.3
	// nightAhead is how long the limit of a night holds: a day that sees the clock
	// set back, and the next night's run in no hurry.
	nightAhead = 26 * time.Hour
)

// peak takes the robust peak of the history, half of its growth and a buffer that
// it learns from its own past cycles.
type peak struct{ spec *Spec }

func newPeak(s *Spec) Policy { return peak{s} }

// Compute implements Policy.
// Source: docs/rlc.md, "peak".
func (p peak) Compute(in Input) Result {
	window := p.spec.teaching(in.Series.over(in.Now.Add(-p.spec.History), in.Now))
	memory := settle(in.Memory, p.spec, in.Series, in.Now)
	seen := observe(window)
	if seen.known == 0 {
		return Result{Memory: memory, Refused: "no_data"}
	}
	grown := growth(window, in.Now)
	base := RobustPeak(window.RPS)
	memory.open(in.Now, base*math.Sqrt(grown))

	o := p.outlook(in)
	o.peak, o.seen, o.window, o.grown = base*o.second, seen, window, grown
	o.learnt = memory.buffer()
	o.floor = SparseFloor(o.peak, window.Step)
	limit := max(o.peak*math.Sqrt(grown)*o.learnt.buffer, o.floor) * o.event
	return Result{
		LimitRPS: limit, MostRPS: limit, Memory: memory,
		Reason: p.reason(in, o), Numbers: o.numbers(limit),
	}
}

// over returns the steps that end in (from, to]: what is known at to of the time
// since from. A step that is not over at to would tell of what comes.
func (s Series) over(from, to time.Time) Series {
	if len(s.RPS) == 0 {
		return s
	}
	return s.Between(from.Add(1-s.Step), to.Add(1-s.Step))
}

// sight is what a window shows at a glance.
type sight struct {
	known       int // steps
	first, most int // the first known step, and the highest one
}

func observe(s Series) sight {
	seen := sight{}
	for i, rps := range s.RPS {
		if !Known(rps) {
			continue
		}
		if seen.known == 0 {
			seen.first, seen.most = i, i
		}
		if rps > s.RPS[seen.most] {
			seen.most = i
		}
		seen.known++
	}
	return seen
}

// growth returns the mean of the newest week over the median of the means of the
// earlier ones, in [1, mostGrowth]: only upward, and 1 where fewer than three
// weeks are known. The window is not empty.
func growth(window Series, now time.Time) float64 {
	means := weekMeans(window, now)
	before := median(means[1:])
	if !Known(means[0]) || !(before > 0) { // too few weeks, or of nothing
		return 1
	}
	return clamp(means[0]/before, 1, mostGrowth)
}

// weekMeans returns the mean of each week before now, the newest first; Unknown
// for one of which less than half is known of what is of the best-known one. A
// bucket of office hours is known by a third of each week, and grows all the same.
func weekMeans(window Series, now time.Time) []float64 {
	var means []float64
	var known []int
	most := 0
	for to := now; to.After(window.Start); to = to.Add(-week) {
		sum, n := 0.0, 0
		for _, rps := range window.over(to.Add(-week), to).RPS {
			if Known(rps) {
				sum += rps
				n++
			}
		}
		means, known = append(means, sum/float64(n)), append(known, n)
		most = max(most, n)
	}
	for i, n := range known {
		if 2*n < most {
			means[i] = Unknown
		}
	}
	return means
}

package backtest

import (
	"math"
	"slices"
	"time"

	"grl/policy"
)

// Result is what came of a backtest. A figure is NaN where there is nothing to
// tell it from.
type Result struct {
	Name   string // of the series
	Policy string // its name, or its kind where it has none
	// Periods is how many were judged.
	Periods int
	// FD is the share of the normal volume that would have been falsely dropped,
	// over all periods, and FDWorst that of the worst of them. In [0, 1].
	FD, FDWorst float64
	// H is the mean limit of a period over the peak of its normal steps, the median
	// over periods; HLowest is the lowest.
	H, HLowest float64
	// T is the limit over the highest normal step hour by hour, the median.
	T float64
	// AnomalyDrop is the share of the volume of anomalies that would have been
	// dropped.
	AnomalyDrop float64
	// Series is what was offered, without outages, and Limits the limit at each of
	// its steps, in requests per second; unknown where there was none yet.
	Series policy.Series
	Limits []float64
	// Tested is the time of all periods, and Worst the period that had the most
	// dropped; the last where none had.
	Tested, Worst Window
	Anomalies     []Window
}

// tally sums volumes, in any unit.
type tally struct{ dropped, volume float64 }

func (t *tally) add(x, limit float64) {
	t.volume += x
	t.dropped += max(0, x-limit)
}

// ratio returns the share that was dropped, NaN of nothing.
func (t tally) ratio() float64 { return t.dropped / t.volume }

// period is what is judged together.
type period struct {
	from              time.Time
	normal, anomalous tally
	steps             int // that are known
	peak              float64
	limitSum          float64 // over those
}

// judge holds the limits against what was offered.
func (r *run) judge() *Result {
	periods := r.periods()
	result := &Result{
		Name: r.Name, Policy: r.Spec.Name, Periods: len(periods), FDWorst: math.NaN(), HLowest: math.NaN(),
		Series: r.Series, Limits: r.limits, Tested: Window{From: r.first, To: r.end}, Anomalies: r.Anomalies,
	}
	if result.Policy == "" {
		result.Policy = r.Spec.Kind
	}
	var all, anomalous tally
	var headroom []float64
	for _, p := range periods {
		all.dropped += p.normal.dropped
		all.volume += p.normal.volume
		anomalous.dropped += p.anomalous.dropped
		anomalous.volume += p.anomalous.volume
		headroom = append(headroom, p.limitSum/float64(p.steps)/p.peak)
		if fd := p.normal.ratio(); !(fd < result.FDWorst) {
			result.FDWorst = fd
			result.Worst = Window{From: p.from, To: p.from.Add(r.Test)}
		}
	}
	result.FD, result.AnomalyDrop = all.ratio(), anomalous.ratio()
	result.H, result.T = median(headroom), median(r.hours())
	if len(headroom) > 0 {
		result.HLowest = slices.Min(headroom)
	}
	return result
}

// periods returns those periods that have normal volume, and at least half as
// many known steps as the median of all: the rest of the last one, or one that
// lies in an outage, tells little.
func (r *run) periods() []period {
	var all []period
	var steps []float64
	for from := r.first; from.Before(r.end); from = from.Add(r.Test) {
		p := r.period(from)
		all = append(all, p)
		steps = append(steps, float64(p.steps))
	}
	least := median(steps) / 2
	return slices.DeleteFunc(all, func(p period) bool { return p.peak <= 0 || float64(p.steps) < least })
}

func (r *run) period(from time.Time) period {
	p := period{from: from}
	s := r.Series.Between(from, from.Add(r.Test))
	first := r.Series.Index(s.Start)
	for i, x := range s.RPS {
		limit := r.limits[first+i]
		if !(limit > 0) {
			continue
		}
		if !policy.Known(x) {
			continue
		}
		p.steps++
		p.limitSum += limit
		if r.normal[first+i] {
			p.normal.add(x, limit)
			p.peak = max(p.peak, x)
		} else {
			p.anomalous.add(x, limit)
		}
	}
	return p
}

// hours returns the limit over the highest normal step of each hour.
func (r *run) hours() []float64 {
	var out []float64
	hour, peak, limit := time.Time{}, 0.0, 0.0
	flush := func() {
		if peak > 0 {
			out = append(out, limit/peak)
		}
		peak = 0
	}
	for i, x := range r.Series.RPS {
		at := r.Series.Time(i).Truncate(time.Hour)
		if !at.Equal(hour) {
			flush()
			hour = at
		}
		if r.normal[i] && r.limits[i] > 0 && x > peak {
			peak, limit = x, r.limits[i]
		}
	}
	flush()
	return out
}

// median returns the middle one of those values that are numbers, or the mean of
// the two; NaN of none.
func median(values []float64) float64 {
	sorted := slices.DeleteFunc(slices.Clone(values), math.IsNaN)
	slices.Sort(sorted)
	n := len(sorted)
	if n == 0 {
		return math.NaN()
	}
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

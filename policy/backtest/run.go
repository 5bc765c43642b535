package backtest

import (
	"context"
	"slices"
	"time"

	"grl/policy"
)

// run is one backtest under way.
type run struct {
	Options
	rails      *policy.Spec  // what bounds a limit
	downWithin time.Duration // a limit is lowered by one step
	first      time.Time     // of the first period
	end        time.Time     // of the series
	// limits holds the limit at each step; unknown before the first cycle, or where
	// every cycle refused.
	limits      []float64
	normal      []bool              // the step is known and in no anomaly
	calibration *policy.Calibration // of the night; nil: none yet
}

func newRun(o Options) *run {
	o.Series = withoutOutages(o.Series, o.Anomalies)
	rails := *o.Spec
	if o.Bounds == Rails {
		rails.Digits = 0
	}
	r := &run{
		Options:    o,
		rails:      &rails,
		downWithin: downWithin(rails.Kind),
		first:      o.Series.Start.Add(o.Train),
		end:        o.Series.Time(len(o.Series.RPS)),
		limits:     make([]float64, len(o.Series.RPS)),
		normal:     normalSteps(o.Series, o.Anomalies),
	}
	for i := range r.limits {
		r.limits[i] = policy.Unknown
	}
	return r
}

// normalSteps tells which steps are known and lie in no anomaly.
func normalSteps(s policy.Series, anomalies []Window) []bool {
	normal := make([]bool, len(s.RPS))
	for i, x := range s.RPS {
		normal[i] = policy.Known(x)
	}
	for _, w := range anomalies {
		first, after := steps(s, w.From, w.To)
		for i := first; i < after; i++ {
			normal[i] = false
		}
	}
	return normal
}

// withoutOutages returns s with the steps of outages unknown.
func withoutOutages(s policy.Series, anomalies []Window) policy.Series {
	s.RPS = slices.Clone(s.RPS)
	for _, w := range anomalies {
		if w.Kind != Outage && w.Kind != Missing {
			continue
		}
		first, after := steps(s, w.From, w.To)
		for i := first; i < after; i++ {
			s.RPS[i] = policy.Unknown
		}
	}
	return s
}

// steps returns the first step that starts in [from, to), and the one after the
// last.
func steps(s policy.Series, from, to time.Time) (first, after int) {
	first = min(max(0, s.Index(from.Add(s.Step-1))), len(s.RPS))
	return first, min(max(first, s.Index(to.Add(s.Step-1))), len(s.RPS))
}

// compute runs a cycle after the other and fills in the limits.
func (r *run) compute(ctx context.Context) error {
	var memory policy.Memory
	var last policy.Result
	for now := r.first; now.Before(r.end); {
		if err := ctx.Err(); err != nil {
			return err
		}
		next := r.next(now)
		first, after := steps(r.Series, now, next)
		if first < after {
			result := r.result(policy.Input{
				Now: now, Series: r.Series.Between(r.Series.Start, now), Memory: memory, SecondOverMinute: r.secondOverMinute(now),
			})
			memory = result.Memory
			if result.Refused == "" {
				last = result // else what was computed last holds on
			}
			r.limit(last, first, after)
		}
		if r.Progress != nil {
			r.Progress(float64(min(next.Sub(r.first), r.end.Sub(r.first))) / float64(r.end.Sub(r.first)))
		}
		now = next
	}
	return nil
}

// secondOverMinute measures the highest seconds of what the policy looks back on,
// as the configurator does.
func (r *run) secondOverMinute(now time.Time) float64 {
	if r.Highest == nil {
		return 1
	}
	first, after := steps(r.Series, now.Add(-r.Spec.History), now)
	looked := policy.Series{Start: r.Series.Time(first), Step: r.Series.Step, RPS: r.Series.RPS[first:after]}
	return max(1, policy.SecondOverMinute(looked, r.Highest[first:after]))
}

// next returns when the cycle after that at now runs.
func (r *run) next(now time.Time) time.Time {
	every := max(r.Every, r.Series.Step)
	switch {
	case r.Every == 0:
		return now.Add(r.Test)
	case every >= day:
		y, m, d := now.In(r.Spec.Location).Date()
		return time.Date(y, m, d+int(every/day), 0, 0, 0, 0, r.Spec.Location)
	default:
		_, offset := now.In(r.Spec.Location).Zone()
		ahead := time.Duration(offset) * time.Second
		return now.Add(ahead).Truncate(every).Add(every - ahead)
	}
}

// calibrated is a policy that computes limits of hours by what it finds out once a
// night, as policy.Forecast does.
type calibrated interface {
	Calibrate(policy.Input) policy.Calibration
	ComputeWith(policy.Input, policy.Calibration) policy.Result
}

// result computes a limit. A calibration is kept for its night.
func (r *run) result(in policy.Input) policy.Result {
	f, ok := r.Policy.(calibrated)
	if !ok {
		return r.Policy.Compute(in)
	}
	if r.calibration == nil || !r.calibration.Holds(in.Now) {
		c := f.Calibrate(in)
		r.calibration = &c
	}
	return f.ComputeWith(in, *r.calibration)
}

// limit sets the limits of the steps [first, after), as a result has them, within
// the bounds.
func (r *run) limit(result policy.Result, first, after int) {
	if !(result.LimitRPS > 0) {
		return
	}
	until := after // of the steps that have the same limit
	for i := first; i < after; i = until {
		at := r.Series.Time(i).In(r.Spec.Location)
		limit := result.LimitRPS
		if result.Hourly != nil {
			limit = result.Hourly[at.Hour()]
			hour := at.Truncate(time.Minute).Add(time.Duration(60-at.Minute()) * time.Minute)
			_, until = steps(r.Series, at, hour)
			until = min(max(until, i+1), after)
		}
		limit = r.bound(limit, i)
		for ; i < until; i++ {
			r.limits[i] = limit
		}
	}
}

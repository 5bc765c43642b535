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
	location *time.Location
	first    time.Time // of the first period
	end      time.Time // of the series
	// limits holds the limit at each step; unknown before the first cycle, or where
	// every cycle refused.
	limits []float64
	normal []bool // the step is known and in no anomaly
}

func newRun(o Options) *run {
	o.Series = withoutOutages(o.Series, o.Anomalies)
	r := &run{
		Options:  o,
		location: time.UTC,
		first:    o.Series.Start.Add(o.Train),
		end:      o.Series.Time(len(o.Series.RPS)),
		limits:   make([]float64, len(o.Series.RPS)),
	}
	if o.Spec != nil && o.Spec.Location != nil {
		r.location = o.Spec.Location
	}
	for i := range r.limits {
		r.limits[i] = policy.Unknown
	}
	r.normal = normalSteps(o.Series, o.Anomalies)
	return r
}

// normalSteps tells which steps are known and lie in no anomaly.
func normalSteps(s policy.Series, anomalies []Window) []bool {
	normal := make([]bool, len(s.RPS))
	for i, x := range s.RPS {
		normal[i] = policy.Known(x)
	}
	for _, w := range anomalies {
		first, after := steps(s, w)
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
		first, after := steps(s, w)
		for i := first; i < after; i++ {
			s.RPS[i] = policy.Unknown
		}
	}
	return s
}

// steps returns the first step that starts in a window and the one after its last.
func steps(s policy.Series, w Window) (first, after int) {
	first = max(0, s.Index(w.From.Add(s.Step-1)))
	return first, min(max(first, s.Index(w.To.Add(s.Step-1))), len(s.RPS))
}

// compute runs a cycle after the other and fills in the limits.
func (r *run) compute(ctx context.Context) error {
	var memory policy.Memory
	present := policy.Unknown
	for now := r.first; now.Before(r.end); {
		if err := ctx.Err(); err != nil {
			return err
		}
		next := r.next(now)
		result := r.Policy.Compute(policy.Input{
			Now: now, Series: r.Series.Between(r.Series.Start, now), Memory: memory, SecondOverMinute: 1,
		})
		memory = result.Memory
		if result.Refused == "" {
			present = result.LimitRPS
		}
		for i := r.Series.Index(now.Add(r.Series.Step - 1)); i < len(r.limits) && r.Series.Time(i).Before(next); i++ {
			r.limits[i] = present
		}
		if r.Progress != nil {
			r.Progress(float64(next.Sub(r.first)) / float64(r.end.Sub(r.first)))
		}
		now = next
	}
	return nil
}

// next returns when the cycle after that at now runs.
func (r *run) next(now time.Time) time.Time {
	switch every := max(r.Every, 0); {
	case every == 0:
		return now.Add(r.Test)
	case max(every, r.Series.Step) >= day:
		y, m, d := now.In(r.location).Date()
		return time.Date(y, m, d+int(max(every, r.Series.Step)/day), 0, 0, 0, 0, r.location)
	default:
		every = max(every, r.Series.Step)
		_, offset := now.In(r.location).Zone()
		local := time.Duration(offset) * time.Second
		return now.Add(local).Truncate(every).Add(every - local)
	}
}

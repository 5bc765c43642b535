package policy

import (
	"math"
	"time"
)

// Forecast computes a limit for each hour of the day: a seasonal forecast,
// calibrated each night on what it would have dropped, and never far above the
// robust peak.
type Forecast struct{ spec *Spec }

// NewForecast returns the policy of a spec, which it does not change.
func NewForecast(s *Spec) *Forecast { return &Forecast{s} }

// Compute implements Policy.
// Source: docs/rlc.md, "forecast".
func (f *Forecast) Compute(in Input) Result { return f.ComputeWith(in, f.Calibrate(in)) }

// Calibrate returns the calibration that Compute uses at in.Now: that of the last
// midnight in the location of the spec. Who computes many hours of one night may
// keep it for all of them, as long as it holds and the history before stays.
func (f *Forecast) Calibrate(in Input) Calibration {
	at := midnight(in.Now.In(f.spec.location()))
	return calibrate(f.spec.teaching(in.Series.over(at.Add(-f.spec.History), at)), at)
}

// ComputeWith is Compute with the calibration of in.Now.
func (f *Forecast) ComputeWith(in Input, c Calibration) Result {
	if c.days == 0 {
		return Result{Memory: in.Memory, Refused: "no_data"}
	}
	o := hourly{spec: f.spec, calibration: c, second: f.spec.secondOverMinute(in)}
	now := slotStart(in.Now.In(f.spec.location()), c.step)
	if c.basis == constant {
		l := o.limit(Unknown, now, now.Add(time.Hour))
		return Result{LimitRPS: l.rps, MostRPS: l.rps, Memory: in.Memory, Reason: o.reason(l), Numbers: o.numbers(l)}
	}
	ahead := now.Add(time.Nanosecond)
	if c.step <= time.Hour {
		ahead = now.AddDate(0, 0, 1)
	}
	s := cut(f.spec.teaching(in.Series.over(c.from, now)), c.from, ahead)
	i := s.index(now)
	l := o.limit(s.forecast(c.basis, i), now, s.end(i))
	r := Result{LimitRPS: l.rps, MostRPS: l.most, Memory: in.Memory, Reason: o.reason(l), Numbers: o.numbers(l)}
	if s.day > 1 {
		r.Hourly = make([]float64, s.day)
		r.Hourly[now.Hour()] = l.rps
		r.MostRPS = max(r.MostRPS, o.ahead(s, i, r.Hourly))
	}
	return r
}

// hourly computes the limits of single hours.
type hourly struct {
	spec        *Spec
	calibration Calibration
	second      float64 // over minute
}

// term is what sets a limit.
type term uint8

const (
	byForecast term = iota
	byShare         // of the peak
	bySparse        // the floor of rare events
	byCap
)

// hourLimit is the limit of an hour and what it is made of, requests per second.
type hourLimit struct {
	rps, most float64
	forecast  float64 // in the highest seconds; Unknown if it cannot be foretold
	event     float64 // factor of the calendar
	at        time.Time
	by        term
}

// limit returns the limit of the hour [from, to) of which so much is forecast.
func (h *hourly) limit(forecast float64, from, to time.Time) hourLimit {
	event, at := h.spec.mostEventFactor(from, to)
	c := &h.calibration
	l := hourLimit{event: event, at: at, forecast: forecast * h.second, by: byCap}
	l.most = c.most(h.second) * event
	l.rps = l.most
	if !Known(forecast) {
		return l
	}
	forecast = l.forecast * event
	rps := margin * c.multiple * forecast
	l.by = byForecast
	if least := min(1, margin*c.share) * c.peak * h.second; least > rps {
		rps, l.by = least, byShare
	}
	if floor := SparseFloor(forecast, c.step); floor > rps {
		rps, l.by = floor, bySparse
	}
	if rps >= l.most {
		l.by = byCap
	}
	l.rps = min(rps, l.most)
	return l
}

// ahead sets the limits of the hours after slot i by what is known now, for the
// time that no later cycle says better. It returns the highest cap of them.
func (h *hourly) ahead(s *slots, i int, limits []float64) float64 {
	most := 0.0
	for j := i + 1; j < len(s.starts); j++ {
		l := h.limit(s.schedule(h.calibration.basis, j), s.starts[j], s.end(j))
		hour := s.starts[j].Hour()
		limits[hour] = max(limits[hour], l.rps) // twice where the clock is set back
		most = max(most, l.most)
	}
	for hour, rps := range limits {
		if rps == 0 { // left out where it is set forward
			limits[hour] = h.calibration.most(h.second)
		}
	}
	return most
}

// Calibration is what Forecast finds out once a night. The zero value is that of
// a history of which nothing is known. It is not changed once it is made.
type Calibration struct {
	// from and at are the window that it is made of, [from, at).
	from, at time.Time
	step     time.Duration
	days     float64 // that are known of it
	peak     float64 // robust, requests per second
	basis    basis
	// multiple is m, in [1, 2), and share k, in [0, 1].
	multiple, share float64
	// gain is how far the mean logarithm of the limits stood below that of 1.15
	// times the peak: 0.5 is 40 % lower. At least 0.
	gain float64
	why  string // the limit is constant; "": it is not
}

// Holds reports whether the calibration is the one of now.
func (c *Calibration) Holds(now time.Time) bool {
	return c.at.Equal(midnight(now.In(c.at.Location())))
}

// most returns the cap of all hours.
func (c *Calibration) most(second float64) float64 {
	return max(capShare*c.peak*second, SparseFloor(c.peak*second, c.step))
}

// sparse reports whether a step has too few requests for a schedule.
func (c *Calibration) sparse() bool { return c.peak*c.step.Seconds() < leastCount }

// lower returns the share by which the limits stood below a constant one.
func (c *Calibration) lower() float64 { return 1 - math.Exp(-c.gain) }

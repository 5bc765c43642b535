package policy

import "time"

// Forecast computes a limit for each hour: a seasonal forecast, calibrated each
// night on what it would have dropped, and never far above the robust peak.
type Forecast struct{ spec *Spec }

// NewForecast returns the policy of a spec, which it does not change.
func NewForecast(s *Spec) *Forecast { return &Forecast{s} }

// Compute returns the limit of the hour of in.Now, of a calibration as of the
// last midnight.
func (f *Forecast) Compute(in Input) Result { return f.ComputeWith(in, f.Calibrate(in)) }

// Calibrate returns the calibration that Compute uses at in.Now. It is the same
// until the next midnight in the location of the spec, as long as the history
// before does not change, so a caller of many hours may keep it: see Calibration.Holds.
func (f *Forecast) Calibrate(in Input) Calibration {
	at := midnight(in.Now.In(f.location()))
	return calibrate(in.Series, f.from(in.Series, at), at)
}

// Holds reports whether the calibration is the one of now.
func (c *Calibration) Holds(now time.Time) bool {
	return c.At.Equal(midnight(now.In(c.At.Location())))
}

// ComputeWith is Compute with the calibration of in.Now.
func (f *Forecast) ComputeWith(in Input, c Calibration) Result {
	if !c.known {
		return Result{Refused: "no_data"}
	}
	second := max(1, in.SecondOverMinute)
	most := c.most(second)
	result := Result{LimitRPS: most, MostRPS: most, Memory: in.Memory}
	if c.Basis == Constant {
		return result
	}
	now := slotStart(in.Now.In(f.location()), c.step)
	s := cut(in.Series, c.From, now, now.Add(1))
	result.LimitRPS = c.limit(s.forecast(c.Basis, len(s.most)-1), second)
	return result
}

func (f *Forecast) location() *time.Location {
	if f.spec.Location == nil {
		return time.UTC
	}
	return f.spec.Location
}

// from returns where the window before at starts.
func (f *Forecast) from(s Series, at time.Time) time.Time {
	from := at.Add(-f.spec.History)
	if s.Start.After(from) {
		from = s.Start.In(at.Location())
	}
	return from
}

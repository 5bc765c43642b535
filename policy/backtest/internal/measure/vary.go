package main

import (
	"math"
	"time"

	"grl/policy"
)

// number returns a figure behind a result; NaN if it has none of that name.
func number(r policy.Result, name string) float64 {
	for _, n := range r.Numbers {
		if n.Name == name {
			return n.Value
		}
	}
	return math.NaN()
}

// roundedUp rounds limits up to two digits, where grl takes the nearest.
type roundedUp struct{ policy.Policy }

// Compute rounds what the policy computes.
func (p roundedUp) Compute(in policy.Input) policy.Result {
	r := p.Policy.Compute(in)
	if r.LimitRPS > 0 {
		unit := math.Pow(10, math.Floor(math.Log10(r.LimitRPS))-1)
		r.LimitRPS = math.Ceil(r.LimitRPS/unit-1e-9) * unit
	}
	return r
}

// otherPrior is peak with another buffer to begin with, and another weight of it,
// in weeks.
type otherPrior struct {
	policy.Policy
	buffer, weeks float64
}

// Compute computes the limit anew from the figures behind it.
func (p otherPrior) Compute(in policy.Input) policy.Result {
	r := p.Policy.Compute(in)
	if r.Refused != "" {
		return r
	}
	spans := 0.0
	for _, c := range r.Memory.Cycles {
		spans += c.To.Sub(c.From).Hours() / (7 * 24)
	}
	learnt := math.Exp((spans*math.Log(number(r, "best_buffer")) + p.weeks*math.Log(p.buffer)) / (spans + p.weeks))
	r.LimitRPS = max(number(r, "peak")*number(r, "growth")*learnt, number(r, "sparse_floor"))
	return r
}

// priors returns a trial of peak with other priors, and with other weights of the
// one that is used.
func priors(of trial) []trial {
	var trials []trial
	for _, p := range []struct{ buffer, weeks float64 }{
		{1, 8}, {1.05, 8}, {1.1, 8}, {1.15, 8}, {1.2, 8}, {1.1, 4}, {1.1, 16},
	} {
		t := of
		t.name = text(p.buffer) + ", " + text(p.weeks) + " weeks"
		t.vary = func(peak policy.Policy, _ time.Duration) policy.Policy { return otherPrior{peak, p.buffer, p.weeks} }
		trials = append(trials, t)
	}
	return trials
}

// otherMargin is forecast with another margin on top of what was calibrated.
type otherMargin struct {
	*policy.Forecast
	margin float64
	step   time.Duration
}

// ComputeWith computes the limit anew from the figures behind it.
func (p otherMargin) ComputeWith(in policy.Input, c policy.Calibration) policy.Result {
	r := p.Forecast.ComputeWith(in, c)
	f := number(r, "forecast")
	if r.Refused != "" || math.IsNaN(f) {
		return r
	}
	least := min(1, p.margin*number(r, "peak_share")) * number(r, "peak")
	limit := max(p.margin*number(r, "multiple")*f, least, policy.SparseFloor(f, p.step))
	r.LimitRPS, r.Hourly = min(limit, number(r, "cap")), nil
	return r
}

// margins returns forecast with other margins.
func margins() []trial {
	var trials []trial
	for _, margin := range []float64{1, 1.05, 1.1, 1.15, 1.2} {
		t := forecastFree
		t.name = text(margin)
		t.vary = func(p policy.Policy, step time.Duration) policy.Policy {
			return otherMargin{p.(*policy.Forecast), margin, step}
		}
		trials = append(trials, t)
	}
	return trials
}

package backtest

import (
	"time"

	"grl/policy"
)

// Bounds say what of policy.Bound is applied to what a policy computes.
type Bounds uint8

const (
	// Rails is the rails, the floor and the ceiling: how far a limit moves.
	Rails Bounds = iota
	// Live is all that a cycle of the configurator applies: digits and the dead
	// band too.
	Live
	// Unbound is nothing.
	Unbound
)

// bound returns what becomes of a limit that is to hold from step i on.
func (r *run) bound(limit float64, i int) float64 {
	if r.Bounds == Unbound {
		return limit
	}
	in := policy.BoundInput{At: r.Series.Time(i), LimitRPS: limit}
	if r.hourly() {
		// The same hour of the day before: against the hour before, evenings would
		// stay open.
		in.PresentRPS = r.before(i, day)
		in.PeakRPS = r.peakOfHour(i)
	} else {
		in.PresentRPS = r.before(i, r.Series.Step)
		in.DownFromRPS = r.before(i, max(r.Every, r.downWithin))
		in.PeakRPS = r.peak(in.At.Add(-week), in.At)
	}
	bounded := policy.Bound(r.rails, in)
	if r.Bounds == Rails && bounded.Rule == "dead_band" {
		in.PresentRPS, in.DownFromRPS = 0, in.PresentRPS // nothing to stay at
		bounded = policy.Bound(r.rails, in)
	}
	return bounded.LimitRPS
}

// hourly reports whether each hour of the day has a limit of its own.
func (r *run) hourly() bool {
	_, ok := r.Policy.(calibrated)
	return ok
}

// before returns the limit so long before step i, at least a step; 0: there was
// none yet.
func (r *run) before(i int, d time.Duration) float64 {
	i -= max(1, int(d/r.Series.Step))
	if i < 0 || !policy.Known(r.limits[i]) {
		return 0
	}
	return r.limits[i]
}

// downWithin returns within which a limit of a kind is lowered by one step.
func downWithin(kind string) time.Duration {
	for _, k := range policy.Kinds() {
		if k.Name == kind {
			return k.Step
		}
	}
	return 0
}

// peak returns the highest known step of [from, to).
func (r *run) peak(from, to time.Time) float64 {
	highest := 0.0
	for _, x := range r.Series.Between(from, to).RPS {
		if x > highest {
			highest = x
		}
	}
	return highest
}

// peakOfHour returns the highest step of the hour that step i is in on the seven
// days before; of days where the steps are longer.
func (r *run) peakOfHour(i int) float64 {
	if r.Series.Step > time.Hour {
		return r.peak(r.Series.Time(i).Add(-week), r.Series.Time(i))
	}
	highest := 0.0
	hour := r.Series.Time(i).Truncate(time.Hour)
	for d := 1; d <= 7; d++ {
		from := hour.Add(-time.Duration(d) * day)
		highest = max(highest, r.peak(from, from.Add(time.Hour)))
	}
	return highest
}

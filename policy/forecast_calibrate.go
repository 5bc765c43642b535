package policy

import (
	"math"
	"slices"
	"time"
)

const (
	// calibrateShare is the share of the volume that a schedule may have dropped
	// while it was calibrated: a quarter of what a limit may drop.
	calibrateShare = 0.00025
	// margin is what comes on top of the calibrated multipliers.
	margin = 1.1
	// capShare is the cap as a multiple of the robust peak.
	capShare = 1.15
	// leastGain is how far below its cap the mean logarithm of a schedule stands
	// at least: 40 %. A schedule that gains little risks much.
	leastGain = 0.5
	// leastCount is the robust peak of a step below which a bucket is too sparse
	// for a schedule.
	leastCount = 10
	// leastChange and mostChange bound what the shape of the week makes of an hour.
	leastChange, mostChange = 0.5, 4
	// multiples is how many m there are, each 7 % above the one before, from 1 to 2.
	multiples = 11
)

// peakShares are the k that calibration chooses from.
var peakShares = [...]float64{0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1}

// Basis is the forecast of an hour that a schedule is made of. The zero value is
// none: the limit is constant.
type Basis uint8

const (
	Constant Basis = iota
	Carried        // the last hour, carried along the shape of the week
	Highest        // that or the highest of the same hour in the weeks, if more
)

func (b Basis) String() string { return [...]string{"constant", "carried", "highest"}[b] }

// Calibration is what forecast finds out once a night. The zero value is that of
// a history of which nothing is known. It is not changed once it is made.
type Calibration struct {
	// From and At are the window that it is made of, [From, At).
	From, At time.Time
	// PeakRPS is the robust peak of the window, in requests per second.
	PeakRPS float64
	Basis   Basis
	// Multiple is m, in [1, 2], and PeakShare k, in [0, 1].
	Multiple, PeakShare float64
	// Gain is how far below its cap the mean logarithm of the schedule stood: 0.5
	// is 40 % lower. It is 0 if none was found.
	Gain float64
	// Why says why the limit is constant; "": it is not.
	Why string

	step  time.Duration
	known bool // that anything is
}

// The reasons for a constant limit.
const (
	whySparse = "too few requests for a schedule"
	whyBursts = "bursts at any hour are its nature: a schedule would gain nothing"
)

// calibrate judges the last three quarters of the window as they would have been
// forecast then.
func calibrate(series Series, from, at time.Time) Calibration {
	rows := series.RPS[series.rowFrom(from):series.rowFrom(at)]
	c := Calibration{From: from, At: at, step: series.Step, known: slices.ContainsFunc(rows, Known)}
	c.PeakRPS = RobustPeak(rows)
	switch {
	case !c.known:
		return c
	case c.PeakRPS*series.Step.Seconds() < leastCount:
		c.Why = whySparse
		return c
	}
	s := cut(series, from, at, at)
	s.choose(&c)
	return c
}

// most returns the cap of all hours of a peak, in its unit.
func (c *Calibration) most(second float64) float64 {
	g := c.PeakRPS * second
	return max(capShare*g, SparseFloor(g, c.step))
}

// limit returns L of docs/rlc.md for a forecast, which may be Unknown.
func (c *Calibration) limit(f, second float64) float64 {
	if c.Basis == Constant || !Known(f) {
		return c.most(second)
	}
	f *= second
	least := min(1, margin*c.PeakShare) * c.PeakRPS * second
	return min(max(margin*c.Multiple*f, least, SparseFloor(f, c.step)), c.most(second))
}

// trial is a stretch of hours as they were and as a basis would have had them.
type trial struct {
	slots         *slots
	first         int       // the first slot of the stretch
	f, floor      []float64 // of each slot
	most, allowed float64   // the cap; what may be dropped, as a sum of steps
}

// choose sets the basis, multiple and share with the lowest mean logarithm of
// those that would have dropped little enough.
func (s *slots) choose(c *Calibration) {
	first := (len(s.most) + 3) / 4
	volume := 0.0
	for _, x := range s.series.RPS[s.rows[first]:s.rows[len(s.most)]] {
		if Known(x) {
			volume += x
		}
	}
	c.Why = whyBursts
	lowest := math.Log(c.most(1)) - leastGain
	for _, basis := range []Basis{Carried, Highest} {
		t := s.trial(basis, first)
		t.most, t.allowed = c.most(1), calibrateShare*volume
		for _, k := range peakShares {
			m, ok := t.smallest(k * c.PeakRPS)
			if !ok {
				continue
			}
			mean := t.meanLog(m, k*c.PeakRPS)
			c.Gain = max(c.Gain, math.Log(t.most)-mean)
			if mean <= lowest {
				lowest = mean
				c.Basis, c.Multiple, c.PeakShare, c.Why = basis, m, k, ""
			}
		}
	}
}

// trial forecasts each slot from first on from those before it alone.
func (s *slots) trial(basis Basis, first int) *trial {
	t := &trial{slots: s, first: first}
	for i := first; i < len(s.most); i++ {
		f := s.forecast(basis, i)
		t.f = append(t.f, f)
		t.floor = append(t.floor, SparseFloor(f, s.series.Step))
	}
	return t
}

// forecast returns f of slot i; Unknown if too little is known.
func (s *slots) forecast(basis Basis, i int) float64 {
	now := s.carried(i)
	if basis == Carried || !Known(now) {
		return now
	}
	if seen := s.seen(i); Known(seen) {
		return max(now, seen)
	}
	return now
}

// smallest returns the smallest multiple that drops little enough beside least.
func (t *trial) smallest(least float64) (m float64, ok bool) {
	multiple := func(i int) float64 { return math.Pow(1.07, float64(i)) }
	lo, hi := 0, multiples // the smallest is in [lo, hi]; hi: none
	for lo < hi {
		mid := (lo + hi) / 2
		if t.fits(multiple(mid), least) {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return multiple(lo), lo < multiples
}

// limit returns the limit of the slot j after the first, without the margins.
func (t *trial) limit(j int, m, least float64) float64 {
	if !Known(t.f[j]) {
		return t.most
	}
	return min(max(m*t.f[j], least, t.floor[j]), t.most)
}

// fits reports whether little enough is dropped.
func (t *trial) fits(m, least float64) bool {
	dropped := 0.0
	for j := range t.f {
		limit := t.limit(j, m, least)
		if !(t.slots.most[t.first+j] > limit) {
			continue
		}
		for _, x := range t.slots.of(t.first + j) {
			if x > limit {
				dropped += x - limit
			}
		}
		if dropped > t.allowed {
			return false
		}
	}
	return true
}

// meanLog returns the mean logarithm of the limits of the slots that are known.
func (t *trial) meanLog(m, least float64) float64 {
	sum, n := 0.0, 0
	for j := range t.f {
		if Known(t.slots.most[t.first+j]) {
			sum += math.Log(t.limit(j, m, least))
			n++
		}
	}
	return sum / float64(max(1, n))
}

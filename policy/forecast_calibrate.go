package policy

import (
	"math"
	"time"
)

const (
	// calibrateShare is the share of the volume that limits may have dropped while
	// they were calibrated: a quarter of what they may drop.
	calibrateShare = 0.00025
	// margin comes on top of what was calibrated. Within the calibration it would
	// only make it pick smaller multiples.
	margin = 1.1
	// capShare is the most of an hour as a multiple of the robust peak.
	capShare = 1.15
	// leastGain is how far limits by the hour stand below a constant one at least,
	// as a mean logarithm: 40 %. A schedule that gains little risks much.
	leastGain = 0.5
	// leastCount is the robust peak of a step, in requests, below which a bucket is
	// too sparse for a schedule.
	leastCount = 10
	// leastChange and mostChange bound what the shape of the week makes of an hour.
	leastChange, mostChange = 0.5, 4
	// multiples is how many there are of m, each 7 % above the one before. Above
	// twice the forecast it is no forecast.
	multiples, multipleStep = 11, 1.07
)

// shares are the k that calibration chooses from.
var shares = [...]float64{0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1}

// basis is the forecast that limits are made of. The zero value is none: the
// limit is constant.
type basis uint8

const (
	constant  basis = iota
	carried         // now: the hour before, carried along the shape of the week
	highestOf       // top: that, or the highest of the hour in the weeks if more
)

// Why the limit is constant.
const (
	whySparse  = "too few requests for a schedule"
	whyBursts  = "bursts at any hour are its nature: a schedule would gain nothing"
	whyUnknown = "too little is known of its hours for a schedule"
)

// calibrate chooses what limits are made of, by what the hours of the last three
// quarters of a window that ends at at would have been forecast, and dropped.
func calibrate(window Series, at time.Time) Calibration {
	seen := observe(window)
	if seen.known == 0 {
		return Calibration{at: at}
	}
	c := Calibration{
		from: window.Time(seen.first).In(at.Location()),
		at:   at,
		step: window.Step,
		days: float64(seen.known) * window.Step.Hours() / 24,
		peak: RobustPeak(window.RPS),
	}
	if c.sparse() {
		c.why = whySparse
		return c
	}
	c.choose(cut(window.Between(c.from, at), c.from, at))
	return c
}

// choose sets basis, multiple and share: those with the lowest mean logarithm of
// the limits among those that would have dropped little enough.
func (c *Calibration) choose(s *slots) {
	first := (len(s.most) + 3) / 4
	allowed := 0.0
	for _, x := range s.series.RPS[s.rows[first]:] {
		if Known(x) {
			allowed += calibrateShare * x
		}
	}
	c.why = whyUnknown
	for _, b := range [...]basis{carried, highestOf} {
		t := newTrial(s, b, first)
		t.most, t.allowed = c.most(1), allowed
		if !t.foretold() {
			continue
		}
		if c.why == whyUnknown {
			c.why = whyBursts
		}
		for _, k := range shares {
			m, ok := t.smallest(k * c.peak)
			if !ok {
				continue
			}
			gain := math.Log(capShare*c.peak) - t.meanLog(m, k*c.peak)
			if gain <= c.gain {
				continue
			}
			c.gain = gain
			if gain >= leastGain {
				c.basis, c.multiple, c.share, c.why = b, m, k, ""
			}
		}
	}
}

// trial is a stretch of slots as they were, and as they would have been forecast.
type trial struct {
	slots   *slots
	first   int       // slot of the stretch
	f       []float64 // forecast of each of them
	floor   []float64 // of rare events
	most    float64   // the cap
	allowed float64   // to be dropped, as a sum of rows
}

func newTrial(s *slots, b basis, first int) *trial {
	t := &trial{slots: s, first: first}
	for i := first; i < len(s.most); i++ {
		f := s.forecast(b, i)
		t.f, t.floor = append(t.f, f), append(t.floor, SparseFloor(f, s.series.Step))
	}
	return t
}

// foretold reports whether any slot was.
func (t *trial) foretold() bool { return Known(highest(t.f)) }

// limit returns the limit of the slot j of the stretch, without the margins.
func (t *trial) limit(j int, m, least float64) float64 {
	if !Known(t.f[j]) {
		return t.most
	}
	return min(max(m*t.f[j], least, t.floor[j]), t.most)
}

// smallest returns the smallest multiple that drops little enough beside what is
// least. Drops fall with it.
func (t *trial) smallest(least float64) (m float64, ok bool) {
	power := func(i int) float64 { return math.Pow(multipleStep, float64(i)) }
	lo, hi := 0, multiples // it is in [lo, hi]; hi: there is none
	for lo < hi {
		if mid := (lo + hi) / 2; t.fits(power(mid), least) {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return power(lo), lo < multiples
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

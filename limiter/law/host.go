package law

import (
	"math"
	"time"
)

// Verdict is what a directive says of one cell.
type Verdict struct {
	Admit   float64 // limit / measured rate; 0: nothing was decided
	Offered float64 // the rate it was decided on, of the whole instance, in requests per second
	Hosts   float64 // with traffic, among which it came
	Excess  float64 // what hosts claim beyond Offered; 0 where a host is told
	Hot     bool    // reports are wanted each HotT
}

// Host is one cell at one host: the estimate of its rate, what the parent was
// told of it, and what was decided. The zero value is a cell without traffic of
// which nothing is known; it drops nothing. Not safe for concurrent use.
type Host struct {
	Verdict  Verdict
	estimate Estimate
	rate     float64 // estimated, requests per second
	sent     float64 // told to the parent last
	told     []told  // a ring, for pairing
	next     int     // where in told the next report goes
}

// told is the rate that a report said.
type told struct {
	sequence uint64
	rate     float64
}

// mostTold is how many reports of a cell are remembered for pairing.
const mostTold = 32

// Rate returns the estimated offered rate in requests per second.
func (h *Host) Rate() float64 { return h.rate }

// Sent returns the rate that the parent was told last on this stream.
func (h *Host) Sent() float64 { return h.sent }

// Begin says that the cell begins at a moment that the traffic did not choose, in
// the midst of it: its first rate is a plain mean of all that comes, not one that
// approaches from nothing. Each interval must be stepped from then on. Call it
// before the first Step.
func (h *Host) Begin() { h.estimate.young = true }

// Step takes in what was offered in the interval that just ended, which must be
// longer than 0. A cell that had no rate need not be stepped without an offer.
func (h *Host) Step(offered float64, elapsed time.Duration) {
	h.rate = h.estimate.Step(offered, elapsed, period(h.Verdict.Hot))
}

// Event reports whether the parent must hear of the rate at once: it left what
// was told last by more than chance, and it matters for the ratio. Rises and
// falls have the same threshold: if one were told sooner, sums would be biased.
func (h *Host) Event() bool {
	v := &h.Verdict
	// By the higher rate: by the one told last a rise from few requests to more
	// would be told sooner than the fall back.
	high := max(h.sent, h.rate, 1)
	over := h.estimate.bursts.over(period(v.Hot))
	threshold := max(eventShare*high, eventSigmas*deviation(h.estimate.noise.factor()*high, over), h.estimate.bursts.size/over.Seconds())
	switch {
	case h.rate > h.sent+threshold:
		return v.Admit == 0 || h.rate > nearLimit*max(h.sent, v.average())*v.Admit
	case h.rate < h.sent-threshold:
		return v.Admit != 0 && v.Admit < farBelow
	default:
		return false
	}
}

// Reported takes in that the report of that sequence told the rate.
func (h *Host) Reported(sequence uint64) {
	h.sent = h.rate
	t := told{sequence, h.rate}
	if len(h.told) < mostTold {
		h.told = append(h.told, t)
		return
	}
	h.told[h.next] = t
	h.next = (h.next + 1) % mostTold
}

// Reopen begins a new stream, whose parent was told nothing.
func (h *Host) Reopen() { h.sent, h.told, h.next = 0, h.told[:0], 0 }

// included returns the rate that sums contain which contain the reports up to
// sequence; false if that is not known.
func (h *Host) included(sequence uint64) (float64, bool) {
	var best told
	for _, t := range h.told {
		if t.sequence <= sequence && t.sequence > best.sequence {
			best = t
		}
	}
	return best.rate, best.sequence != 0
}

// average returns the rate of a mean host, 0 if there is none.
func (v *Verdict) average() float64 {
	if v.Hosts <= 0 {
		return 0
	}
	return v.Offered / v.Hosts
}

// Ratio returns the share in [0, 1) to drop in the next interval, after one in
// which so much was offered. It is the ratio that was decided, except that the
// host bridges the time until its decider knows what it knows:
//
//   - of far less than the directive counted on it drops only what is above its
//     part of the limit;
//   - far more is trimmed to guard times what the directive meant this host, or
//     a mean one, to admit; 0 turns that off.
//
// What the directive counted on is the host's own rate as of the report that
// the directive's sums contain, contained: not its latest, which would turn the
// guard off in a surge, nor an older one. 0: none yet.
func (h *Host) Ratio(offered float64, elapsed time.Duration, contained uint64, guard float64) float64 {
	v := &h.Verdict
	ratio := Ratio(v.Admit)
	own, known := h.included(contained)
	noise, burst := h.estimate.noise.factor(), h.estimate.bursts.size
	expected := own * elapsed.Seconds()
	if ratio > 0 && known && offered < nearLimit*expected-3*math.Sqrt(noise*expected)-burst {
		if offered == 0 {
			return 0
		}
		return max(0, 1-v.Admit*expected/offered)
	}
	ceiling := guard * v.Admit * max(own, v.average()) * elapsed.Seconds()
	// What is offered when so much is admitted: its noise is not to be trimmed.
	most := ceiling / min(1, v.Admit)
	if ceiling > 0 && offered > most+3*math.Sqrt(noise*most)+2+burst {
		return max(ratio, 1-ceiling/offered)
	}
	return ratio
}

// Budget bounds the event reports of a host, so that trouble cannot lift what
// they cost. The zero value is full. Not safe for concurrent use.
type Budget struct {
	spent float64
	last  time.Time
}

// Take reports whether one more may be sent, and counts it.
func (b *Budget) Take(now time.Time) bool {
	if !b.last.IsZero() {
		b.spent = max(0, b.spent-EventRefill*now.Sub(b.last).Seconds())
	}
	b.last = now
	if b.spent > EventBurst-1 {
		return false
	}
	b.spent++
	return true
}

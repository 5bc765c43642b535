// Package law is the control law of grl as pure functions and small state
// machines: the rate a host reports, the sums a node forms, the ratio a
// controller decides, and what silence does to each. Time and counts come in as
// arguments; nothing here starts a goroutine, reads a clock or draws a number.
//
// The law keeps the published formula, drop ratio = (offered - limit) / offered,
// as its steady truth. What it adds is a mean that is as long as the noise
// requires and no longer, and named rules for silence.
package law

import (
	"math"
	"time"
)

// Constants of the law. T is the reporting period; the others are stated in it
// where they scale with it.
const (
	T = time.Second // a report of each host, a directive of each decider

	Delta      = 50 * time.Millisecond // a host's timer: estimates and fading
	Coalesce   = 20 * time.Millisecond // a node waits so long for more before it sends
	PublishGap = 50 * time.Millisecond // a controller's directives are at least so far apart

	HostSilent = 22 * T / 10 // a host not heard for so long leaves its zone's sum
	Handover   = 12 * T / 10 // hosts need so long to move between aggregators
	Rejoin     = 5 * T       // hosts whose zone had no aggregator come back within
	ZoneKept   = 30 * T      // a silent zone counts with its last rate for so long
	WarmUpMost = 3 * T       // a new controller waits at most so long for its zones

	meanEvents = 3000             // events a mean is taken over: 1/math.Sqrt(3000) is 2 %
	meanCap    = 20 * time.Second // but never over longer
	jumpSigmas = 4                // beyond so many deviations the rate has jumped
	onSigmas   = 2                // hysteresis: dropping begins so far above the limit

	sendBand  = 0.02  // a change sent at once
	quietBand = 0.001 // a change sent at the next T
	farBand   = 0.25  // either band where admit is above 2: nothing is near dropping
)

// DropRatio returns the share of offered load to drop so that limit remains:
// (offered-limit)/offered, or 0 when offered is within limit. Both are in
// requests per second; limit must be positive. The result is in [0, 1).
func DropRatio(offered, limit float64) float64 {
	return Ratio(Admit(offered, limit))
}

// Admit returns limit / offered, the share of the offered load that the limit
// admits; above 1 there is room. Both are in requests per second; limit must be
// positive. The result is in (0, 1e6].
func Admit(offered, limit float64) float64 {
	return limit / max(offered, limit/1e6)
}

// Ratio returns the drop ratio that admit stands for, in [0, 1). An admit that
// no controller computes (NaN, not positive) drops nothing.
func Ratio(admit float64) float64 {
	if !(admit > 0) || admit >= 1 {
		return 0
	}
	// Admit is never 0, but 1-admit rounds to 1 below 2^-54.
	return min(1-admit, 1-0x1p-53)
}

// Fading returns the share of a ratio that still holds when its directive was
// last renewed age ago: 1 while it is held, then falling to 0 over decay.
func Fading(age, hold, decay time.Duration) float64 {
	switch {
	case age <= hold:
		return 1
	case age >= hold+decay:
		return 0
	default:
		return 1 - float64(age-hold)/float64(decay)
	}
}

// Moved says how far a value is from the one last sent.
type Moved uint8

const (
	Still  Moved = iota // within 0.1 %: nothing to send
	Drifts              // to be sent at the next T
	Jumps               // to be sent at once
)

// AdmitMoved compares the admit of a cell with the one last sent.
func AdmitMoved(now, sent float64) Moved {
	d := math.Abs(now - sent)
	if now > 2 && sent > 2 {
		if d > farBand*sent {
			return Jumps
		}
		return Still
	}
	return moved(d, sendBand*sent, quietBand*sent)
}

// RateMoved compares the rate of a cell, in requests per second, with the one
// last sent: it jumps when it leaves 2 % and three deviations of its own noise.
func RateMoved(now, sent float64) Moved {
	return moved(math.Abs(now-sent), max(sendBand*sent, 3*math.Sqrt(sent/(2*T.Seconds()))), quietBand*sent)
}

func moved(d, jump, drift float64) Moved {
	switch {
	case d > jump:
		return Jumps
	case d > drift:
		return Drifts
	default:
		return Still
	}
}

// Package law is the control law of grl as pure functions and small state
// machines: the rate a host reports and when, the sums a node forms, the ratio
// a decider decides, what a host drops until the next one comes, and what
// silence does to each. Time and counts come in as arguments; nothing here
// starts a goroutine, reads a clock or draws a number.
//
// The law keeps the published formula, drop ratio = (offered - limit) / offered,
// as its steady truth. What it adds is to reach that truth sooner: hosts say at
// once what changed, and bridge the way to the decider and back on their own;
// and with less noise: a mean that is as long as chance requires and no longer.
// docs/control-law.md explains it and has its figures.
//
// In the order of one round: Host.Step and Host.Event at the host, Sum and Zone
// on the way up, Decider at the top, Host.Ratio back at the host.
package law

import (
	"math"
	"time"
)

// Constants of the law, by the names of docs/control-law.md. The others are
// stated in T where they scale with it.
const (
	T      = time.Second            // a report of each host, a directive of each decider
	HotT   = 200 * time.Millisecond // the same for cells near their limit that just moved
	HotFor = 2 * time.Second        // a cell stays hot for so long after it moved
	// HotNoise is how long the estimates of a cell that was hot stay as noisy.
	HotNoise = 2 * T
	Delta    = 50 * time.Millisecond // a host's timer: estimates, events, ratios

	// Guard bounds what a host admits between two directives to so many times
	// what the last one meant it to; 0 would be no bound.
	Guard = 2.0

	Coalesce   = 20 * time.Millisecond // a node waits so long for more before it sends
	PublishGap = 50 * time.Millisecond // a decider's directives are at least so far apart

	EventBurst  = 20 // event reports of a host at once
	EventRefill = 2  // and each second from then on

	jumpSigmas  = 4    // beyond so many deviations of a count a rate has jumped
	jumpSlack   = 5    // and so many requests
	jumpShare   = 0.1  // and such a share
	sumSlack    = 2    // of a sum: so many requests a period instead of jumpSlack
	eventSigmas = 4    // a rate that left the one last reported by so many deviations
	eventShare  = 0.1  // and such a share is an event
	nearLimit   = 0.7  // of what the limit allows: below it a rise is no event
	farBelow    = 1.05 // admit from which on a fall is no event

	noiseIntervals = 200 // intervals in which the noise of a host's counts is learnt
	noiseSums      = 16  // sums, one each T, in which their noise is

	meanEvents = 3000             // events a mean is taken over: 1/math.Sqrt(3000) is 2 %
	meanCap    = 20 * time.Second // but never over longer
	onSigmas   = 2                // hysteresis: dropping begins so far above the limit
	hotShare   = 0.05             // hot is a sum that moved by so much
	hotSigmas  = 5                // and so many deviations
	hotWindow  = 5 * T            // from its mean over so long
	hotEvents  = 20               // limits with fewer requests in HotT are never hot

	sendBand  = 0.02  // a change sent at once
	quietBand = 0.001 // a change sent at the next T
	farBand   = 0.25  // either band where admit is above 2: nothing is near dropping
)

// Constants of silence. Hold, decay and autonomy are policy: keys of grl.toml.
const (
	DeciderSilent = 25 * T / 10 // a decider not heard for so long has its children go on alone
	HostSilent    = 22 * T / 10 // a host not heard for so long leaves its zone's sum
	Handover      = 12 * T / 10 // hosts need so long to move between aggregators
	Rejoin        = 5 * T       // hosts whose zone had no aggregator come back within
	ZoneKept      = 30 * T      // a silent zone counts with its last rate for so long
	WarmUpMost    = 3 * T       // a new controller waits at most so long for its zones

	Hold     = 10 * T // default of client.hold
	Decay    = 10 * T // default of client.decay
	Autonomy = 30 * T // default of aggregator.autonomy and controller.autonomy
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
// no decider computes (NaN, not positive) drops nothing.
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

// period returns how often a cell is reported: HotT while it is hot.
func period(hot bool) time.Duration {
	if hot {
		return HotT
	}
	return T
}

// deviation returns the standard deviation of a rate in requests per second,
// estimated by an exponential mean over that period.
func deviation(rps float64, period time.Duration) float64 {
	return math.Sqrt(rps / (2 * period.Seconds()))
}

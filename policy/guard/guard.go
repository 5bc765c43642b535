// Package guard judges a change of the configuration before it is made: the
// rails that a careless change runs into. It is pure: what was offered is an
// argument. docs/decisions/0019-guard-rails.md has the reasons.
package guard

import "grl/limiter"

// The rails. Shares are in [0, 1].
const (
	// leastOfPeak is the share of the highest minute of the last 7 days that a
	// limit may be lowered to.
	leastOfPeak = 0.5
	// mostOfPresent is how many times the present limit a new one may be.
	mostOfPresent = 3
	// mostOfBuckets is the share of the buckets that may change at once, and
	// fewBuckets the number that may in any case.
	mostOfBuckets = 0.1
	fewBuckets    = 3
	// mostDropped is the share of what was offered that a bucket may drop more
	// than it does.
	mostDropped = 0.05
)

// Days is over how many days the rails look back.
const Days = 7

// Rail is one of the rails. The zero value is none.
type Rail uint8

const (
	BelowPeak      Rail = iota + 1 // limit below half of the highest minute
	AbovePresent                   // limit above three times the present one
	ManyBuckets                    // more than a tenth of the buckets
	PredictedDrops                 // more than 5 % of what was offered
)

// Finding is what a rail says of a change.
type Finding struct {
	Rail Rail
	// Bucket is a full name; "" is the change as a whole.
	Bucket string
	// Text is a sentence with the figures.
	Text string
	// NeedsForce says that the change must not be made without.
	NeedsForce bool
	// DropShare is the share of what was offered that would have been dropped,
	// in [0, 1]; only if Predicted.
	DropShare float64
	Predicted bool
}

// Pair is a bucket that a change touches: as it is and as it shall be. One of
// them may be nil.
type Pair struct{ Before, After *limiter.Bucket }

// Past tells what a bucket was offered: the name of the pair's Before or, if
// that is nil, of After, see Key. A bucket of which nothing is known has none.
type Past struct {
	// Cells holds the minutes of the last 7 days; empty: unknown.
	Cells []Cell
	// NowRPS is what is offered now where After matches, in requests per second.
	// It stands in where there are no minutes; 0: unknown.
	NowRPS float64
}

// Cell is what one cell of a bucket was offered.
type Cell struct {
	ID limiter.CellID
	// Minutes are in the order of time; those without requests may be left out.
	Minutes []Minute
}

// Minute is one minute of a cell: means over it, in requests per second.
type Minute struct {
	Start     int64 // minutes since 1970
	Offered   float64
	ShadowRPS float64 // shadow-dropped, part of Offered
}

// Key returns the name under which the past of the pair is found: that of the
// bucket which was there. It is "" where the past says nothing about After,
// since that selects or counts other requests.
func (p Pair) Key() string {
	switch {
	case p.Before == nil:
		return ""
	case p.After != nil && !sameRequests(p.Before, p.After):
		return ""
	default:
		return p.Before.FullName()
	}
}

// sameRequests reports whether the load of two buckets is the same.
func sameRequests(a, b *limiter.Bucket) bool {
	return a.Match == b.Match && a.PerCaller == b.PerCaller && a.Scope == b.Scope && a.Verified == b.Verified && a.Cost == b.Cost
}

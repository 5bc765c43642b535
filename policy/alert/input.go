package alert

import "time"

// Input is what is known at a moment.
type Input struct {
	Buckets []Bucket
	Shadows []Shadow
	Zones   []Zone
	// Run is the last run of the RLC that is over; nil: none is known.
	Run   *Run
	Caps  []Cap
	Audit Audit
}

// Bucket is what an enforced bucket does now, over all its cells, in requests per
// second. One that blocks, and a cap, are not among those judged: whoever placed
// them wants them to drop.
type Bucket struct {
	Name             string // full name
	Offered, Dropped float64
}

// Shadow is what a limit that is not enforced would have done.
type Shadow struct {
	Bucket    string // full name
	Candidate bool   // of a bucket that is enforced by another limit
	Day       time.Time
	Share     float64 // of that day that it would have dropped, in [0, 1]
}

// Zone is one zone as it reports.
type Zone struct {
	Name string
	// Hosts are those that report there now.
	Hosts int
	// DirectiveAge is that of the last directive that its aggregators took, the
	// oldest; below 0: it took none yet.
	DirectiveAge time.Duration
	// Silent is how long no aggregator of it reports; 0: one does.
	Silent time.Duration
}

// Run is a run of the RLC.
type Run struct {
	ID              uint64
	Failed          string // why; "": it did not
	Refused, Broken uint32 // buckets that it could not judge, or failed at
}

// Cap is a cap that runs.
type Cap struct {
	ID   string
	Name string // what it is on, for people: "promo-batch → payments"
	Ends time.Time
}

// Audit is what was found when the audit was last gone through.
type Audit struct {
	Broken uint64 // first entry that does not hold; 0: all do
	Reason string // why it does not
	Lost   string // why it cannot be read; "": it can
}

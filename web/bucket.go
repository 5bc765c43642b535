package web

import "grl/limiter"

// Bucket is one row of the buckets table: a cell with its limit, its load and
// what is dropped of it. Rates are in requests per second, finite and not
// negative.
type Bucket struct {
	Service string // the callee
	Name    string // of the bucket, unique in the service
	Owner   string // empty: none given
	// Match is what the bucket matches, for people:
	// "checkout → payments.v1.Charges/*".
	Match string
	// Instance is the region or zone of the cell; empty for a global one.
	Instance string
	// Caller is set where the bucket has a cell for each caller.
	Caller string
	// Class is set where it has one for each tier, or for retries: "batch",
	// "batch/retry".
	Class    string
	Scope    limiter.Scope
	Behavior limiter.Behavior
	// Block lets nothing through; LimitRPS is then 0.
	Block bool

	LimitRPS         float64 // what the cell admits
	OfferedRPS       float64 // all that matched, before any decision
	AdmittedRPS      float64 // offered less dropped
	DroppedRPS       float64
	ShadowDroppedRPS float64 // part of admitted
	// Ratio is the drop ratio in force, in [0, 1]. On a bucket in shadow it
	// selects virtual drops only.
	Ratio float64
	// Hosts is how many hosts report the cell.
	Hosts int
	// Silent says that reports stopped: the rates are the last known ones.
	Silent bool
}

// nearLimit is the share of the limit from which a bucket is near it.
const nearLimit = 0.9

// bucketState is the strongest thing to say about a bucket.
type bucketState int

const (
	stateEnforced bucketState = iota
	stateShadow
	stateNear
	stateOver
	stateBlocked
)

func (b *Bucket) state() bucketState {
	switch {
	case b.Behavior != limiter.Deny:
		return stateShadow
	case b.Block:
		return stateBlocked
	case b.Ratio > 0 || b.OfferedRPS > b.LimitRPS:
		return stateOver
	case b.OfferedRPS > nearLimit*b.LimitRPS:
		return stateNear
	}
	return stateEnforced
}

// dropRatio is the share of offered that is dropped: none in shadow.
func (b *Bucket) dropRatio() float64 {
	if b.Behavior != limiter.Deny {
		return 0
	}
	return b.Ratio
}

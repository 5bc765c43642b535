// Package history is where the configurator has its history from: the
// controller, a server that answers like Prometheus, or files. Each source reads
// what was offered to buckets, lays it out step by step, and says what it is
// worth: what is missing or broken never lowers a limit. docs/rlc.md has the
// rules, under "Sources".
package history

import (
	"context"
	"time"

	"grl/limiter"
	"grl/policy"
)

// Source is where history comes from. It may be used concurrently.
type Source interface {
	// Name is "history", "prometheus" or "csv".
	Name() string
	// Read reads what q wants and calls fn with each bucket once, in any order,
	// from one goroutine at a time. It returns an error of fn, or of the source as
	// a whole; what concerns one bucket is in that Bucket. After an error fn may
	// have been called with some of the buckets, and is not called again.
	Read(ctx context.Context, q Query, fn func(Bucket) error) error
}

// Query is what to read.
type Query struct {
	// Buckets have different full names.
	Buckets []Wanted
	// From and To bound the time, [From, To). Nothing after To is known, and what
	// counts as lately is counted back from To.
	From, To time.Time
}

// Wanted is one bucket to read.
type Wanted struct {
	// Bucket as it is configured; its scope and its callers say what the units
	// are.
	Bucket limiter.Bucket
	// Ignore are times that do not teach; those of other services are left out.
	Ignore []policy.Ignore
	// LookBack is how far the policy looks back from the end of the query; 0: as
	// far as that goes.
	LookBack time.Duration
	// Least is how long a history must be for a limit to be lowered by it; 0: any
	// is long enough.
	Least time.Duration
}

// Bucket is the history of one bucket.
type Bucket struct {
	Name string // full
	// Units are what has a limit of its own, in the order of Instance: each region
	// of a bucket of scope region, else one. Of zones and of callers, each of which
	// gets the whole limit, the unit has the highest at each step. None with Err.
	Units []Unit
	// Err is why this bucket could not be read; nil: it was. The others go on.
	Err error
}

// Unit is the history of one limit.
type Unit struct {
	Instance string // the region of scope region, else ""
	// Series is what was offered. Steps that are missing, broken or do not teach
	// are unknown.
	Series policy.Series
	// SecondOverMinute is how far the highest second of a busy minute stands above
	// the minute's mean, at least 1; 0: the source has no seconds.
	SecondOverMinute float64
	// Refused is why nothing may be computed from it, and NoLower why no limit may
	// be lowered by it, each one of the words of policy.Refusals; "": nothing
	// stands against it. With Refused, NoLower is empty.
	Refused, NoLower string
	// Notes say what was left out and why, each a part of a sentence.
	Notes []string
	// Days are the days, in UTC, that the query touches, in the order of time.
	Days []Day
}

// Day is what happened on one day.
type Day struct {
	Start time.Time // midnight UTC
	// Offered is in requests, known or not: also of steps that do not teach.
	Offered float64
	// Dropped is what was dropped of that, and CandidateDropped what the candidate
	// would have dropped beyond; 0 too where the source does not know.
	Dropped, CandidateDropped float64
	// Coverage is the share of the day, as far as it lies in the query, of which
	// there is history, whether it teaches or not; in [0, 1].
	Coverage float64
}

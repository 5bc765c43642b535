package desk

import (
	"grl/policy/guard"
	"grl/store/ledger"
)

// Bounds on what an outcome lists.
const (
	maxChanges  = 10_000
	maxFindings = 1_000
	maxKept     = 1_000
)

// Kind says what a change does to an item. The zero value is none.
type Kind uint8

const (
	Added Kind = iota + 1
	Removed
	Changed
)

// Change is what a change does to a bucket, or to what a service says besides
// its buckets.
type Change struct {
	Kind   Kind
	Bucket string // full name, or the service
	// As YAML; "" where there is none.
	Before, After string
}

// Outcome is what a change did, or a dry run of it would do.
type Outcome struct {
	// Revision is the head now; of a dry run, the present one.
	Revision ledger.Revision
	Changed  bool
	// Changes are the first 10,000, LeftOut how many there are beyond.
	Changes  []Change
	LeftOut  int
	Findings []guard.Finding // those that need force first; at most 1,000
	// Rollout is set if the change goes out zone by zone, Waiting the zones that
	// it has not reached.
	Rollout *ledger.Rollout
	Waiting []string
	// Kept are later edits that the files do not have, and that stay; at most
	// 1,000.
	Kept []Conflict
}

// changesOf lists what differs between two configurations in some services.
func changesOf(before, after *snapshot, services []string) []Change {
	var changes []Change
	for _, service := range services {
		was, is := itemsOf(before.documents[service]), itemsOf(after.documents[service])
		for _, key := range keys(was, is) {
			c := Change{Kind: Changed, Bucket: key, Before: was[key], After: is[key]}
			switch {
			case c.Before == c.After:
				continue
			case c.Before == "":
				c.Kind = Added
			case c.After == "":
				c.Kind = Removed
			}
			changes = append(changes, c)
		}
	}
	return changes
}

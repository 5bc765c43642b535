package page

import (
	"time"

	"grl/limiter"
)

// Cell is what the controller sees of one cell now, or of a bucket or cap that
// nobody calls. Rates are in requests per second, finite and not negative.
type Cell struct {
	Service string // the callee
	Name    string // of the bucket, unique in the service
	Owner   string // empty: none given
	// Match is what the bucket matches, for people:
	// "checkout → payments.v1.Charges/*".
	Match string
	// Selects is what it matches.
	Selects limiter.Match
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
	// Cap is the id of the cap whose cell it is; empty: it is a bucket's.
	Cap string
	// Capped says that a running cap is tried before the bucket on requests that
	// it matches.
	Capped bool

	LimitRPS         float64 // what the cell admits
	OfferedRPS       float64 // all that matched, before any decision
	AdmittedRPS      float64 // offered less dropped
	DroppedRPS       float64
	ShadowDroppedRPS float64 // part of admitted
	// CandidateRPS is the limit that is judged beside; 0: none. It would drop
	// CandidateDroppedRPS of what is admitted.
	CandidateRPS, CandidateDroppedRPS float64
	// Ratio is the drop ratio in force, in [0, 1]. On a bucket in shadow it
	// selects virtual drops only.
	Ratio float64
	// DirectiveAge is that of the last directive that spoke of the cell; below
	// 0: none has.
	DirectiveAge time.Duration
	// Hosts is how many hosts report the cell.
	Hosts int
	// Silent says that reports stopped: the rates are the last known ones.
	Silent bool
	// SilentZones are those of Fleet.SilentZones that offered to the bucket before,
	// in the order there: what they offer now is not in the rates.
	SilentZones []string
}

// nearLimit is the share of the limit from which a bucket is near it.
const nearLimit = 0.9

// CellState is the strongest thing to say about a cell.
type CellState int

// From the weakest on.
const (
	Enforced CellState = iota
	Shadow
	Near
	Over
	Capped
	Blocked
)

// State returns the strongest thing to say about a cell.
func (c *Cell) State() CellState {
	switch enforced := c.Behavior == limiter.Deny; {
	case enforced && c.Block:
		return Blocked
	case c.Capped: // the cap drops, whatever the bucket does
		return Capped
	case !enforced:
		return Shadow
	case c.Ratio > 0 || c.OfferedRPS > c.LimitRPS:
		return Over
	case c.OfferedRPS > nearLimit*c.LimitRPS:
		return Near
	}
	return Enforced
}

// DropRatio is the share of offered that is dropped: none in shadow.
func (c *Cell) DropRatio() float64 {
	if c.Behavior != limiter.Deny {
		return 0
	}
	return c.Ratio
}

// Virtual is what would be dropped and is not: shadow drops, and what the
// candidate would drop.
func (c *Cell) Virtual() float64 { return c.ShadowDroppedRPS + c.CandidateDroppedRPS }

// Bucket is the full name of the cell's bucket.
func (c *Cell) Bucket() string { return c.Service + "/" + c.Name }

// ID names the cell in the history, which does not tell classes apart.
func (c *Cell) ID() limiter.CellID {
	return limiter.CellID{Bucket: c.Bucket(), Instance: c.Instance, Caller: c.Caller}
}

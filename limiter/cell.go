package limiter

import (
	"sync"
	"sync/atomic"
	"time"
)

// Counts are cumulative since the cell came to be, in requests, or in cost
// where the bucket has one.
type Counts struct {
	Offered       uint64 // requests that reached the cell, dropped ones included
	Dropped       uint64
	ShadowDropped uint64 // admitted ones that enforcement would have dropped
}

func (c *Counts) add(d Counts) {
	c.Offered += d.Offered
	c.Dropped += d.Dropped
	c.ShadowDropped += d.ShadowDropped
}

// Cell is one cell of the installed configuration as this process sees it. All
// methods may be called concurrently; those of a cell that is no longer
// installed have no effect on any other.
type Cell struct {
	id     CellID
	bucket atomic.Pointer[Bucket]
	live   atomic.Bool // a directive speaks for it, or its bucket blocks
	spent  atomic.Bool // a cap that has ramped out

	offered, dropped, shadowDropped atomic.Uint64 // written by Collect alone

	// What a decision reads besides the leaf.
	coins  []atomic.Uint64 // the Coin of each shard
	stride int

	mu        sync.Mutex // guards what follows, and writing live and ratio
	ratio     *atomic.Uint64
	directed  uint64 // the ratio last set
	directive bool   // was set, and not opened since
	ramps     bool   // set by SetRamp: a cap that blocks does not any more
	freed     bool   // its words may belong to another cell

	// Guarded by Limiter.mu.
	ratioSpan, coinSpan span
	leaves              int           // that have it among their steps, retired ones too
	removed             bool          // not in Limiter.cells any more
	usedAt              time.Duration // limiter time of the last request of leaves released
}

// ID names the cell.
func (c *Cell) ID() CellID { return c.id }

// Bucket returns the cell's bucket in the configuration that was current at
// the last Install; for a cell that was removed since, the last one it had,
// and nil for a nil cell. Read only.
func (c *Cell) Bucket() *Bucket {
	if c == nil {
		return nil
	}
	return c.bucket.Load()
}

// Counts returns what the last Collect found. Dropped and ShadowDropped are
// never above Offered.
func (c *Cell) Counts() Counts {
	// In the opposite order of add, so that a concurrent one cannot show more
	// drops than offers.
	n := Counts{ShadowDropped: c.shadowDropped.Load(), Dropped: c.dropped.Load()}
	n.Offered = c.offered.Load()
	return n
}

func (c *Cell) add(n Counts) {
	c.offered.Add(n.Offered)
	c.dropped.Add(n.Dropped)
	c.shadowDropped.Add(n.ShadowDropped)
}

// SetRatio sets the share of requests to drop, in [0, 1]; anything else, NaN
// too, counts as 0. A live directive may say 0; see SetOpen. A bucket that
// blocks drops everything whatever is set.
func (c *Cell) SetRatio(p float64) { c.direct(FixedRatio(p), true, false) }

// SetOpen sets the ratio to 0 because there is no live directive: requests
// count as not limited for the reason "fail_open".
func (c *Cell) SetOpen() { c.direct(0, false, false) }

// SetRamp is SetRatio for a cap that has ended: one that blocks drops only that
// share, until SetRatio or SetOpen. At 0 the cell counts as not there. For any
// other bucket it is SetRatio.
func (c *Cell) SetRamp(p float64) {
	ratio := FixedRatio(p)
	if c.Bucket().Cap == nil {
		c.direct(ratio, true, false)
		return
	}
	c.direct(ratio, ratio > 0, true)
}

func (c *Cell) direct(p uint64, directive, ramps bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.directed, c.directive, c.ramps = p, directive, ramps
	c.apply()
}

// setBucket makes b the cell's bucket.
func (c *Cell) setBucket(b *Bucket) {
	c.mu.Lock()
	defer c.mu.Unlock()
	old := c.bucket.Swap(b)
	if old != nil && old.Coherent != b.Coherent {
		// The two kinds of coin owe on different terms.
		c.resetCoins()
	}
	c.apply()
}

// resetCoins makes all coins owe nothing; the cell has words.
func (c *Cell) resetCoins() {
	for i := 0; i < len(c.coins); i += c.stride {
		c.coins[i].Store(0)
	}
}

// apply makes what was set and the bucket take effect; c.mu is held.
func (c *Cell) apply() {
	if c.freed {
		return
	}
	p, live := c.directed, c.directive
	if c.bucket.Load().Block && !c.ramps {
		p, live = One, true
	}
	c.live.Store(live)
	c.spent.Store(c.ramps && p == 0)
	// An unchanged word stays in the caches of those who decide.
	if c.ratio.Load() != p {
		c.ratio.Store(p)
	}
}

// free marks the cell's words as no longer its own.
func (c *Cell) free() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.freed = true
}

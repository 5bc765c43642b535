package limiter

import (
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// maxCost is the largest cost of one request.
const maxCost = 1_000_000

// leaf is what the requests of one caller to one procedure have in common: the
// cells they pass, most specific first, and their counters. There is one
// counter for each step and one for what passed all of them:
//
//   - at an enforced step, the requests it dropped, which ended their walk;
//   - at a shadow step, its shadow drops, which went on;
//   - after the last step, the requests admitted.
//
// So an admitted request costs one addition, and what was offered to a step is
// what was dropped there or further on, or admitted. A second set of the same
// counters holds summed costs where a bucket needs them.
type leaf struct {
	// What a decision reads fills the first cache line, and short walks the
	// second: with many leaves, lines are what a decision costs.
	names   string // caller and procedure, the key in its index
	chunk   *chunk // of its counters
	offset  uint32 // of its counters
	split   uint32 // length of the caller
	retired atomic.Bool
	costed  bool // has the second set of counters
	steps   []step
	inline  [2]step // where the steps of a short walk lie

	table    *table
	class    [2]*class // of caller and procedure
	level    level
	exempt   bool          // never limited
	retry    bool          // its requests are no first attempts
	enforced bool          // has a step that drops
	usedAt   time.Duration // limiter time of the last request; guarded by Limiter.collecting

	// Sums over shards, guarded by Limiter.collecting.
	collected []uint64 // up to the last Collect
	detailed  []uint64 // up to the last Detail

	_ [40]byte // keeps leaves from sharing lines
}

// step is one cell on the walk of a leaf.
type step struct {
	ratio    *atomic.Uint64 // the cell's; in units of 1/One
	cell     *Cell
	bucket   *Bucket
	shadow   bool
	coherent bool  // draws for each trace
	class    uint8 // place among the classes of the bucket
}

// decide counts a request and walks the steps. It is the hot path: no lock, no
// allocation, no clock, and no random number while all ratios are 0. trace is
// the request's trace id, nil or zero if it has none.
func (f *leaf) decide(cost uint32, trace *[16]byte) Decision {
	shard := processor() & f.chunk.mask
	for i := range f.steps {
		if f.steps[i].ratio.Load() != 0 {
			return f.sample(i, shard, cost, trace)
		}
	}
	f.count(len(f.steps), shard, cost)
	return Decision{}
}

// sample walks from step first on, and tosses the coin of each cell with a
// ratio.
func (f *leaf) sample(first, shard int, cost uint32, trace *[16]byte) Decision {
	for i := first; i < len(f.steps); i++ {
		s := &f.steps[i]
		p := s.ratio.Load()
		if p == 0 || !f.selects(s, p, shard, trace) {
			continue
		}
		f.count(i, shard, cost)
		if !s.shadow {
			return Decision{Dropped: true, Bucket: s.bucket, Service: f.table.config, class: s.class}
		}
	}
	f.count(len(f.steps), shard, cost)
	return Decision{}
}

func (f *leaf) count(position, shard int, cost uint32) {
	i := shard*f.chunk.stride + int(f.offset) + position
	f.chunk.words[i].Add(1)
	if f.costed {
		f.chunk.words[i+len(f.steps)+1].Add(uint64(min(max(cost, 1), maxCost)))
	}
}

// selects flips the coin of a step's cell, of that shard, at ratio p.
func (f *leaf) selects(s *step, p uint64, shard int, trace *[16]byte) (drop bool) {
	if p >= One {
		return true
	}
	word := &s.cell.coins[shard*s.cell.stride]
	coin := Coin(word.Load())
	var next Coin
	if s.coherent {
		drop, next = coin.FlipTrace(p, f.table.callee.limiter.draw(trace))
	} else {
		drop, next = coin.Flip(p, rand.Uint64())
	}
	// Adding the difference keeps the debt exact when two goroutines meet here.
	word.Add(uint64(next - coin))
	return drop
}

// is reports whether f is the leaf of that key.
func (f *leaf) is(caller, procedure string) bool {
	return int(f.split) == len(caller) && f.names[:f.split] == caller && f.names[f.split:] == procedure
}

// caller and procedure return the two parts of the key.
func (f *leaf) caller() string    { return f.names[:f.split] }
func (f *leaf) procedure() string { return f.names[f.split:] }

// counted returns the caller and procedure under which the leaf's requests are
// counted: Other for those beyond the bounds.
func (f *leaf) counted() (caller, procedure string) {
	caller, procedure = f.caller(), f.procedure()
	if f.level == byClass && !f.class[0].exact {
		caller = Other
	}
	if f.level != own && !f.class[1].exact {
		procedure = Other
	}
	return caller, procedure
}

// span returns where the counters are.
func (f *leaf) span() span {
	n := len(f.steps) + 1
	if f.costed {
		n *= 2
	}
	return span{chunk: f.chunk, offset: int(f.offset), n: n}
}

// collect adds what was counted since the last call to the cells.
func (f *leaf) collect(now time.Duration) {
	sums := f.span().sums()
	total := f.total(sums, f.collected)
	if total == 0 {
		return
	}
	f.usedAt = now
	f.table.callee.countUnlimited(f, total)
	if f.retry {
		f.table.callee.retries.Add(total)
	}
	f.walk(sums, f.collected, func(s *step, c Counts) { s.cell.add(c) })
	copy(f.collected, sums)
}

// total returns the requests counted between before and after.
func (f *leaf) total(after, before []uint64) uint64 {
	n := len(f.steps)
	total := after[n] - before[n]
	for i := range f.steps {
		if !f.steps[i].shadow {
			total += after[i] - before[i]
		}
	}
	return total
}

// walk calls visit for each step with what was counted between before and
// after, in the unit of the step's bucket.
func (f *leaf) walk(after, before []uint64, visit func(*step, Counts)) {
	n := len(f.steps)
	offered := after[n] - before[n]
	var offeredCost uint64
	if f.costed {
		offeredCost = after[2*n+1] - before[2*n+1]
	}
	for i := n - 1; i >= 0; i-- {
		s := &f.steps[i]
		selected := after[i] - before[i]
		var selectedCost uint64
		if f.costed {
			selectedCost = after[n+1+i] - before[n+1+i]
		}
		if !s.shadow {
			offered += selected
			offeredCost += selectedCost
		}
		weight := uint64(max(s.bucket.Cost.Fixed, 1))
		c := Counts{Offered: offered * weight}
		if s.bucket.Cost.Header != "" {
			c.Offered, selected, weight = offeredCost, selectedCost, 1
		}
		if s.shadow {
			c.ShadowDropped = selected * weight
		} else {
			c.Dropped = selected * weight
		}
		visit(s, c)
	}
}

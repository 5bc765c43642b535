package limiter

import (
	"slices"
	"time"
)

const (
	// idle is how long a name may be silent before it is forgotten.
	idle = 10 * time.Minute
	// grace is how long a leaf that no new request finds is still read. A
	// request that found it before may have been suspended for a while.
	grace = 30 * time.Second
	// sweepEvery is how often idle names are looked for.
	sweepEvery = 10 * time.Second
)

// batch is a set of leaves that were retired together.
type batch struct {
	leaves  []*leaf
	stamped bool          // seen by a Collect since
	at      time.Duration // limiter time of that
}

// Collect forms the counts of all cells from what was counted since the last
// call, and forgets names idle for ten minutes. Concurrent calls wait for each
// other; now is on the monotonic clock.
func (l *Limiter) Collect(now time.Time) {
	l.collecting.Lock()
	defer l.collecting.Unlock()
	elapsed, chunks, live, retired := l.begin(now)
	for _, c := range chunks {
		c.sum()
	}
	for _, leaves := range live {
		for _, f := range leaves {
			f.collect(elapsed)
		}
	}
	for _, b := range retired {
		for _, f := range b.leaves {
			f.collect(elapsed)
		}
	}
	l.finish(retired, elapsed)
	if elapsed-l.sweptAt >= sweepEvery {
		l.sweptAt = elapsed
		l.sweep(elapsed)
	}
}

// begin returns the limiter's time and what to collect. Leaves that are added
// later wait for the next time.
func (l *Limiter) begin(now time.Time) (elapsed time.Duration, chunks []*chunk, live [][]*leaf, retired []*batch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.setup()
	if l.start.IsZero() {
		l.start = now
	}
	l.now = max(l.now, now.Sub(l.start))
	for s := range l.callees() {
		live = append(live, s.table.Load().leaves)
	}
	return l.now, l.counts.chunks, live, slices.Clone(l.retired)
}

// retire gives up leaves that requests no longer find; l.mu is held.
func (l *Limiter) retire(leaves []*leaf) {
	if len(leaves) > 0 {
		l.retired = append(l.retired, &batch{leaves: leaves})
	}
}

// finish releases the leaves of those batches whose grace is over.
func (l *Limiter) finish(retired []*batch, now time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, b := range retired {
		switch {
		case !b.stamped:
			b.stamped, b.at = true, now
		case now-b.at >= grace:
			for _, f := range b.leaves {
				l.releaseLeaf(f)
			}
			l.retired = slices.DeleteFunc(l.retired, func(c *batch) bool { return c == b })
		}
	}
}

func (l *Limiter) releaseLeaf(f *leaf) {
	for i := range f.steps {
		c := f.steps[i].cell
		c.usedAt = max(c.usedAt, f.usedAt)
		l.release(f.table.callee, c)
	}
	l.counts.give(f.span())
}

// sweep forgets what was idle for too long.
func (l *Limiter) sweep(now time.Duration) {
	for s := range l.callees() {
		l.sweepLeaves(s, now)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for c, s := range l.orphans {
		if now-c.usedAt >= idle {
			l.removeCell(s, c)
		}
	}
}

func (l *Limiter) sweepLeaves(s *Callee, now time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := s.table.Load()
	if t.forget(func(f *leaf) bool { return now-f.usedAt >= idle }) && t.hasRoom() {
		// Handles of callers that were beyond the bounds look again.
		t.forget(func(f *leaf) bool { return f.level != own })
	}
}

// forget retires the leaves that drop accepts and reports whether there were
// any; Limiter.mu is held.
func (t *table) forget(drop func(*leaf) bool) bool {
	var kept, gone []*leaf
	for _, f := range t.leaves {
		if drop(f) {
			gone = append(gone, f)
		} else {
			kept = append(kept, f)
		}
	}
	if len(gone) == 0 {
		return false
	}
	for _, f := range gone {
		f.retired.Store(true)
		t.drop(f)
	}
	// A new slice: Collect may be reading the old one.
	t.leaves = kept
	for i := range t.views {
		for level := range levels {
			if x := t.views[i].index(level); x.Load().used > 0 {
				x.Store(x.Load().live())
			}
		}
	}
	t.callee.limiter.retire(gone)
	return true
}

// hasRoom reports whether a new name would be told apart.
func (t *table) hasRoom() bool {
	return !t.full[own].Load() && t.callers.full.Load() == nil && t.procedures.full.Load() == nil
}

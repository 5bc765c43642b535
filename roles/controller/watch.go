package controller

import (
	"time"

	"grl/limiter"
	"grl/limiter/law"
)

const (
	// worstRise is by how much the share that a bucket drops may rise in the
	// zones that a rollout has reached.
	worstRise = 0.05
	// A rise is believed from so many requests, and so long after a zone was
	// reached, on.
	leastRequests = 100
	leastWatched  = 10 * time.Second
)

// watch says what a rollout does to the buckets that it changes: what they drop
// in the zones it has reached, since the last of these, beside what they drop in
// the others and what they dropped before.
type watch struct {
	since   time.Time
	before  map[string]float64    // bucket → share dropped before; none: not known
	reached map[string]law.Counts // bucket → counts since
	others  map[string]law.Counts
	agreed  map[string]float64 // bucket → share that it was meant to drop at most, as far as that was asked
}

// newWatch begins to watch the stage. Known says that what is dropped now was
// dropped before it.
func (n *node) newWatch(known bool) watch {
	w := watch{
		before:  make(map[string]float64),
		reached: make(map[string]law.Counts),
		others:  make(map[string]law.Counts),
		agreed:  make(map[string]float64),
	}
	for name := range n.stage.buckets {
		w.reached[name] = law.Counts{}
	}
	for name := range n.stage.added {
		w.reached[name] = law.Counts{}
		w.before[name] = 0
	}
	if !known {
		return w
	}
	sums := make(map[string]law.Counts)
	n.cells.Each(func(i int, id limiter.CellID) {
		if _, ok := n.stage.buckets[id.Bucket]; ok {
			sums[id.Bucket] = added(sums[id.Bucket], n.flows[i].sum(n.ticks))
		}
	})
	for name, sum := range sums {
		if sum.Offered > 0 {
			w.before[name] = dropShare(sum)
		}
	}
	return w
}

// step begins to count anew, since a zone was reached.
func (w *watch) step(now time.Time) {
	w.since = now
	for name := range w.reached {
		w.reached[name] = law.Counts{}
	}
	clear(w.others)
	clear(w.agreed)
}

// count takes in what a zone counted of a bucket.
func (w *watch) count(bucket string, reached bool, more law.Counts) {
	sum, ok := w.reached[bucket]
	switch {
	case !ok:
	case reached:
		w.reached[bucket] = added(sum, more)
	default:
		w.others[bucket] = added(w.others[bucket], more)
	}
}

// harmed returns the bucket whose share of drops rose most, and by how much, if
// that is more than it may; else "". expected returns the share that a bucket
// is meant to drop now; nil: none.
func (w *watch) harmed(now time.Time, expected func(bucket string) float64) (bucket string, rise float64) {
	if w.since.IsZero() || now.Sub(w.since) < leastWatched {
		return "", 0
	}
	worst := worstRise
	for name, sum := range w.reached {
		if sum.Offered < leastRequests {
			continue
		}
		share := dropShare(sum)
		before, known := w.before[name]
		if others := w.others[name]; others.Offered >= leastRequests {
			// What rises everywhere is not the rollout's doing.
			before, known = max(before, dropShare(others)), true
		}
		if known && share-before > worst && expected != nil {
			// The counts are of all the time since; what is offered may have fallen.
			w.agreed[name] = max(w.agreed[name], expected(name))
			before = max(before, w.agreed[name])
		}
		if known && share-before > worst {
			bucket, worst = name, share-before
		}
	}
	if bucket == "" {
		return "", 0
	}
	return bucket, worst
}

// expected returns the share of what a bucket is offered now that lies above its
// limit: what somebody who forced the limit wants dropped.
func (n *node) expected(bucket string) float64 {
	var offered, above float64
	for i := range n.states {
		s := &n.states[i]
		if s.bucket == nil || s.bucket != n.buckets[bucket] {
			continue
		}
		rps := s.rate.Offered.RPS()
		offered += rps
		if s.bucket.Block {
			above += rps
		} else {
			above += max(0, rps-s.bucket.Limit(n.cells.ID(i).Instance))
		}
	}
	if offered == 0 {
		return 0
	}
	return above / offered
}

func added(a, b law.Counts) law.Counts {
	a.Offered += b.Offered
	a.Dropped += b.Dropped
	return a
}

// dropShare returns the share of what was offered that was dropped.
func dropShare(c law.Counts) float64 {
	if c.Offered == 0 {
		return 0
	}
	return float64(c.Dropped) / float64(c.Offered)
}

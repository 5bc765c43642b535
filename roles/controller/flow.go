package controller

import "grl/limiter/law"

// flow says what happened lately to what was offered to a cell, for people to
// look at: the sums over the last few ticks. Only shares of it mean something,
// since reports and ticks do not keep step. The zero value is empty.
type flow struct {
	marks [5]mark // by tick modulo 5
}

// mark is what was counted in one tick.
type mark struct {
	tick   uint64
	counts law.Counts
}

// add takes in what was counted, in a tick not before the last one's.
func (f *flow) add(tick uint64, more law.Counts) {
	m := &f.marks[tick%uint64(len(f.marks))]
	if m.tick != tick {
		*m = mark{tick: tick}
	}
	m.counts.Offered += more.Offered
	m.counts.Dropped += more.Dropped
	m.counts.ShadowDropped += more.ShadowDropped
}

// shares returns which shares of what was offered lately were dropped, and
// virtually dropped; 0 if nothing was offered.
func (f *flow) shares(tick uint64) (dropped, shadowDropped float64) {
	sum := f.sum(tick)
	if sum.Offered == 0 {
		return 0, 0
	}
	offered := float64(sum.Offered)
	return float64(sum.Dropped) / offered, float64(sum.ShadowDropped) / offered
}

// sum returns what was counted lately.
func (f *flow) sum(tick uint64) law.Counts {
	var sum law.Counts
	for _, m := range f.marks {
		if tick-m.tick < uint64(len(f.marks)) {
			sum.Offered += m.counts.Offered
			sum.Dropped += m.counts.Dropped
			sum.ShadowDropped += m.counts.ShadowDropped
		}
	}
	return sum
}

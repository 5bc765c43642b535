package controller

import (
	"time"

	"grl/limiter/law"
)

// flow says what happened lately to what was offered to a cell, for people to
// look at: the mean over the last few ticks. It keeps to shares, since reports
// and ticks do not keep step. The zero value is empty.
type flow struct {
	marks [5]mark
	next  int
}

type mark struct {
	at     time.Time
	counts law.Counts
}

// tick takes in the counts at now.
func (f *flow) tick(now time.Time, c law.Counts) {
	f.marks[f.next] = mark{now, c}
	f.next = (f.next + 1) % len(f.marks)
}

// shares returns which shares of what was offered lately were dropped, and
// virtually dropped; 0 if nothing was offered.
func (f *flow) shares() (dropped, shadowDropped float64) {
	newest := f.marks[(f.next+len(f.marks)-1)%len(f.marks)].counts
	for i := range f.marks {
		oldest := f.marks[(f.next+i)%len(f.marks)]
		if oldest.at.IsZero() || oldest.counts.Offered >= newest.Offered {
			continue
		}
		offered := float64(newest.Offered - oldest.counts.Offered)
		return float64(newest.Dropped-oldest.counts.Dropped) / offered,
			float64(newest.ShadowDropped-oldest.counts.ShadowDropped) / offered
	}
	return 0, 0
}

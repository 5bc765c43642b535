package controller

import "grl/limiter/law"

// flow says what happened lately to what was offered to a cell, for people to
// look at: the mean over the last few ticks. It keeps to shares, since reports
// and ticks do not keep step. The zero value is empty.
type flow struct {
	total  law.Counts
	marks  [5]law.Counts // of total
	next   uint8
	filled uint8 // marks
}

// add takes in what was counted.
func (f *flow) add(more law.Counts) {
	f.total.Offered += more.Offered
	f.total.Dropped += more.Dropped
	f.total.ShadowDropped += more.ShadowDropped
}

// tick ends a tick.
func (f *flow) tick() {
	if f.total == (law.Counts{}) {
		return
	}
	f.marks[f.next] = f.total
	f.next = (f.next + 1) % uint8(len(f.marks))
	f.filled = min(f.filled+1, uint8(len(f.marks)))
}

// shares returns which shares of what was offered lately were dropped, and
// virtually dropped; 0 if nothing was offered.
func (f *flow) shares() (dropped, shadowDropped float64) {
	if f.filled == 0 {
		return 0, 0
	}
	size := uint8(len(f.marks))
	newest, oldest := f.marks[(f.next+size-1)%size], f.marks[(f.next+size-f.filled)%size]
	offered := float64(newest.Offered - oldest.Offered)
	if offered == 0 {
		return 0, 0
	}
	return float64(newest.Dropped-oldest.Dropped) / offered,
		float64(newest.ShadowDropped-oldest.ShadowDropped) / offered
}

package controller

import (
	"time"

	"grl/limiter/law"
)

// flow turns cumulative counts into rates for people to look at: the mean over
// the last few ticks, since reports and ticks do not keep step. The zero value
// is empty.
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

// rates returns what was counted a second lately.
func (f *flow) rates() (offered, dropped, shadowDropped float64) {
	newest := f.marks[(f.next+len(f.marks)-1)%len(f.marks)]
	for i := range f.marks {
		oldest := f.marks[(f.next+i)%len(f.marks)]
		if oldest.at.IsZero() || oldest.counts.Offered > newest.counts.Offered {
			continue
		}
		seconds := newest.at.Sub(oldest.at).Seconds()
		if seconds <= 0 {
			return 0, 0, 0
		}
		return float64(newest.counts.Offered-oldest.counts.Offered) / seconds,
			float64(newest.counts.Dropped-oldest.counts.Dropped) / seconds,
			float64(newest.counts.ShadowDropped-oldest.counts.ShadowDropped) / seconds
	}
	return 0, 0, 0
}

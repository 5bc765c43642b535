package controller

import (
	"math"
	"time"

	"grl/limiter"
)

// candidate judges the candidate of one limit: second by second, of what was
// offered to all zones together, and admitted as far as the limit goes, it would
// have dropped what lies above it.
type candidate struct {
	id      limiter.CellID // the limit's, without what divides it
	bucket  *limiter.Bucket
	seconds [8]second // by unix second modulo 8
	until   int64     // seconds up to this one were judged
	last    float64   // requests per second that it would have dropped, in the last one judged
	used    time.Time
}

// forgetCandidate is how long a candidate is kept to which nothing is offered:
// longer than a series, which holds on to it, stays open.
const forgetCandidate = 5 * time.Minute

// candidate returns who judges the candidate of a cell's limit, nil if its
// bucket has none.
func (r *recorder) candidate(b *limiter.Bucket, id limiter.CellID) *candidate {
	if b == nil || b.CandidateRPS == 0 {
		return nil
	}
	gate := b.Gate(id)
	if r.candidates == nil {
		r.candidates = make(map[limiter.CellID]*candidate)
	}
	c := r.candidates[gate]
	if c == nil {
		c = &candidate{id: gate}
		r.candidates[gate] = c
	}
	c.bucket = b
	return c
}

// offer takes in what was offered in a second.
func (c *candidate) offer(at int64, offered uint64) {
	sec := &c.seconds[at%int64(len(c.seconds))]
	if sec.at != at {
		*sec = second{at: at}
	}
	sec.offered += offered
}

// judge judges the seconds that are complete at now, and writes what it finds to
// the minutes of all zones together.
func (r *recorder) judge(now time.Time) {
	complete := now.Add(-settled).Unix() // seconds before this one
	for gate, c := range r.candidates {
		if c.until == 0 {
			c.until, c.used = complete-1, now
		}
		c.last = 0
		for at := max(c.until+1, complete-int64(len(c.seconds))+1); at < complete; at++ {
			sec := c.seconds[at%int64(len(c.seconds))]
			if sec.at != at {
				continue
			}
			c.used = now
			c.last = c.drops(float64(sec.offered))
			if drops := uint64(math.Round(c.last)); drops > 0 {
				s := r.series(place{cell: gate})
				s.minute(at / 60).candidate += drops
			}
		}
		c.until = max(c.until, complete-1)
		if now.Sub(c.used) > forgetCandidate {
			delete(r.candidates, gate)
		}
	}
}

// drops returns what the candidate would drop beyond the limit, in requests, of
// those offered in a second.
func (c *candidate) drops(offered float64) float64 {
	return max(0, min(offered, c.bucket.Limit(c.id.Instance))-c.bucket.CandidateRPS)
}

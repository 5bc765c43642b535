package client

import (
	"time"

	"grl/limiter"
	"grl/limiter/law"
)

// newcomer is what a cell of which nothing is decided yet gets where callers
// share a limit: the mean of what those get that are. Else callers that come
// with a new name each time would never be limited.
type newcomer struct {
	decider           *decider
	offered, admitted float64 // of those decided, requests per second
}

// newcomers returns what new callers get, by what they would share a limit with:
// the cell's name without its caller.
func (s *state) newcomers() map[limiter.CellID]newcomer {
	if !s.shares {
		return nil
	}
	sums := make(map[limiter.CellID]newcomer)
	s.table.Each(func(i int, id limiter.CellID) {
		b, at := s.buckets[id.Bucket], &s.cells[i]
		if b == nil || b.Share != limiter.MaxMin || at.decider == nil {
			return
		}
		id.Caller = ""
		n, v := sums[id], &at.host.Verdict
		n.decider = at.decider
		n.offered += v.Offered
		n.admitted += v.Offered * min(v.Admit, 1)
		sums[id] = n
	})
	return sums
}

// welcome tells the limiter with what the cells of new callers begin, and returns
// these ratios.
func (s *state) welcome(now time.Time) map[limiter.CellID]float64 {
	ratios := make(map[limiter.CellID]float64)
	for id, n := range s.newcomers() {
		if n.offered > 0 {
			ratios[id] = law.Ratio(n.admitted/n.offered) * s.holds(s.buckets[id.Bucket], now.Sub(n.decider.heard))
		}
	}
	for id := range s.welcomed {
		if ratios[id] == 0 {
			s.limiter.SetNewcomers(id, 0)
		}
	}
	for id, ratio := range ratios {
		if ratio != s.welcomed[id] {
			s.limiter.SetNewcomers(id, ratio)
		}
	}
	s.welcomed = ratios
	return ratios
}

// applyNewcomer writes the ratio of a cell of which nothing is decided yet. One
// that shares no limit is open.
func (s *state) applyNewcomer(c *limiter.Cell, ratios map[limiter.CellID]float64) {
	id := c.ID()
	id.Caller = ""
	if ratio, ok := ratios[id]; ok && ratio > 0 {
		c.SetRatio(ratio)
	} else if ok {
		c.SetOpen()
	}
}

package controller

import (
	"time"

	"grl/limiter"
	"grl/limiter/law"
	"grl/store"
)

// settled is how long after its end a second's counts are complete: reports
// carry the second before them.
const settled = 3 * time.Second

// recorder cuts what was counted into minutes for the history. A difference of
// counts is spread evenly over the time it was counted in and cut at whole
// seconds, so the highest second never exceeds what the reports can tell. The
// zero value is empty.
type recorder struct {
	open       map[place]*series
	candidates map[limiter.CellID]*candidate // by gate
}

// place is where something was counted. The classes of a bucket are one: the
// history tells what is offered to a limit, not how it is divided.
type place struct {
	cell limiter.CellID // without a class
	zone string         // "": all zones together
}

// series is what one place counted lately.
type series struct {
	seconds [8]second // by unix second modulo 8
	minutes [2]minute // by unix minute modulo 2
	closed  bool      // all was taken: the next count goes into another one
	last    bool      // the way of the requests ends here; see limiter.Service.Last
	judged  *candidate
}

type second struct {
	at      int64 // unix
	offered uint64
}

// minute is what one place counted in one minute.
type minute struct {
	at            int64 // unix minutes
	offered       uint64
	dropped       uint64
	shadowDropped uint64
	highest       uint64 // offered in its highest second
	candidate     uint64 // what the candidate would have dropped beyond dropped
	through       int64  // offered less dropped while the way of requests ended here
}

// series returns where a place is kept, until it is closed.
func (r *recorder) series(p place) *series {
	if r.open == nil {
		r.open = make(map[place]*series)
	}
	s := r.open[p]
	if s == nil {
		s = &series{}
		r.open[p] = s
	}
	return s
}

// add takes in what a report added to the counts over the span since the one
// before.
func (s *series) add(now time.Time, span time.Duration, more law.Counts) {
	// When the late part came is not known: it enters totals only. Of drops it
	// is not known which were late.
	offered := more.Offered - min(more.Late, more.Offered)
	dropped := min(more.Dropped, offered)
	shadowDropped := min(more.ShadowDropped, offered-dropped)
	m := s.minute(now.Unix() / 60)
	m.offered += more.Offered - offered
	m.dropped += more.Dropped - dropped
	m.shadowDropped += more.ShadowDropped - shadowDropped
	s.let(m, more.Offered-offered, more.Dropped-dropped)
	if offered > 0 {
		s.spread(now, span, offered, dropped, shadowDropped)
	}
}

// spread gives each second of the span its share, so that the shares add up.
func (s *series) spread(now time.Time, span time.Duration, offered, dropped, shadowDropped uint64) {
	span = min(max(span, time.Millisecond), settled)
	begin := now.Add(-span)
	var gaveOffered, gaveDropped, gaveShadow uint64
	for at := begin.Unix(); at <= now.Unix(); at++ {
		part := min(1, max(0, time.Unix(at+1, 0).Sub(begin).Seconds()/span.Seconds()))
		upTo := func(total uint64) uint64 {
			if part == 1 {
				return total // a float64 does not hold every count
			}
			return min(total, uint64(part*float64(total)+0.5))
		}
		sec, m := s.second(at), s.minute(at/60)
		sec.offered += upTo(offered) - gaveOffered
		if s.judged != nil {
			s.judged.offer(at, upTo(offered)-gaveOffered)
		}
		m.offered += upTo(offered) - gaveOffered
		m.dropped += upTo(dropped) - gaveDropped
		m.shadowDropped += upTo(shadowDropped) - gaveShadow
		s.let(m, upTo(offered)-gaveOffered, upTo(dropped)-gaveDropped)
		gaveOffered, gaveDropped, gaveShadow = upTo(offered), upTo(dropped), upTo(shadowDropped)
		m.highest = max(m.highest, sec.offered)
	}
}

// let takes in what of the requests offered got through to the end of their way.
// Of a part of a minute it may be below 0, since what is dropped is cut by
// itself.
func (s *series) let(m *minute, offered, dropped uint64) {
	if s.last {
		m.through += int64(offered) - int64(dropped)
	}
}

func (s *series) second(at int64) *second {
	sec := &s.seconds[at%int64(len(s.seconds))]
	if sec.at != at {
		*sec = second{at: at}
	}
	return sec
}

func (s *series) minute(at int64) *minute {
	m := &s.minutes[at%int64(len(s.minutes))]
	if m.at != at {
		*m = minute{at: at}
	}
	return m
}

// take returns, and forgets, the minutes that are complete at now, or all if
// the controller stops.
func (r *recorder) take(now time.Time, all bool) map[place][]minute {
	done := now.Add(-settled).Unix() / 60 // minutes before this one are complete
	out := make(map[place][]minute)
	for p, s := range r.open {
		open := false
		for i := range s.minutes {
			m := &s.minutes[i]
			switch {
			case *m == (minute{}):
			case m.at < done || all:
				out[p] = append(out[p], *m)
				*m = minute{}
			default:
				open = true
			}
		}
		if !open {
			s.closed = true
			delete(r.open, p)
		}
	}
	return out
}

// fleetMinutes returns what of minutes the whole fleet counted, by zone: a
// request that was dropped at the one cell that dropped it, another one at the
// cell where its way ends.
func fleetMinutes(minutes map[place][]minute) map[place][]minute {
	type key struct {
		zone string
		at   int64
	}
	sums := make(map[key]minute)
	for p, list := range minutes {
		for _, m := range list {
			k := key{p.zone, m.at}
			sum := sums[k]
			sum.dropped += min(m.dropped, m.offered)
			sum.through += max(m.through, 0)
			sum.shadowDropped += m.shadowDropped
			sum.candidate += m.candidate
			sums[k] = sum
		}
	}
	out := make(map[place][]minute)
	for k, m := range sums {
		m.at = k.at
		m.offered = m.dropped + uint64(m.through)
		m.shadowDropped = min(m.shadowDropped, uint64(m.through))
		p := place{fleetCell, k.zone}
		out[p] = append(out[p], m)
	}
	return out
}

// fleetCell is where the fleet is counted.
var fleetCell = limiter.CellID{Bucket: store.FleetBucket}

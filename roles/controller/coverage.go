package controller

import (
	"context"
	"time"

	"grl/limiter"
	"grl/store"
)

// coverage says of the minutes of a span for how many of their seconds something
// was recorded, if there was something to record: 0 to 60.
type coverage struct {
	from    time.Time // a whole minute
	seconds []uint8
}

// kept is since when this process has recorded, up to when all of it is in
// the history, and which minutes of that got lost.
type kept struct {
	since, flushed time.Time
	lost           []time.Time
}

// mostLost bounds the minutes that are remembered as lost.
const mostLost = 10_000

// lose remembers a minute that could not be written.
func (k *kept) lose(minute time.Time) {
	if len(k.lost) < mostLost {
		k.lost = append(k.lost, minute)
	}
}

// covered returns the coverage of the minutes of [from, to), of one zone, or of
// any if it is "". Before this process began, and of a zone, an hour counts in
// which something was recorded. Of the hour in which the process began, that is
// up to the last minute before it of which there is something.
func (c *Controller) covered(ctx context.Context, zone string, from, to time.Time) (coverage, error) {
	c.mu.Lock()
	r := c.kept
	c.mu.Unlock()
	from = from.Truncate(time.Minute)
	v := coverage{from: from, seconds: make([]uint8, max(0, int((to.Sub(from)+time.Minute-1)/time.Minute)))}
	hours, err := c.opts.Store.Recorded(ctx, from, to)
	if err != nil {
		return v, err
	}
	for _, hour := range hours {
		v.fill(hour, hour.Add(time.Hour), r.since.Truncate(time.Minute))
	}
	if err := c.cutRestart(ctx, &v, r.since); err != nil {
		return v, err
	}
	for at := range v.seconds {
		begins := v.from.Add(time.Duration(at) * time.Minute)
		ends := begins.Add(time.Minute)
		switch {
		case !ends.After(r.since):
		case ends.After(r.flushed):
			v.seconds[at] = 0 // not in the history yet
		case begins.Before(r.since) && v.seconds[at] == 0:
			v.seconds[at] = uint8(ends.Sub(r.since).Seconds())
		default:
			v.seconds[at] = 60
		}
	}
	for _, minute := range r.lost {
		v.clear(minute, minute.Add(time.Minute))
	}
	if zone == "" {
		return v, nil
	}
	return v, c.cutZone(ctx, &v, zone)
}

// fill covers the minutes of [from, to), as far as they begin before end.
func (v *coverage) fill(from, to, end time.Time) {
	for at := max(0, int(from.Sub(v.from)/time.Minute)); at < len(v.seconds); at++ {
		if begins := v.from.Add(time.Duration(at) * time.Minute); !begins.Before(to) || !begins.Before(end) {
			return
		}
		v.seconds[at] = 60
	}
}

// clear uncovers the minutes of [from, to).
func (v *coverage) clear(from, to time.Time) {
	for at := max(0, int(from.Sub(v.from)/time.Minute)); at < len(v.seconds); at++ {
		if begins := v.from.Add(time.Duration(at) * time.Minute); !begins.Before(to) {
			return
		} else if !begins.Before(from) {
			v.seconds[at] = 0
		}
	}
}

// cutRestart uncovers what lies between the last minute that was recorded in the
// hour in which this process began, and its beginning.
func (c *Controller) cutRestart(ctx context.Context, v *coverage, since time.Time) error {
	hour, begin := since.Truncate(time.Hour), since.Truncate(time.Minute)
	if !v.from.Before(begin) || !hour.Before(begin) {
		return nil
	}
	minutes, err := c.opts.Store.Minutes(ctx, fleetCell, hour, begin)
	if err != nil {
		return err
	}
	last := hour
	if len(minutes) > 0 {
		last = minutes[len(minutes)-1].Start.Add(time.Minute)
	}
	v.clear(last, begin)
	return nil
}

// cutZone uncovers the hours in which other zones recorded something and this
// one did not.
func (c *Controller) cutZone(ctx context.Context, v *coverage, zone string) error {
	if len(v.seconds) == 0 {
		return nil
	}
	q := store.SeriesQuery{Cells: []limiter.CellID{fleetCell}, From: v.from, To: v.from.Add(time.Duration(len(v.seconds)) * time.Minute)}
	all, err := c.busyHours(ctx, q)
	if err != nil {
		return err
	}
	q.Zone = zone
	own, err := c.busyHours(ctx, q)
	if err != nil {
		return err
	}
	for hour := range all {
		if !own[hour] {
			v.clear(hour, hour.Add(time.Hour))
		}
	}
	return nil
}

// busyHours returns the hours in which something was offered to one cell.
func (c *Controller) busyHours(ctx context.Context, q store.SeriesQuery) (map[time.Time]bool, error) {
	busy := make(map[time.Time]bool)
	first := q.From.UTC().Truncate(time.Hour)
	err := c.opts.Store.ReadSeries(ctx, q, func(s store.CellSeries) error {
		for m, offered := range s.Offered {
			if offered > 0 {
				busy[first.Add(time.Duration(m/60)*time.Hour)] = true
			}
		}
		return nil
	})
	return busy, err
}

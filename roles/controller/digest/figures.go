package digest

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"grl/limiter"
	"grl/policy/verdict"
	"grl/web/page"
)

func compareCells(a, b limiter.CellID) int {
	return cmp.Or(strings.Compare(a.Bucket, b.Bucket), strings.Compare(a.Instance, b.Instance), strings.Compare(a.Caller, b.Caller))
}

// unit is what has one limit: a cell, or the cells that share it.
type unit struct {
	id    limiter.CellID
	cells []limiter.CellID
}

// units returns those of a bucket of which something is kept. Cells that it had
// when its scope was another one are left out.
func (d *Digest) units(b *limiter.Bucket) []unit {
	var units []unit
	at := make(map[limiter.CellID]int)
	for _, id := range d.buckets[b.FullName()] {
		callers := (id.Caller != "") == b.HasCallers() || b.Share == limiter.MaxMin // which the candidate is beside
		if (id.Instance != "") != (b.Scope != limiter.Global) || !callers {
			continue
		}
		gate := b.Gate(id)
		i, ok := at[gate]
		if !ok {
			i = len(units)
			at[gate] = i
			units = append(units, unit{id: gate})
		}
		units[i].cells = append(units[i].cells, id)
	}
	return units
}

// known reports whether there is history of an hour, as far as all the cells are
// concerned.
func (d *Digest) known(cells []limiter.CellID, number int64, hour int) bool {
	if d.days[number]>>hour&1 == 0 {
		return false
	}
	for _, id := range cells {
		if t := d.cells[id].days[number]; t != nil && t.damaged>>hour&1 == 1 {
			return false
		}
	}
	return true
}

// highest returns what cells were offered in the highest second of an hour:
// together, an upper bound.
func (d *Digest) highest(cells []limiter.CellID, number int64, hour int) float64 {
	highest := 0.0
	for _, id := range cells {
		if t := d.cells[id].days[number]; t != nil {
			highest += float64(t.highest[hour])
		}
	}
	return highest
}

// Headroom returns how near the cells of a bucket came to their limit in each of
// the last 7 days. limit returns that of an instance in the hour that starts at a
// time, in requests per second; what is not above 0 is none.
func (d *Digest) Headroom(b *limiter.Bucket, now time.Time, limit func(instance string, hour time.Time) float64) []page.Headroom {
	var out []page.Headroom
	today, _ := dayOf(now)
	for _, u := range d.units(b) {
		h := page.Headroom{Cell: u.id}
		for i := range h.Days {
			h.Days[i] = d.nearest(u, today-int64(len(h.Days)-1-i), limit)
		}
		out = append(out, h)
	}
	return out
}

// nearest returns the highest share of the limit in a day, NaN if nothing is
// known.
func (d *Digest) nearest(u unit, number int64, limit func(string, time.Time) float64) float64 {
	nearest := math.NaN()
	for hour := range hoursPerDay {
		if !d.known(u.cells, number, hour) {
			continue
		}
		rps := limit(u.id.Instance, time.Unix((number*hoursPerDay+int64(hour))*3600, 0))
		if !(rps > 0) {
			continue
		}
		if share := d.highest(u.cells, number, hour) / rps; !(nearest >= share) {
			nearest = share
		}
	}
	return nearest
}

// Evidence returns what a limit of a bucket would have done that is not enforced:
// the candidate's, or its own. since is when it began to be judged.
func (d *Digest) Evidence(b *limiter.Bucket, since, now time.Time) []page.Evidence {
	var out []page.Evidence
	candidate := b.CandidateRPS > 0
	for _, u := range d.units(b) {
		e := page.Evidence{Cell: u.id, Candidate: candidate, LimitRPS: b.Limit(u.id.Instance), Since: since}
		switch {
		case candidate:
			e.LimitRPS = b.CandidateRPS
		case b.Block:
			e.LimitRPS = 0
		}
		first, hours := d.hours(u.cells, since, now, candidate)
		e.Verdict, e.Curve = verdict.Judge(first, hours), curve(hours)
		e.Days = min(e.Days, max(0, now.Sub(since).Hours()/24)) // the first hour and the last are not whole
		switch {
		case len(u.cells) > 1 && !candidate:
			d.worst(&e, u, since, now)
		case u.id.Caller != "" && e.Dropped > 0:
			e.HitCaller, e.HitShare = u.id.Caller, 1
		}
		out = append(out, e)
	}
	return out
}

// curvePoints is how many points a curve has at most.
const curvePoints = 72

// curve returns the highest seconds of equal parts of hours.
func curve(hours []verdict.Hour) []float32 {
	points := make([]float32, min(len(hours), curvePoints))
	for i := range points {
		points[i] = float32(math.NaN())
		for _, h := range hours[i*len(hours)/len(points) : (i+1)*len(hours)/len(points)] {
			if v := float32(h.Highest); h.Known && !(points[i] >= v) {
				points[i] = v
			}
		}
	}
	return points
}

// worst judges each of the callers who share a limit: that all together would
// have lost little says nothing of one.
func (d *Digest) worst(e *page.Evidence, u unit, since, now time.Time) {
	dayAgo := now.Truncate(time.Hour).Add(-(hoursPerDay - 1) * time.Hour)
	lost, most := 0.0, 0.0
	for _, id := range u.cells {
		v := verdict.Judge(d.hours([]limiter.CellID{id}, since, now, false))
		if v.WorstShare > e.WorstShare {
			e.WorstShare, e.WorstDay = v.WorstShare, v.WorstDay
		}
		from := since
		if from.Before(dayAgo) {
			from = dayAgo
		}
		last := verdict.Judge(d.hours([]limiter.CellID{id}, from, now, false)).Dropped
		if lost += last; last > most {
			most, e.HitCaller = last, id.Caller
		}
	}
	if most > 0 {
		e.HitShare = most / lost
	}
	if e.Kind == verdict.Safe && e.WorstShare > verdict.Hurts {
		e.Kind = verdict.WouldHurt
	}
}

// hours returns what cells counted together since a time, by the hour, and the
// start of the first one. Of an hour that since is within, what was counted from
// then on is known, or nothing. The slice is valid until the next call.
func (d *Digest) hours(cells []limiter.CellID, since, now time.Time, candidate bool) (time.Time, []verdict.Hour) {
	first := d.begin(since)
	count := max(int(now.Sub(first)/time.Hour)+1, 0)
	d.buffer = slices.Grow(d.buffer[:0], count)[:count]
	hours := d.buffer
	for i := range hours {
		number, hour := dayOf(first.Add(time.Duration(i) * time.Hour))
		hours[i] = verdict.Hour{Known: d.days[number]>>hour&1 == 1}
	}
	begun := count > 0 && first.Before(since)
	for _, id := range cells {
		c := d.cells[id]
		c.addTo(hours, first, candidate)
		if begun && !c.part.since.Equal(since) && c.counted(first) {
			hours[0].Known = false
		}
	}
	if begun && hours[0].Known {
		hours[0] = verdict.Hour{Known: true}
		for _, id := range cells {
			if c := d.cells[id]; c.part.since.Equal(since) {
				add(&hours[0], c.part, candidate)
			}
		}
	}
	return first, hours
}

// begin returns the hour from which on a limit is judged.
func (d *Digest) begin(since time.Time) time.Time {
	first := since.Truncate(time.Hour)
	if minutesUntil(first, since) >= 60 {
		first = first.Add(time.Hour)
	}
	oldest := int64(math.MaxInt64 / 3600 / hoursPerDay)
	for number := range d.days {
		oldest = min(oldest, number)
	}
	if history := time.Unix(oldest*hoursPerDay*3600, 0); first.Before(history) {
		return history
	}
	return first
}

// addTo adds what a cell counted to hours, of which the first one starts at
// first.
func (c *cell) addTo(hours []verdict.Hour, first time.Time, candidate bool) {
	for number, t := range c.days {
		from := int(number*hoursPerDay - first.Unix()/3600) // place of the first hour of the day
		for hour := max(0, -from); hour < hoursPerDay && from+hour < len(hours); hour++ {
			h := &hours[from+hour]
			if t.damaged>>hour&1 == 1 {
				h.Known = false
			}
			add(h, t.part(hour), candidate)
		}
	}
}

// counted reports whether anything is kept of an hour.
func (c *cell) counted(at time.Time) bool {
	number, hour := dayOf(at)
	t := c.days[number]
	return t != nil && t.part(hour) != part{}
}

func (t *day) part(hour int) part {
	p := part{offered: float64(t.offered[hour]), highest: float64(t.highest[hour])}
	if t.shadow != nil {
		p.shadow = float64(t.shadow[hour])
	}
	if t.candidate != nil {
		p.candidate = float64(t.candidate[hour])
	}
	return p
}

func add(h *verdict.Hour, p part, candidate bool) {
	h.Offered += p.offered
	h.Highest += p.highest
	if candidate {
		h.Dropped += p.candidate
	} else {
		h.Dropped += p.shadow
	}
}

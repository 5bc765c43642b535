// Package digest keeps of the history, hour by hour, what is said of weeks: how
// near cells came to their limits, and what limits that are not enforced would
// have done. It is pure: who has it reads the history.
package digest

import (
	"slices"
	"time"

	"grl/limiter"
	"grl/policy/verdict"
	"grl/store"
)

// hoursPerDay is also the number of bits in use of a mask of hours.
const hoursPerDay = 24

// Digest keeps the hours of cells. Create it with New. It is not for concurrent
// use.
type Digest struct {
	most    int
	days    map[int64]uint32 // unix day → mask of the hours of which there is history
	cells   map[limiter.CellID]*cell
	buckets map[string][]limiter.CellID // bucket → its cells that are kept, in order
	leftOut map[limiter.CellID]struct{}
	buffer  []verdict.Hour // of hours
}

// cell keeps what one cell counted.
type cell struct {
	days map[int64]*day // by unix day
	part part
}

// day has what a cell counted by the hour, in requests. As they are shares that
// are asked for, half the precision of a float64 is enough.
type day struct {
	damaged   uint32 // mask of hours that are not known
	offered   [hoursPerDay]float32
	highest   [hoursPerDay]float32  // in the highest second
	shadow    *[hoursPerDay]float32 // virtual drops; nil: none
	candidate *[hoursPerDay]float32 // of the candidate; nil: none
}

// part is what is counted of the hour in which a limit began to be judged, since
// then.
type part struct {
	since                               time.Time
	offered, highest, shadow, candidate float64
}

// New returns an empty Digest that keeps so many cells at most.
func New(most int) *Digest {
	return &Digest{
		most: most, days: make(map[int64]uint32), cells: make(map[limiter.CellID]*cell),
		buckets: make(map[string][]limiter.CellID), leftOut: make(map[limiter.CellID]struct{}),
	}
}

// dayOf returns the day of an hour, and the hour in it.
func dayOf(at time.Time) (day int64, hour int) {
	hours := at.Unix() / 3600
	return hours / hoursPerDay, int(hours % hoursPerDay)
}

// Know takes note of the hours of which there is history, from the one that
// starts at first on: those in which a cell, whichever, has a row.
func (d *Digest) Know(s store.CellSeries, first time.Time) {
	for i := range len(s.Offered) / 60 {
		if slices.ContainsFunc(s.Zones, func(bits []byte) bool { return bits[i/8]>>(i%8)&1 == 1 }) {
			day, hour := dayOf(first.Add(time.Duration(i) * time.Hour))
			d.days[day] |= 1 << hour
		}
	}
}

// Put takes in whole hours of a cell, from the one that starts at first on, in
// place of what there is of them. since is when the limit of its bucket began to
// be judged, to the minute; zero: it is not judged.
func (d *Digest) Put(s store.CellSeries, first, since time.Time) {
	d.Know(s, first)
	c := d.cells[s.Cell]
	if c == nil {
		if len(d.cells) >= d.most {
			d.leftOut[s.Cell] = struct{}{}
			return
		}
		c = &cell{days: make(map[int64]*day)}
		d.cells[s.Cell] = c
		list := d.buckets[s.Cell.Bucket]
		at, _ := slices.BinarySearchFunc(list, s.Cell, compareCells)
		d.buckets[s.Cell.Bucket] = slices.Insert(list, at, s.Cell)
	}
	for i := range len(s.Offered) / 60 {
		at := first.Add(time.Duration(i) * time.Hour)
		c.put(at, sum(&s, i*60, i*60+60), slices.Contains(s.Damaged, i))
		if skip := minutesUntil(at, since); skip > 0 && skip < 60 {
			c.part = sum(&s, i*60+skip, i*60+60)
			c.part.since = since
		}
	}
}

// minutesUntil returns how many minutes of an hour begin before since.
func minutesUntil(hour, since time.Time) int {
	return int((since.Sub(hour) + time.Minute - 1) / time.Minute)
}

// sum adds minutes.
func sum(s *store.CellSeries, from, to int) part {
	var p part
	for i := from; i < to; i++ {
		p.offered += float64(s.Offered[i])
		p.shadow += float64(s.ShadowDropped[i])
		p.candidate += float64(s.CandidateDropped[i])
		p.highest = max(p.highest, float64(s.HighestSecond[i]))
	}
	return p
}

func (c *cell) put(at time.Time, p part, damaged bool) {
	number, hour := dayOf(at)
	t := c.days[number]
	if t == nil {
		if p == (part{}) && !damaged {
			return
		}
		t = &day{}
		c.days[number] = t
	}
	t.damaged &^= 1 << hour
	if damaged {
		t.damaged |= 1 << hour
	}
	t.offered[hour], t.highest[hour] = float32(p.offered), float32(p.highest)
	set(&t.shadow, hour, p.shadow)
	set(&t.candidate, hour, p.candidate)
}

// set writes a column, which is not there as long as all of it is 0.
func set(column **[hoursPerDay]float32, hour int, v float64) {
	if *column == nil {
		if v == 0 {
			return
		}
		*column = new([hoursPerDay]float32)
	}
	(*column)[hour] = float32(v)
}

// Forget forgets the days that ended before a time.
func (d *Digest) Forget(before time.Time) {
	oldest, _ := dayOf(before)
	for number := range d.days {
		if number < oldest {
			delete(d.days, number)
		}
	}
	for id, c := range d.cells {
		for number := range c.days {
			if number < oldest {
				delete(c.days, number)
			}
		}
		if len(c.days) == 0 {
			d.remove(id)
		}
	}
}

// Retain forgets the cells of all buckets but those for which keep returns true.
func (d *Digest) Retain(keep func(bucket string) bool) {
	for bucket, cells := range d.buckets {
		if !keep(bucket) {
			for _, id := range slices.Clone(cells) {
				d.remove(id)
			}
		}
	}
	for id := range d.leftOut {
		if !keep(id.Bucket) {
			delete(d.leftOut, id)
		}
	}
}

func (d *Digest) remove(id limiter.CellID) {
	delete(d.cells, id)
	list := slices.DeleteFunc(d.buckets[id.Bucket], func(other limiter.CellID) bool { return other == id })
	if d.buckets[id.Bucket] = list; len(list) == 0 {
		delete(d.buckets, id.Bucket)
	}
}

// Len returns how many cells are kept, and how many are not for want of room.
func (d *Digest) Len() (kept, leftOut int) { return len(d.cells), len(d.leftOut) }

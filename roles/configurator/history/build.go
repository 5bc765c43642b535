package history

import (
	"maps"
	"math"
	"slices"
	"time"

	"grl/limiter"
	grlv1 "grl/proto/grl/v1"
)

const (
	// unwritten is how many minutes before the end may not be written yet.
	unwritten = 3
	// soon is within how many hours from its start a history counts as one that
	// was idle until its first request. What begins later may be a bucket that is
	// new.
	soon = 24
	// hoursOfWeek is how many there are.
	hoursOfWeek = 7 * 24
)

// build makes a bucket of its cells.
type build struct {
	wanted *Wanted
	span   *span
	units  map[string]*unitBuild // by instance
	// used are the lanes that were taken, whole, and spare those that may be.
	used, spare []lane
	err         error // why the bucket cannot be read; no more is taken in
}

// unitBuild is one limit that is being read.
type unitBuild struct {
	*lane
	sums    map[string]*lane // instance → the sum of callers that share a limit
	rows    []bits           // by zone: hours in which a cell of the unit has a row
	damaged []uint32         // hours
	first   int              // minute of the first request
}

func newBuild(w *Wanted, s *span, spare []lane) *build {
	return &build{wanted: w, span: s, units: make(map[string]*unitBuild), spare: spare}
}

// add takes in a cell of the bucket.
func (b *build) add(c *grlv1.CellHistory) {
	instance := b.wanted.instance(c.Instance)
	if b.err == nil && b.units[instance] == nil {
		b.err = b.wanted.checkInstance(instance, maps.Keys(b.units))
	}
	if b.err != nil {
		return
	}
	u := b.unit(instance)
	for z, rows := range c.Zones {
		for i := range min(len(rows), len(u.rows[z])) {
			u.rows[z][i] |= rows[i]
		}
	}
	u.damaged = append(u.damaged, c.Damaged...)
	if first := slices.IndexFunc(c.Offered, func(n uint64) bool { return n > 0 }); first >= 0 {
		u.first = min(u.first, first)
	}
	if b.wanted.Bucket.Share != limiter.MaxMin {
		u.higherCell(c)
		return
	}
	sum := u.sums[c.Instance]
	if sum == nil {
		sum = b.zeros()
		u.sums[c.Instance] = sum
	}
	sum.addCell(c)
}

// instance returns which unit an instance of the bucket's scope belongs to.
func (w *Wanted) instance(of string) string {
	if w.Bucket.Scope == limiter.Region {
		return of
	}
	return ""
}

// unit returns that of an instance.
func (b *build) unit(instance string) *unitBuild {
	u := b.units[instance]
	if u == nil {
		u = &unitBuild{lane: b.zeros(), sums: make(map[string]*lane), rows: make([]bits, b.span.zones), first: math.MaxInt}
		for z := range u.rows {
			u.rows[z] = make(bits, (b.span.hours+7)/8)
		}
		b.units[instance] = u
	}
	return u
}

// zeros returns a lane in which nothing was offered. It is a spare one where
// there is one, since buckets come by the thousand.
func (b *build) zeros() *lane {
	n := b.span.hours * perHour
	var l lane
	if last := len(b.spare) - 1; last >= 0 {
		l, b.spare = b.spare[last], b.spare[:last]
		for _, column := range l.columns() {
			clear(*column)
		}
		clear(l.marks)
	} else {
		l = lane{start: b.span.start, step: time.Minute, marks: make([]mark, n)}
		for _, column := range l.columns() {
			*column = make([]float64, n)
		}
	}
	b.used = append(b.used, l)
	return &l
}

// addCell adds what a cell was offered.
func (l *lane) addCell(c *grlv1.CellHistory) {
	for i, n := range c.Offered {
		l.total[i] += float64(n)
		l.rps[i] += float64(n) / perMinute
	}
	for i, n := range c.HighestSecond {
		l.second[i] += float64(n)
	}
	l.count(c)
	for i, n := range c.Dropped {
		if n > 0 {
			l.marks[i] |= ownDrops
		}
	}
}

// count adds what was dropped of a cell.
func (l *lane) count(c *grlv1.CellHistory) {
	for i, n := range c.Dropped {
		l.dropped[i] += float64(n)
	}
	for i, n := range c.CandidateDropped {
		l.candidate[i] += float64(n)
	}
}

// higherCell takes the cell's load where it is the highest so far, and whether
// something of that was dropped.
func (l *lane) higherCell(c *grlv1.CellHistory) {
	at := func(column []uint64, i int) float64 {
		if i < len(column) {
			return float64(column[i])
		}
		return 0
	}
	for i, n := range c.Offered {
		l.total[i] += float64(n)
		l.higher(i, float64(n)/perMinute, at(c.HighestSecond, i), at(c.Dropped, i) > 0)
	}
	l.count(c)
}

func (l *lane) higher(i int, rps, second float64, drops bool) {
	if rps > l.rps[i] {
		l.rps[i], l.second[i] = rps, second
		l.marks[i] &^= ownDrops
	}
	if drops && rps == l.rps[i] {
		l.marks[i] |= ownDrops
	}
}

// higherLane takes the load of another lane where it is the highest so far.
func (l *lane) higherLane(other *lane) {
	for i := range l.rps {
		l.higher(i, other.rps[i], other.second[i], other.marks[i]&ownDrops != 0)
		l.total[i] += other.total[i]
		l.dropped[i] += other.dropped[i]
		l.candidate[i] += other.candidate[i]
	}
}

// bucket returns the bucket, all its cells taken in.
func (b *build) bucket(q Query, caps []period) Bucket {
	out := Bucket{Name: b.wanted.Bucket.FullName(), Err: b.err}
	if b.err != nil {
		return out
	}
	instances := b.wanted.instances(maps.Keys(b.units))
	for _, instance := range instances {
		u := b.unit(instance)
		b.finish(u, caps)
		u.cut(u.index(q.To))
		u.cutIdle(unwritten)
		out.Units = append(out.Units, u.unit(b.wanted.claim(q, instance, "")))
	}
	return out
}

// finish marks what is not known, or does not teach.
func (b *build) finish(u *unitBuild, caps []period) {
	for _, instance := range slices.Sorted(maps.Keys(u.sums)) {
		u.higherLane(u.sums[instance])
	}
	for h, known := range b.span.known {
		if !known {
			u.blank(h*perHour, (h+1)*perHour, 0)
		}
	}
	if u.first > soon*perHour {
		u.blank(0, min(u.first, len(u.rps)), 0)
	}
	for _, h := range u.damaged {
		if int(h) < b.span.hours {
			u.blank(int(h)*perHour, int(h+1)*perHour, damaged)
		}
	}
	for i, rps := range u.rps {
		if rps > mostRPS {
			u.blank(i, i+1, notNumber)
		}
	}
	for z, present := range b.span.present {
		mostly(b.span.hours, hoursOfWeek, u.rows[z].has,
			func(h int) bool { return b.span.known[h] && !present.has(h) },
			func(h int) { u.mark(h*perHour, (h+1)*perHour, silent) })
	}
	for _, p := range caps {
		u.mark(p.from, p.to, capped)
	}
}

// blank makes minutes unknown.
func (l *lane) blank(from, to int, m mark) {
	for i := from; i < to; i++ {
		l.rps[i] = math.NaN()
		l.marks[i] |= m
	}
}

func (l *lane) mark(from, to int, m mark) {
	for i := from; i < to; i++ {
		l.marks[i] |= m
	}
}

// cutIdle takes zeros away from the end, so many steps at most.
func (l *lane) cutIdle(most int) {
	n := len(l.rps)
	for n > 0 && l.rps[n-1] == 0 && len(l.rps)-n < most {
		n--
	}
	l.cut(n)
}

package history

import (
	"math"
	"time"
)

// mark says what is wrong with a step, or why it does not teach. Several may hold.
type mark uint16

const (
	notNumber  mark = 1 << iota // a row was NaN, infinite or beyond any load
	negative                    // a row was below 0
	duplicated                  // two rows were of the same step
	disordered                  // its row came after a later one
	damaged                     // its row cannot be read
	lost                        // a part of it had broken rows alone
	silent                      // a zone or region recorded nothing, and was expected to
	vanished                    // 0 where requests were expected
	ignored                     // the policy says that it does not teach
	capped                      // a cap was on the service
	ownDrops                    // grl dropped some of it
)

// untaught are the marks of steps of which the load is not known, or does not
// teach. A broken row that another one of the same step made good still teaches.
const untaught = lost | silent | vanished | ignored | capped | ownDrops

// mostRPS is beyond any load; a row above it is broken.
const mostRPS = 1e12

// lane is one limit, or a part of it, step by step, before it is judged. Several
// lanes of a bucket begin at the same time and have the same steps.
type lane struct {
	start time.Time
	step  time.Duration
	// rps is what was offered; NaN: nothing was recorded.
	rps   []float64
	marks []mark
	// total, dropped and candidate are requests in each step, of all cells of the
	// unit; nil: as rps says, and nothing was dropped.
	total, dropped, candidate []float64
	// second is requests in the highest second of each step; nil: unknown.
	second []float64
}

// newLane returns a lane of n steps of which nothing is recorded.
func newLane(start time.Time, step time.Duration, n int) *lane {
	l := &lane{start: start, step: step, rps: make([]float64, n), marks: make([]mark, n)}
	for i := range l.rps {
		l.rps[i] = math.NaN()
	}
	return l
}

// row is a value of a source: the mean of the step that lies around at.
type row struct {
	at  time.Time
	rps float64
}

// put lays rows on the lane. Of two of the same step the higher counts; those
// outside are left out.
func (l *lane) put(rows []row) {
	last := math.MinInt
	for _, r := range rows {
		since := r.at.Sub(l.start)
		i := int(since / l.step)
		if since < 0 || i >= len(l.rps) {
			continue
		}
		if i < last {
			l.marks[i] |= disordered
		}
		last = max(last, i)
		switch {
		case !(math.Abs(r.rps) <= mostRPS): // NaN too
			l.marks[i] |= notNumber
		case r.rps < 0:
			l.marks[i] |= negative
		case math.IsNaN(l.rps[i]):
			l.rps[i] = r.rps
		default:
			l.rps[i] = max(l.rps[i], r.rps)
			l.marks[i] |= duplicated
		}
	}
}

// broken reports whether a row of step i told nothing.
func (l *lane) broken(i int) bool {
	return math.IsNaN(l.rps[i]) && l.marks[i]&(notNumber|negative|damaged) != 0
}

// missing reports whether there is no row of step i.
func (l *lane) missing(i int) bool {
	return math.IsNaN(l.rps[i]) && l.marks[i]&(notNumber|negative|damaged) == 0
}

// known reports whether the load of step i was recorded and is to be believed,
// whether it teaches or not.
func (l *lane) known(i int) bool {
	return !math.IsNaN(l.rps[i]) && l.marks[i]&(lost|silent|vanished) == 0
}

// teaches reports whether step i goes into the series.
func (l *lane) teaches(i int) bool { return !math.IsNaN(l.rps[i]) && l.marks[i]&untaught == 0 }

// index returns the first step that starts at or after t, from 0 to the number
// of steps.
func (l *lane) index(t time.Time) int {
	since := t.Sub(l.start)
	if since <= 0 {
		return 0
	}
	return min(int((since+l.step-1)/l.step), len(l.rps))
}

// markBetween marks the steps that touch [from, to).
func (l *lane) markBetween(from, to time.Time, m mark) {
	first := l.index(from.Add(1 - l.step))
	last := l.index(to)
	for i := first; i < last; i++ {
		l.marks[i] |= m
	}
}

// cut shortens the lane to its first n steps.
func (l *lane) cut(n int) {
	for _, column := range l.columns() {
		if *column != nil {
			*column = (*column)[:n]
		}
	}
	l.marks = l.marks[:n]
}

// behead takes the first n steps away.
func (l *lane) behead(n int) {
	for _, column := range l.columns() {
		if *column != nil {
			*column = (*column)[n:]
		}
	}
	l.marks = l.marks[n:]
	l.start = l.start.Add(time.Duration(n) * l.step)
}

func (l *lane) columns() []*[]float64 {
	return []*[]float64{&l.rps, &l.total, &l.dropped, &l.candidate, &l.second}
}

// fold adds another lane from step at on, or takes it where it is the highest so
// far. Where the other one has no row it adds nothing; where it has only broken
// ones the step is lost.
func (l *lane) fold(other *lane, at int, highest bool) {
	for i, rps := range other.rps {
		to := at + i
		l.marks[to] |= other.marks[i] &^ ownDrops
		if other.broken(i) {
			l.marks[to] |= lost
		}
		if math.IsNaN(rps) {
			continue
		}
		if l.total != nil {
			l.total[to] += rps * l.step.Seconds()
		}
		if other.dropped != nil {
			l.dropped[to] += other.dropped[i]
		}
		switch present := l.rps[to]; {
		case math.IsNaN(present):
			l.rps[to] = rps
		case !highest:
			l.rps[to] += rps
		case rps > present:
			l.rps[to] = rps
			l.marks[to] &^= ownDrops
		case rps < present:
			continue
		}
		l.marks[to] |= other.marks[i] & ownDrops
	}
}

// mostly calls silence with each step in which a part of the fleet recorded
// nothing while others did, and which it recorded in most of the week around:
// those days are shorter where the history ends. had tells whether the part has a
// row of a step, any whether anybody has.
func mostly(n, week int, had, any func(int) bool, silence func(int)) {
	sum := make([]int, n+1) // rows before each step
	for i := range n {
		sum[i+1] = sum[i]
		if had(i) {
			sum[i+1]++
		}
	}
	for i := range n {
		if had(i) || !any(i) {
			continue
		}
		from := max(0, min(i-week/2, n-week))
		to := min(n, from+week)
		if 2*(sum[to]-sum[from]) > to-from {
			silence(i)
		}
	}
}

// silences marks the steps in which a lane of out's parts is silent.
func silences(out *lane, parts []*lane) {
	if len(parts) < 2 {
		return
	}
	recorded := func(l *lane, i int) bool { return !l.missing(i) }
	for _, part := range parts {
		mostly(len(out.rps), int(week/out.step),
			func(i int) bool { return recorded(part, i) },
			func(i int) bool { return recorded(out, i) },
			func(i int) { out.marks[i] |= silent })
	}
}

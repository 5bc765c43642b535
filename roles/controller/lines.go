package controller

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"grl/limiter"
	"grl/store"
	"grl/web/page"
)

// mostPoints bounds the points of a line.
const mostPoints = 10_000

// mostLines bounds the lines that are kept.
const mostLines = 500

// lines keeps lines of points until more is in the history. The zero value has
// none.
type lines struct {
	mu      sync.Mutex // guards all below
	flushed time.Time
	kept    map[page.SeriesQuery]page.Series
}

// find returns the line of a query, false if it is not kept.
func (l *lines) find(q page.SeriesQuery, flushed time.Time) (page.Series, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.flushed.Equal(flushed) {
		return page.Series{}, false
	}
	s, ok := l.kept[q]
	return s, ok
}

// keep keeps the line of a query, and forgets those of before it was flushed.
func (l *lines) keep(q page.SeriesQuery, flushed time.Time, s page.Series) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.flushed.Equal(flushed) || len(l.kept) >= mostLines || l.kept == nil {
		l.flushed, l.kept = flushed, make(map[page.SeriesQuery]page.Series)
	}
	l.kept[q] = s
}

// Series returns a line of points of what was counted.
func (v view) Series(ctx context.Context, q page.SeriesQuery) (page.Series, error) {
	from := q.From.UTC().Truncate(q.Step)
	if q.Step < time.Minute || q.Step%time.Minute != 0 || !from.Before(q.To) || q.To.Sub(from) > store.Keep+q.Step {
		return page.Series{}, fmt.Errorf("series from %v to %v by %v: want whole minutes, and at most %v", q.From, q.To, q.Step, store.Keep)
	}
	if points := q.To.Sub(from) / q.Step; points >= mostPoints {
		return page.Series{}, fmt.Errorf("series from %v to %v by %v: %d points, at most %d", q.From, q.To, q.Step, points, mostPoints)
	}
	q.From, q.To = from, q.To.UTC().Add(time.Minute-1).Truncate(time.Minute)
	v.mu.Lock()
	flushed := v.kept.flushed
	v.mu.Unlock()
	if s, ok := v.lines.find(q, flushed); ok {
		return s, nil
	}
	s, err := v.series(ctx, q)
	if err == nil {
		v.lines.keep(q, flushed, s)
	}
	return s, err
}

// series reads the line of a query from a whole step to a whole minute.
func (v view) series(ctx context.Context, q page.SeriesQuery) (page.Series, error) {
	from := q.From
	seen, err := v.covered(ctx, q.Zone, from, q.To)
	if err != nil {
		return page.Series{}, err
	}
	sum := newLine(from, q.To, q.Step)
	read := store.SeriesQuery{Zone: q.Zone, From: from, To: q.To}
	switch {
	case q.Bucket == "":
		read.Cells = []limiter.CellID{fleetCell}
	case q.Instance != "" && q.Caller != "":
		read.Cells = []limiter.CellID{{Bucket: q.Bucket, Instance: q.Instance, Caller: q.Caller}}
	default:
		read.Buckets = []string{q.Bucket}
	}
	err = v.opts.Store.ReadSeries(ctx, read, func(s store.CellSeries) error {
		if (q.Instance == "" || q.Instance == s.Cell.Instance) && (q.Caller == "" || q.Caller == s.Cell.Caller) {
			sum.add(&s, seen)
		}
		return ctx.Err()
	})
	if err != nil {
		return page.Series{}, err
	}
	line := sum.series(seen)
	if q.Zone != "" { // it is known of all zones together only
		line.CandidateDropped = unknown(len(line.Offered))
	}
	if q.Bucket == "" {
		line.HighestSecond = unknown(len(line.Offered))
	}
	return line, nil
}

// line sums up minutes of cells by equal steps.
type line struct {
	from    time.Time
	step    int // minutes
	points  []point
	highest []float64 // by minute: the highest seconds of the cells, together
}

// point is what was counted in a step.
type point struct {
	offered, dropped, shadow, candidate float64 // requests
}

func newLine(from, to time.Time, step time.Duration) *line {
	points := int((to.Sub(from) + step - 1) / step)
	minutes := int(step / time.Minute)
	return &line{from: from, step: minutes, points: make([]point, points), highest: make([]float64, points*minutes)}
}

// add adds what a cell counted.
func (l *line) add(s *store.CellSeries, seen coverage) {
	// The series begins with a whole hour.
	skip := int(l.from.Sub(l.from.Truncate(time.Hour)) / time.Minute)
	for at := range seen.seconds {
		m := skip + at
		if m >= len(s.Offered) {
			return
		}
		if seen.seconds[at] == 0 || s.Offered[m] == 0 && s.CandidateDropped[m] == 0 {
			continue
		}
		p := &l.points[at/l.step]
		p.offered += float64(s.Offered[m])
		p.dropped += float64(min(s.Dropped[m], s.Offered[m]))
		p.shadow += float64(s.ShadowDropped[m])
		p.candidate += float64(s.CandidateDropped[m])
		l.highest[at] += float64(s.HighestSecond[m])
	}
}

// series returns the means over what is covered of each step.
func (l *line) series(seen coverage) page.Series {
	n := len(l.points)
	all := make([]float64, 6*n)
	column := func(i int) []float64 { return all[i*n : (i+1)*n : (i+1)*n] }
	out := page.Series{
		From: l.from, Step: time.Duration(l.step) * time.Minute,
		Offered: column(0), Admitted: column(1), Dropped: column(2), ShadowDropped: column(3), CandidateDropped: column(4), HighestSecond: column(5),
	}
	for i, p := range l.points {
		seconds := 0.0
		for at := i * l.step; at < min((i+1)*l.step, len(seen.seconds)); at++ {
			seconds += float64(seen.seconds[at])
		}
		if seconds == 0 {
			for c := range 6 {
				column(c)[i] = math.NaN()
			}
			continue
		}
		out.Offered[i], out.Dropped[i] = p.offered/seconds, p.dropped/seconds
		out.Admitted[i] = (p.offered - p.dropped) / seconds
		out.ShadowDropped[i], out.CandidateDropped[i] = p.shadow/seconds, p.candidate/seconds
		out.HighestSecond[i] = slices.Max(l.highest[i*l.step : (i+1)*l.step])
	}
	return out
}

// unknown returns so many points of which nothing is known.
func unknown(n int) []float64 {
	points := make([]float64, n)
	for i := range points {
		points[i] = math.NaN()
	}
	return points
}

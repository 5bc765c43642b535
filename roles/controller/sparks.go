package controller

import (
	"context"
	"sync"
	"time"

	"grl/limiter"
	"grl/store"
)

const (
	sparkStep   = 20 * time.Minute
	sparkPoints = 72
	// sparkAge is for how long a line that was read serves everybody who asks, and
	// mostSparks how many are kept.
	sparkAge   = time.Minute
	mostSparks = 5000
	// mostCells bounds the cells that are asked for at once.
	mostSparkCells = 1000
)

// sparks keeps what cells were offered in the last day. The zero value has
// nothing.
type sparks struct {
	mu   sync.Mutex // guards all below
	kept map[limiter.CellID]spark
}

type spark struct {
	at   time.Time
	line []float64
}

// Sparks returns what cells were offered in the last day.
func (v view) Sparks(ctx context.Context, cells []limiter.CellID) ([][]float64, error) {
	cells = cells[:min(len(cells), mostSparkCells)]
	now := time.Now()
	out := make([][]float64, len(cells))
	missing := v.sparks.find(now, cells, out)
	if len(missing) == 0 {
		return out, nil
	}
	from := now.UTC().Truncate(sparkStep).Add(-(sparkPoints - 1) * sparkStep)
	seen, err := v.covered(ctx, "", from, from.Add(sparkPoints*sparkStep))
	if err != nil {
		return nil, err
	}
	idle := newLine(from, from.Add(sparkPoints*sparkStep), sparkStep).series(seen).Offered
	read := make(map[limiter.CellID][]float64, len(missing))
	err = v.opts.Store.ReadSeries(ctx, store.SeriesQuery{Cells: missing, From: from, To: now}, func(s store.CellSeries) error {
		l := newLine(from, from.Add(sparkPoints*sparkStep), sparkStep)
		l.add(&s, seen)
		read[s.Cell] = l.series(seen).Offered
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, cell := range missing {
		if read[cell] == nil {
			read[cell] = idle
		}
	}
	v.sparks.keep(now, read)
	for i, cell := range cells {
		if out[i] == nil {
			out[i] = read[cell]
		}
	}
	return out, nil
}

// find puts the lines that are fresh in their places and returns the cells of
// the others.
func (s *sparks) find(now time.Time, cells []limiter.CellID, out [][]float64) (missing []limiter.CellID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, cell := range cells {
		if k, ok := s.kept[cell]; ok && now.Sub(k.at) < sparkAge {
			out[i] = k.line
		} else {
			missing = append(missing, cell)
		}
	}
	return missing
}

// keep keeps lines; when there are too many, all that were kept go.
func (s *sparks) keep(now time.Time, lines map[limiter.CellID][]float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.kept)+len(lines) > mostSparks || s.kept == nil {
		s.kept = make(map[limiter.CellID]spark)
	}
	for cell, line := range lines {
		s.kept[cell] = spark{now, line}
	}
}

package history

import (
	"errors"
	"fmt"
	"time"

	grlv1 "grl/proto/grl/v1"
)

const (
	perHour   = 60 // minutes
	perMinute = 60 // seconds
	// maxHours and maxZones bound what an answer may be of.
	maxHours = 2 * 366 * 24
	maxZones = 10_000
)

// span is of which hours and zones there is history at all.
type span struct {
	start   time.Time
	hours   int
	present []bits // by zone
	zones   int
	known   []bool // by hour: some zone recorded something
}

// bits has a bit for each hour, the lowest of the first byte first.
type bits []byte

func (b bits) has(i int) bool { return i/8 < len(b) && b[i/8]>>(i%8)&1 != 0 }

func newSpan(q Query, s *grlv1.HistorySpan) (*span, error) {
	if s == nil {
		return nil, errors.New("the answer does not begin with its span")
	}
	start := time.UnixMilli(s.FromMs)
	end := start.Add(time.Duration(s.Hours) * time.Hour)
	switch {
	case s.FromMs%time.Hour.Milliseconds() != 0:
		return nil, fmt.Errorf("the span begins at %d ms: want a whole hour", s.FromMs)
	case s.Hours > maxHours:
		return nil, fmt.Errorf("the span has %d hours: want at most %d", s.Hours, maxHours)
	case start.After(q.From) || q.From.Sub(start) >= time.Hour:
		return nil, fmt.Errorf("the span begins at %v: want the hour of %v", start.UTC(), q.From.UTC())
	case end.Before(q.To):
		return nil, fmt.Errorf("the span ends at %v: want %v or later", end.UTC(), q.To.UTC())
	case len(s.Zones) > maxZones || len(s.Present) != len(s.Zones):
		return nil, fmt.Errorf("the span has %d zones and presence of %d: want the same, at most %d", len(s.Zones), len(s.Present), maxZones)
	}
	p := &span{start: start, hours: int(s.Hours), zones: len(s.Zones), known: make([]bool, s.Hours)}
	for _, present := range s.Present {
		p.present = append(p.present, present)
	}
	for h := range p.known {
		for _, present := range p.present {
			p.known[h] = p.known[h] || present.has(h)
		}
	}
	return p, nil
}

package bucket

import (
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"grl/web/page"
)

const (
	// linesFresh is how long what was read of the history is shown again: a new
	// minute is written once a minute.
	linesFresh = 10 * time.Second
	mostLines  = 256
)

// lines keeps what was lately read of the history: pages look at the same again
// and again.
type lines struct {
	mu   sync.Mutex
	kept map[page.SeriesQuery]keptLine // guarded by mu
}

type keptLine struct {
	at     time.Time
	series page.Series
}

func newLines() *lines { return &lines{kept: make(map[page.SeriesQuery]keptLine)} }

// read returns a series of the backend, or one that was read just before.
func (l *lines) read(ctx context.Context, b page.Backend, q page.SeriesQuery) (page.Series, error) {
	now := time.Now()
	l.mu.Lock()
	k, ok := l.kept[q]
	l.mu.Unlock()
	if ok && now.Sub(k.at) < linesFresh {
		return k.series, nil
	}
	series, err := b.Series(ctx, q)
	if err != nil {
		return page.Series{}, err
	}
	changes, err := b.Limits(ctx, q.Bucket, q.Instance, q.From)
	if err != nil {
		return page.Series{}, err
	}
	series = whole(series, q)
	forget(&series, changes)
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, k := range l.kept {
		if now.Sub(k.at) >= linesFresh || len(l.kept) >= mostLines {
			delete(l.kept, key)
		}
	}
	l.kept[q] = keptLine{now, series}
	return series, nil
}

// whole returns a series with as many points as were asked for.
func whole(s page.Series, q page.SeriesQuery) page.Series {
	n := int(q.To.Sub(q.From) / q.Step)
	for _, line := range []*[]float64{&s.Offered, &s.Admitted, &s.Dropped, &s.ShadowDropped, &s.CandidateDropped, &s.HighestSecond} {
		out := make([]float64, n)
		for i := range out {
			out[i] = math.NaN()
		}
		copy(out, *line)
		*line = out
	}
	return s
}

// forget makes unknown what was not counted of a time before there was the bucket:
// that it was offered nothing is not known of requests that nobody counted. changes
// are those of its limit since the series begins.
func forget(s *page.Series, changes []page.LimitChange) {
	first := slices.IndexFunc(changes, func(c page.LimitChange) bool { return there(&c) })
	if first < 0 {
		return
	}
	for i, offered := range s.Offered {
		if s.From.Add(time.Duration(i+1)*s.Step).After(changes[first].At) || offered > 0 {
			return
		}
		for _, line := range [][]float64{s.Offered, s.Admitted, s.Dropped, s.ShadowDropped, s.CandidateDropped, s.HighestSecond} {
			line[i] = math.NaN()
		}
	}
}

// line returns the history of what a query looks at, up to now.
func (s site) line(ctx context.Context, q query) (page.Series, error) {
	to := time.Now().UTC().Truncate(q.Range.step)
	return s.lines.read(ctx, s.Backend, page.SeriesQuery{
		Bucket: q.bucket(), Instance: q.Instance, Caller: q.Caller,
		From: to.Add(-time.Duration(q.Range.steps) * q.Range.step), To: to, Step: q.Range.step,
	})
}

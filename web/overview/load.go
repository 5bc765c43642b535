package overview

import (
	"context"
	"errors"
	"math"
	"time"

	"grl/web/chart"
	"grl/web/format"
	"grl/web/page"
)

// window is a span of time that ends now.
type window struct {
	Value, Name string // in the URL and on the page: "24h", "24 h"
	Words       string // "24 hours"
	step        time.Duration
	steps       int
}

// windows are those that one may choose; all have at most 300 steps, which is as
// many as are drawn.
var windows = []window{
	{"1h", "1 h", "hour", time.Minute, 60},
	{"24h", "24 h", "24 hours", 5 * time.Minute, 288},
	{"7d", "7 d", "7 days", time.Hour, 168},
	{"5w", "5 w", "5 weeks", 3 * time.Hour, 280},
}

// rangeOf returns a window by what a URL says; what is not known is 24 h.
func rangeOf(value string) window {
	for _, w := range windows {
		if w.Value == value {
			return w
		}
	}
	return windows[1]
}

// from is the start of the first step; the last one is not over yet.
func (w window) from(now time.Time) time.Time {
	return now.Truncate(w.step).Add(-time.Duration(w.steps-1) * w.step)
}

func (w window) query(now time.Time) page.SeriesQuery {
	return page.SeriesQuery{From: w.from(now), To: now, Step: w.step}
}

// URL is the address of the page with this window.
func (w window) URL() string { return "/?range=" + w.Value }

// load is the chart of the fleet.
type load struct {
	Plot chart.Plot
	// Problem says that the history cannot be read; empty: it can.
	Problem string
}

// load reads the chart: what the history says, and at the end what is now.
func (s site) load(ctx context.Context, w window, now time.Time) load {
	line, err := s.Backend.Series(ctx, w.query(now))
	v := load{}
	if err != nil {
		s.unread(ctx, err)
		v.Problem = "The history cannot be read now: only the last point is known."
		line = page.Series{}
	}
	total, fleet := s.Backend.Total(), s.Backend.Fleet()
	lacks := fleet.Silence()
	offered, admitted := w.line(line.Offered, total.OfferedRPS), w.line(line.Admitted, total.AdmittedRPS)
	dropped, virtual := w.line(line.Dropped, total.DroppedRPS), w.line(virtualOf(line), total.Virtual())
	v.Plot = chart.Plot{
		ID: "fleet", Title: "Load of the fleet, last " + w.Words, Desc: describe(offered, dropped, virtual),
		From: w.from(now), Step: w.step, Steps: w.steps, Gaps: chart.Missing(w.from(now), w.step, offered),
		Strips: []chart.Strip{
			{Unit: "rps", Height: 168, Lines: []chart.Line{
				{Kind: chart.Offered, Values: offered, Label: lacks.AtLeast(format.Size(total.OfferedRPS)) + " offered"},
				{Kind: chart.Admitted, Values: admitted, Label: lacks.AtLeast(format.Size(total.AdmittedRPS)) + " admitted"},
			}},
			{Unit: "rps", Height: 60, AtLeast: 1, Lines: []chart.Line{{Kind: chart.Dropped, Values: dropped, Label: lacks.AtLeast(format.Size(total.DroppedRPS)) + " dropped"}}},
			{Unit: "rps", Height: 60, AtLeast: 1, Lines: []chart.Line{{Kind: chart.Virtual, Values: virtual, Label: lacks.AtLeast(format.Size(total.Virtual())) + " virtual"}}},
		},
	}
	if since, any := lacks.Since(now); any {
		v.Plot.Gaps = append(v.Plot.Gaps, chart.Gap{From: since, To: now, Text: lacks.GapText(), Slim: true})
	}
	return v
}

// line returns a value for each step, NaN where nothing is known, of which the
// last is what is now.
func (w window) line(values []float64, now float64) []float64 {
	out := make([]float64, w.steps)
	for i := range out {
		out[i] = math.NaN()
	}
	copy(out, values)
	out[w.steps-1] = now
	return out
}

// virtualOf returns what would have been dropped and was not, at most what was
// admitted.
func virtualOf(line page.Series) []float64 {
	out := make([]float64, len(line.ShadowDropped))
	for i := range out {
		out[i] = min(line.ShadowDropped[i]+line.CandidateDropped[i], line.Admitted[i])
	}
	return out
}

// describe has the numbers that matter, for who does not see the chart.
func describe(offered, dropped, virtual []float64) string {
	low, high := bounds(offered)
	_, most := bounds(dropped)
	_, wouldBe := bounds(virtual)
	last := len(offered) - 1
	return "Offered between " + format.RPS(low) + " and " + format.RPS(high) + " requests per second, " + format.RPS(offered[last]) + " now. Up to " +
		format.RPS(most) + " dropped, " + format.RPS(dropped[last]) + " now. Up to " + format.RPS(wouldBe) + " virtual drops, " + format.RPS(virtual[last]) + " now."
}

// bounds returns the lowest and highest value that is known; one is.
func bounds(values []float64) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, v := range values {
		if !math.IsNaN(v) {
			low, high = min(low, v), max(high, v)
		}
	}
	return low, high
}

// unread logs that the history could not be read; the page shows the rest.
func (s site) unread(ctx context.Context, err error) {
	if !errors.Is(err, context.Canceled) {
		s.Log.ErrorContext(ctx, "read history for the overview", "err", err)
	}
}

package bucket

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/a-h/templ"

	"grl/limiter"
	"grl/web/chart"
	"grl/web/format"
	"grl/web/page"
)

// chartView is the chart with its ranges and the list behind its flags.
type chartView struct {
	Note      string
	Ranges    []tab
	Plot      chart.Plot
	Marks     []mark
	Zoom, CSV string
	Each      bool // each caller has a limit of its own, so none is drawn
}

// tab is a link to another view of the same.
type tab struct {
	Name, URL string
	Current   bool
}

const (
	plotHeight  = 300 // pixels
	ratioHeight = 52
	leastRatio  = 20 // per cent
)

func (s site) chart(ctx context.Context, q query) (templ.Component, error) {
	v, err := s.chartView(ctx, q)
	return chartCard(v), err
}

func (s site) chartView(ctx context.Context, q query) (chartView, error) {
	c, err := s.configuration(ctx, q.Service, 0)
	if err != nil {
		return chartView{}, err
	}
	b, seen := c.bucket(q.Name), s.cells(q)
	past, err := s.line(ctx, q)
	if err != nil {
		return chartView{}, err
	}
	n := len(past.Offered) + 1 // the last point is live
	limits, err := s.limits(ctx, q, seen, b, past.From, past.Step, n)
	if err != nil {
		return chartView{}, err
	}
	marks, err := s.marks(ctx, q, limits.changes, past.From)
	if err != nil {
		return chartView{}, err
	}
	v := chartView{
		Note: q.Range.note, Marks: marks, Each: limits.several == 0,
		Zoom: q.path("/zoom"), CSV: q.path("/series.csv"),
		Plot: plotOf(q, newCurves(past, &seen), limits, &seen),
	}
	for _, m := range marks {
		v.Plot.Flags = append(v.Plot.Flags, chart.Flag{At: m.at, Number: m.Number, Cap: m.Cap})
	}
	for _, r := range spans {
		v.Ranges = append(v.Ranges, tab{r.name, q.over(r).path(""), r == q.Range})
	}
	return v, nil
}

// curves are the lines of a chart: the history, and what is live as the last
// point.
type curves struct {
	from                                time.Time
	step                                time.Duration
	offered, admitted, dropped, virtual []float64
}

// notWritten is how many minutes may not have been written yet, though their
// cells report.
const notWritten = 2

func newCurves(past page.Series, seen *sum) curves {
	c := curves{from: past.From, step: past.Step}
	now := func(v float64) float64 {
		if seen.silent || len(seen.cells) == 0 {
			return math.NaN()
		}
		return v
	}
	virtual := make([]float64, len(past.ShadowDropped))
	for i := range virtual {
		virtual[i] = past.ShadowDropped[i] + past.CandidateDropped[i]
	}
	c.offered = withLive(past.Offered, now(seen.offered), past.Step)
	c.admitted = withLive(past.Admitted, now(seen.admitted), past.Step)
	c.dropped = withLive(past.Dropped, now(seen.dropped), past.Step)
	c.virtual = withLive(virtual, now(seen.virtual()), past.Step)
	return c
}

// withLive returns the history with what is live, which holds since the last
// minute that was written.
func withLive(past []float64, live float64, step time.Duration) []float64 {
	out := append(append(make([]float64, 0, len(past)+1), past...), live)
	for i := len(past) - 1; i >= 0 && math.IsNaN(out[i]) && time.Duration(len(past)-i)*step <= notWritten*time.Minute; i-- {
		out[i] = live
	}
	return out
}

// shares returns a in per cent of b.
func shares(a, b []float64) []float64 {
	out := make([]float64, len(a))
	for i := range out {
		if out[i] = 100 * a[i] / b[i]; b[i] == 0 {
			out[i] = 0
		}
	}
	return out
}

func plotOf(q query, c curves, l limits, seen *sum) chart.Plot {
	load := chart.Strip{Unit: "rps", Height: plotHeight, Lines: []chart.Line{
		{Kind: chart.Offered, Values: c.offered, Label: seen.lacks.AtLeast(format.RPS(seen.offered)) + " offered"},
		{Kind: chart.Admitted, Values: c.admitted, Label: seen.lacks.AtLeast(format.RPS(seen.admitted)) + " admitted"},
	}}
	if last, ok := lastOf(l.enforced); ok {
		load.Lines = append(load.Lines, chart.Line{Kind: chart.Limit, Values: l.enforced, Label: format.RPS(last) + " limit"})
	}
	shadow := seen.first().Behavior != limiter.Deny
	if last, ok := lastOf(l.judged); ok {
		name := " candidate"
		if shadow {
			name = " limit, shadow"
		}
		load.Lines = append(load.Lines, chart.Line{Kind: chart.Candidate, Values: l.judged, Label: format.RPS(last) + name})
	}
	ratio := chart.Line{Kind: chart.DropRatio, Values: shares(c.dropped, c.offered), Label: format.Share(seen.ratio()) + " drop ratio"}
	if shadow {
		ratio = chart.Line{Kind: chart.Virtual, Values: shares(c.virtual, c.offered), Label: format.Share(part100(seen.virtual(), seen.offered)) + " virtual"}
	}
	p := chart.Plot{
		ID: "load", Title: format.Printable(q.bucket()) + ", last " + q.Range.words(), Desc: describe(c, seen),
		From: c.from, Step: c.step, Steps: len(c.offered),
		Strips: []chart.Strip{load, {Unit: "%", Height: ratioHeight, AtLeast: leastRatio, Lines: []chart.Line{ratio}}},
		Gaps:   chart.Missing(c.from, c.step, c.admitted),
	}
	if since, any := seen.lacks.Since(time.Now()); any {
		p.Gaps = append(p.Gaps, chart.Gap{From: since, To: time.Now(), Text: seen.lacks.GapText(), Slim: true})
	}
	return p
}

// part100 is a share in [0, 1].
func part100(a, b float64) float64 {
	if b <= 0 {
		return 0
	}
	return min(a/b, 1)
}

// lastOf returns the last value, and whether there is any at all.
func lastOf(values []float64) (float64, bool) {
	for i := len(values) - 1; i >= 0; i-- {
		if !math.IsNaN(values[i]) {
			return values[i], true
		}
	}
	return 0, false
}

// describe says the numbers that matter of a chart.
func describe(c curves, seen *sum) string {
	peak, known := highestOf(c.offered)
	if !known {
		return "Nothing is known of this time."
	}
	text := fmt.Sprintf("Offered was at most %s rps and is %s rps now; %s of it is dropped.", format.RPS(peak), seen.lacks.AtLeast(format.RPS(seen.offered)), format.Share(seen.ratio()))
	if seen.silent {
		text = fmt.Sprintf("Offered was at most %s rps; reports have stopped.", format.RPS(peak))
	}
	if v := seen.virtual(); v > 0 {
		text += fmt.Sprintf(" Virtual drops are %s rps.", format.RPS(v))
	}
	return text
}

package caps

import (
	"context"
	"fmt"
	"math"
	"time"

	"grl/web/chart"
	"grl/web/format"
	"grl/web/page"
)

// curve is what those that a cap selects sent in the last hours.
type curve struct {
	Title string
	Plot  chart.Plot
	// Figures is the plot without what the cap would admit, for the table: it did
	// not.
	Figures chart.Plot
	// Known says that a bucket counts just these requests.
	Known bool
}

// Of the curve.
const (
	curveSpan = 6 * time.Hour
	curveStep = 5 * time.Minute
)

// curve reads what was offered of what the cap selects, and draws the cap into
// it; now is the end, with the load of now as the last point.
func (s site) curve(ctx context.Context, q *request, f *forecast, cells []*page.Cell, now time.Time) *curve {
	if q.Service == "" {
		return nil
	}
	c := &curve{Title: whose(q.Service, q.match()) + " on " + format.Printable(q.Service)}
	if q.everything() {
		c.Title = "All callers of " + format.Printable(q.Service)
	}
	cell := counting(cells, q)
	if cell == nil {
		return c
	}
	from := now.Add(-curveSpan).Truncate(curveStep)
	series, err := s.Backend.Series(ctx, page.SeriesQuery{Bucket: cell.Bucket(), Caller: cell.Caller, From: from, To: now, Step: curveStep})
	if err != nil || len(series.Offered) == 0 {
		return c
	}
	c.Known = true
	offered := append([]float64(nil), series.Offered...)
	if f.Known {
		offered = append(offered, f.OfferedRPS)
	}
	strip, figures := chart.Strip{Unit: "rps", Height: 150}, chart.Strip{Unit: "rps"}
	last := offered[len(offered)-1]
	desc := fmt.Sprintf("Offered is %s rps now.", format.RPS(last))
	line := chart.Line{Kind: chart.Offered, Values: offered}
	if !math.IsNaN(last) {
		line.Label = format.RPS(last) + " offered"
	}
	if f.Gate.Problem == "" {
		limit, admitted := make([]float64, len(offered)), make([]float64, len(offered))
		for i := range limit {
			limit[i], admitted[i] = f.Gate.RPS, min(offered[i], f.Gate.RPS)
		}
		desc += fmt.Sprintf(" The cap would sit at %s.", format.RPS(f.Gate.RPS))
		figures.Lines = []chart.Line{line, {Kind: chart.Limit, Values: limit, Label: format.RPS(f.Gate.RPS) + " cap"}}
		strip.Lines = append([]chart.Line{{Kind: chart.Admitted, Values: admitted}}, figures.Lines...)
	} else {
		figures.Lines = []chart.Line{line}
		strip.Lines = figures.Lines
	}
	c.Plot = chart.Plot{
		ID: "cap-plot", Title: c.Title + ", last 6 hours", Desc: desc,
		From: series.From, Step: curveStep, Steps: len(offered), Strips: []chart.Strip{strip},
		Gaps: chart.Missing(series.From, curveStep, series.Offered),
	}
	c.Figures = c.Plot
	c.Figures.Strips = []chart.Strip{figures}
	return c
}

// counting returns the cell that counts just what a cap selects, nil if none
// does.
func counting(cells []*page.Cell, q *request) *page.Cell {
	for _, c := range cells {
		if c.Cap != "" || c.Class != "" {
			continue
		}
		selects := c.Selects
		if c.Caller != "" {
			selects.Caller = q.match().Caller
			if c.Caller != q.Caller {
				continue
			}
		}
		if same(selects, q.match()) {
			return c
		}
	}
	return nil
}

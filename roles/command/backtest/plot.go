package backtest

import (
	_ "embed"
	"fmt"
	"html"
	"io"
	"strings"
	"time"

	"grl/policy/backtest"
	"grl/roles/command/chart"
)

// plotStyle has the colours of the dashboard's charts.
//
//go:embed plot.css
var plotStyle string

// Sizes of a picture, in pixels.
const (
	plotWidth  = 960
	plotLeft   = 76 // of the axis of rates
	plotRight  = 944
	plotHeight = 190 // of the lines of a panel
	panelHead  = 44  // title, and the name of the axis of rates
	panelFoot  = 40  // axis of times
	drops      = 5   // height of the marks of drops below the axis
	legendFoot = 52  // where the first section begins
)

// WritePlot draws results as one SVG picture: for each all of its history, and the
// worst of its periods with what is around.
func WritePlot(w io.Writer, results []*backtest.Result) error {
	p := &plot{}
	p.legend()
	var words []string
	for _, r := range results {
		p.section(r)
		words = append(words, sentence(r))
	}
	p.At += 8
	_, err := fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-labelledby="title desc">
<title id="title">Offered load and limits in grl backtest</title>
<desc id="desc">%s</desc>
<style>
%s</style>
<rect class="page" width="100%%" height="100%%"/>
%s</svg>
`, plotWidth, p.At, plotWidth, p.At, html.EscapeString(strings.Join(words, " ")), plotStyle, p.String())
	return err
}

// sentence says what a picture of a result shows.
func sentence(r *backtest.Result) string {
	return fmt.Sprintf("%s under %s, %d periods: %s.", r.Name, r.Policy, r.Periods, figures(r))
}

// figures are those of a result in words.
func figures(r *backtest.Result) string {
	return fmt.Sprintf("false drops %s, in the worst period %s; limit %s times the peak, %s times the load of its hour",
		percent(r.FD, 3), percent(r.FDWorst, 2), ratio(r.H), ratio(r.T))
}

// plot is the picture of results.
type plot struct{ chart.Picture }

func (p *plot) rect(class string, x, y, width, height float64) {
	fmt.Fprintf(p, "<rect class=%q x=%q y=%q width=%q height=%q/>\n", class,
		chart.Coordinate(x), chart.Coordinate(y), chart.Coordinate(width), chart.Coordinate(height))
}

func (p *plot) legend() {
	x := float64(plotLeft)
	for _, e := range []struct{ class, text string }{{"offered", "offered"}, {"limit", "limit"}, {"dropped", "above the limit"}} {
		p.Line(e.class, x, 26, x+28, 26)
		p.Text("text", x+36, 30, e.text)
		x += 150
	}
	for _, e := range []struct{ class, text string }{{"anomaly", "not normal"}, {"train", "learnt from, no limit yet"}} {
		p.rect(e.class, x, 19, 28, 14)
		p.Text("text", x+36, 30, e.text)
		x += 150
	}
	p.At = legendFoot
}

// section draws a result below what is there.
func (p *plot) section(r *backtest.Result) {
	p.Text("head", 16, float64(p.At+16), r.Name+", "+r.Policy)
	p.Text("end", plotRight, float64(p.At+16), figures(r))
	p.At += 24
	end := r.Series.Time(len(r.Series.RPS))
	p.panel(r, "All of the history, the highest step of each pixel", r.Series.Start, end)
	if r.Periods > 0 {
		around := r.Worst.To.Sub(r.Worst.From) / 2
		from, to := r.Worst.From.Add(-around), r.Worst.To.Add(around)
		p.panel(r, "The worst period, from "+date(r.Worst.From)+", and what is around", later(from, r.Series.Start), sooner(to, end))
	}
}

func date(t time.Time) string { return t.Format("Mon 2 Jan 2006") }

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func sooner(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// panel draws [from, to) of a result.
func (p *plot) panel(r *backtest.Result, title string, from, to time.Time) {
	top, foot := float64(p.At+panelHead), float64(p.At+panelHead+plotHeight)
	columns := newColumns(r, from, to)
	x := timeAxis{from, to}
	y := chart.NewAxis(1.05*columns.most(), 5, foot, top)
	p.Text("panel", 16, float64(p.At+16), title)
	p.shade("train", x, r.Series.Start, r.Tested.From, top)
	for _, a := range r.Anomalies {
		p.shade("anomaly", x, a.From, a.To, top)
	}
	p.axes(x, y)
	class, limit := "limit", columns.limit(y)
	if columns.dense() {
		class, limit = "limit band", columns.band(y)
	}
	fmt.Fprintf(p, "<path class=%q d=%q/>\n", class, limit)
	fmt.Fprintf(p, "<path class=\"offered\" d=%q/>\n", columns.offered(y))
	if d := columns.dropped(y); d != "" {
		fmt.Fprintf(p, "<path class=\"dropped\" d=%q/>\n", d)
	}
	p.At += panelHead + plotHeight + panelFoot
}

// shade draws a window behind the lines, at least a pixel wide.
func (p *plot) shade(class string, x timeAxis, from, to time.Time, top float64) {
	from, to = later(from, x.from), sooner(to, x.to)
	if from.Before(to) {
		p.rect(class, x.pixel(from), top, max(1, x.pixel(to)-x.pixel(from)), plotHeight)
	}
}

// axes draws the grid of a panel, with numbers and the unit of y.
func (p *plot) axes(x timeAxis, y chart.Axis) {
	p.Text("unit", 16, y.To-10, "requests per second")
	for _, v := range y.Ticks {
		p.Line("grid", plotLeft, y.Pixel(v), plotRight, y.Pixel(v))
		p.Text("tick end", plotLeft-8, y.Pixel(v)+4, tick(v, y.Top))
	}
	for _, t := range x.ticks() {
		p.Line("axis", x.pixel(t.at), y.From, x.pixel(t.at), y.From+drops)
		p.Text("tick middle", x.pixel(t.at), y.From+20, t.text)
	}
	p.Line("axis", plotLeft, y.From, plotRight, y.From)
}

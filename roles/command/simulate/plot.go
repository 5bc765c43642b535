package simulate

import (
	_ "embed"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"grl/roles/command/chart"
	"grl/roles/fleet"
)

// plotStyle has the colours of the dashboard's charts.
//
//go:embed plot.css
var plotStyle string

// Sizes of a picture, in pixels.
const (
	plotWidth   = 800
	plotLeft    = 72 // of the axis of rates
	plotRight   = 784
	plotHeight  = 180 // of the lines of a panel
	panelHead   = 44  // title, and the name of the axis of rates
	panelFoot   = 40  // axis of times
	sectionHead = 28
	lineHeight  = 16
	legendFoot  = 52 // where the first section begins
	// captionWidth is how many characters of a command fit into a line.
	captionWidth = 112
)

// WritePlot draws sections as one SVG picture: a panel for each scenario and
// law, all of a scenario with the same axes.
func WritePlot(w io.Writer, sections []*Section) error {
	p := &plot{}
	p.legend()
	for _, s := range sections {
		p.section(s)
	}
	_, err := fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-labelledby="title">
<title id="title">Offered and admitted load in grl simulate</title>
<style>
%s</style>
<rect class="page" width="100%%" height="100%%"/>
%s</svg>
`, plotWidth, p.At, plotWidth, p.At, plotStyle, p.String())
	return err
}

// plot is the picture of sections.
type plot struct{ chart.Picture }

func (p *plot) legend() {
	x := float64(plotLeft)
	for _, e := range []struct{ class, text string }{
		{"offered", "offered"}, {"admitted", "admitted"}, {"limit", "limit"}, {"above", "admitted above the limit"},
	} {
		p.Line(e.class+" sample", x, 26, x+28, 26)
		p.Text("text", x+36, 30, e.text)
		x += 128
	}
	p.At = legendFoot
}

// section draws the panels of a scenario below what is there.
func (p *plot) section(s *Section) {
	p.Text("head", 16, float64(p.At+16), s.Options.Scenario+": "+lineOf(s.Options.Scenario))
	p.At += sectionHead
	for _, line := range wrap(s.Command, captionWidth) {
		p.Text("command", 16, float64(p.At+8), line)
		p.At += lineHeight
	}
	p.At += lineHeight / 2
	curves := make([]curve, len(s.Results))
	most := 0.0
	for i, r := range s.Results {
		curves[i] = newCurve(r.Total)
		most = max(most, slices.Max(curves[i].offered), slices.Max(curves[i].admitted), curves[i].limit)
	}
	for i, r := range s.Results {
		p.panel(r, &curves[i], 1.05*most)
	}
	p.At += lineHeight
}

// curve is what a panel shows.
type curve struct {
	offered, admitted []float64 // means over each
	each              time.Duration
	limit             float64
	length            time.Duration
}

// newCurve takes means so long that the limit has some requests in each, else
// the lines of a low limit were nothing but chance; but at least ten of them.
func newCurve(s fleet.Series) curve {
	const requests = 50
	slots := len(s.Offered)
	n := int(math.Ceil(requests / (s.Limit * s.Slot.Seconds())))
	n = min(max(n, 1), max(slots/10, 1))
	return curve{
		offered: means(s.Offered, n), admitted: means(s.Admitted, n), each: s.Slot * time.Duration(n),
		limit: s.Limit, length: s.Slot * time.Duration(slots),
	}
}

// lineOf returns what a scenario is, in one line.
func lineOf(scenario string) string {
	for _, e := range fleet.Scenarios() {
		if e.Name == scenario {
			return e.Line
		}
	}
	return ""
}

// panel draws one run, with rates up to most.
func (p *plot) panel(r *fleet.Result, c *curve, most float64) {
	top := float64(p.At + panelHead)
	x := chart.NewAxis(c.length.Seconds(), 8, plotLeft, plotRight)
	y := chart.NewAxis(most, 5, top+plotHeight, top)
	width := x.Pixel(c.each.Seconds()) - x.From
	p.Text("panel", 16, float64(p.At+16), r.Law)
	p.Text("figures end", plotRight, float64(p.At+16), figures(r.Metrics))
	p.axes(x, y, "requests per second, means of "+number(c.each.Seconds())+" s")
	limit := y.Pixel(c.limit)
	admitted := path(c.admitted, width, x, y)
	// The area down to the axis, of which the part above the limit is seen.
	fmt.Fprintf(p, "<clipPath id=\"above-%d\"><rect x=%q y=%q width=%q height=%q/></clipPath>\n",
		p.At, chart.Coordinate(x.From), chart.Coordinate(top), chart.Coordinate(x.To-x.From), chart.Coordinate(limit-top))
	fmt.Fprintf(p, "<path class=\"above\" clip-path=\"url(#above-%d)\" d=\"%sV%sH%sZ\"/>\n",
		p.At, admitted, chart.Coordinate(y.From), chart.Coordinate(x.From+width/2))
	fmt.Fprintf(p, "<path class=\"offered\" d=%q/>\n", path(c.offered, width, x, y))
	fmt.Fprintf(p, "<path class=\"admitted\" d=%q/>\n", admitted)
	p.Line("limit", x.From, limit, x.To, limit)
	p.At += panelHead + plotHeight + panelFoot
}

// axes draws the grid of a panel, with numbers and the unit of y.
func (p *plot) axes(x, y chart.Axis, unit string) {
	p.Text("unit", 16, y.To-10, unit)
	for _, v := range y.Ticks {
		p.Line("grid", x.From, y.Pixel(v), x.To, y.Pixel(v))
		p.Text("tick end", x.From-8, y.Pixel(v)+4, rpsTick(v, y.Top))
	}
	for _, v := range x.Ticks {
		p.Line("axis", x.Pixel(v), y.From, x.Pixel(v), y.From+4)
		p.Text("tick middle", x.Pixel(v), y.From+18, fixed(v, 0))
	}
	p.Line("axis", x.From, y.From, x.To, y.From)
	p.Text("unit end", x.To, y.From+34, "seconds")
}

// rpsTick prints a rate on an axis up to top.
func rpsTick(v, top float64) string {
	switch {
	case v == 0:
		return "0"
	case top >= 10:
		return fixed(v, 0)
	case top >= 1:
		return fixed(v, 1)
	default:
		return number(v)
	}
}

// figures are the metrics beside a panel.
func figures(m fleet.Metrics) string {
	var parts []string
	for i, of := range m.List() {
		metric := Metrics()[i]
		text := metric.format(of.Value)
		switch {
		case text == noMetric:
			continue
		case of.Name == "overshoot_seconds":
			parts = append(parts, "overshoot "+text+" s of limit")
		case of.Name == "settle_seconds" && text == never:
			parts = append(parts, "never settled")
		case of.Name == "settle_seconds":
			parts = append(parts, "settled after "+text+" s")
		}
	}
	return strings.Join(parts, ", ")
}

// wrap cuts text at spaces into lines of at most width bytes, or one word.
func wrap(text string, width int) []string {
	var lines []string
	for word := range strings.FieldsSeq(text) {
		if n := len(lines); n > 0 && len(lines[n-1])+1+len(word) <= width {
			lines[n-1] += " " + word
		} else {
			lines = append(lines, word)
		}
	}
	return lines
}

package backtest

import (
	"math"
	"time"

	"grl/policy"
	"grl/policy/backtest"
	"grl/roles/command/chart"
)

// column is what is known of the time of one pixel. NaN: nothing is.
type column struct {
	highest         float64 // step
	lowLimit        float64
	highLimit       float64
	over, overLimit float64 // the step that stands highest above its limit, and that
}

// columns are those of a panel, from left to right.
type columns []column

// newColumns sums up [from, to) of a result, a column for each pixel.
func newColumns(r *backtest.Result, from, to time.Time) columns {
	nan := math.NaN()
	out := make(columns, plotRight-plotLeft)
	width := to.Sub(from) / time.Duration(len(out))
	for i := range out {
		c := &out[i]
		*c = column{highest: nan, lowLimit: nan, highLimit: nan, over: nan}
		at := from.Add(time.Duration(i) * width)
		first := max(0, r.Series.Index(at))
		last := min(max(first, r.Series.Index(at.Add(width-1))), len(r.Series.RPS)-1)
		for j := first; j <= last; j++ {
			c.add(r.Series.RPS[j], r.Limits[j])
		}
	}
	return out
}

func (c *column) add(x, limit float64) {
	if policy.Known(limit) {
		if !(limit >= c.lowLimit) {
			c.lowLimit = limit
		}
		if !(limit <= c.highLimit) {
			c.highLimit = limit
		}
	}
	if policy.Known(x) && !(x <= c.highest) {
		c.highest = x
	}
	if x > limit && !(x-limit <= c.over-c.overLimit) {
		c.over, c.overLimit = x, limit
	}
}

// most returns the highest value of all, above 0.
func (cs columns) most() float64 {
	most := 0.0
	for _, c := range cs {
		for _, v := range []float64{c.highest, c.highLimit} {
			if v > most {
				most = v
			}
		}
	}
	if most == 0 {
		return 1
	}
	return most
}

// offered returns the line of the highest steps, with gaps where nothing is known.
func (cs columns) offered(y chart.Axis) string {
	var p chart.Path
	for i, c := range cs {
		if !policy.Known(c.highest) {
			p.Break()
			continue
		}
		p.Point(plotLeft+float64(i), y.Pixel(c.highest))
	}
	return p.String()
}

// limit returns the line of the limits, in steps.
func (cs columns) limit(y chart.Axis) string {
	var p chart.Path
	for i, c := range cs {
		if !policy.Known(c.lowLimit) {
			p.Break()
			continue
		}
		x := plotLeft + float64(i)
		first, second := c.lowLimit, c.highLimit
		if i > 0 && cs[i-1].highLimit > c.lowLimit {
			first, second = second, first
		}
		p.Point(x, y.Pixel(first))
		p.Point(x, y.Pixel(second))
		p.Point(x+1, y.Pixel(second))
	}
	return p.String()
}

// dense reports whether the limit goes up and down within most pixels that have
// one: a line would cover all.
func (cs columns) dense() bool {
	limited, moved := 0, 0
	for _, c := range cs {
		if policy.Known(c.lowLimit) {
			limited++
		}
		if c.lowLimit < c.highLimit {
			moved++
		}
	}
	return 2*moved > limited
}

// band returns lines from the lowest limit of each pixel to the highest.
func (cs columns) band(y chart.Axis) string {
	var p chart.Path
	for i, c := range cs {
		if policy.Known(c.lowLimit) {
			x := plotLeft + float64(i) + 0.5
			p.Point(x, y.Pixel(c.lowLimit)+0.5)
			p.Point(x, y.Pixel(c.highLimit)-0.5)
			p.Break()
		}
	}
	return p.String()
}

// dropped returns a line down from each pixel that stands above its limit, and a
// mark below the axis, where it is seen however little is above.
func (cs columns) dropped(y chart.Axis) string {
	var p chart.Path
	for i, c := range cs {
		if !policy.Known(c.over) {
			continue
		}
		x := plotLeft + float64(i) + 0.5
		p.Point(x, y.Pixel(c.over))
		p.Point(x, y.Pixel(c.overLimit))
		p.Break()
		p.Point(x, y.From+1)
		p.Point(x, y.From+1+drops)
		p.Break()
	}
	return p.String()
}

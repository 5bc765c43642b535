package chart

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"grl/web/format"
)

const (
	sparkHeight = 280 // units; whole ones are a tenth of a pixel, and short to write
	mostSpark   = 72  // points
)

type drawnSpark struct {
	label, class, box string
	over, overClass   string
	line              string
	old, limit        string
}

func sparkOf(s Sparkline) drawnSpark {
	values := clean(s.Values)
	if len(values) > mostSpark {
		values = highest(values, mostSpark)
	}
	limit, before := finite(s.LimitRPS), finite(s.Before)
	top := max(limit, before)
	for _, v := range values {
		if v > top {
			top = v
		}
	}
	top *= 1.06
	if top < 1e-6 {
		top = 1
	}
	in := space{places: max(1, len(values)), height: sparkHeight, top: top, whole: true}
	out := drawnSpark{label: format.Printable(s.Label), class: "spark", box: fmt.Sprintf("0 0 %d %d", in.width(), sparkHeight), line: in.line(values)}
	if s.Wide {
		out.class += " spark--wide"
	}
	across := func(v float64) string { return "M0 " + in.print(v) + "H" + strconv.Itoa(in.width()) }
	if before > 0 {
		out.old = across(before)
	}
	if limit > 0 {
		out.limit = across(limit)
		level := make([]float64, len(values))
		for i := range level {
			level[i] = limit
		}
		out.over, out.overClass = in.between(values, level), "spark__over"
		if s.Shadow {
			out.overClass += " spark__over--virtual"
		}
	}
	return out
}

// highest returns n values, each the highest of those that share its place.
func highest(values []float64, n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = math.NaN()
	}
	for i, v := range values {
		if at := i * n / len(values); math.IsNaN(out[at]) || v > out[at] {
			out[at] = v
		}
	}
	return out
}

// finite returns v if it can be drawn, else 0.
func finite(v float64) float64 {
	if !(v > 0) || math.IsInf(v, 0) {
		return 0
	}
	return min(v, huge)
}

type drawnBar struct {
	admitted, virtualX, virtual, dropped string // in per cent; "": none
}

func barOf(b Bar) drawnBar {
	of := finite(b.Of)
	if of == 0 {
		return drawnBar{}
	}
	admitted := min(finite(b.Admitted)/of, 1)
	dropped := min(finite(b.Dropped)/of, 1-admitted)
	virtual := min(finite(b.Virtual)/of, admitted)
	out := drawnBar{admitted: tenths(admitted)}
	if dropped > 0 {
		out.dropped = tenths(dropped)
	}
	if virtual > 0 {
		out.virtualX, out.virtual = tenths(admitted-virtual), tenths(virtual)
	}
	return out
}

func tenths(share float64) string { return strconv.FormatFloat(100*share, 'f', 1, 64) + "%" }

const (
	heatWide, heatHigh = 20, 16 // pixels of a cell with the gap after it
	heatLeft, heatGap  = 34, 2
)

type drawnHeat struct {
	label string
	days  []heatText
	hours []heatText
	cells []heatCell
}

type (
	heatText struct{ x, y, text string }
	heatCell struct {
		class, x, y, title string
		unknown            bool
	}
)

func heatOf(h WeekHeat) drawnHeat {
	top := 0.0
	for _, row := range h.Shares {
		for _, v := range row {
			top = max(top, finite(v))
		}
	}
	out := drawnHeat{label: format.Printable(h.Label)}
	for d, row := range h.Shares {
		name := time.Weekday((d + 1) % 7).String()[:3]
		out.days = append(out.days, heatText{"0", strconv.Itoa(d*heatHigh + 11), name})
		for k, v := range row {
			c := heatCell{class: "heat__cell", x: strconv.Itoa(heatLeft + k*heatWide), y: strconv.Itoa(d * heatHigh), unknown: math.IsNaN(v)}
			if level := heatLevel(finite(v), top); level > 0 {
				c.class += " heat__cell--" + strconv.Itoa(level)
				c.title = fmt.Sprintf("%s %02d:00: %s", name, k, format.Share(finite(v)))
			}
			out.cells = append(out.cells, c)
		}
	}
	for k := 0; k < 24; k += 3 {
		out.hours = append(out.hours, heatText{strconv.Itoa(heatLeft + k*heatWide + 9), strconv.Itoa(7*heatHigh + 12), fmt.Sprintf("%02d", k)})
	}
	return out
}

// heatLevel returns how dark a share is, from 0 to 4 for the highest: small
// shares differ more than large ones. What cannot be noticed is 0.
func heatLevel(v, top float64) int {
	if v <= 0.0005 {
		return 0
	}
	return 1 + min(3, int(4*math.Pow(v/top, 0.7)-1e-9))
}

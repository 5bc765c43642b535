package chart

import (
	"math"
	"strconv"
	"time"

	"grl/web/format"
)

const (
	mostTicks = 4    // of an axis, above zero
	lowTicks  = 2    // where the plot is low
	lowPlot   = 100  // pixels
	headroom  = 1.04 // above the highest value
)

// scaleOf returns where an axis ends, and how far its ticks are apart.
func scaleOf(peak, atLeast, height float64) (top, step float64) {
	if !(atLeast > 0 && atLeast <= huge) {
		atLeast = 0
	}
	top = max(peak*headroom, atLeast)
	if top < 1e-6 {
		top = 1
	}
	most := mostTicks
	if height < lowPlot {
		most = lowTicks
	}
	magnitude := math.Pow10(int(math.Floor(math.Log10(top))) - 1)
	for {
		for _, m := range []float64{1, 2, 2.5, 5} {
			if step := m * magnitude; int(top/step*(1+1e-9)) <= most {
				return top, step
			}
		}
		magnitude *= 10
	}
}

func gridOf(in space, step float64) []gridLine {
	var out []gridLine
	for i := range int(in.top/step*(1+1e-9)) + 1 {
		v := step * float64(i)
		class := "grid"
		if i == 0 {
			class = "base"
		}
		y := math.Round(in.y(v)) + 0.5
		out = append(out, gridLine{class: class, y: number1(y), textY: number1(y + 3.5), text: axisText(v)})
	}
	return out
}

// axisText prints a number at an axis.
func axisText(v float64) string {
	if v > 0 && v < 0.1 {
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
	return format.Size(v)
}

const (
	day  = 24 * time.Hour
	week = 7 * day
)

// roundSpans are how far times may be apart that people read.
var roundSpans = []time.Duration{
	time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, day, 2 * day, week, 2 * week, 4 * week, 13 * week, 52 * week,
}

const (
	mostTimes = 12
	shortAxis = 8 * day // on which days of the week are told
)

// axis returns the times below a plot, in UTC. Every second one gives way on a
// narrow screen.
func (p Plot) axis(steps int, height float64) []tick {
	span := p.span(steps)
	every := span / mostTimes
	for _, s := range roundSpans {
		if span/s <= mostTimes {
			every = s
			break
		}
	}
	every = max(every, time.Millisecond)
	form := "15:04"
	switch {
	case every >= day && span <= shortAxis:
		form = "Mon"
	case every >= day:
		form = "2 Jan"
	}
	// Weeks begin on Monday; that of Truncate begins where the calendar does, on
	// a Monday too.
	first := p.From.UTC().Truncate(every)
	if first.Before(p.From) {
		first = first.Add(every)
	}
	var out []tick
	for t := first; len(out) <= mostTimes+1; t = t.Add(every) {
		x := p.at(t, steps)
		if !(x >= 0 && x <= 1) {
			break
		}
		odd := ""
		if len(out)%2 == 1 {
			odd = " chart__odd"
		}
		out = append(out, tick{
			class: odd, text: t.Format(form), x: percent(x),
			y: number1(height), markY: number1(height + 4), textY: number1(height + 17),
		})
	}
	return out
}

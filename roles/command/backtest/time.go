package backtest

import (
	"strconv"
	"time"
)

// timeAxis maps [from, to) to the pixels of a panel.
type timeAxis struct{ from, to time.Time }

func (a timeAxis) pixel(t time.Time) float64 {
	return plotLeft + (plotRight-plotLeft)*float64(t.Sub(a.from))/float64(a.to.Sub(a.from))
}

// timeTick is a time with a name.
type timeTick struct {
	at   time.Time
	text string
}

// mostTicks is how many names find room below an axis.
const mostTicks = 12

// intervals are what ticks may be apart: days, else months; and how they are named.
var intervals = []struct {
	hours, days, months int
	layout              string
}{
	{hours: 1, layout: "15:04"},
	{hours: 6, layout: "2 Jan 15:04"},
	{days: 1, layout: "Mon 2 Jan"},
	{days: 2, layout: "Mon 2 Jan"},
	{days: 7, layout: "2 Jan 2006"},
	{days: 14, layout: "2 Jan 2006"},
	{months: 1, layout: "Jan 2006"},
	{months: 3, layout: "Jan 2006"},
	{months: 12, layout: "2006"},
	{months: 60, layout: "2006"},
	{months: 600, layout: "2006"},
}

// ticks returns round times in the shortest interval that leaves room for names.
func (a timeAxis) ticks() []timeTick {
	var out []timeTick
	for _, every := range intervals {
		y, m, d := a.from.Date()
		at := time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
		if every.months > 0 {
			at = time.Date(y-y%max(1, every.months/12), 1, 1, 0, 0, 0, 0, time.UTC)
		}
		out = out[:0]
		for at.Before(a.to) && len(out) <= mostTicks {
			// A name at the very edge would stand out of the picture.
			if x := a.pixel(at); x >= plotLeft && x <= plotRight-24 {
				out = append(out, timeTick{at, at.Format(every.layout)})
			}
			at = at.AddDate(0, every.months, every.days).Add(time.Duration(every.hours) * time.Hour)
		}
		if len(out) <= mostTicks {
			break
		}
	}
	return out
}

// tick prints a rate on an axis up to top.
func tick(v, top float64) string {
	decimals := 0
	switch {
	case v == 0:
	case top < 0.1:
		return strconv.FormatFloat(v, 'g', 3, 64)
	case top < 1:
		decimals = 2
	case top < 10:
		decimals = 1
	}
	digits := strconv.FormatFloat(v, 'f', decimals, 64)
	if decimals > 0 {
		return digits
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

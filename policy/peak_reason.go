package policy

import (
	"math"
	"strings"
	"time"
)

// outlook is what a limit of peak is made of.
type outlook struct {
	window Series
	seen   sight
	peak   float64 // robust, in the highest seconds
	grown  float64 // growth as it was, of which half counts
	learnt learnt
	floor  float64 // of sparse buckets
	second float64 // over minute
	event  float64 // factor of the calendar
	during []string
}

// outlook returns what the policy knows without history.
func (p peak) outlook(in Input) outlook {
	factor, at := p.spec.mostEventFactor(in.Now, in.Now.Add(nightAhead))
	return outlook{second: p.spec.secondOverMinute(in), event: factor, during: p.spec.eventsAt(at)}
}

// sparse reports whether the floor of rare events sets the limit.
func (o outlook) sparse() bool {
	return o.floor > o.peak*math.Sqrt(o.grown)*o.learnt.buffer
}

// numbers returns the figures behind a limit.
func (o outlook) numbers(limit float64) []Number {
	numbers := []Number{
		{"peak", o.peak, "rps"},
		{"highest", o.window.RPS[o.seen.most], "rps"},
		{"history", float64(o.seen.known) * o.window.Step.Hours() / 24, "days"},
		{"growth", math.Sqrt(o.grown), "ratio"},
		{"buffer", o.learnt.buffer, "ratio"},
		{"best_buffer", o.learnt.best, "ratio"},
		{"cycles", float64(o.learnt.cycles), ""},
		{"sparse_floor", o.floor, "rps"},
	}
	if o.event != 1 {
		numbers = append(numbers, Number{"event", o.event, "ratio"})
	}
	if o.second != 1 {
		numbers = append(numbers, Number{"second_over_minute", o.second, "ratio"})
	}
	return append(numbers, Number{"computed", limit, "rps"})
}

// reason returns the part of the sentence.
func (p peak) reason(in Input, o outlook) string {
	span := "the last " + lasting(in.Now.Sub(o.window.Time(o.seen.first)))
	parts := []string{}
	if o.peak == 0 {
		parts = append(parts, "nothing was offered in "+span+", so one request in "+lasting(o.window.Step))
	} else {
		at := p.spec.when(o.window.Time(o.seen.most), o.window.Step)
		second := ""
		if o.second != 1 {
			second = " (its highest second, " + ratio(o.second) + " times the mean)"
		}
		parts = append(parts, "the peak of "+span+", "+Rate(o.peak)+" rps on "+at+second)
		if o.sparse() {
			parts = append(parts, "two standard deviations above it, since it is rare")
		} else {
			parts = append(parts, o.margins()...)
		}
	}
	if o.event != 1 {
		parts = append(parts, "times "+ratio(o.event)+" for "+quoted(o.during))
	}
	return strings.Join(parts, ", ")
}

// margins returns what stands above the peak.
func (o outlook) margins() []string {
	var parts []string
	if o.grown > 1.005 {
		text := "half of " + percent(math.Round((o.grown-1)*100)/100) + " growth"
		if o.grown == mostGrowth {
			text += " (no more counts)"
		}
		parts = append(parts, text)
	}
	text := "buffer " + ratio(o.learnt.buffer)
	if o.learnt.cycles == 0 {
		return append(parts, text+" (nothing is learnt yet)")
	}
	return append(parts, text+" (learnt from "+counted(o.learnt.cycles, "cycle")+")")
}

// lasting writes a time as people do: "4 weeks", "12 days", "a minute".
func lasting(d time.Duration) string {
	switch {
	case d > 2*week-day && (d+day)%week < 2*day: // whole weeks, but for a day
		return counted(int((d+day)/week), "week")
	case d >= 2*day:
		return counted(int((d+day/2)/day), "day")
	case d >= 2*time.Hour:
		return counted(int((d+time.Hour/2)/time.Hour), "hour")
	case d == time.Minute:
		return "a minute"
	case d == time.Hour:
		return "an hour"
	default:
		return counted(int((d+time.Minute/2)/time.Minute), "minute")
	}
}

// quoted writes the names of events.
func quoted(names []string) string {
	if len(names) == 0 {
		return "no event"
	}
	return `"` + strings.Join(names, `" and "`) + `"`
}

package policy

import (
	"strings"
	"time"
)

// numbers returns the figures behind the limit of an hour.
func (h *hourly) numbers(l hourLimit) []Number {
	c := &h.calibration
	numbers := []Number{
		{"peak", c.peak * h.second, "rps"},
		{"history", c.days, "days"},
		{"cap", l.most, "rps"},
		{"gain", c.gain, ""},
	}
	if c.basis != constant {
		numbers = append(numbers, Number{"multiple", c.multiple, "ratio"}, Number{"peak_share", c.share, "ratio"})
	}
	if Known(l.forecast) {
		numbers = append(numbers, Number{"forecast", l.forecast, "rps"})
	}
	if l.event != 1 {
		numbers = append(numbers, Number{"event", l.event, "ratio"})
	}
	if h.second != 1 {
		numbers = append(numbers, Number{"second_over_minute", h.second, "ratio"})
	}
	return append(numbers, Number{"computed", l.rps, "rps"})
}

// reason returns the part of the sentence.
func (h *hourly) reason(l hourLimit) string {
	c := &h.calibration
	parts := []string{h.made(l)}
	if h.second != 1 {
		parts = append(parts, ratio(h.second)+" of it for the highest second of a minute")
	}
	if l.event != 1 {
		parts = append(parts, "times "+ratio(l.event)+" for "+quoted(h.spec.eventsAt(l.at)))
	}
	text := strings.Join(parts, ", ")
	if c.basis == constant {
		return text + "; " + c.why
	}
	return text + "; limits by the hour stood " + percent(c.lower()) + " lower than one for all hours"
}

// made returns what the limit is made of.
func (h *hourly) made(l hourLimit) string {
	c := &h.calibration
	peak := "the peak of the last " + lasting(c.at.Sub(c.from)) + ", " + rate(c.peak) + " rps"
	most := percent(capShare) + " of " + peak
	if SparseFloor(c.peak*h.second, c.step) > capShare*c.peak*h.second {
		most = "two standard deviations above " + peak + ", since it is rare"
	}
	if !Known(l.forecast) {
		if c.basis != constant {
			most += ", since this " + c.slot() + " cannot be foretold"
		}
		return most
	}
	forecast := "the forecast of " + rate(l.forecast/h.second) + " rps by the " + c.slot() + " before and the shape of the week"
	if c.basis == highestOf {
		forecast += ", or the highest of the same " + c.slot() + " in the weeks"
	}
	times := ratio(margin*c.multiple) + " times " + forecast
	switch l.by {
	case byForecast:
		return times
	case byShare:
		return percent(min(1, margin*c.share)) + " of " + peak + ", more than " + times
	case bySparse:
		return "two standard deviations above " + forecast
	default:
		return most + ", no more than that, though " + times + " would be"
	}
}

// slot returns what the limits are by.
func (c *Calibration) slot() string {
	if c.step > time.Hour {
		return "day"
	}
	return "hour"
}

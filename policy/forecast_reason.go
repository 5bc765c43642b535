package policy

import "time"

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
	numbers = append(numbers, factors(l.event, h.second)...)
	return append(numbers, Number{"computed", l.rps, "rps"})
}

// factors returns those of the figures that multiply others, where there are any.
func factors(event, second float64) []Number {
	var numbers []Number
	if event != 1 {
		numbers = append(numbers, Number{"event", event, "ratio"})
	}
	if second != 1 {
		numbers = append(numbers, Number{"second_over_minute", second, "ratio"})
	}
	return numbers
}

// times words the factors: the highest second of a minute, and what the events of
// at make of it.
func (s *Spec) times(event, second float64, at time.Time) string {
	text := ""
	if second != 1 {
		text += ", " + ratio(second) + " times for the highest second of a minute"
	}
	if event != 1 {
		text += ", times " + ratio(event) + " for " + quoted(s.eventsAt(at))
	}
	return text
}

// reason returns the part of the sentence.
func (h *hourly) reason(l hourLimit) string {
	c := &h.calibration
	text := h.made(l) + h.spec.times(l.event, h.second, l.at)
	if c.basis == constant {
		return text + "; " + c.why
	}
	return text + "; limits by the " + c.slot() + " stood " + percent(c.lower()) + " lower than one for all " + c.slot() + "s"
}

// made returns what the limit is made of.
func (h *hourly) made(l hourLimit) string {
	c := &h.calibration
	peak := "the peak of the last " + lasting(c.at.Sub(c.from)) + ", " + Rate(c.peak) + " rps"
	most := atMost(capShare, c.peak*h.second, c.step, peak)
	if !Known(l.forecast) {
		if c.basis != constant {
			most += ", since this " + c.slot() + " cannot be foretold"
		}
		return most
	}
	forecast := "the forecast of " + Rate(l.forecast/h.second) + " rps by the " + c.slot() + " before and the shape of the week"
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

// atMost words the most that a limit may be: a share of the peak, or the floor of a
// sparse one.
func atMost(share, peakRPS float64, step time.Duration, peak string) string {
	if SparseFloor(peakRPS, step) > share*peakRPS {
		return "two standard deviations above " + peak + ", since it is rare"
	}
	return percent(share) + " of " + peak
}

// slot returns what the limits are by.
func (c *Calibration) slot() string {
	if c.step > time.Hour {
		return "day"
	}
	return "hour"
}

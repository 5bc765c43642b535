package policy

import (
	"strconv"
	"time"
)

// Sentence returns what a cycle found of one limit, in one sentence: "12,000 →
// 14,000 rps: " and the reason of the result, then what bounded it. A present
// limit of 0 is none.
func Sentence(presentRPS float64, bounded Bounded, reason string) string {
	text := Rate(bounded.LimitRPS) + " rps"
	switch {
	case presentRPS > 0 && bounded.LimitRPS == presentRPS:
		text += " stays"
	case presentRPS > 0:
		text = Rate(presentRPS) + " → " + text
	}
	if reason != "" {
		text += ": " + reason
	}
	if bounded.Words != "" {
		text += "; " + bounded.Words
	}
	return text
}

// percent writes a share with three digits at most.
func percent(share float64) string {
	return strconv.FormatFloat(share*100, 'g', 3, 64) + " %"
}

// ratio writes a factor with two decimals.
func ratio(x float64) string { return strconv.FormatFloat(x, 'f', 2, 64) }

// counted writes a number of things: "1 week", "4 weeks".
func counted(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return strconv.Itoa(n) + " " + thing
}

// location returns where the hours and days of the policy are.
func (s *Spec) location() *time.Location {
	if s.Location == nil {
		return time.UTC
	}
	return s.Location
}

// date writes a day.
func (s *Spec) date(t time.Time) string { return t.In(s.location()).Format("2 Jan 2006") }

// when writes the time of a step as exactly as it is known.
func (s *Spec) when(t time.Time, step time.Duration) string {
	layout := "Mon 2 Jan 15:04"
	if step >= day {
		layout = "Mon 2 Jan"
	}
	return t.In(s.location()).Format(layout)
}

// Package policy computes limits from what was offered in the past: peak,
// forecast, quota and live. It is pure: time and history are arguments, and
// nothing at or after Input.Now is looked at. docs/rlc.md explains each kind,
// with figures.
package policy

import "time"

// Policy computes the limit of one unit: a bucket or, where each region has a
// limit of its own, a bucket in one region. Compute may be called concurrently.
type Policy interface {
	Compute(Input) Result
}

// Input is what a limit is computed from.
type Input struct {
	// Now is when the cycle runs. What is at or after it is not known.
	Now time.Time
	// Series is what was offered, cleaned.
	Series Series
	// Memory is what past cycles taught; its zero value is nothing.
	Memory Memory
	// SecondOverMinute turns a minute's mean into the highest second, at least 1.
	SecondOverMinute float64
	// Instance is the region of the unit, "" for a global bucket.
	Instance string
}

// Result is what a policy makes of an Input, before Bound.
type Result struct {
	// LimitRPS is the limit from Now on, in requests per second, above 0; 0 only
	// with Refused.
	LimitRPS float64
	// Hourly has the limits of the 24 hours of the day in the policy's location,
	// where the policy has some; nil: LimitRPS at all hours. That of the hour of
	// Now equals LimitRPS.
	Hourly []float64
	// MostRPS is the most that any hour may have; without Hourly, LimitRPS.
	MostRPS float64
	// Memory replaces that of the Input.
	Memory Memory
	// Reason is a part of a sentence with the figures, such as "the peak of the
	// last 4 weeks, 10,400 rps on Fri 27 Nov 12:31, half of 9 % growth, buffer
	// 1.10". It stands after "12,000 → 14,000 rps: ".
	Reason  string
	Numbers []Number
	// Refused is why there is no limit, one of the words of Refusals; "": there
	// is one.
	Refused string
}

// Number is a figure behind a limit.
type Number struct {
	Name  string // a word of docs/rlc.md
	Value float64
	Unit  string // "rps", "ratio", "days" or ""
}

// Kind is a way of computing limits.
type Kind struct {
	Name string
	// Cycle and History hold unless the policy file says otherwise.
	Cycle   string
	History time.Duration
	// Least is the history below which it only proposes or shadows; 0: none is
	// needed.
	Least time.Duration
	// Step is within which a limit is lowered by at most one Spec.MaxStep, however
	// often the policy runs; a cycle, if that is longer.
	Step time.Duration
	// Exact says that its limits are agreed ones: they are not rounded, and change
	// however little they move.
	Exact bool
	New   func(*Spec) Policy
}

// kinds is the table of policies: a new one is a file and a line here.
var kinds = []Kind{
	{Name: "peak", Cycle: "0 2 * * *", History: 4 * week, Least: 3 * week, Step: day, New: newPeak},
	{
		Name: "forecast", Cycle: "0 * * * *", History: 4 * week, Least: 3 * week, Step: day,
		New: func(s *Spec) Policy { return NewForecast(s) },
	},
	{Name: "live", Cycle: "*/5 * * * *", History: 4 * week, Least: 3 * week, Step: time.Hour, New: newLive},
	{Name: "quota", Cycle: "0 0 * * *", Step: day, Exact: true, New: newQuota},
}

// Kinds returns the table of policies. It is not changed.
func Kinds() []Kind { return kinds }

// kindOf returns the line of a kind; the zero value if there is none.
func kindOf(name string) Kind {
	for _, k := range kinds {
		if k.Name == name {
			return k
		}
	}
	return Kind{}
}

package policy

import (
	"math"
	"time"
)

// Series is what one limit was offered, step by step. The zero value is empty.
// A series is not changed by who reads it.
type Series struct {
	Start time.Time     // of the first step
	Step  time.Duration // above 0
	// RPS is the mean of each step in requests per second; Unknown where nothing
	// was recorded or what was does not teach. Never negative or infinite.
	RPS []float64
}

// Unknown stands for the load of a step of which nothing is known.
var Unknown = math.NaN()

// Known reports whether a load is known.
func Known(rps float64) bool { return rps == rps }

// Time returns when step i starts.
func (s Series) Time(i int) time.Time { return s.Start.Add(time.Duration(i) * s.Step) }

// Index returns the step that at lies in; below 0 or beyond the last step if it
// lies outside.
func (s Series) Index(at time.Time) int {
	d := at.Sub(s.Start)
	if d < 0 {
		return int((d+1)/s.Step) - 1
	}
	return int(d / s.Step)
}

// Trimmed returns the steps [first, after) from the first known one to the last;
// none if no load is known.
func (s Series) Trimmed() (first, after int) {
	after = len(s.RPS)
	for first < after && !Known(s.RPS[first]) {
		first++
	}
	for first < after && !Known(s.RPS[after-1]) {
		after--
	}
	return first, after
}

// Between returns the steps that start in [from, to).
func (s Series) Between(from, to time.Time) Series {
	first := min(max(0, s.Index(from.Add(s.Step-1))), len(s.RPS))
	last := min(max(first, s.Index(to.Add(s.Step-1))), len(s.RPS))
	return Series{Start: s.Time(first), Step: s.Step, RPS: s.RPS[first:last]}
}

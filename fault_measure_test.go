package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"
)

// measure makes the tests of faults print what they measured, a JSON object a
// line: task measure.
var measure = flag.Bool("measure", false, "print what the tests of faults measure, as JSON")

// slack is what a test allows where a bound on real processes is d: the machine
// has other things to do.
func slack(d time.Duration) time.Duration { return 5*d + 50*time.Millisecond }

// measured takes down a duration, which must be within bound and slack.
func measured(t *testing.T, goal string, value, bound time.Duration) {
	t.Helper()
	report(t, goal, value.Seconds(), bound.Seconds(), "s")
	if value > slack(bound) {
		t.Errorf("%s: %v, want at most %v and slack", goal, value, bound)
	}
}

// report takes down a figure and what it should be at most; 0: whatever it is.
func report(t *testing.T, goal string, value, bound float64, unit string) {
	t.Helper()
	t.Logf("%s: %.4g %s (bound %.4g)", goal, value, unit, bound)
	if !*measure {
		return
	}
	line, err := json.Marshal(struct {
		Goal  string  `json:"goal"`
		Value float64 `json:"value"`
		Bound float64 `json:"bound,omitzero"`
		Unit  string  `json:"unit"`
	}{goal, value, bound, unit})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(os.Stdout, "%s\n", line)
}

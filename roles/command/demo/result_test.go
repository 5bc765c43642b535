package demo

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"
)

// history makes the requests of a demo of 12 s with a limit of 100: offered and
// drops say how many a second, spread evenly; the drops come last.
func history(offered, drops [12]int) (plan, []request) {
	p := plan{third: 4 * time.Second, total: 12 * time.Second, surge: 15, limits: limits{all: 100}}
	var all []request
	for s := range offered {
		for i := range offered[s] {
			r := request{sent: time.Duration(s)*time.Second + time.Duration(i)*time.Second/time.Duration(offered[s])}
			if i >= offered[s]-drops[s] {
				r.outcome = dropped
			}
			all = append(all, r)
		}
	}
	return p, all
}

func TestResult(t *testing.T) {
	never := math.NaN()
	tests := []struct {
		name             string
		offered, dropped [12]int // requests in each second; the surge is 4 to 7
		settle, mean     float64 // NaN: nil
		before, after    int
		peak             float64
	}{
		{
			"held at once",
			[12]int{50, 50, 50, 50, 800, 800, 800, 800, 50, 50, 50, 50},
			[12]int{0, 0, 0, 0, 700, 700, 700, 700, 0, 0, 0, 0},
			0, 100, 0, 0, 800,
		},
		{
			"held from the third second on",
			[12]int{50, 50, 50, 50, 800, 800, 900, 800, 50, 50, 50, 50},
			[12]int{0, 0, 0, 0, 0, 300, 790, 698, 0, 0, 0, 0},
			2, 712.0 / 3, 0, 0, 900,
		},
		{
			"not held at the end",
			[12]int{50, 50, 50, 50, 800, 800, 800, 800, 50, 50, 50, 50},
			[12]int{0, 0, 0, 0, 700, 700, 700, 600, 0, 0, 0, 0},
			never, 400.0 / 3, 0, 0, 800,
		},
		{
			"drops without a need",
			[12]int{50, 50, 50, 50, 800, 800, 800, 800, 50, 50, 50, 50},
			// 40 are called for: in the window before, more than the limit was
			// offered. 3 and 1 are not.
			[12]int{0, 7, 0, 0, 700, 700, 700, 700, 40, 3, 0, 1},
			0, 100, 7, 4, 800,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, requests := history(tt.offered, tt.dropped)
			r := newResult(p, requests, counted{}, p.total)
			if !same(r.SettleSeconds, tt.settle) || !same(r.AdmittedMeanRPS, tt.mean) {
				t.Errorf("settle %v, mean %v; want %v, %v", value(r.SettleSeconds), value(r.AdmittedMeanRPS), tt.settle, tt.mean)
			}
			if r.FalseDropsBefore != tt.before || r.FalseDropsAfter != tt.after || r.OfferedPeakRPS != tt.peak {
				t.Errorf("false drops %d before, %d after, peak %v; want %d, %d, %v",
					r.FalseDropsBefore, r.FalseDropsAfter, r.OfferedPeakRPS, tt.before, tt.after, tt.peak)
			}
		})
	}
}

func same(got *float64, want float64) bool {
	return got == nil && math.IsNaN(want) || got != nil && *got == want
}

func value(v *float64) any {
	if v == nil {
		return nil
	}
	return *v
}

// The band is 6 % or, of 400 offered and a limit of 100, 4.5*sqrt(0.25/100).
func TestBand(t *testing.T) {
	r := Result{LimitRPS: 100}
	for offered, want := range map[int]float64{400: 0.225, 10_000: 0.06, 100: 0.45, 50: 0.45} {
		if got := r.band(window{offered: offered}); math.Abs(got-want) > 1e-9 {
			t.Errorf("band of %d offered = %v, want %v", offered, got, want)
		}
	}
}

func TestResultOfADemoStoppedEarly(t *testing.T) {
	p, requests := history([12]int{50, 50, 50, 50, 800, 30}, [12]int{})
	r := newResult(p, requests, counted{}, 5500*time.Millisecond)
	if !r.StoppedEarly || r.SettleSeconds != nil || r.AdmittedMeanRPS != nil || r.OfferedPeakRPS != 800 {
		t.Errorf("result %+v, want one that was stopped early", r)
	}
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if want := `"admitted_mean_rps":null,"settle_seconds":null`; !strings.Contains(string(text), want) {
		t.Errorf("JSON %s, want %s in it", text, want)
	}
	var words strings.Builder
	if err := r.Explain(&words); err != nil {
		t.Fatal(err)
	}
	if want := "Stopped early, after 5 of 12 seconds."; !strings.Contains(words.String(), want) {
		t.Errorf("explained as %s, want %q in it", words.String(), want)
	}
}

func TestExplainSaysWhatHappened(t *testing.T) {
	p, requests := history(
		[12]int{50, 50, 50, 50, 800, 800, 800, 1200, 50, 50, 50, 50},
		[12]int{0, 2, 0, 0, 0, 690, 700, 1102, 0, 1, 0, 0})
	p.limits.perCaller = 75
	requests[0].outcome, requests[1].late = failed, true
	r := newResult(p, requests, counted{decisions: 4000, shadow: map[cellKey]uint64{
		{bucketProducts, ""}: 1234, {bucketPerCaller, "frontend"}: 567,
	}}, p.total)
	var words strings.Builder
	if err := r.Explain(&words); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"sent 50 requests a second on average; the limit is 100. 2 requests were dropped, and none should have been.",
		"up to 1,200 a second",
		"One second after it began",
		"103 a second were admitted on average, 2.7% above the limit",
		"After the surge, 1 request was dropped that need not have been",
		"it would have dropped 1,234 requests",
		"limit of 75 for each caller: frontend would have lost 567 requests",
		"decided 4,000 requests. 1 FAILED",
		"did not keep up: 1 request",
	} {
		if !strings.Contains(words.String(), want) {
			t.Errorf("explained without %q:\n%s", want, words.String())
		}
	}
}

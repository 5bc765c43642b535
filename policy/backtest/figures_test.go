package backtest

import (
	"math"
	"testing"
	"time"

	"grl/policy"
)

// read reads a series of testdata.
func read(t *testing.T, name string) *File {
	t.Helper()
	f, err := ReadFile("testdata/"+name+".csv.gz", 0)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// options of a series and a kind of policy, with the lengths of the definitions.
func options(f *File, kind string, every time.Duration, bounds Bounds) Options {
	train, _ := Lengths(f.Series)
	spec := &policy.Spec{Kind: kind, History: train, MaxStep: 0.2, Digits: 2, Location: time.UTC}
	o := Options{Name: f.Name, Series: f.Series, Anomalies: f.Anomalies, Spec: spec, Every: every, Bounds: bounds}
	for _, k := range policy.Kinds() {
		if k.Name == kind {
			o.Policy = k.New(spec)
		}
	}
	return o
}

// ruled are options of a simple rule.
func ruled(f *File, limit func(policy.Series, time.Time) float64, every time.Duration) Options {
	o := options(f, "rule", every, Unbound)
	o.Policy = rule{o.Spec.History, limit}
	return o
}

// TestPublishedFigures compares with those of docs/rlc.md: FD within 0.02 points, H
// and T within 0.03. Those of the simple rules were found by others too, so they
// tell that periods, peaks and hours are counted as the definitions say.
func TestPublishedFigures(t *testing.T) {
	api, taxi, mentions, purchase := read(t, "api_1h"), read(t, "taxi_30m"), read(t, "mentions_amzn_5m"), read(t, "purchase1_1h")
	tests := []struct {
		name    string
		options Options
		periods int
		fd      float64 // percent
		h, t    float64
	}{
		{"highest, api", ruled(api, highest, 0), 33, 0.031, 1.99, 3.60},
		{"highest, taxi", ruled(taxi, highest, 0), 27, 0, 1.31, 2.02},
		{"highest, mentions", ruled(mentions, highest, 0), 5, 0.022, 2.82, 13.70},
		{"highest, purchases", ruled(purchase, highest, 0), 3, 7.273, 2.40, 1.20},
		{"high, taxi", ruled(taxi, high, 0), 27, 0, 1.59, 2.43},
		{"same hour, taxi", ruled(taxi, sameHour, time.Hour), 27, 0.049, 0.77, 1.27},
		{"last hour, taxi", ruled(taxi, lastHour, time.Hour), 27, 0.661, 0.89, 1.51},
		{"peak weekly, api", options(api, "peak", 0, Unbound), 33, 0.089, 2.05, 3.66},
		{"peak weekly, taxi", options(taxi, "peak", 0, Unbound), 27, 0.009, 1.13, 1.75},
		{"peak weekly, mentions", options(mentions, "peak", 0, Unbound), 5, 0.048, 2.45, 12.11},
		{"peak weekly, purchases", options(purchase, "peak", 0, Unbound), 3, 0, 5.83, 4.00},
		{"peak nightly with rails, api", options(api, "peak", day, Rails), 33, 0.020, 2.07, 3.77},
		{"peak nightly with rails, taxi", options(taxi, "peak", day, Rails), 27, 0.005, 1.11, 1.73},
		{"peak nightly with rails, mentions", options(mentions, "peak", day, Rails), 5, 0.003, 2.43, 13.91},
		{"peak nightly with rails, purchases", options(purchase, "peak", day, Rails), 3, 0, 5.83, 4.00},
		{"forecast, api", options(api, "forecast", time.Hour, Unbound), 33, 0.025, 0.98, 1.77},
		{"forecast, taxi", options(taxi, "forecast", time.Hour, Unbound), 27, 0.001, 0.85, 1.37},
		{"forecast, mentions", options(mentions, "forecast", time.Hour, Unbound), 5, 0.043, 2.56, 9.98},
		{"forecast with rails, taxi", options(taxi, "forecast", time.Hour, Rails), 27, 0.001, 0.89, 1.41},
		{"forecast, purchases", options(purchase, "forecast", time.Hour, Unbound), 3, 0, 5.83, 4.00},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, err := Run(t.Context(), tt.options)
			if err != nil {
				t.Fatal(err)
			}
			if r.Periods != tt.periods || !(math.Abs(100*r.FD-tt.fd) <= 0.02) || !(math.Abs(r.H-tt.h) <= 0.03) || !(math.Abs(r.T-tt.t) <= 0.03) {
				t.Errorf("%d periods, FD %.3f %%, H %.3f, T %.3f, want %d, %.3f %%, %.2f, %.2f", r.Periods, 100*r.FD, r.H, r.T, tt.periods, tt.fd, tt.h, tt.t)
			}
		})
	}
}

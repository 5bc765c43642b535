package fleet_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"grl/roles/fleet"
)

// The targets of the law, and of what is left of it without events, hot ticks,
// ceiling and rescaling. That of drops just below the limit is in
// TestProperty1NoFalseDrops.

// targets are the published figures of one law: seconds, seconds of the limit,
// or percent of it, at most. 0: there is none.
type targets struct {
	law          string
	lag          float64 // from the step until within 5 %
	step         float64 // overshoot
	ramp         float64
	pulse        float64 // of each
	falsely      float64 // dropped after a surge
	release      float64 // from the end of the surge until drops end
	bytes, worst float64 // of a host a second, in the mean and in the worst second
	retry        float64 // until within 5 %
	retryPeaks   float64 // peak to peak after that
	retryRelease float64
	lost         float64 // overshoot, the controller is lost and then comes the step
}

func published() []targets {
	return []targets{
		{
			law: fleet.GRL, lag: 0.4, step: 0.9, ramp: 1.2, pulse: 0.75, falsely: 0.1, release: 0.4,
			bytes: 300, worst: 1400, retry: 2.5, retryPeaks: 4, retryRelease: 4, lost: 0.8,
		},
		{
			law: fleet.Minimal, lag: 2, step: 6.5, ramp: 4.5, falsely: 0.8, release: 2,
			bytes: 400, worst: 2900, retry: 5.5, retryPeaks: 4, retryRelease: 6.5, lost: 6,
		},
	}
}

// eachLaw runs a test of each law.
func eachLaw(t *testing.T, test func(t *testing.T, want targets)) {
	for _, want := range published() {
		t.Run(want.law, func(t *testing.T) {
			t.Parallel()
			test(t, want)
		})
	}
}

func TestTargetStep(t *testing.T) {
	eachLaw(t, func(t *testing.T, want targets) {
		var lag, over, falsely, release, bytes, worst figures
		for _, seed := range seeds(t) {
			m := run(t, fleet.Options{Law: want.law}, seed).Metrics
			lag = append(lag, m.SettleSeconds)
			over = append(over, m.OvershootSeconds)
			falsely = append(falsely, m.FalseDropsSeconds)
			release = append(release, m.ReleaseSeconds)
			bytes = append(bytes, m.BytesPerHostSecond)
			worst = append(worst, m.WorstBytesPerHostSecond)
		}
		lag.each(t, "seconds until within 5 %", want.lag)
		over.each(t, "overshoot in seconds of the limit", want.step)
		falsely.each(t, "false drops in seconds of the limit", want.falsely)
		release.each(t, "seconds until drops end", want.release)
		bytes.each(t, "bytes of a host a second", want.bytes)
		worst.each(t, "bytes of a host in the worst second", want.worst)
	})
}

func TestTargetRampAndPulses(t *testing.T) {
	eachLaw(t, func(t *testing.T, want targets) {
		var ramp, pulse figures
		for _, seed := range seeds(t) {
			ramp = append(ramp, run(t, fleet.Options{Law: want.law, Scenario: fleet.Ramp}, seed).Metrics.OvershootSeconds)
			if want.pulse > 0 {
				pulse = append(pulse, run(t, fleet.Options{Law: want.law, Scenario: fleet.Pulse}, seed).Metrics.OvershootSeconds/10)
			}
		}
		ramp.each(t, "overshoot in seconds of the limit", want.ramp)
		if want.pulse > 0 {
			pulse.each(t, "overshoot of each pulse", want.pulse)
		}
	})
}

func TestTargetSteady(t *testing.T) {
	tests := []struct {
		limit, load float64
		off         float64 // percent of mean error
		deviation   float64 // percent, of means of a second; 0: none is promised
		seconds     float64
		hosts       int // of all buckets
		buckets     int
	}{
		{44_000, 367_000, 0.3, 0.2, 60, 200, 1},
		{1000, 1500, 1, 3.2, 120, 200, 1},
		{5, 10, 2, 0, 500, 80, 8},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprint(tt.limit), func(t *testing.T) {
			eachLaw(t, func(t *testing.T, want targets) {
				var off, deviation figures
				for _, seed := range seeds(t) {
					m := run(t, fleet.Options{
						Law: want.law, LimitRPS: tt.limit, Services: tt.buckets, Hosts: tt.hosts,
						Plan: steady(tt.load, tt.seconds),
					}, seed).Metrics
					off = append(off, m.MeanErrorPercent)
					deviation = append(deviation, m.SteadySDPercent)
				}
				off.atMost(t, "percent of error", math.Abs(off.mean()), tt.off)
				if tt.deviation > 0 {
					deviation.atMost(t, "percent of deviation of 1 s", deviation.rms(), known(tt.deviation, len(deviation)*int(tt.seconds)))
				}
			})
		})
	}
}

func TestTargetRetries(t *testing.T) {
	eachLaw(t, func(t *testing.T, want targets) {
		rise, fall := 20*time.Second, 35*time.Second
		var settle, peaks, release figures
		for _, seed := range seeds(t) {
			r := run(t, fleet.Options{Law: want.law, Scenario: fleet.Retry}, seed)
			from := rise + time.Duration(want.retry*float64(time.Second))
			after := means(&r.Total, r.Total.Admitted, from, fall, time.Second, time.Second)
			settle = append(settle, r.Metrics.SettleSeconds)
			peaks = append(peaks, 100*(slices.Max(after)-slices.Min(after))/limit)
			release = append(release, r.Metrics.ReleaseSeconds)
		}
		settle.average(t, "seconds until within 5 %", want.retry)
		peaks.average(t, "percent from peak to peak", want.retryPeaks)
		release.each(t, "seconds until drops end", want.retryRelease)
	})
}

func TestTargetControllerLost(t *testing.T) {
	eachLaw(t, func(t *testing.T, want targets) {
		var over figures
		for _, seed := range seeds(t) {
			m := run(t, fleet.Options{Law: want.law, Scenario: fleet.FailoverSurge}, seed).Metrics
			over = append(over, m.OvershootSeconds)
		}
		over.each(t, "overshoot in seconds of the limit", want.lost)
	})
}

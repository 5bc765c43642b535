package main

import (
	"context"
	"time"

	"grl/policy"
	"grl/policy/backtest"
)

const (
	hour = time.Hour
	day  = 24 * hour
)

// trial is a way to run a policy.
type trial struct {
	name   string // as the tables have it
	kind   string
	every  time.Duration // 0: once a period
	bounds backtest.Bounds
	// vary changes the policy of a kind; nil: it stays.
	vary func(policy.Policy, time.Duration) policy.Policy
}

// The trials of the tables.
var (
	peakWeekly    = trial{"`peak`, once a period", "peak", 0, backtest.Unbound, nil}
	peakRails     = trial{"`peak`, nightly, with rails", "peak", day, backtest.Rails, nil}
	peakLive      = trial{"the same, rounded, with a dead band", "peak", day, backtest.Live, nil}
	peakUp        = trial{"the same, rounded up", "peak", day, backtest.Live, func(p policy.Policy, _ time.Duration) policy.Policy { return roundedUp{p} }}
	forecastFree  = trial{"`forecast`, hourly, without rails", "forecast", hour, backtest.Unbound, nil}
	forecastRails = trial{"`forecast`, hourly, with rails", "forecast", hour, backtest.Rails, nil}
	forecastLive  = trial{"the same, rounded, with a dead band", "forecast", hour, backtest.Live, nil}
)

// run runs a trial on all files.
func (t trial) run(ctx context.Context, files []*backtest.File) ([]*backtest.Result, error) {
	options := make([]backtest.Options, 0, len(files))
	for _, f := range files {
		train, test := backtest.Lengths(f.Series)
		spec := &policy.Spec{Kind: t.kind, History: train, MaxStep: 0.2, Digits: 2, Location: time.UTC}
		options = append(options, backtest.Options{
			Name: f.Name, Series: f.Series, Anomalies: f.Anomalies, Spec: spec, Policy: t.policy(spec, f.Series.Step),
			Train: train, Test: test, Every: t.every, Bounds: t.bounds,
		})
	}
	return backtest.All(ctx, options)
}

func (t trial) policy(spec *policy.Spec, step time.Duration) policy.Policy {
	for _, k := range policy.Kinds() {
		if k.Name != t.kind {
			continue
		}
		p := k.New(spec)
		if t.vary != nil {
			p = t.vary(p, step)
		}
		return p
	}
	return nil // no trial is of another kind
}

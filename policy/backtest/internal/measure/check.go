package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"grl/policy/backtest"
)

// bound is what a trial must reach on the shared series.
type bound struct {
	trial  trial
	within int     // series with FD at most the target, at least
	h, t   float64 // medians, at most; 0: any
}

var bounds = []bound{
	{peakRails, 17, 1.22, 0},
	{peakLive, 17, 1.22, 0},
	{forecastFree, 17, 0, 1.9},
	{forecastRails, 17, 0, 2.0},
}

// check runs what has bounds, says what came of it, and returns what does not
// hold.
func check(ctx context.Context, files []*backtest.File) error {
	var errs []error
	for _, b := range bounds {
		began := time.Now()
		results, err := b.trial.run(ctx, files)
		if err != nil {
			return err
		}
		s := backtest.Summarize(results)
		fmt.Printf("%s: FD <= 0.1 %% on %d of %d, median H %.3f, median T %.3f (%.1f s)\n",
			b.trial.name, s.Within, s.Series, s.H, s.T, time.Since(began).Seconds())
		errs = append(errs, b.holds(s))
	}
	return errors.Join(errs...)
}

// holds returns what of a summary is out of bounds.
func (b bound) holds(s backtest.Summary) error {
	var errs []error
	if s.Within < b.within {
		errs = append(errs, fmt.Errorf("%s: FD within 0.1 %% on %d series, want at least %d", b.trial.name, s.Within, b.within))
	}
	if b.h > 0 && !(s.H <= b.h) {
		errs = append(errs, fmt.Errorf("%s: median H %.3f, want at most %v", b.trial.name, s.H, b.h))
	}
	if b.t > 0 && !(s.T <= b.t) {
		errs = append(errs, fmt.Errorf("%s: median T %.3f, want at most %v", b.trial.name, s.T, b.t))
	}
	return errors.Join(errs...)
}

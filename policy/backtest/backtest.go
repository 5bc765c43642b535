// Package backtest judges policies by the past: it computes limits as a policy
// would have, from what was known at each time, and holds them against what was
// offered then. docs/rlc.md has the definitions and figures.
package backtest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"grl/policy"
)

const (
	day  = 24 * time.Hour
	week = 7 * day
)

// ErrOptions is wrapped by what Run says of options that make no sense, such as a
// history that is shorter than the time to learn from.
var ErrOptions = errors.New("backtest")

// Options are what to try on which history. Series, Spec and Policy are needed.
type Options struct {
	// Name is that of the series, for the result.
	Name   string
	Series policy.Series
	// Anomalies are times whose load is not normal: it does not count as falsely
	// dropped. It is not hidden from the policy.
	Anomalies []Window
	// Spec is what Policy was made of. It has a Location, and its History is how far
	// the policy looks back.
	Spec   *policy.Spec
	Policy policy.Policy
	// Highest is the requests in the highest second of each step of Series, 0 or NaN
	// where it is not known; nil: nowhere. Limits are computed with it, as
	// policy.SecondOverMinute has it, and held against the means of the steps all
	// the same.
	Highest []float64
	// Train is what is known before the first limit, and Test the length of a
	// period; 0: by the length of the series, see Lengths.
	Train, Test time.Duration
	// Every is the time between two cycles: a day is each midnight, an hour each
	// full hour, in the location of Spec. 0 is once before each period. What is
	// shorter than a step of the series is a step.
	Every time.Duration
	// Bounds are what holds a limit back from cycle to cycle.
	Bounds Bounds
	// Progress is called now and then with the share that is done; nil: it is not.
	Progress func(done float64)
}

// Run computes limits over the past of a series and judges them. It returns the
// error of ctx when that ends.
func Run(ctx context.Context, o Options) (*Result, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	r := newRun(o)
	if err := r.compute(ctx); err != nil {
		return nil, err
	}
	return r.judge(), nil
}

// check sets what is 0, and says what does not hold.
func (o *Options) check() error {
	if o.Series.Step <= 0 || len(o.Series.RPS) == 0 {
		return fmt.Errorf("%w: the series is empty", ErrOptions)
	}
	train, test := Lengths(o.Series)
	if o.Train == 0 {
		o.Train = train
	}
	if o.Test == 0 {
		o.Test = test
	}
	step, length := o.Series.Step, time.Duration(len(o.Series.RPS))*o.Series.Step
	switch {
	case o.Train < step || o.Test < step:
		return fmt.Errorf("%w: %v of training and %v of test, want at least a step of %v each", ErrOptions, o.Train, o.Test, step)
	case o.Train >= length:
		return fmt.Errorf("%w: %v of history leave nothing to test after %v of training", ErrOptions, length, o.Train)
	case o.Highest != nil && len(o.Highest) != len(o.Series.RPS):
		return fmt.Errorf("%w: highest seconds of %d steps, and %d steps", ErrOptions, len(o.Highest), len(o.Series.RPS))
	case o.Every < 0:
		return fmt.Errorf("%w: %v between two cycles", ErrOptions, o.Every)
	}
	return nil
}

// Lengths returns how long to train and to test on a series: four weeks and a week
// where it has nine weeks or more, three and one from five on, else a week and a
// day; eight weeks and one for daily steps.
func Lengths(s policy.Series) (train, test time.Duration) {
	length := time.Duration(len(s.RPS)) * s.Step
	switch {
	case s.Step >= day:
		return 8 * week, week
	case length >= 9*week:
		return 4 * week, week
	case length >= 5*week:
		return 3 * week, week
	default:
		return week, day
	}
}

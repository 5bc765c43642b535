package backtest

import (
	"context"
	"fmt"
	"sync"
)

// Target is the share of the normal volume that a limit may falsely drop.
const Target = 0.001

// workers is how many backtests run at a time.
const workers = 2

// All runs several backtests, two at a time, and returns their results in the
// same order; or one of the errors, after which the others are given up. Progress
// of the options is called from two goroutines.
func All(ctx context.Context, options []Options) ([]*Result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	results := make([]*Result, len(options))
	next := make(chan int)
	var running sync.WaitGroup
	for range workers {
		running.Go(func() {
			for i := range next {
				result, err := Run(ctx, options[i])
				if err != nil {
					cancel(fmt.Errorf("%s: %w", options[i].Name, err))
				}
				results[i] = result
			}
		})
	}
	for i := range options {
		next <- i // a worker that was cancelled returns at once
	}
	close(next)
	running.Wait()
	return results, context.Cause(ctx)
}

// Summary is what results have in common.
type Summary struct {
	Series int
	// Within is how many have FD at most at Target.
	Within int
	// H and T are the medians.
	H, T float64
}

// Summarize returns the summary of results.
func Summarize(results []*Result) Summary {
	s := Summary{Series: len(results)}
	var h, t []float64
	for _, r := range results {
		if r.FD <= Target {
			s.Within++
		}
		h, t = append(h, r.H), append(t, r.T)
	}
	s.H, s.T = median(h), median(t)
	return s
}

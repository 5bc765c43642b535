package main

import (
	"cmp"
	"context"
	"slices"

	"grl/policy/backtest"
)

// study is what came of the values that a constant may have.
type study struct {
	trials  []trial
	results [][]*backtest.Result // of each trial, by series
	figure  func(*backtest.Result) float64
}

// newStudy runs trials. Values are judged by how many series they keep within the
// target, and then by the median of a figure.
func newStudy(ctx context.Context, files []*backtest.File, trials []trial, figure func(*backtest.Result) float64) (*study, error) {
	s := &study{trials: trials, figure: figure}
	for _, t := range trials {
		results, err := t.run(ctx, files)
		if err != nil {
			return nil, err
		}
		s.results = append(s.results, results)
	}
	return s, nil
}

// score is what a value reaches; fewer within, or a higher figure, is worse.
type score struct {
	within int
	figure float64
}

func (s *study) score(results []*backtest.Result) score {
	var values []float64
	within := 0
	for _, r := range results {
		if r.FD <= backtest.Target {
			within++
		}
		values = append(values, s.figure(r))
	}
	slices.Sort(values)
	n := len(values)
	return score{within, (values[(n-1)/2] + values[n/2]) / 2}
}

// best returns the trial that scores best without one of the series; -1: with all.
func (s *study) best(without int) int {
	scores := make([]score, len(s.trials))
	for i, results := range s.results {
		if without >= 0 {
			results = slices.Delete(slices.Clone(results), without, without+1)
		}
		scores[i] = s.score(results)
	}
	order := make([]int, len(s.trials))
	for i := range order {
		order[i] = i
	}
	return slices.MinFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(scores[b].within, scores[a].within), cmp.Compare(scores[a].figure, scores[b].figure))
	})
}

// leaveOneOut chooses a value without each series in turn, and judges the series
// by it. It also returns how often each value was chosen.
func (s *study) leaveOneOut() (score, []int) {
	chosen := make([]int, len(s.trials))
	judged := make([]*backtest.Result, len(s.results[0]))
	for i := range judged {
		best := s.best(i)
		chosen[best]++
		judged[i] = s.results[best][i]
	}
	return s.score(judged), chosen
}

package history

import (
	"slices"

	"grl/policy"
)

const (
	// busyShare is the share of the robust peak from which on a minute counts as
	// busy.
	busyShare = 0.8
	// fewRequests is how many requests a minute needs for its highest second to
	// say more than chance.
	fewRequests = 60
	// fewMinutes is how many such minutes are needed.
	fewMinutes = 10
)

// secondOverMinute returns how far the highest second stands above the mean of
// its minute: the median over the minutes that teach, have at least 60 requests
// and reach four fifths of the robust peak. A limit is reached in those; in quiet
// ones the factor is higher and does not matter. 0: fewer than 10 are known.
func (l *lane) secondOverMinute(taught policy.Series) float64 {
	if l.second == nil {
		return 0
	}
	busy := max(busyShare*policy.RobustPeak(taught.RPS), fewRequests/l.step.Seconds())
	before := len(l.second) - len(taught.RPS)
	var factors []float64
	for i, mean := range taught.RPS {
		if second := l.second[before+i]; mean >= busy && second > 0 {
			factors = append(factors, max(1, second/mean))
		}
	}
	if len(factors) < fewMinutes {
		return 0
	}
	slices.Sort(factors)
	return factors[len(factors)/2]
}

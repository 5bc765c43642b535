package policy

import "slices"

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

// SecondOverMinute returns how far the highest second stands above the mean of
// its minute: the median over the minutes that teach, have at least 60 requests
// and reach four fifths of the robust peak. A limit is reached in those; in quiet
// ones the factor is higher and does not matter. Highest has the requests in the
// highest second of each step of taught, 0 or NaN where it is not known. At least
// 1; 0: fewer than 10 are known.
// Source: docs/rlc.md, "Seconds".
func SecondOverMinute(taught Series, highest []float64) float64 {
	busy := max(busyShare*RobustPeak(taught.RPS), fewRequests/taught.Step.Seconds())
	var factors []float64
	for i, mean := range taught.RPS {
		if second := highest[i]; mean >= busy && second > 0 {
			factors = append(factors, max(1, second/mean))
		}
	}
	if len(factors) < fewMinutes {
		return 0
	}
	slices.Sort(factors)
	return factors[len(factors)/2]
}

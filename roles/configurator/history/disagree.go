package history

import (
	"math"
	"time"

	"grl/policy"
)

const (
	// disagreement is by how much of the higher one two sources may differ.
	disagreement = 0.2
	// chance is how many standard deviations of a count do not count as a
	// difference.
	chance = 4
)

// Disagrees reports whether two sources say otherwise of the last hour that both
// know: they differ by more than a fifth of the higher one and more than chance
// explains, so also where one of them says 0 of a bucket that lives. Where one of
// them knows less than half of that hour nothing can be said: false.
func Disagrees(a, b policy.Series) bool {
	end := a.Time(len(a.RPS))
	if other := b.Time(len(b.RPS)); other.Before(end) {
		end = other
	}
	x, okX := lastHour(a, end)
	y, okY := lastHour(b, end)
	if !okX || !okY {
		return false
	}
	higher, apart := max(x, y), math.Abs(x-y)
	return apart > disagreement*higher && apart > chance*math.Sqrt(higher)
}

// lastHour returns the requests of the hour before end, if half of it is known.
func lastHour(s policy.Series, end time.Time) (requests float64, ok bool) {
	if s.Step <= 0 {
		return 0, false
	}
	known, sum := 0, 0.0
	hour := s.Between(end.Add(-max(time.Hour, s.Step)), end)
	for _, rps := range hour.RPS {
		if policy.Known(rps) {
			known++
			sum += rps
		}
	}
	if known == 0 || time.Duration(2*known)*s.Step < time.Hour {
		return 0, false
	}
	return sum / float64(known) * time.Hour.Seconds(), true
}

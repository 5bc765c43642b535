package policyfile

import (
	"fmt"
	"math"
	"slices"
	"time"

	"grl/policy"
)

// Sort puts policies into the order in which they are asked for a bucket: the
// first one that selects it is what Choose returns.
func Sort(specs []policy.Spec) {
	slices.SortFunc(specs, func(a, b policy.Spec) int {
		switch {
		case before(&a, &b):
			return -1
		case before(&b, &a):
			return 1
		}
		return 0
	})
}

// Every returns the time between two cycles of a policy, for a trial on the past:
// what runs about once a day runs each day.
func Every(s *policy.Spec) (time.Duration, error) {
	const night = 20 * time.Hour
	schedule, err := ParseSchedule(s.Cycle, s.Location)
	if err != nil {
		return 0, fmt.Errorf("cycle %q: %w", s.Cycle, err)
	}
	first := schedule.Next(time.Date(2024, time.January, 1, 0, 0, 0, 0, time.UTC))
	every := schedule.Next(first).Sub(first)
	if every >= night {
		every = time.Duration(math.Round(float64(every)/float64(day))) * day
	}
	return every, nil
}

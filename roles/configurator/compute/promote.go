package compute

import (
	"time"

	"grl/policy"
	"grl/roles/configurator/history"
)

const (
	// cleanShare is the share of a day's requests that a candidate may drop on a
	// clean day.
	cleanShare = 0.001
	// cleanCoverage is how much of a clean day must be known.
	cleanCoverage = 0.8
)

// cleanDays returns how many of the days that ended before now, one after
// another, were clean for a candidate that was there all the time.
func cleanDays(units []history.Unit, since, now time.Time) int {
	if since.IsZero() || len(units) == 0 {
		return 0
	}
	fewest := -1
	for _, u := range units {
		n := 0
		for i := len(u.Days) - 1; i >= 0; i-- {
			d := u.Days[i]
			if d.Start.Add(24 * time.Hour).After(now) {
				continue // is not over
			}
			if d.Start.Before(since) || d.Coverage < cleanCoverage || d.CandidateDropped > cleanShare*d.Offered {
				break
			}
			n++
		}
		if fewest < 0 || n < fewest {
			fewest = n
		}
	}
	return fewest
}

// promotes reports whether the policy makes a candidate the limit now.
func promotes(s *policy.Spec, days int) bool {
	return s.Mode == policy.Shadow && s.PromoteAfter > 0 && days >= s.PromoteAfter
}

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
// another, were clean for a candidate: it was there, and neither its own counts
// nor the history say that it would have dropped more than it may.
func cleanDays(units []history.Unit, candidateRPS float64, since, now time.Time) int {
	if since.IsZero() || len(units) == 0 {
		return 0
	}
	fewest := -1
	for _, u := range units {
		n := 0
		for i := len(u.Days) - 1; i >= 0; i-- {
			d := u.Days[i]
			end := d.Start.Add(24 * time.Hour)
			if end.After(now) {
				continue // is not over
			}
			if d.Start.Before(since) || d.Coverage < cleanCoverage || d.CandidateDropped > cleanShare*d.Offered ||
				above(u.Series.Between(d.Start, end), candidateRPS) > cleanShare {
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

// above returns the share of a series that lies above a limit; 1 if nothing of it
// is known.
func above(s policy.Series, limitRPS float64) float64 {
	var over, all float64
	known := false
	for _, rps := range s.RPS {
		if policy.Known(rps) {
			known = true
			over += max(0, rps-limitRPS)
			all += rps
		}
	}
	switch {
	case !known:
		return 1
	case all == 0:
		return 0
	default:
		return over / all
	}
}

// promotes reports whether the policy makes a candidate the limit now.
func promotes(s *policy.Spec, days int) bool {
	return s.Mode == policy.Shadow && s.PromoteAfter > 0 && days >= s.PromoteAfter
}

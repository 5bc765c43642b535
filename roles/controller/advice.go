package controller

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	grlv1 "grl/proto/grl/v1"
)

// verdict says what happens at a cell, in a sentence.
func (e *explained) verdict() string {
	ramping := e.bucket.Cap != nil && !e.now.Before(e.bucket.Cap.Ends)
	would := e.Ratio
	switch {
	case e.shadow && would > 0:
		return fmt.Sprintf("would drop %s, drops nothing", percent(would))
	case e.shadow:
		return "would drop nothing"
	case ramping && would > 0:
		return fmt.Sprintf("ends: still drops %s", percent(would))
	case ramping:
		return "has ended: drops nothing"
	case e.Block:
		return "drops everything"
	case would > 0:
		return fmt.Sprintf("drops %s of what reaches it", percent(would))
	case e.OfferedRPS == 0:
		return "drops nothing: nothing is offered to it"
	case e.DirectiveAge < 0 && !e.follows:
		return "drops nothing: no directive has spoken of it yet"
	default:
		return "drops nothing: within the limit"
	}
}

// advice says what a caller should do whose requests are answered so; worst is
// the cell that drops the most of them, nil if none drops any.
func advice(now time.Time, r *grlv1.ExplainResponse, worst *explained) string {
	switch {
	case !r.GetKnown():
		return "nothing to do: the service has no limits"
	case r.GetExempt():
		return "nothing to do: such requests are never dropped"
	case r.GetDisabled():
		return "nothing to do: nothing is dropped while the service is disabled"
	case worst == nil && len(r.GetCells()) == 0:
		return "nothing to do: no limit is on such requests"
	case worst == nil:
		return "nothing to do now; be ready to wait as Retry-After says when a request is dropped"
	}
	who := "the owner of " + worst.Service
	if worst.Owner != "" {
		who = worst.Owner
	}
	limit := "for a higher limit of " + worst.Service + "/" + worst.Name
	if c := worst.bucket.Cap; c != nil {
		who, limit = c.Author, "about the cap"
		if left := c.Ends.Sub(now); left > 0 && worst.Block {
			return fmt.Sprintf("stop sending such requests: they are blocked for %s more; ask %s %s", about(left), who, limit)
		} else if left > 0 {
			limit += ", which ends in " + about(left)
		}
	} else if worst.Block {
		return fmt.Sprintf("stop sending such requests: %s/%s blocks them until it is changed; ask %s", worst.Service, worst.Name, who)
	}
	return fmt.Sprintf("wait at least as long as Retry-After says, with jitter, and longer after each drop; do not retry at once, retries count too; ask %s %s", who, limit)
}

// about rounds a time that is left for people.
func about(d time.Duration) string {
	switch {
	case d < 2*time.Minute:
		return strconv.Itoa(int(d.Seconds()+1)) + " s"
	case d < 2*time.Hour:
		return strconv.Itoa(int(d.Minutes()+0.5)) + " min"
	default:
		return strconv.Itoa(int(d.Hours()+0.5)) + " h"
	}
}

func percent(share float64) string {
	digits := 0
	if share < 0.1 {
		digits = 1
	}
	return strconv.FormatFloat(100*share, 'f', digits, 64) + " %"
}

func sortedKeys(set map[string]bool) []string { return slices.Sorted(maps.Keys(set)) }

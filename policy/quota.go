package policy

import "time"

// quota takes a limit that was agreed on: the first one valid.
type quota struct{ spec *Spec }

func newQuota(s *Spec) Policy { return quota{s} }

// Compute implements Policy. It looks at no history.
func (q quota) Compute(in Input) Result {
	for _, agreed := range q.spec.Quota {
		if !agreed.validAt(in.Now) {
			continue
		}
		rps, ofRegion := agreed.Regions[in.Instance]
		if !ofRegion {
			rps = agreed.RPS
		}
		if !(rps > 0) {
			break // agreed for other regions only
		}
		return Result{
			LimitRPS: rps, MostRPS: rps, Memory: in.Memory,
			Reason:  q.reason(agreed),
			Numbers: []Number{{"quota", rps, "rps"}},
		}
	}
	return Result{Memory: in.Memory, Refused: "no_quota"}
}

func (q Quota) validAt(t time.Time) bool {
	return !t.Before(q.From) && (q.To.IsZero() || t.Before(q.To))
}

func (q quota) reason(agreed Quota) string {
	text := "agreed"
	if !agreed.From.IsZero() {
		text += " from " + q.spec.date(agreed.From)
	}
	if !agreed.To.IsZero() {
		text += " until " + q.spec.date(agreed.To)
	}
	return text
}

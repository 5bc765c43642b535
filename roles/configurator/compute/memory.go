package compute

import (
	"encoding/json"
	"fmt"
	"time"

	"grl/policy"
)

// Memory is what the configurator keeps of a bucket from cycle to cycle. The
// controller stores it, unread. The zero value is that of a new bucket.
type Memory struct {
	// ComputedAt is when the bucket was computed last, by Policy.
	ComputedAt time.Time `json:"computed_at,omitzero"`
	Policy     string    `json:"policy,omitempty"`
	// PolicyText is the hash of what the policy said then.
	PolicyText string `json:"policy_text,omitempty"`
	// Of says which requests the bucket had then; of others nothing is learnt.
	Of string `json:"of,omitempty"`
	// Units has what each unit learnt, by instance.
	Units map[string]Unit `json:"units,omitempty"`
	// CandidateSince is since when the bucket has had a candidate that was never
	// lowered, CandidateRPS the present one; zero: it has none.
	CandidateSince time.Time `json:"candidate_since,omitzero"`
	CandidateRPS   float64   `json:"candidate_rps,omitempty"`
}

// Unit is what one unit of a bucket learnt.
type Unit struct {
	// Learnt is a policy.Memory.
	Learnt []byte `json:"learnt,omitempty"`
	// Steps bounds how far limits fall within one cycle, however often it runs:
	// of a constant limit there is one, of hourly ones one for each hour.
	Steps map[int]Step `json:"steps,omitempty"`
}

// Step is where a limit stood when a cycle began.
type Step struct {
	At  time.Time `json:"at"`
	RPS float64   `json:"rps"`
}

// constant is the key of the Step of a limit that does not change by the hour.
const constant = -1

// ParseMemory reads what Bytes wrote; of nothing, the zero value.
func ParseMemory(data []byte) (Memory, error) {
	var m Memory
	if len(data) == 0 {
		return m, nil
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return Memory{}, fmt.Errorf("read memory of a bucket: %w", err)
	}
	return m, nil
}

// tooFar is how far ahead of the clock a time may be that was written by another
// one.
const tooFar = 5 * time.Minute

// At returns m as far as it can be true at a time: what is of the future was
// written by a clock that was wrong, and would put off all cycles until then.
func (m Memory) At(now time.Time) Memory {
	if m.ComputedAt.After(now.Add(tooFar)) {
		m.ComputedAt = time.Time{}
	}
	if m.CandidateSince.After(now.Add(tooFar)) {
		m.CandidateSince = time.Time{}
	}
	return m
}

// WithSteps returns m with the steps of next and nothing else of it: what must be
// known of a limit before it is lowered.
func (m Memory) WithSteps(next Memory) Memory {
	units := make(map[string]Unit, len(next.Units))
	for instance, u := range next.Units {
		units[instance] = Unit{Learnt: m.Units[instance].Learnt, Steps: u.Steps}
	}
	m.Of, m.Units = next.Of, units
	return m
}

// Stale reports whether m is not about the work: of another policy, or of other
// requests.
func (m Memory) Stale(w Work) bool { return m.Policy != w.Spec.Name || m.Of != requestsOf(w.Bucket) }

// NewDay reports whether now is another day, where a policy's days are, than when
// the bucket was computed last.
func NewDay(s *policy.Spec, m Memory, now time.Time) bool {
	zone := zoneOf(s)
	year, yearDay := m.ComputedAt.In(zone).Year(), m.ComputedAt.In(zone).YearDay()
	return m.Policy != s.Name || year != now.In(zone).Year() || yearDay != now.In(zone).YearDay()
}

// Bytes returns m as it is stored.
func (m Memory) Bytes() ([]byte, error) {
	data, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("write memory of a bucket: %w", err)
	}
	return data, nil
}

// learnt returns what a unit learnt; what cannot be read is forgotten, which
// makes a buffer begin anew.
func (u Unit) learnt() policy.Memory {
	var m policy.Memory
	if err := m.UnmarshalBinary(u.Learnt); err != nil {
		return policy.Memory{}
	}
	return m
}

// before returns where a limit stood before the cycle of now, of which one
// begins each period: its present value, unless the cycle ran already.
func (u Unit) before(key int, present float64, now time.Time, period time.Duration) float64 {
	if s, ok := u.Steps[key]; ok && now.Sub(s.At) < period*9/10 && !now.Before(s.At) {
		return max(s.RPS, present)
	}
	return present
}

// step remembers where a limit stood before the cycle of now.
func (u *Unit) step(key int, before float64, now time.Time, period time.Duration) {
	if s, ok := u.Steps[key]; ok && now.Sub(s.At) < period*9/10 && !now.Before(s.At) {
		return // it belongs to the same cycle
	}
	if u.Steps == nil {
		u.Steps = make(map[int]Step)
	}
	u.Steps[key] = Step{At: now, RPS: before}
}

package ledger

import (
	"context"
	"fmt"
	"slices"
	"time"

	"grl/store"
)

// Decision is what became of one proposal of a run.
type Decision struct {
	Bucket   string    `json:"bucket"` // full name
	State    string    `json:"state"`  // one of the States of a Decision
	By       string    `json:"by"`
	At       time.Time `json:"at"`
	Revision uint64    `json:"revision,omitempty"` // that has the change; 0: none
	Outcome  string    `json:"outcome,omitempty"`
}

// States of a Decision.
const (
	Approved   = "approved"
	Rejected   = "rejected"
	Superseded = "superseded"
)

const (
	keyDecision = "rlc-decision/"
	// maxPacked bounds a record of decisions, in bytes, beside which there is room
	// for an entry of the audit.
	maxPacked = store.MaxValue * 3 / 4
)

// decideAction returns what the audit calls decisions of a state; "": there is
// no such state.
func decideAction(state string) string {
	switch state {
	case Approved:
		return "rlc.approve"
	case Rejected:
		return "rlc.reject"
	case Superseded:
		return "rlc.supersede"
	default:
		return ""
	}
}

// Decide records what became of proposals of a run: all in one state, which the
// audit entry "rlc.approve", "rlc.reject" or "rlc.supersede" has. By and At are
// those of act where they are empty. ErrConflict, and nothing is recorded, if
// one of the buckets is decided; ErrNotFound if there is no such run; ErrTooMany
// if they are more than a record can have, some 50,000.
func (l *Ledger) Decide(ctx context.Context, act Act, id uint64, decisions []Decision) error {
	decided, err := act.decisions(decisions)
	if err == nil && len(decided) > 0 {
		err = l.decide(ctx, act, id, decided)
	}
	if err != nil {
		return fmt.Errorf("decide proposals of run %d: %w", id, err)
	}
	return nil
}

// decisions returns what is recorded, after checking it.
func (a *Act) decisions(given []Decision) ([]Decision, error) {
	if err := a.validate(); err != nil {
		return nil, err
	}
	decided := slices.Clone(given)
	seen := make(map[string]bool, len(decided))
	for i := range decided {
		d := &decided[i]
		if decideAction(d.State) == "" || d.State != decided[0].State {
			return nil, fmt.Errorf("bucket %q: state %q, want approved, rejected or superseded, and the same of all", d.Bucket, d.State)
		}
		if d.Bucket == "" || seen[d.Bucket] {
			return nil, fmt.Errorf("bucket %q is named twice, or not at all", d.Bucket)
		}
		seen[d.Bucket] = true
		if d.By == "" {
			d.By = a.Actor
		}
		if d.At.IsZero() {
			d.At = a.At
		}
		if err := checkTime("time", d.At); err != nil {
			return nil, err
		}
		d.By, d.Outcome, d.At = bounded(d.By, maxShort), bounded(d.Outcome, maxShort), d.At.UTC().Truncate(time.Millisecond)
	}
	return decided, nil
}

func (l *Ledger) decide(ctx context.Context, act Act, id uint64, decided []Decision) error {
	body := encode(decided)
	packed := compress(body)
	if len(body) > maxPart || len(packed) > maxPacked {
		return fmt.Errorf("%w: %d decisions at once", ErrTooMany, len(decided))
	}
	subjects := []string{(&Run{ID: id}).subject()}
	for _, d := range decided {
		subjects = append(subjects, d.Bucket)
	}
	_, err := l.editRun(ctx, id, func(r *run) (*plan, error) {
		// Read after the run, which changes along with them.
		before, err := l.decisions(ctx, id)
		if err != nil {
			return nil, err
		}
		for _, d := range decided {
			if b, ok := before[d.Bucket]; ok {
				return nil, fmt.Errorf("%w: %q is %s by %s", ErrConflict, d.Bucket, b.State, b.By)
			}
		}
		r.Decided++
		entry := act.entry(decideAction(decided[0].State), subjects, "", "")
		entry.Revision = decided[0].Revision
		return &plan{writes: []store.Write{{Key: partOf(keyDecision, id, r.Decided), Value: packed}}, entry: entry}, nil
	})
	return err
}

// Decisions returns what became of the proposals of a run, by the full name of
// the bucket; none of one that waits. ErrNotFound if there is no such run.
func (l *Ledger) Decisions(ctx context.Context, id uint64) (map[string]Decision, error) {
	_, err := l.run(ctx, id)
	var decisions map[string]Decision
	if err == nil {
		decisions, err = l.decisions(ctx, id)
	}
	if err != nil {
		return nil, fmt.Errorf("read decisions of run %d: %w", id, err)
	}
	return decisions, nil
}

func (l *Ledger) decisions(ctx context.Context, id uint64) (map[string]Decision, error) {
	all := make(map[string]Decision)
	err := l.eachPart(ctx, numbered(keyDecision, id)+"/", func(body []byte) error {
		var list []Decision
		if err := decode(store.Record{Key: keyDecision, Version: 1, Value: body}, &list); err != nil {
			return err
		}
		for _, d := range list {
			all[d.Bucket] = d
		}
		return nil
	})
	return all, err
}

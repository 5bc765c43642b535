package ledger

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"time"

	"grl/store"
)

// Rollout is a revision on its way through the zones.
type Rollout struct {
	Revision  uint64    `json:"revision"`
	From      uint64    `json:"from"`    // what zones hold that it has not reached
	State     string    `json:"state"`   // RolloutRunning, RolloutDone, RolloutStopped
	Reached   []string  `json:"reached"` // zones, and regions as "region NAME", in order
	StartedAt time.Time `json:"started_at"`
	ByRegion  bool      `json:"by_region,omitempty"` // region by region
	Forced    bool      `json:"forced,omitempty"`    // by a person, who knew what it was predicted to drop
	StepAt    time.Time `json:"step_at"`             // the last one was reached
	Reason    string    `json:"reason,omitempty"`
}

// States of a Rollout.
const (
	RolloutRunning = "running"
	RolloutDone    = "done"
	RolloutStopped = "stopped"
)

// maxReached bounds the zones and regions of a rollout.
const maxReached = 10_000

func (r *Rollout) validate() error {
	if r.State != RolloutRunning && r.State != RolloutDone && r.State != RolloutStopped {
		return fmt.Errorf("rollout: unknown state %q", r.State)
	}
	if len(r.Reached) > maxReached {
		return fmt.Errorf("rollout: reached %d, at most %d", len(r.Reached), maxReached)
	}
	if err := checkTime("rollout: start", r.StartedAt); err != nil {
		return err
	}
	return checkTime("rollout: step", r.StepAt)
}

// write returns the write of a rollout of a revision; nil: there is none.
func (r *Rollout) write(revision uint64) store.Write {
	if r == nil {
		return store.Write{Key: keyRollout, Delete: true}
	}
	kept := *r
	kept.Revision = revision
	return put(keyRollout, kept)
}

// same reports whether two rollouts are equal as kept.
func (r *Rollout) same(other *Rollout) bool {
	return r.Revision == other.Revision && r.From == other.From && r.State == other.State &&
		slices.Equal(r.Reached, other.Reached) && r.Reason == other.Reason && r.Forced == other.Forced && r.ByRegion == other.ByRegion &&
		r.StartedAt.Equal(other.StartedAt) && r.StepAt.Equal(other.StepAt)
}

// SetRollout replaces the rollout, if it still is was, by next; else it returns
// ErrConflict. A zero Rollout is none.
func (l *Ledger) SetRollout(ctx context.Context, act Act, action string, was, next Rollout) error {
	if err := l.setRollout(ctx, act, action, was, next); err != nil {
		return fmt.Errorf("set rollout of r%d: %w", next.Revision, err)
	}
	return nil
}

func (l *Ledger) setRollout(ctx context.Context, act Act, action string, was, next Rollout) error {
	if err := act.validate(); err != nil {
		return err
	}
	ends := reflect.ValueOf(next).IsZero()
	if !ends {
		if err := next.validate(); err != nil {
			return err
		}
	}
	return l.change(ctx, []string{keyRollout}, func(_ context.Context, records []store.Record) (*plan, error) {
		var present Rollout
		if err := decode(records[0], &present); err != nil {
			return nil, err
		}
		if !present.same(&was) {
			return nil, fmt.Errorf("%w: rollout of r%d is %s", ErrConflict, present.Revision, present.State)
		}
		write := next.write(next.Revision)
		if ends {
			write = store.Write{Key: keyRollout, Delete: true}
		}
		entry := act.entry(action, []string{fmt.Sprintf("r%d", max(was.Revision, next.Revision))}, string(encode(was)), string(encode(next)))
		return &plan{writes: []store.Write{write}, entry: entry}, nil
	})
}

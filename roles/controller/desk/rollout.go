package desk

import (
	"context"
	"fmt"
	"time"

	"grl/proto/access"
	"grl/store/ledger"
)

// FinishRequest asks for a rollout to reach all zones now.
type FinishRequest struct {
	By
	Reason string // required
}

// FinishRollout takes the rollout that is under way to all zones. It needs the
// level admin. Errors are those of Apply, and ErrNotFound
// if there is none.
func (d *Desk) FinishRollout(ctx context.Context, r FinishRequest) (ledger.Rollout, error) {
	if err := requireReason(r.Reason); err != nil {
		return ledger.Rollout{}, err
	}
	if r.Person.Level < access.Admin {
		return ledger.Rollout{}, d.deny(ctx, r.By, "rollout.finish", nil, "finishing a rollout needs the role admin")
	}
	state, err := d.opts.Ledger.State(ctx)
	if err != nil {
		return ledger.Rollout{}, err
	}
	was := state.Rollout
	if !underWay(was) {
		return ledger.Rollout{}, fmt.Errorf("rollout: %w", ErrNotFound)
	}
	next := was
	next.State, next.Reason, next.StepAt = ledger.RolloutDone, "", time.Now()
	next.Reached = append(append([]string(nil), was.Reached...), d.Waiting(was)...)
	if err := d.opts.Ledger.SetRollout(ctx, r.act(r.Reason, true), "rollout.finish", was, next); err != nil {
		return ledger.Rollout{}, err
	}
	return next, nil
}

// Waiting returns the live zones that a rollout has not reached.
func (d *Desk) Waiting(r ledger.Rollout) []string {
	if !underWay(r) {
		return nil
	}
	reached := make(map[string]bool, len(r.Reached))
	for _, zone := range r.Reached {
		reached[zone] = true
	}
	var waiting []string
	for _, zone := range d.opts.Traffic.Zones() {
		if !reached[zone] {
			waiting = append(waiting, zone)
		}
	}
	return waiting
}

// requireReason makes sure that there is a reason, and one to be written.
func requireReason(reason string) error {
	if reason == "" {
		return invalid("reason", "is empty")
	}
	if what := checkReason(reason); what != "" {
		return invalid("reason", "%s", what)
	}
	return nil
}

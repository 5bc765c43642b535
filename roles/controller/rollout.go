package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"grl/limiter/law"
	"grl/roles/controller/desk"
	"grl/store/ledger"
)

const (
	// rolloutStep is how long a zone, or a region, serves a revision before the
	// next one is reached.
	rolloutStep = time.Minute
	// rolloutActor is who the audit names for what a rollout does by itself.
	rolloutActor = "rollout"
)

// rollOut takes a rollout from zone to zone, or from region to region, and stops it if it harms, for as
// long as this controller leads.
func (c *Controller) rollOut(ctx context.Context) error {
	tick := time.NewTicker(law.T)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-tick.C:
			if err := c.stepRollout(ctx, now); err != nil && ctx.Err() == nil && !errors.Is(err, ledger.ErrConflict) {
				c.opts.Log.ErrorContext(ctx, "cannot go on with the rollout; trying again", "err", err)
			}
			if err := c.forgetCaps(ctx, now); err != nil && ctx.Err() == nil {
				c.opts.Log.ErrorContext(ctx, "cannot remove caps that ended; they drop nothing", "err", err)
			}
		}
	}
}

// stepRollout does what is due of the rollout under way.
func (c *Controller) stepRollout(ctx context.Context, now time.Time) error {
	c.mu.Lock()
	n, r := c.node, c.state.Rollout
	if n.stage == nil || !n.leads {
		c.mu.Unlock()
		return nil
	}
	var expected func(string) float64
	if r.Forced {
		expected = n.expected
	}
	bucket, rise := n.stage.watch.harmed(now, expected)
	reached := func(zone string) bool { return slices.Contains(r.Reached, zone) }
	live, away := n.rolloutZones(now)
	waiting, away := slices.DeleteFunc(live, reached), slices.DeleteFunc(away, reached)
	if r.ByRegion && len(waiting) > 0 {
		waiting = n.byRegion(waiting)[0]
	} else {
		waiting = waiting[:min(len(waiting), 1)]
	}
	source := c.state.Head.Source
	c.mu.Unlock()
	switch {
	case bucket != "":
		return c.stopRollout(ctx, now, r, source, fmt.Sprintf("%s drops %.0f points more where r%d was rolled out", bucket, 100*rise, r.Revision))
	case now.Sub(r.StepAt) < rolloutStep:
		return nil
	case len(waiting) == 0 && len(away) > 0:
		return nil // those that come back must not get it all at once
	}
	next := r
	next.StepAt = now
	if len(waiting) == 0 {
		next.State = ledger.RolloutDone
	} else {
		next.Reached = append(slices.Clone(r.Reached), waiting...)
	}
	if err := c.ledger.SetRollout(ctx, c.act(now, ""), "rollout."+word(next), r, next); err != nil {
		return err
	}
	c.opts.Log.InfoContext(ctx, "rollout goes on", "revision", r.Revision, "state", next.State, "reached", next.Reached)
	return nil
}

func word(r ledger.Rollout) string {
	if r.State == ledger.RolloutRunning {
		return "step"
	}
	return r.State
}

func (c *Controller) act(now time.Time, reason string) ledger.Act {
	return ledger.Act{Actor: rolloutActor, From: c.name, Reason: reason, At: now}
}

// stopRollout goes back to the revision before: a new one that equals it is
// active everywhere at once. source is that of the one that harmed: what the
// configurator did and did not is its own doing, not a person's.
func (c *Controller) stopRollout(ctx context.Context, now time.Time, r ledger.Rollout, source, reason string) error {
	documents, err := c.ledger.Documents(ctx, r.From)
	if err != nil {
		return err
	}
	stopped := r
	stopped.State, stopped.Reason = ledger.RolloutStopped, reason
	var sources []ledger.Source
	if source == desk.MachineSource {
		sources = []ledger.Source{{Name: source, Hash: fmt.Sprintf("r%d", r.From)}}
	}
	revision, err := c.ledger.Apply(ctx, r.Revision, ledger.Change{
		Act:       c.act(now, reason),
		Action:    "rollout.stopped",
		Before:    fmt.Sprintf("r%d", r.Revision),
		After:     fmt.Sprintf("r%d", r.From),
		Documents: documents,
		Sources:   sources,
		Rollout:   &stopped,
	})
	if err != nil {
		return err
	}
	c.opts.Log.ErrorContext(ctx, "stopped a rollout that harmed, and went back", "revision", r.Revision, "back_to", r.From, "now", revision.Number, "reason", reason)
	return nil
}

// forgetCaps removes the caps that have ramped out.
func (c *Controller) forgetCaps(ctx context.Context, now time.Time) error {
	c.mu.Lock()
	leads, caps := c.node.leads && !c.opts.Config.Regional(), c.state.Incident.Caps
	c.mu.Unlock()
	ended := now.Add(-law.RampFor).Round(0)
	if !leads || !slices.ContainsFunc(caps, func(p ledger.Cap) bool { return p.EndsAt.Before(ended) }) {
		return nil
	}
	return c.ledger.ForgetCaps(ctx, ended)
}

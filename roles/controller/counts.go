package controller

import (
	"context"
	"time"

	"grl/limiter"
	"grl/proto/access"
	grlv1 "grl/proto/grl/v1"
	"grl/proto/grl/v1/grlv1connect"
	"grl/web/page"
)

const (
	// countGap is how long after counting what the ledger has it is counted again
	// at the soonest.
	countGap = time.Second
	// countRuns is how many of the newest runs with proposals are looked at.
	countRuns = 10
)

// Counts returns what the navigation says.
func (v view) Counts() page.Counts {
	var out page.Counts
	if known := v.decided.Load(); known != nil {
		out = *known
	}
	out.Firing = v.countFiring()
	v.mu.Lock()
	defer v.mu.Unlock()
	n := v.node
	if n.configured.of != n.config {
		n.configured = configured{of: n.config}
		for _, b := range n.buckets {
			n.configured.add(b)
		}
	}
	out.Buckets, out.Shadow = n.configured.buckets, n.configured.shadow
	now := time.Now()
	for _, c := range n.config.Caps {
		if now.Before(c.Ends) {
			out.Caps++
		}
	}
	return out
}

// configured counts the buckets of a configuration.
type configured struct {
	of              *limiter.Configuration
	buckets, shadow int
}

func (c *configured) add(b *limiter.Bucket) {
	if b.Cap != nil {
		return
	}
	c.buckets++
	if b.Behavior != limiter.Deny || b.CandidateRPS > 0 {
		c.shadow++
	}
}

// keepCounts counts what the ledger has whenever it changes, until ctx ends, so
// that no page need read it.
func (c *Controller) keepCounts(ctx context.Context) error {
	policies, runs := c.ledger.PoliciesChanged(ctx), c.ledger.RunsChanged(ctx)
	for told := false; ; {
		c.mu.Lock()
		installed := c.installed
		c.mu.Unlock()
		again := time.Duration(0)
		switch err := c.countDecided(ctx); {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			if again = retryCampaign; !told {
				c.opts.Log.ErrorContext(ctx, "cannot count policies and proposals; trying again", "err", err)
			}
			told = true
		default:
			told = false
		}
		pause(ctx, max(again, countGap))
		if again > 0 {
			continue
		}
		select {
		case <-ctx.Done():
		case <-policies:
		case <-runs:
		case <-installed: // what was proposed of a bucket that changed waits no more
		}
	}
}

func (c *Controller) countDecided(ctx context.Context) error {
	set, err := c.ledger.Policies(ctx, 0)
	if err != nil {
		return err
	}
	asking := access.With(ctx, access.Identity{Person: &access.Person{Name: "dashboard", Level: access.Viewer}})
	waiting, running, err := countWaiting(asking, c.api.RLC)
	if err != nil {
		return err
	}
	if before := c.decided.Load(); running && before != nil {
		waiting = before.Waiting // it is counted when the run is over
	}
	c.decided.Store(&page.Counts{Policies: len(set.Texts), Waiting: waiting})
	return nil
}

// countWaiting counts the buckets of which a proposal waits for a person. While
// a run is under way it counts nothing.
func countWaiting(ctx context.Context, rlc grlv1connect.RLCServiceHandler) (waiting int, running bool, err error) {
	list, err := rlc.ListRuns(ctx, &grlv1.ListRunsRequest{})
	if err != nil {
		return 0, false, err
	}
	seen := make(map[string]bool)
	looked := 0
	for _, r := range list.GetRuns() {
		if r.GetState() == grlv1.Run_STATE_RUNNING {
			return 0, true, nil
		}
		if r.GetDryRun() || r.GetState() != grlv1.Run_STATE_DONE || proposed(r) == 0 {
			continue
		}
		if looked++; looked > countRuns {
			break
		}
		for offset := uint32(0); ; {
			run, err := rlc.GetRun(ctx, &grlv1.GetRunRequest{Id: r.GetId(), Outcome: grlv1.RunOutcome_RUN_OUTCOME_PROPOSED, PageSize: maxPage, Offset: offset})
			if err != nil {
				return 0, false, err
			}
			for _, m := range run.GetResults() {
				seen[m.GetBucket()] = seen[m.GetBucket()] || m.GetState() == grlv1.ProposalState_PROPOSAL_STATE_PENDING
			}
			if offset += uint32(len(run.GetResults())); offset >= run.GetTotal() || len(run.GetResults()) == 0 {
				break
			}
		}
	}
	for _, waits := range seen {
		if waits {
			waiting++
		}
	}
	return waiting, false, nil
}

// proposed returns how many limits a run proposed.
func proposed(r *grlv1.Run) uint32 {
	if i := int(grlv1.RunOutcome_RUN_OUTCOME_PROPOSED); i < len(r.GetOutcomes()) {
		return r.GetOutcomes()[i]
	}
	return 0
}

package controller

import (
	"context"
	"time"

	"grl/limiter"
	"grl/policy/alert"
	grlv1 "grl/proto/grl/v1"
	"grl/roles/controller/notify"
	"grl/store/ledger"
	"grl/web/page"
)

const (
	// judgeEvery is how often alerts are judged.
	judgeEvery = 5 * time.Second
	// auditEvery is how often the audit is gone through, and auditAgain how soon
	// after the store did not answer.
	auditEvery = time.Hour
	auditAgain = time.Minute
	// hostSilent is how long a node may be silent before its hosts are.
	hostSilent = 10 * time.Second
	// recentRuns is how many runs are looked through for one that is over.
	recentRuns = 20
)

// judgeAlerts judges what needs a person until ctx ends. A regional controller
// leaves that to its parent, which sees what it sees.
func (c *Controller) judgeAlerts(ctx context.Context) error {
	if c.opts.Config.Regional() {
		return nil
	}
	tick := time.NewTicker(judgeEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			c.judge(ctx, time.Now())
		}
	}
}

// judge judges once.
func (c *Controller) judge(ctx context.Context, now time.Time) {
	c.readMutes(ctx, now)
	in := c.alertInput(ctx, now)
	c.mu.Lock()
	leads := c.node.leads
	c.mu.Unlock()
	c.alerts.mu.Lock()
	defer c.alerts.mu.Unlock()
	in.Audit = alert.Audit{Broken: c.alerts.audit.Broken, Reason: c.alerts.audit.Reason, Lost: c.alerts.lost}
	c.alerts.memory = alert.Step(now, in, c.alerts.memory)
	var loud []notify.Alert
	for _, a := range c.alerts.memory.Firing() {
		if _, muted := c.alerts.muted(now, a.Key); !muted || c.alerts.sender.Told(a.Key) {
			loud = append(loud, notify.Alert{Key: a.Key, Text: a.Text, Since: a.Since, Path: alertPath(a.Key)})
		}
	}
	c.alerts.sender.Set(now, leads, loud)
}

// alertInput is what is known at a moment, but for the audit.
func (c *Controller) alertInput(ctx context.Context, now time.Time) alert.Input {
	in := alert.Input{Buckets: droppingBuckets(view{Controller: c}.Cells())}
	for _, e := range (view{Controller: c}).Past().Evidence {
		in.Shadows = append(in.Shadows, alert.Shadow{Bucket: e.Cell.Bucket, Candidate: e.Candidate, Day: e.WorstDay, Share: e.WorstShare})
	}
	in.Run = c.lastRun(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	in.Zones = c.node.alertZones(now)
	for _, k := range c.state.Incident.Caps {
		in.Caps = append(in.Caps, alert.Cap{ID: k.ID, Name: capName(k), Ends: k.EndsAt})
	}
	return in
}

// droppingBuckets returns the enforced buckets that drop anything, with the sums
// over their cells.
func droppingBuckets(cells []page.Cell) []alert.Bucket {
	judged := func(b *page.Cell) bool { return b.Behavior == limiter.Deny && !b.Block && b.Cap == "" }
	at := make(map[string]int) // full name → index of out
	var out []alert.Bucket
	for i := range cells {
		if b := &cells[i]; b.DroppedRPS > 0 && judged(b) {
			if _, known := at[b.Bucket()]; !known {
				at[b.Bucket()] = len(out)
				out = append(out, alert.Bucket{Name: b.Bucket()})
			}
		}
	}
	if len(out) == 0 {
		return nil
	}
	for i := range cells {
		if k, drops := at[cells[i].Bucket()]; drops && judged(&cells[i]) {
			out[k].Offered += cells[i].OfferedRPS
			out[k].Dropped += cells[i].DroppedRPS
		}
	}
	return out
}

// lastRun returns the last run that is over and was no dry one, nil if none is
// known.
func (c *Controller) lastRun(ctx context.Context) *alert.Run {
	runs, err := c.ledger.Runs(ctx, 0, recentRuns)
	if err != nil {
		return nil
	}
	for _, r := range runs {
		if r.State == ledger.RunRunning || r.DryRun {
			continue
		}
		out := &alert.Run{ID: r.ID, Refused: outcomes(r, grlv1.RunOutcome_RUN_OUTCOME_REFUSED), Broken: outcomes(r, grlv1.RunOutcome_RUN_OUTCOME_FAILED)}
		if r.State == ledger.RunFailed {
			out.Failed = clipped(r.Error)
		}
		return out
	}
	return nil
}

func outcomes(r ledger.Run, of grlv1.RunOutcome) uint32 {
	if int(of) >= len(r.Outcomes) {
		return 0
	}
	return r.Outcomes[of]
}

// clipped shortens the reason of another one, which may be long or missing.
func clipped(text string) string {
	const most = 200 // bytes
	if text == "" {
		return "no reason given"
	}
	if len(text) > most {
		return text[:most] + "…"
	}
	return text
}

// alertZones returns the zones as they report, those of regions below too.
func (n *node) alertZones(now time.Time) []alert.Zone {
	zones := make(map[string]*alert.Zone)
	at := func(name string) *alert.Zone {
		z := zones[name]
		if z == nil {
			z = &alert.Zone{Name: name, DirectiveAge: -1}
			zones[name] = z
		}
		return z
	}
	for _, s := range n.fallen(now) {
		at(s.name).Silent = max(now.Sub(s.lost), 1)
	}
	for c := range n.children {
		n.alertChild(now, c, at)
	}
	out := make([]alert.Zone, 0, len(zones))
	for _, z := range zones {
		out = append(out, *z)
	}
	return out
}

// alertChild adds what a child and those below it report. Who only listens does
// not know how old a directive is.
func (n *node) alertChild(now time.Time, c *child, at func(string) *alert.Zone) {
	silent := now.Sub(c.heard)
	if own := at(c.zone.name); n.leads && c.begun {
		own.DirectiveAge = max(own.DirectiveAge, n.directiveAge(c)+silent)
	}
	for _, m := range c.nodes {
		switch z := at(m.GetZone()); m.GetRole() {
		case grlv1.Role_ROLE_CLIENT:
			if silent < hostSilent && time.Duration(reportAge(m, now.Sub(c.nodesAt)))*time.Millisecond < hostSilent {
				z.Hosts++
			}
		case grlv1.Role_ROLE_AGGREGATOR:
			z.DirectiveAge = max(z.DirectiveAge, time.Duration(m.GetDirectiveAgeMs())*time.Millisecond)
		}
	}
}

// watchAudit goes through the audit at the start and then each hour, until ctx
// ends.
func (c *Controller) watchAudit(ctx context.Context) error {
	for ctx.Err() == nil && !c.opts.Config.Regional() {
		wait := auditEvery
		if err := c.checkAudit(ctx); err != nil {
			wait = auditAgain
		}
		pause(ctx, wait)
	}
	return nil
}

// checkAudit goes through the audit. What is wrong with it is logged, and alerted.
func (c *Controller) checkAudit(ctx context.Context) error {
	found, err := c.ledger.VerifyAudit(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	c.alerts.mu.Lock()
	defer c.alerts.mu.Unlock()
	if err != nil {
		c.alerts.lost = "the store does not answer"
		c.opts.Log.ErrorContext(ctx, "cannot go through the audit", "err", err)
		return err
	}
	c.alerts.lost = ""
	c.alerts.audit = page.AuditCheck{At: time.Now(), Entries: found.Entries, Hash: found.Hash, Broken: found.Broken, Reason: found.Reason}
	if found.Broken > 0 {
		c.opts.Log.ErrorContext(ctx, "the audit does not hold", "entry", found.Broken, "reason", found.Reason)
	}
	return nil
}

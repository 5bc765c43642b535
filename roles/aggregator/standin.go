package aggregator

import (
	"context"
	"time"

	"grl/limiter/law"
)

// standIn decides in place of deciders that are silent, on receipt of reports
// and at each T, as a controller does.
func (a *Aggregator) standIn(ctx context.Context) error {
	tick := time.NewTicker(law.T)
	defer tick.Stop()
	var published time.Time
	for {
		full := false
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			full = true
		case <-a.moved:
			wait := max(law.Coalesce, law.PublishGap-time.Since(published))
			select { // more of the same surge is under way
			case <-ctx.Done():
				return nil
			case <-time.After(wait):
			}
		}
		a.mu.Lock()
		now := time.Now()
		if a.node.decideAlone(now, full) {
			published = now
			a.wakeHosts()
		}
		a.notice(ctx)
		a.mu.Unlock()
	}
}

// notice logs for which deciders the node began, or ceased, to stand in. The
// caller holds mu.
func (a *Aggregator) notice(ctx context.Context) {
	for name, d := range a.node.deciders {
		if d.alone == a.alone[name] {
			continue
		}
		a.alone[name] = d.alone
		silent := time.Since(d.heard)
		switch {
		case d.alone:
			a.opts.Log.WarnContext(ctx, "decider is silent: deciding alone with the last share", "decider", name, "silent_seconds", silent.Seconds(), "autonomy", a.opts.Config.Autonomy)
		case silent > law.DeciderSilent:
			a.opts.Log.ErrorContext(ctx, "decider is silent: no directives any more, hosts will admit everything", "decider", name, "silent_seconds", silent.Seconds())
		default:
			a.opts.Log.InfoContext(ctx, "decider is back", "decider", name)
		}
	}
}

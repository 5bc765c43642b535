package controller

import (
	"context"
	"time"

	"grl/limiter"
	"grl/limiter/law"
	"grl/proto/statefile"
)

const (
	// copyEvery is how often directives are copied to disk that only renew, or
	// move ratios: a copy has all of them.
	copyEvery = 5 * time.Second
	// restartSteps is above any count of directives of which the copy may not
	// know: children must not take those of before a restart for later ones.
	restartSteps = 1 << 32
)

// stateFile is where a regional controller keeps what its parent said.
func (c *Controller) stateFile() *statefile.File {
	return statefile.New(c.opts.Config.DB, "controller", c.opts.Config.Region)
}

// loadCopy goes on from what the parent had said before a restart. A copy that
// cannot be read is as good as none.
func (c *Controller) loadCopy(ctx context.Context) {
	s, err := c.stateFile().Load()
	if err != nil {
		c.opts.Log.WarnContext(ctx, "cannot use the copy of the parent's configuration", "err", err)
		return
	}
	if s.Configuration == nil {
		return
	}
	c.node.resume(time.Now(), s)
	c.opts.Log.InfoContext(ctx, "installed configuration from the copy on disk", "revision", s.Configuration.Revision, "services", len(s.Configuration.Services))
}

// keepCopy copies what the parent said to disk until ctx ends.
func (c *Controller) keepCopy(ctx context.Context) error {
	copied := time.Now()
	c.stateFile().Keep(ctx, c.opts.Log, func(now time.Time) (statefile.State, bool) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.node.config.Revision == 0 || !c.node.region.fresh && now.Sub(copied) < copyEvery {
			return statefile.State{}, false
		}
		copied = now
		return c.node.state(now), true
	})
	return nil
}

// state returns what the parent said, for the copy.
func (n *node) state(now time.Time) statefile.State {
	r := n.region
	r.fresh = false
	s := statefile.State{Configuration: n.config, Zones: r.sizes}
	if r.heard.IsZero() {
		return s
	}
	d := statefile.Decider{Name: globalDecider, Stamp: r.global.stamp, Heard: now.Add(-now.Sub(r.heard))}
	n.cells.Each(func(i int, id limiter.CellID) {
		if at := &r.passed[i]; at.said.Admit > 0 {
			d.Rows = append(d.Rows, statefile.Row{Cell: id, Verdict: at.said, Share: at.share})
		}
	})
	s.Deciders = append(s.Deciders, d)
	return s
}

// resume goes on from a copy: its configuration holds whatever its age, its
// directive for as long as one that came would.
func (n *node) resume(now time.Time, s statefile.State) {
	n.takeConfiguration(s.Configuration, s.Zones)
	r := n.region
	for i := range s.Deciders {
		d := &s.Deciders[i]
		age := d.Age(now)
		r.epoch = max(r.epoch, d.Stamp.Epoch)
		if d.Name != globalDecider || age > law.DeciderSilent+r.autonomy {
			continue
		}
		r.heard = now.Add(-age)
		r.taken = law.Stamp{Epoch: d.Stamp.Epoch, Sequence: d.Stamp.Sequence}
		n.version++
		for _, row := range d.Rows {
			n.pass(now, row.Cell, passed{row.Verdict, row.Share})
		}
		stamp := d.Stamp
		stamp.Step += restartSteps
		r.global.say(now, stamp, 0, 0)
	}
}

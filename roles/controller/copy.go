package controller

import (
	"context"
	"errors"
	"sync"
	"time"

	"grl/limiter"
	"grl/limiter/law"
	"grl/proto/statefile"
)

const (
	// copyEvery is how often what was decided is copied to disk.
	copyEvery = 5 * time.Second
	// restartSteps is above any count of directives of which the copy may not
	// know: children must not take those of before a restart for later ones.
	restartSteps = 1 << 32
)

// copyFiles returns where a regional controller keeps what its parent said: what
// was decided last, and the configurations that held for a minute.
func (c *Controller) copyFiles() (*statefile.File, *statefile.Good) {
	dir, region := c.opts.Config.DB, c.opts.Config.Region
	return statefile.New(dir, "controller", region), statefile.NewGood(dir, "controller", region)
}

// loadCopy goes on from what the parent had said before a restart: from the
// newest configuration that was good. What cannot be read is as good as nothing.
func (c *Controller) loadCopy(ctx context.Context) {
	file, good := c.copyFiles()
	notGood := good.Load(func(s statefile.State) error {
		c.node.takeConfiguration(s.Configuration, s.Zones)
		return nil
	})
	s, err := file.Load()
	if err := errors.Join(notGood, err); err != nil {
		c.opts.Log.WarnContext(ctx, "cannot use all of the copy of what the parent said", "err", err)
	}
	c.node.resume(time.Now(), s)
	if held := c.node.config; held.Any() {
		c.opts.Log.InfoContext(ctx, "installed configuration from the copy on disk", "revision", held.Revision, "serial", held.Serial, "services", len(held.Services))
	}
}

// keepCopy copies what the parent said to disk until ctx ends.
func (c *Controller) keepCopy(ctx context.Context) error {
	file, good := c.copyFiles()
	var keeping sync.WaitGroup
	keeping.Go(func() { good.Keep(ctx, c.opts.Log, c.heldConfiguration) })
	copied := time.Now()
	file.Keep(ctx, c.opts.Log, func(now time.Time) (statefile.State, bool) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if !c.node.config.Any() || now.Sub(copied) < copyEvery {
			return statefile.State{}, false
		}
		copied = now
		return c.node.state(now), true
	})
	keeping.Wait()
	return nil
}

// heldConfiguration returns the configuration held, none before the first.
func (c *Controller) heldConfiguration() statefile.State {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.node.config.Any() {
		return statefile.State{}
	}
	return statefile.State{Configuration: c.node.config, Zones: c.node.region.sizes}
}

// state returns what the parent said, for the copy.
func (n *node) state(now time.Time) statefile.State {
	r := n.region
	// The zones are written with a configuration: this one says nothing.
	s := statefile.State{Configuration: &limiter.Configuration{}, Zones: r.sizes}
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

// resume goes on from a copy, as far as the configuration has its cells: its
// directive holds for as long as one that came would.
func (n *node) resume(now time.Time, s statefile.State) {
	r := n.region
	if len(s.Zones) > 0 {
		r.sizes = s.Zones
		n.resize()
	}
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

package controller

import (
	"context"
	"fmt"
	"time"

	"grl/limiter/law"
	grlv1 "grl/proto/grl/v1"
	"grl/proto/uplink"
	"grl/proto/wire"
)

// follow keeps a stream to one controller of the parent group until ctx ends.
func (c *Controller) follow(ctx context.Context, address string) {
	p := uplink.NewParent()
	uplink.Run(ctx, uplink.Options{
		Addresses: []string{address},
		HTTP:      c.opts.HTTP,
		Log:       c.opts.Log,
		// A new controller waits for its children, but not for long.
		MostRedial: law.T,
		Hello: func() *grlv1.Hello {
			c.mu.Lock()
			defer c.mu.Unlock()
			return c.node.hello(p, c.name, c.opts.Version, c.bootID)
		},
		Take: func(ctx context.Context, m *grlv1.JoinResponse) error { return c.takeFromParent(ctx, p, m) },
		Feed: func(ctx context.Context, send func(*grlv1.JoinRequest) error) error {
			return c.tellParent(ctx, p, send)
		},
	})
}

// tellParent tells a controller above what it lacks, for as long as the stream
// lives.
func (c *Controller) tellParent(ctx context.Context, p *uplink.Parent, send func(*grlv1.JoinRequest) error) error {
	c.mu.Lock()
	c.node.region.parents[p] = true
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.node.region.parents, p)
		c.mu.Unlock()
	}()
	return p.Feed(ctx, send, func(full bool) []*grlv1.JoinRequest {
		c.mu.Lock()
		defer c.mu.Unlock()
		now := time.Now()
		return p.Messages(now, c.node.source(now, full), c.node.mayPublish(now), full)
	})
}

// wakeParents tells the streams up that sums moved. The caller holds mu.
func (c *Controller) wakeParents() {
	if c.node.region == nil {
		return
	}
	for p := range c.node.region.parents {
		p.Wake()
	}
}

// tellDetail passes on to the parent who sends. The caller holds mu.
func (c *Controller) tellDetail(m *grlv1.Detail) {
	if c.node.region == nil {
		return
	}
	for p := range c.node.region.parents {
		p.Add(m)
	}
}

// beatParents tells the streams up that T has passed. The caller holds mu.
func (c *Controller) beatParents() {
	if c.node.region == nil {
		return
	}
	for p := range c.node.region.parents {
		p.Beat()
	}
}

// takeFromParent takes in one message of a controller above.
func (c *Controller) takeFromParent(ctx context.Context, p *uplink.Parent, m *grlv1.JoinResponse) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if configuration := m.GetConfiguration(); configuration != nil {
		return c.installFromParent(ctx, configuration)
	}
	d := m.GetDirective()
	if d == nil {
		return nil // of a later version
	}
	if err := p.Named(d); err != nil {
		return fmt.Errorf("directive %d.%d: %w", d.GetEpoch(), d.GetSequence(), err)
	}
	if c.node.outdated(p, d) {
		return fmt.Errorf("directive of epoch %d: children have heard %d; the next hello says so", d.GetEpoch(), c.node.region.below)
	}
	wasAlone := c.node.region.strayed
	if !c.node.direct(time.Now(), p, d) {
		c.metrics.directives.WithLabelValues("stale").Inc()
		return nil
	}
	c.metrics.directives.WithLabelValues("taken").Inc()
	if wasAlone {
		c.opts.Log.InfoContext(ctx, "parent decides global limits again", "epoch", d.GetEpoch(), "sequence", d.GetSequence())
	}
	c.wakeChildren()
	return nil
}

// installFromParent makes the configuration of the parent group the active one,
// or refuses it. It returns an error if the stream must begin anew. The caller
// holds mu.
func (c *Controller) installFromParent(ctx context.Context, m *grlv1.Configuration) error {
	n, held := c.node, c.node.config
	if held.Version().After(wire.Version(m)) {
		return nil // from a controller that is behind
	}
	next, err := wire.ToConfiguration(held, m)
	if wire.NeedsWhole(err) {
		return err
	}
	if err != nil {
		if n.region.refused.revision != m.GetRevision() {
			c.opts.Log.ErrorContext(ctx, "refused configuration", "revision", m.GetRevision(), "held", held.Revision, "err", err)
		}
		n.region.refused = refusal{m.GetRevision(), wire.Reason(err.Error())}
		return nil
	}
	n.takeConfiguration(next, m.GetZones())
	if n.config != held {
		c.loaded = time.Now()
		c.opts.Log.InfoContext(ctx, "installed configuration", "revision", next.Revision, "epoch", next.Epoch, "services", len(next.Services))
	}
	c.wakeChildren()
	wake(c.moved)
	return nil
}

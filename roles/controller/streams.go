package controller

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"connectrpc.com/connect"

	"grl/limiter"
	"grl/limiter/law"
	"grl/proto/access"
	"grl/proto/downlink"
	grlv1 "grl/proto/grl/v1"
	"grl/proto/wire"
)

var (
	errStopped  = errors.New("controller stops")
	errReplaced = errors.New("the child has a later stream")
)

// rpcError returns err as a peer may see it.
func rpcError(code connect.Code, err error) error { return connect.NewError(code, err) }

// Join serves the stream of one child.
func (c *Controller) Join(ctx context.Context, s *downlink.Stream) error {
	first, err := s.Receive()
	if err != nil {
		return err
	}
	hello := first.GetHello()
	if err := checkHello(hello, c.opts.Config); err != nil {
		return rpcError(connect.CodeFailedPrecondition, err)
	}
	if err := checkIdentity(access.From(ctx).Node, hello); err != nil {
		c.opts.Log.WarnContext(ctx, "refused hello", "node", hello.GetNode(), "err", err)
		return rpcError(connect.CodePermissionDenied, err)
	}
	before, err := wire.ConfirmedCounts(hello.GetConfirmed())
	if err != nil {
		return rpcError(connect.CodeInvalidArgument, err)
	}
	c.raise(ctx, c.usedUp(hello))
	child, err := c.join(hello, before)
	if err != nil {
		return err
	}
	defer c.streams.Done()
	log := c.opts.Log.With("child", roleWord(hello.GetRole()), "node", hello.GetNode(), "zone", hello.GetZone(), "child_region", hello.GetRegion())
	log.InfoContext(ctx, "child joined")
	if twin := c.twin(child); twin != "" {
		log.ErrorContext(ctx, "two controllers of one region: what it is offered counts twice, stop one of them", "other", twin)
	}
	err = c.serve(ctx, child, s)
	c.leave(child)
	level := slog.LevelWarn
	if errors.Is(err, io.EOF) {
		level, err = slog.LevelInfo, nil // it closed the stream itself
	}
	log.Log(ctx, level, "child left", "err", err)
	return err
}

// twin returns the node of another regional controller of a child's region, ""
// if there is none.
func (c *Controller) twin(child *child) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	for other := range c.node.children {
		if other != child && child.hello.GetRole() == grlv1.Role_ROLE_CONTROLLER && other.hello.GetRole() == child.hello.GetRole() &&
			other.hello.GetRegion() == child.hello.GetRegion() {
			return other.hello.GetNode()
		}
	}
	return ""
}

// checkHello returns an error if the sender of a hello is no child of a
// controller, or has a zone or region by a name that none has.
func checkHello(m *grlv1.Hello, own Config) error {
	if m == nil {
		return errors.New("the first message is no hello")
	}
	if err := limiter.CheckName(m.GetRegion()); err != nil {
		return fmt.Errorf("region of a hello: %w", err)
	}
	switch m.GetRole() {
	case grlv1.Role_ROLE_AGGREGATOR:
		if err := limiter.CheckName(m.GetZone()); err != nil {
			return fmt.Errorf("zone of a hello: %w", err)
		}
		if own.Regional() && m.GetRegion() != own.Region {
			return fmt.Errorf("aggregator of region %q at the controller of region %q", m.GetRegion(), own.Region)
		}
	case grlv1.Role_ROLE_CONTROLLER:
		if own.Regional() {
			return fmt.Errorf("controller of region %q at one that has a parent itself", m.GetRegion())
		}
		if m.GetZone() != "" {
			return fmt.Errorf("controller of region %q with a zone, %q", m.GetRegion(), m.GetZone())
		}
	default:
		return fmt.Errorf("hello of a %v at a controller, which takes aggregators and regional controllers", m.GetRole())
	}
	return wire.CheckHello(m)
}

// roleWord returns the name of a role in logs and views.
func roleWord(r grlv1.Role) string {
	switch r {
	case grlv1.Role_ROLE_CONTROLLER:
		return "controller"
	case grlv1.Role_ROLE_AGGREGATOR:
		return "aggregator"
	default:
		return "client"
	}
}

func (c *Controller) join(hello *grlv1.Hello, before map[limiter.CellID]law.Counts) (*child, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return nil, rpcError(connect.CodeUnavailable, errStopped)
	}
	if region := c.node.foreign(hello.GetZone(), hello.GetRegion()); region != "" {
		return nil, rpcError(connect.CodeFailedPrecondition,
			fmt.Errorf("zone %q of region %q is one of region %q here", hello.GetZone(), hello.GetRegion(), region))
	}
	if c.node.superseded(hello) {
		return nil, rpcError(connect.CodeFailedPrecondition, errReplaced)
	}
	c.streams.Add(1)
	return c.node.join(time.Now(), hello, before), nil
}

// leave takes in that the stream of a child ended.
func (c *Controller) leave(child *child) {
	c.mu.Lock()
	defer c.mu.Unlock() // deferred: net/http recovers a panic, and the lock must not outlive it
	c.node.leave(time.Now(), child)
	wake(c.moved)
	c.wakeParents()
}

// serve passes messages both ways until the stream fails or Run ends.
func (c *Controller) serve(ctx context.Context, child *child, s *downlink.Stream) error {
	received := downlink.Receive(s, c.opts.Log, func(m *grlv1.JoinRequest) error { return c.take(ctx, child, m) })
	wake(child.wake) // what there is already
	for {
		select {
		case <-c.stop:
			return rpcError(connect.CodeUnavailable, errStopped)
		case err := <-received:
			return err
		case <-child.wake:
			for _, m := range c.forChild(child) {
				if err := s.Send(m); err != nil {
					return err
				}
			}
		}
	}
}

// take takes in one message of a child.
func (c *Controller) take(ctx context.Context, child *child, m *grlv1.JoinRequest) error {
	err := c.takeIn(ctx, child, m)
	c.mu.Lock()
	ahead := c.node.ahead(child)
	c.mu.Unlock()
	c.raise(ctx, ahead)
	return err
}

// usedUp returns the epoch that the sender of a hello has heard, if ours must
// be above it; else 0.
func (c *Controller) usedUp(hello *grlv1.Hello) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	heard := wire.HeardEpoch(hello, c.node.own.name)
	if heard > 0 && c.node.usedUp(heard) {
		return heard
	}
	return 0
}

func (c *Controller) takeIn(ctx context.Context, child *child, m *grlv1.JoinRequest) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.node.children[child] {
		return rpcError(connect.CodeAborted, errReplaced) // it must hear so, or it would report to nobody
	}
	child.bytesIn += size(m)
	switch {
	case m.GetReport() != nil:
		child.reports++
		fresh, err := c.node.report(time.Now(), child, m.GetReport())
		switch {
		case err != nil:
			c.metrics.reports.WithLabelValues("malformed").Inc()
			c.opts.Log.WarnContext(ctx, "refused report", "node", child.hello.GetNode(), "err", err)
			return rpcError(connect.CodeInvalidArgument, err)
		case !fresh:
			c.metrics.reports.WithLabelValues("stale").Inc()
		default:
			c.metrics.reports.WithLabelValues("folded").Inc()
			c.noteRival(ctx, child)
			wake(c.moved)
			c.wakeParents()
		}
	case m.GetDetail() != nil:
		child.detail, child.detailAt = m.GetDetail(), time.Now()
		c.traffic.add(child.detailAt, m.GetDetail())
		c.tellDetail(m.GetDetail())
	}
	return nil
}

// noteRival logs that another controller decides for a child of ours: with
// a store of its own, only one may. The caller holds mu.
func (c *Controller) noteRival(ctx context.Context, child *child) {
	epoch := c.node.follows(child)
	if epoch == 0 || epoch == c.node.rival {
		return
	}
	c.node.rival = epoch
	c.opts.Log.ErrorContext(ctx, "another controller decides for a child of this one: stop one of the two",
		"node", child.hello.GetNode(), "zone", child.hello.GetZone(), "epoch", epoch, "own_epoch", c.node.epoch)
}

// forChild returns the messages that a child lacks.
func (c *Controller) forChild(child *child) []*grlv1.JoinResponse {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.checkLead()
	var out []*grlv1.JoinResponse
	if m := c.node.configurationFor(child); m != nil {
		out = append(out, &grlv1.JoinResponse{Message: &grlv1.JoinResponse_Configuration{Configuration: m}})
	}
	for _, m := range c.node.directives(child) {
		out = append(out, &grlv1.JoinResponse{Message: &grlv1.JoinResponse_Directive{Directive: m}})
	}
	for _, m := range out {
		child.bytesOut += size(m)
	}
	return out
}

package aggregator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"connectrpc.com/connect"

	"grl/limiter/law"
	"grl/proto/access"
	"grl/proto/downlink"
	grlv1 "grl/proto/grl/v1"
	"grl/proto/uplink"
	"grl/proto/wire"
)

var (
	errStopped  = errors.New("aggregator stops")
	errLeft     = errors.New("host must join anew")
	errReplaced = errors.New("the host has a later stream")
)

// Join serves the stream of one client.
func (a *Aggregator) Join(ctx context.Context, s *downlink.Stream) error {
	first, err := s.Receive()
	if err != nil {
		return err
	}
	hello := first.GetHello()
	if err := a.checkHello(hello); err != nil {
		return rpcError(connect.CodeFailedPrecondition, err)
	}
	node := access.From(ctx).Node
	if err := checkIdentity(node, hello); err != nil {
		a.opts.Log.WarnContext(ctx, "refused hello", "node", hello.GetNode(), "err", err)
		return rpcError(connect.CodePermissionDenied, err)
	}
	before, err := wire.ConfirmedCounts(hello.GetConfirmed())
	if err != nil {
		return rpcError(connect.CodeInvalidArgument, err)
	}
	a.mu.Lock()
	if a.ended {
		a.mu.Unlock()
		return rpcError(connect.CodeUnavailable, errStopped)
	}
	if a.node.superseded(hello) {
		a.mu.Unlock()
		return rpcError(connect.CodeFailedPrecondition, errReplaced)
	}
	a.streams.Add(1)
	defer a.streams.Done()
	now := time.Now()
	a.noticeHang(ctx, now)
	h := a.node.join(now, hello, before)
	h.proved = node != nil
	a.mu.Unlock()
	a.opts.Log.DebugContext(ctx, "host joined", "node", hello.GetNode())
	defer a.leave(ctx, h)
	return a.serveHost(ctx, h, s)
}

// leave takes in that the stream of a host ended.
func (a *Aggregator) leave(ctx context.Context, h *host) {
	a.mu.Lock()
	defer a.mu.Unlock() // deferred: net/http recovers a panic, and the lock must not outlive it
	a.node.leave(time.Now(), h)
	a.wakeParents()
	a.opts.Log.DebugContext(ctx, "host left", "node", h.hello.GetNode())
}

func (a *Aggregator) checkHello(m *grlv1.Hello) error {
	switch {
	case m == nil:
		return errors.New("the first message is no hello")
	case m.GetRole() != grlv1.Role_ROLE_CLIENT:
		return fmt.Errorf("hello of a %v at an aggregator, which takes clients", m.GetRole())
	case m.GetZone() != a.opts.Config.Zone:
		return fmt.Errorf("client of zone %q at the aggregator of zone %q", m.GetZone(), a.opts.Config.Zone)
	case m.GetRegion() != a.opts.Config.Region:
		return fmt.Errorf("client of region %q at an aggregator of region %q", m.GetRegion(), a.opts.Config.Region)
	case m.GetAllServices():
		return errors.New("a client names the services it wants")
	}
	return wire.CheckHello(m)
}

// serveHost passes messages both ways until the stream fails or Run ends.
func (a *Aggregator) serveHost(ctx context.Context, h *host, s *downlink.Stream) error {
	received := downlink.Receive(s, a.opts.Log, func(m *grlv1.JoinRequest) error { return a.takeFromHost(ctx, h, m) })
	wake(h.wake) // what there is already
	for {
		select {
		case <-a.stop:
			return rpcError(connect.CodeUnavailable, errStopped)
		case err := <-received:
			return err
		case <-h.wake:
			lacks, err := a.forHost(h)
			if err != nil {
				return err
			}
			for _, m := range lacks {
				if err := s.Send(m); err != nil {
					return err
				}
			}
		}
	}
}

// takeFromHost takes in one message of a host.
func (a *Aggregator) takeFromHost(ctx context.Context, h *host, m *grlv1.JoinRequest) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	began := time.Now()
	a.noticeHang(ctx, began)
	if !a.node.hosts[h] {
		return rpcError(connect.CodeUnavailable, errLeft)
	}
	h.bytesIn += size(m)
	switch {
	case m.GetReport() != nil:
		h.reports++
		spoken := h.foreign
		fresh, err := a.node.report(began, h, m.GetReport())
		if spoken == "" && h.foreign != "" {
			a.opts.Log.WarnContext(ctx, "host reports of a bucket that it has no business with: not counted", "node", h.hello.GetNode(), "bucket", h.foreign)
		}
		switch {
		case err != nil:
			a.metrics.reports.WithLabelValues("malformed").Inc()
			a.opts.Log.WarnContext(ctx, "refused report", "node", h.hello.GetNode(), "err", err)
			return rpcError(connect.CodeInvalidArgument, err)
		case !fresh:
			a.metrics.reports.WithLabelValues("stale").Inc()
			return nil
		}
		a.metrics.reports.WithLabelValues("folded").Inc()
		a.metrics.fold.Observe(time.Since(began).Seconds())
		a.wakeParents()
		if len(h.held) > 0 {
			wake(h.wake) // what it may admit goes by what it claims
		}
		if a.node.anySilent(began) {
			wake(a.moved)
		}
	case m.GetDetail() != nil:
		a.node.own(h, m.GetDetail())
		a.details.add(m.GetDetail())
	}
	return nil
}

// forHost returns the messages that a host lacks, or that its stream must end.
func (a *Aggregator) forHost(h *host) ([]*grlv1.JoinResponse, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.node.hosts[h] {
		return nil, rpcError(connect.CodeUnavailable, errLeft)
	}
	var out []*grlv1.JoinResponse
	if c := a.node.configurationFor(h); c != nil {
		out = append(out, &grlv1.JoinResponse{Message: &grlv1.JoinResponse_Configuration{Configuration: c}})
	}
	for _, d := range a.node.directives(time.Now(), h) {
		out = append(out, &grlv1.JoinResponse{Message: &grlv1.JoinResponse_Directive{Directive: d}})
	}
	for _, m := range out {
		h.bytesOut += size(m)
	}
	return out, nil
}

// follow keeps a stream to one controller until ctx ends.
func (a *Aggregator) follow(ctx context.Context, address string) {
	p := uplink.NewParent()
	uplink.Run(ctx, uplink.Options{
		Addresses: []string{address},
		HTTP:      a.opts.HTTP,
		Log:       a.opts.Log,
		// A new controller waits for its zones, but not for long.
		MostRedial: law.T,
		Hello: func() *grlv1.Hello {
			a.mu.Lock()
			defer a.mu.Unlock()
			return a.node.hello(p, a.name, a.opts.Version, a.bootID)
		},
		Take: func(ctx context.Context, m *grlv1.JoinResponse) error { return a.takeFromParent(ctx, p, m) },
		Feed: func(ctx context.Context, send func(*grlv1.JoinRequest) error) error { return a.report(ctx, p, send) },
	})
}

// takeFromParent takes in one message of a controller.
func (a *Aggregator) takeFromParent(ctx context.Context, p *uplink.Parent, m *grlv1.JoinResponse) error {
	if c := m.GetConfiguration(); c != nil {
		return a.install(ctx, c)
	}
	d := m.GetDirective()
	if d == nil {
		return nil // of a later version
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := p.Named(d); err != nil {
		return fmt.Errorf("directive %d.%d: %w", d.GetEpoch(), d.GetSequence(), err)
	}
	if a.node.outdated(p, d) {
		return fmt.Errorf("directive of epoch %d: hosts have heard %d; the next hello says so", d.GetEpoch(), a.node.hostsHeard[d.GetDecider()])
	}
	if a.node.direct(time.Now(), p, d) {
		a.metrics.directives.WithLabelValues("taken").Inc()
		a.wakeHosts()
		a.notice(ctx)
	} else {
		a.metrics.directives.WithLabelValues("stale").Inc()
	}
	return nil
}

// report tells a controller what it lacks, for as long as the stream lives.
func (a *Aggregator) report(ctx context.Context, p *uplink.Parent, send func(*grlv1.JoinRequest) error) error {
	a.mu.Lock()
	a.node.parents = append(a.node.parents, p)
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		a.node.parents = slices.DeleteFunc(a.node.parents, func(o *uplink.Parent) bool { return o == p })
		a.mu.Unlock()
	}()
	return p.Feed(ctx, send, func(full bool) []*grlv1.JoinRequest {
		a.mu.Lock()
		defer a.mu.Unlock()
		now := time.Now()
		return p.Messages(now, a.node, a.node.mayReport(now), full)
	})
}

package demo

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"grl/limiter"
	"grl/limiter/httplimit"
	"grl/roles/client"
	"grl/roles/client/proxy"
)

const (
	readyTimeout = 20 * time.Second
	readyPoll    = 20 * time.Millisecond
)

// sidecar is a client with its inbound proxy.
type sidecar struct {
	zone     int    // index of zones
	address  string // of the proxy
	registry *prometheus.Registry
}

// startSidecar starts a sidecar in front of upstream.
func (p *plane) startSidecar(ctx context.Context, zone int, aggregator, upstream string) error {
	name := fmt.Sprintf("%s-%d", service, len(p.sidecars)+1)
	log := p.log.With("role", "client", "zone", zones[zone], "node", name)
	config := client.Default()
	config.Service, config.Zone, config.Region, config.Aggregators = service, zones[zone], region, []string{aggregator}
	l := limiter.New(limiter.Options{Zone: config.Zone, Region: config.Region})
	s := &sidecar{zone: zone, registry: prometheus.NewRegistry()}
	c, err := client.New(client.Options{
		Config:   config,
		Limiter:  l,
		Log:      log,
		Version:  p.version,
		Registry: s.registry,
		HTTP:     p.dial,
		Node:     name,
	})
	if err != nil {
		return err
	}
	identity, err := httplimit.NewIdentity(httplimit.IdentityConfig{Headers: config.IdentityHeaders})
	if err != nil {
		return err
	}
	inbound, err := proxy.NewInbound(service, "http://"+upstream, proxy.Options{Limiter: l, Identity: identity, Log: log})
	if err != nil {
		return err
	}
	p.undo = append(p.undo, func() error { inbound.CloseIdleConnections(); return nil })
	p.run(ctx, name, c.Run)
	if s.address, err = p.serve(ctx, name, anyPort, proxy.Server(inbound, log)); err != nil {
		return err
	}
	p.sidecars = append(p.sidecars, s)
	return nil
}

// waitReady returns once every sidecar has its configuration and a directive:
// all streams are up and the controller decides.
func (p *plane) waitReady(ctx context.Context) error {
	timeout := time.After(readyTimeout)
	poll := time.NewTicker(readyPoll)
	defer poll.Stop()
	for {
		ready := true
		for _, s := range p.sidecars {
			ok, err := s.directed()
			if err != nil {
				return err
			}
			ready = ready && ok
		}
		if ready {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-p.failed:
			return err
		case <-timeout:
			return fmt.Errorf("start demo: not every sidecar has heard of the controller after %v", readyTimeout)
		case <-poll.C:
		}
	}
}

package roles

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"grl/limiter"
	"grl/limiter/httplimit"
	"grl/proto/grl/v1/grlv1connect"
	"grl/roles/aggregator"
	"grl/roles/client"
	"grl/roles/client/proxy"
)

// validateClient builds the proxies too, which has no effect: they alone know
// what they can work with.
func validateClient(c Config) error {
	errs := []error{c.Client.Validate()}
	if c.Client.Upstream != "" {
		_, err := newInbound(c, new(limiter.Limiter), parts{})
		errs = append(errs, err, refuseLoop(c))
	}
	if c.Client.Caller != "" {
		_, err := newOutbound(c, new(limiter.Limiter), parts{})
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// refuseLoop returns an error if the upstream is this client itself: its first
// request would go round until no descriptor is left.
func refuseLoop(c Config) error {
	u, err := url.Parse(c.Client.Upstream)
	if err != nil {
		return nil // newInbound says so
	}
	port := cmp.Or(u.Port(), "80")
	if u.Port() == "" && u.Scheme == "https" {
		port = "443"
	}
	for _, l := range clientListeners(c) {
		if leadsTo(net.JoinHostPort(u.Hostname(), port), l.address) {
			return fmt.Errorf("client.upstream: %s leads back to %s, which is this client", c.Client.Upstream, l.key)
		}
	}
	return nil
}

func validateAggregator(c Config) error { return c.Aggregator.Validate() }
func validateController(c Config) error { return c.Controller.Validate() }

// clientListeners are the proxies that are asked for, and the admin port.
func clientListeners(c Config) []listener {
	var all []listener
	if c.Client.Upstream != "" {
		all = append(all, listener{"client.listen", c.Client.Listen, false})
	}
	if c.Client.Caller != "" {
		all = append(all, listener{"client.outbound_listen", c.Client.OutboundListen, false})
	}
	return append(all, listener{"client.admin", c.Client.Admin, true})
}

func aggregatorListeners(c Config) []listener {
	return []listener{{"aggregator.listen", c.Aggregator.Listen, true}}
}

func controllerListeners(c Config) []listener {
	return []listener{{"controller.listen", c.Controller.Listen, true}}
}

// buildClient builds a limiter, the client that feeds it, and the proxies that
// ask it.
func buildClient(_ context.Context, c Config, p parts) (*node, error) {
	l := limiter.New(limiter.Options{Zone: c.Client.Zone, Region: c.Client.Region})
	cl, err := client.New(client.Options{
		Config: c.Client, Limiter: l, Version: p.version, Registry: p.registry,
		Log:  p.log.With("zone", c.Client.Zone),
		HTTP: p.dial(aggregatorOf(c.Client.Zone, c.Client.Region)),
	})
	if err != nil {
		return nil, err
	}
	n := &node{run: cl.Run, ready: cl.Ready, handlers: map[string]http.Handler{}}
	if c.Client.Upstream != "" {
		inbound, err := newInbound(c, l, p)
		if err != nil {
			return nil, err
		}
		n.handlers["client.listen"] = inbound
		countUpstreamErrors(p.registry, "inbound", inbound)
	}
	if c.Client.Caller != "" {
		outbound, err := newOutbound(c, l, p)
		if err != nil {
			return nil, err
		}
		n.handlers["client.outbound_listen"] = outbound
		countUpstreamErrors(p.registry, "outbound", outbound)
	}
	if len(n.handlers) == 0 {
		p.log.Warn("no proxy runs: set client.upstream for an inbound one, client.caller for an outbound one")
	}
	return n, nil
}

// newInbound returns the proxy in front of the workload: callers are known by
// what they can prove, else by what they say.
func newInbound(c Config, l *limiter.Limiter, p parts) (*proxy.Proxy, error) {
	trusted, err := parsePrefixes(c.Client.TrustedProxies)
	if err != nil {
		return nil, fmt.Errorf("client.trusted_proxies: %w", err)
	}
	identity, err := httplimit.NewIdentity(httplimit.IdentityConfig{
		Headers: c.Client.IdentityHeaders, TrustedProxies: trusted, SPIFFETemplate: c.Client.SPIFFECaller,
	})
	if err != nil {
		return nil, fmt.Errorf("client.spiffe_caller: %w", err)
	}
	inbound, err := proxy.NewInbound(c.Client.Service, c.Client.Upstream, proxy.Options{
		Limiter: l, Identity: identity, AttemptHeaders: attemptHeaders(c), Log: p.log,
	})
	if err != nil {
		return nil, fmt.Errorf("client.upstream: %w", err)
	}
	return inbound, nil
}

// newOutbound returns the proxy beside the workload, whose name is fixed.
func newOutbound(c Config, l *limiter.Limiter, p parts) (*proxy.Proxy, error) {
	identity, err := httplimit.NewIdentity(httplimit.IdentityConfig{Headers: c.Client.IdentityHeaders, Fixed: c.Client.Caller})
	if err != nil {
		return nil, fmt.Errorf("client.caller: %w", err)
	}
	return proxy.NewOutbound(proxy.Options{Limiter: l, Identity: identity, AttemptHeaders: attemptHeaders(c), Log: p.log}), nil
}

// attemptHeaders returns the configured headers, never nil, which would stand
// for the default.
func attemptHeaders(c Config) []string { return append([]string{}, c.Client.AttemptHeaders...) }

func countUpstreamErrors(registry prometheus.Registerer, side string, p *proxy.Proxy) {
	promauto.With(registry).NewCounterFunc(prometheus.CounterOpts{
		Name:        "grl_client_upstream_errors_total",
		Help:        "Requests that upstream did not answer, by proxy.",
		ConstLabels: prometheus.Labels{"proxy": side},
	}, func() float64 { return float64(p.UpstreamErrors()) })
}

// parsePrefixes reads CIDR networks; a bare address is a network of one.
func parsePrefixes(list []string) ([]netip.Prefix, error) {
	var prefixes []netip.Prefix
	for _, s := range list {
		if address, err := netip.ParseAddr(s); err == nil {
			prefixes = append(prefixes, netip.PrefixFrom(address, address.BitLen()))
			continue
		}
		prefix, err := netip.ParsePrefix(s)
		if err != nil {
			return nil, fmt.Errorf("%q is no network like 10.0.0.0/8", s)
		}
		prefixes = append(prefixes, prefix)
	}
	return prefixes, nil
}

func buildAggregator(_ context.Context, c Config, p parts) (*node, error) {
	a, err := aggregator.New(aggregator.Options{
		Config: c.Aggregator, Version: p.version, Registry: p.registry,
		Log:  p.log.With("zone", c.Aggregator.Zone),
		HTTP: p.dial(anyController),
	})
	if err != nil {
		return nil, err
	}
	return &node{
		run: a.Run, ready: a.Ready,
		handlers: map[string]http.Handler{"aggregator.listen": a.Handler()},
		services: []string{grlv1connect.TreeServiceName},
	}, nil
}

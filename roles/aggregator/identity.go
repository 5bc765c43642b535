package aggregator

import (
	"fmt"
	"slices"

	"grl/limiter"
	"grl/proto/access"
	grlv1 "grl/proto/grl/v1"
)

// checkIdentity returns an error if the sender of a hello says that it is
// another node, or stands beside another workload, than its certificate does; n
// is nil where nodes speak plain text. A controller is trusted with all of its
// region.
func checkIdentity(n *access.Node, m *grlv1.Hello) error {
	switch {
	case n == nil:
		return nil
	case n.Role == access.Controller && m.GetRegion() != n.Zone:
		return fmt.Errorf("hello of region %q with the certificate of a %v", m.GetRegion(), n)
	case n.Role == access.Controller:
		return nil
	case m.GetZone() != n.Zone:
		return fmt.Errorf("hello of zone %q with the certificate of a %v", m.GetZone(), n)
	}
	for _, name := range append(m.GetServices(), m.GetCallers()...) {
		if name != n.Service {
			return fmt.Errorf("hello of %q with the certificate of a %v", name, n)
		}
	}
	return nil
}

// outbound returns the services of a configuration that are enforced on the
// callers' side.
func outbound(c *limiter.Configuration) map[string]bool {
	names := make(map[string]bool)
	for i := range c.Services {
		if c.Services[i].Enforce == limiter.Outbound {
			names[c.Services[i].Name] = true
		}
	}
	return names
}

// cellOf is cell for one that a host names. It is none if the host has no
// business with it: what a host says must not move the limits of others.
func (n *node) cellOf(h *host, id limiter.CellID) (int, bool) {
	b := n.buckets[id.Bucket]
	if b == nil {
		return -1, false
	}
	if !n.speaksOf(h, b.Service) && !(n.callsOut(h, b.Service) && h.isCaller(b.Match.Caller, id.Caller)) {
		h.foreign = id.Bucket
		return -1, false
	}
	return n.cell(id)
}

// speaksOf reports whether a host stands in front of a service.
func (n *node) speaksOf(h *host, service string) bool {
	return slices.Contains(h.hello.GetServices(), service)
}

// callsOut reports whether a host decides for callers of a service.
func (n *node) callsOut(h *host, service string) bool {
	return len(h.hello.GetCallers()) > 0 && n.outbound[service]
}

// isCaller reports whether a host may speak of requests of the callers that a
// pattern matches, and of caller alone unless that is "". Only who has proved
// its name is held to it: else a header may name the callers.
func (h *host) isCaller(pattern limiter.Pattern, caller string) bool {
	if !h.proved {
		return true
	}
	for _, own := range h.hello.GetCallers() {
		if pattern.Match(own) && (caller == "" || caller == own) {
			return true
		}
	}
	return false
}

// own removes from a detail what a host has no business with.
func (n *node) own(h *host, m *grlv1.Detail) {
	m.Buckets = slices.DeleteFunc(m.Buckets, func(c *grlv1.BucketCallers) bool {
		b := n.buckets[c.GetBucket()]
		switch {
		case b == nil:
			return true
		case n.speaksOf(h, b.Service):
			return false
		case !n.callsOut(h, b.Service):
			return true
		}
		c.Callers = slices.DeleteFunc(c.Callers, func(c *grlv1.CallerCounts) bool { return !h.isCaller("", c.GetCaller()) })
		return !h.isCaller(b.Match.Caller, "")
	})
	m.Services = slices.DeleteFunc(m.Services, func(s *grlv1.ServicePairs) bool {
		if n.speaksOf(h, s.GetService()) {
			return false
		}
		s.Pairs = slices.DeleteFunc(s.Pairs, func(p *grlv1.PairCounts) bool { return !h.isCaller("", p.GetCaller()) })
		return !n.callsOut(h, s.GetService())
	})
}

package controller

import (
	"slices"

	"grl/limiter"
)

// endings says of each service at which buckets the way of requests ends; see
// limiter.Service.Last.
type endings map[string]ending // service →

type ending struct {
	of   limiter.Service
	caps []limiter.Cap
	last map[string]bool // full names
}

// newEndings returns those of a configuration. What is as it was in one of
// before is not worked out again.
func newEndings(c *limiter.Configuration, before ...endings) endings {
	caps := make(map[string][]limiter.Cap)
	for _, p := range c.Caps {
		caps[p.Service] = append(caps[p.Service], p)
	}
	all := make(endings, len(c.Services))
	for i := range c.Services {
		s := &c.Services[i]
		all[s.Name] = newEnding(s, caps[s.Name], before)
		delete(caps, s.Name)
	}
	for service, own := range caps { // of services without limits
		all[service] = newEnding(&limiter.Service{Name: service}, own, before)
	}
	return all
}

func newEnding(s *limiter.Service, caps []limiter.Cap, before []endings) ending {
	for _, b := range before {
		if was := b[s.Name]; was.last != nil && was.is(s, caps) {
			return was
		}
	}
	return ending{of: *s, caps: caps, last: s.Last(caps)}
}

// is reports whether e is that of a service with these caps: of the same memory,
// which is what does not change between two configurations.
func (e *ending) is(s *limiter.Service, caps []limiter.Cap) bool {
	if len(e.of.Buckets) != len(s.Buckets) || len(s.Buckets) > 0 && &e.of.Buckets[0] != &s.Buckets[0] {
		return false
	}
	return slices.EqualFunc(e.caps, caps, func(a, b limiter.Cap) bool { return a.ID == b.ID && a.Match == b.Match })
}

// isLast reports whether b is one of those at which the way of requests ends.
func (e endings) isLast(b *limiter.Bucket) bool { return b != nil && e[b.Service].last[b.FullName()] }

// endingsOf returns those of the configuration of a zone.
func (n *node) endingsOf(z *zone) endings {
	if n.stage == nil || n.stage.reached[z.name] {
		return n.endings
	}
	return n.stage.endings
}

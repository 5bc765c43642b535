package limiter

import (
	"maps"
	"reflect"
	"slices"
	"strings"
)

// content is what a service is decided by. The zero value admits everything.
type content struct {
	config   *Service // nil if the service has none
	caps     []Cap    // by id
	disabled bool     // drops nothing
}

// contents returns what c says of each service, in copies.
func (c *Configuration) contents() map[string]content {
	all := make(map[string]content, len(c.Services))
	for i := range c.Services {
		s := c.Services[i].clone()
		all[s.Name] = content{config: s}
	}
	for _, cap := range c.Caps {
		of := all[cap.Service]
		of.caps = append(of.caps, cap)
		all[cap.Service] = of
	}
	for _, of := range all {
		slices.SortFunc(of.caps, func(a, b Cap) int { return strings.Compare(a.ID, b.ID) })
	}
	return all
}

// any reports whether something may be dropped by c.
func (c content) any() bool { return c.config != nil || len(c.caps) > 0 }

// over returns c with the parts of old that say the same, so that what did not
// change stays the same pointer, and whether anything did.
func (c content) over(old content) (next content, changed bool) {
	if reflect.DeepEqual(c.config, old.config) {
		c.config = old.config
	}
	if slices.EqualFunc(c.caps, old.caps, Cap.same) {
		c.caps = old.caps
	} else {
		changed = true
	}
	return c, changed || c.config != old.config || c.disabled != old.disabled
}

// compile returns the matcher of c for a node of zone and region.
func (c content) compile(zone, region string) *matcher {
	s := c.config
	if s == nil {
		s = &Service{}
	}
	return newMatcher(s, c.caps, zone, region)
}

// clone returns a copy that shares nothing with s, and names the service in
// each bucket.
func (s *Service) clone() *Service {
	c := *s
	c.Routes, c.Exempt, c.Buckets = slices.Clone(s.Routes), slices.Clone(s.Exempt), slices.Clone(s.Buckets)
	for i := range c.Buckets {
		c.Buckets[i].own(c.Name)
	}
	return &c
}

// own makes b one of that service, which shares nothing with others.
func (b *Bucket) own(service string) {
	b.Service = service
	b.Regions, b.Weights = maps.Clone(b.Regions), maps.Clone(b.Weights)
	b.Hourly, b.RegionHourly = slices.Clone(b.Hourly), maps.Clone(b.RegionHourly)
	for region, hourly := range b.RegionHourly {
		b.RegionHourly[region] = slices.Clone(hourly)
	}
	b.Tiers = slices.Clone(b.Tiers)
	for i := range b.Tiers {
		t := &b.Tiers[i]
		t.Callers, t.Values = slices.Clone(t.Callers), slices.Clone(t.Values)
	}
}

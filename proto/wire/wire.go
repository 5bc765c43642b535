// Package wire converts between the messages of the tree and the types of
// limiter and law, both ways in one place, and numbers cells on streams.
package wire

import (
	"errors"
	"fmt"

	"grl/limiter"
	grlv1 "grl/proto/grl/v1"
)

var errBase = errors.New("change of another configuration")

// NeedsWhole reports whether err says that a change does not apply to the held
// configuration: a whole one is needed, with which each stream begins.
func NeedsWhole(err error) bool { return errors.Is(err, errBase) }

// FromConfiguration returns c as a message that replaces all that was held.
func FromConfiguration(c *limiter.Configuration) *grlv1.Configuration {
	m := &grlv1.Configuration{Epoch: c.Epoch, Revision: c.Revision, Whole: true, PublicUrl: c.PublicURL}
	addIncident(m, c)
	for i := range c.Services {
		m.Services = append(m.Services, FromService(&c.Services[i]))
	}
	return m
}

// FromService returns the message for a service.
func FromService(s *limiter.Service) *grlv1.Service {
	m := &grlv1.Service{
		Name:    s.Name,
		Owner:   s.Owner,
		Enforce: grlv1.Enforce_ENFORCE_INBOUND,
		Routes:  s.Routes,
	}
	if s.Enforce == limiter.Outbound {
		m.Enforce = grlv1.Enforce_ENFORCE_OUTBOUND
	}
	for _, e := range s.Exempt {
		m.Exempt = append(m.Exempt, fromMatch(e))
	}
	for i := range s.Buckets {
		m.Buckets = append(m.Buckets, fromBucket(&s.Buckets[i]))
	}
	return m
}

func fromMatch(m limiter.Match) *grlv1.Match {
	return &grlv1.Match{Caller: string(m.Caller), Procedure: string(m.Procedure)}
}

func fromBucket(b *limiter.Bucket) *grlv1.Bucket {
	m := &grlv1.Bucket{
		Name:      b.Name,
		Match:     fromMatch(b.Match),
		PerCaller: b.PerCaller,
		Scope:     FromScope(b.Scope),
		Behavior:  FromBehavior(b.Behavior),
		Verified:  b.Verified,
		Share:     fromShare(b.Share),
		Weights:   b.Weights,

		ShedRetriesFirst: b.ShedRetriesFirst,
		Coherent:         b.Coherent,
		HoldOnSilence:    b.HoldOnSilence,
	}
	if b.CandidateRPS != 0 {
		m.CandidateRps = &b.CandidateRPS
	}
	for _, t := range b.Tiers {
		m.Tiers = append(m.Tiers, fromTier(t))
	}
	if b.Block {
		m.Gate = &grlv1.Bucket_Block{Block: true}
	} else {
		m.Gate = &grlv1.Bucket_Limit{Limit: &grlv1.Limit{Rps: b.LimitRPS, RegionsRps: b.Regions}}
	}
	switch {
	case b.Cost.Header != "":
		m.Cost = &grlv1.Cost{Source: &grlv1.Cost_Header{Header: b.Cost.Header}}
	case b.Cost.Fixed != 0:
		m.Cost = &grlv1.Cost{Source: &grlv1.Cost_Fixed{Fixed: b.Cost.Fixed}}
	}
	return m
}

func fromShare(s limiter.Share) grlv1.Share {
	if s == limiter.MaxMin {
		return grlv1.Share_SHARE_MAX_MIN
	}
	return grlv1.Share_SHARE_PROPORTIONAL
}

func fromTier(t limiter.Tier) *grlv1.Tier {
	m := &grlv1.Tier{Name: t.Name, Header: t.Header, Values: t.Values}
	for _, p := range t.Callers {
		m.Callers = append(m.Callers, string(p))
	}
	return m
}

// FromScope returns the message's word for a scope.
func FromScope(s limiter.Scope) grlv1.Scope {
	switch s {
	case limiter.Region:
		return grlv1.Scope_SCOPE_REGION
	case limiter.Zone:
		return grlv1.Scope_SCOPE_ZONE
	default:
		return grlv1.Scope_SCOPE_GLOBAL
	}
}

// FromBehavior returns the message's word for a behavior.
func FromBehavior(b limiter.Behavior) grlv1.Behavior {
	if b == limiter.Deny {
		return grlv1.Behavior_BEHAVIOR_DENY
	}
	return grlv1.Behavior_BEHAVIOR_ALLOW
}

// ToConfiguration returns the configuration that m makes of the one held. It
// returns an error if m is a change to another revision than the held one, or
// breaks a rule of limiter.Configuration.
func ToConfiguration(held *limiter.Configuration, m *grlv1.Configuration) (*limiter.Configuration, error) {
	if m.GetEpoch() > MaxEpoch {
		return nil, fmt.Errorf("configuration of epoch %d, at most %d", m.GetEpoch(), uint64(MaxEpoch))
	}
	if m.GetMinReaderVersion() > ReaderVersion {
		return nil, fmt.Errorf("configuration for readers of version %d and up; this one is of version %d: use a newer grl", m.GetMinReaderVersion(), ReaderVersion)
	}
	c := &limiter.Configuration{Epoch: m.GetEpoch(), Revision: m.GetRevision(), PublicURL: m.GetPublicUrl()}
	if err := takeIncident(c, m); err != nil {
		return nil, err
	}
	if !m.GetWhole() {
		if held.Revision != m.GetBase() {
			return nil, fmt.Errorf("%w: r%d is held, not r%d", errBase, held.Revision, m.GetBase())
		}
		gone := make(map[string]bool)
		for _, name := range m.GetRemoved() {
			gone[name] = true
		}
		for _, s := range m.GetServices() {
			gone[s.GetName()] = true // replaced below
		}
		for _, s := range held.Services {
			if !gone[s.Name] {
				c.Services = append(c.Services, s)
			}
		}
	}
	for _, s := range m.GetServices() {
		service, err := ToService(s)
		if err != nil {
			return nil, err
		}
		c.Services = append(c.Services, service)
	}
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return c, nil
}

// ToService returns the service of a message. It returns an error for a word
// this version does not know: what it cannot enforce it must refuse.
func ToService(m *grlv1.Service) (limiter.Service, error) {
	s := limiter.Service{Name: m.GetName(), Owner: m.GetOwner(), Routes: m.GetRoutes()}
	switch m.GetEnforce() {
	case grlv1.Enforce_ENFORCE_INBOUND:
	case grlv1.Enforce_ENFORCE_OUTBOUND:
		s.Enforce = limiter.Outbound
	default:
		return s, fmt.Errorf("service %q: unknown enforce %d", s.Name, m.GetEnforce())
	}
	for _, e := range m.GetExempt() {
		s.Exempt = append(s.Exempt, toMatch(e))
	}
	for _, b := range m.GetBuckets() {
		bucket, err := toBucket(s.Name, b)
		if err != nil {
			return s, err
		}
		s.Buckets = append(s.Buckets, bucket)
	}
	return s, nil
}

func toMatch(m *grlv1.Match) limiter.Match {
	return limiter.Match{
		Caller:    limiter.Pattern(m.GetCaller()),
		Procedure: limiter.Pattern(m.GetProcedure()),
	}
}

func toBucket(service string, m *grlv1.Bucket) (limiter.Bucket, error) {
	b := limiter.Bucket{
		Service:   service,
		Name:      m.GetName(),
		Match:     toMatch(m.GetMatch()),
		PerCaller: m.GetPerCaller(),
		LimitRPS:  m.GetLimit().GetRps(),
		Regions:   m.GetLimit().GetRegionsRps(),
		Block:     m.GetBlock(),
		Verified:  m.GetVerified(),
		Weights:   m.GetWeights(),

		ShedRetriesFirst: m.GetShedRetriesFirst(),
		Coherent:         m.GetCoherent(),
		HoldOnSilence:    m.GetHoldOnSilence(),
		CandidateRPS:     m.GetCandidateRps(),
	}
	if m.CandidateRps != nil && m.GetCandidateRps() == 0 {
		return b, fmt.Errorf("bucket %q: candidate of 0 requests per second", b.FullName())
	}
	for _, t := range m.GetTiers() {
		b.Tiers = append(b.Tiers, toTier(t))
	}
	switch m.GetShare() {
	case grlv1.Share_SHARE_UNSPECIFIED, grlv1.Share_SHARE_PROPORTIONAL:
	case grlv1.Share_SHARE_MAX_MIN:
		b.Share = limiter.MaxMin
	default:
		return b, fmt.Errorf("bucket %q: unknown share %d", b.FullName(), m.GetShare())
	}
	switch m.GetScope() {
	case grlv1.Scope_SCOPE_GLOBAL:
	case grlv1.Scope_SCOPE_REGION:
		b.Scope = limiter.Region
	case grlv1.Scope_SCOPE_ZONE:
		b.Scope = limiter.Zone
	default:
		return b, fmt.Errorf("bucket %q: unknown scope %d", b.FullName(), m.GetScope())
	}
	switch m.GetBehavior() {
	case grlv1.Behavior_BEHAVIOR_ALLOW:
	case grlv1.Behavior_BEHAVIOR_DENY:
		b.Behavior = limiter.Deny
	default:
		return b, fmt.Errorf("bucket %q: unknown behavior %d", b.FullName(), m.GetBehavior())
	}
	switch c := m.GetCost().GetSource().(type) {
	case nil:
	case *grlv1.Cost_Fixed:
		b.Cost.Fixed = c.Fixed
	case *grlv1.Cost_Header:
		b.Cost.Header = c.Header
	case *grlv1.Cost_Metadata:
		b.Cost.Header = c.Metadata // metadata travels as headers
	default:
		return b, fmt.Errorf("bucket %q: unknown cost %T", b.FullName(), c)
	}
	return b, nil
}

func toTier(m *grlv1.Tier) limiter.Tier {
	t := limiter.Tier{Name: m.GetName(), Header: m.GetHeader(), Values: m.GetValues()}
	for _, p := range m.GetCallers() {
		t.Callers = append(t.Callers, limiter.Pattern(p))
	}
	return t
}

// Change returns the message that turns base into next.
func Change(base, next *limiter.Configuration) *grlv1.Configuration {
	m := &grlv1.Configuration{Epoch: next.Epoch, Revision: next.Revision, Base: base.Revision, PublicUrl: next.PublicURL}
	addIncident(m, next)
	held := make(map[string]*limiter.Service, len(base.Services))
	for i := range base.Services {
		held[base.Services[i].Name] = &base.Services[i]
	}
	for i := range next.Services {
		s := &next.Services[i]
		if old, ok := held[s.Name]; !ok || !Equal(old, s) {
			m.Services = append(m.Services, FromService(s))
		}
		delete(held, s.Name)
	}
	for name := range held {
		m.Removed = append(m.Removed, name)
	}
	return m
}

// Filter returns the part of c that a child asked for in its hello: all of it,
// or the services it named and, for a child that decides for callers, each
// service with enforce outbound.
func Filter(c *limiter.Configuration, h *grlv1.Hello) *limiter.Configuration {
	if h.GetAllServices() {
		return c
	}
	wanted := make(map[string]bool, len(h.GetServices()))
	for _, name := range h.GetServices() {
		wanted[name] = true
	}
	out := &limiter.Configuration{
		Epoch: c.Epoch, Revision: c.Revision, PublicURL: c.PublicURL,
		Serial: c.Serial, AllDisabled: c.AllDisabled,
	}
	for _, s := range c.Services {
		if wanted[s.Name] || len(h.GetCallers()) > 0 && s.Enforce == limiter.Outbound {
			out.Services = append(out.Services, s)
			wanted[s.Name] = true
		}
	}
	for _, cap := range c.Caps {
		if wanted[cap.Service] {
			out.Caps = append(out.Caps, cap)
		}
	}
	for _, name := range c.Disabled {
		if wanted[name] {
			out.Disabled = append(out.Disabled, name)
		}
	}
	return out
}

package controller

import (
	"slices"
	"strings"
	"sync"
	"time"

	"grl/limiter"
	grlv1 "grl/proto/grl/v1"
)

// silentZone is a zone from which nothing comes any more.
type silentZone struct {
	name, region string
	lost         time.Time
	counted      bool          // its last known rates are still in the sums
	offered      map[part]bool // what it offered to; nil: nobody knows
	below        bool          // it is one of a region: offered is what that offered to
	hosts        int           // that it had, as far as that is known
}

// silence is what was known of a zone when nothing came from it any more.
type silence struct {
	offered map[part]bool // what it offered to
	hosts   int           // that it had
}

// part is a bucket in one instance of its scope; instance "": in any.
type part struct{ bucket, instance string }

// noteSilence remembers of the zones that fell silent what they had, until they
// are back. Their last sums are dropped long before people stop asking.
func (n *node) noteSilence(now time.Time) {
	for _, z := range n.order {
		switch {
		case z.live > 0:
			z.silence = nil
		case z.silence == nil && !z.lost.IsZero():
			z.silence = n.newSilence(now, z)
			n.rosterChanged()
		}
	}
}

func (n *node) newSilence(now time.Time, z *zone) *silence {
	s := &silence{offered: n.offeredBy(now, z)}
	for _, c := range z.kept {
		s.hosts += int(c.hosts())
	}
	return s
}

// offeredBy returns what a zone offers to.
func (n *node) offeredBy(now time.Time, z *zone) map[part]bool {
	offered := make(map[part]bool)
	n.cells.Each(func(i int, id limiter.CellID) {
		if z.sum.Rate(now, i).Offered > 0 {
			offered[part{id.Bucket, id.Instance}] = true
			offered[part{id.Bucket, ""}] = true
		}
	})
	return offered
}

// asSilent returns what is known of a zone from which nothing comes.
func (z *zone) asSilent() silentZone {
	s := silentZone{name: z.name, region: z.region, lost: z.lost, counted: len(z.kept) > 0}
	if z.silence != nil {
		s.offered, s.hosts = z.silence.offered, z.silence.hosts
	}
	return s
}

// offeredTo reports whether a silent zone offered something to a bucket before,
// or may have, if nobody knows: a cap may be younger than the silence. The
// instance "" stands for any.
func (s *silentZone) offeredTo(b *limiter.Bucket, instance string) bool {
	own := instance == "" || instance == b.Instance(s.name, s.region)
	if s.offered == nil || b.Cap != nil {
		return own
	}
	return (own || !s.below) && s.offered[part{b.FullName(), instance}]
}

// silent returns the zones from which nothing comes any more, by name.
func (n *node) silent(now time.Time) []silentZone {
	out := n.fallen(now)
	for _, z := range n.neverBack(now) {
		out = append(out, z.asSilent())
	}
	slices.SortFunc(out, func(a, b silentZone) int { return strings.Compare(a.name, b.name) })
	return out
}

// fallen returns the zones that fell silent since the start: those of regions below
// too, as long as the region itself reports.
func (n *node) fallen(now time.Time) []silentZone {
	var out []silentZone
	for _, z := range n.order {
		switch {
		case z.live > 0:
			out = append(out, z.below...)
		case !z.lost.IsZero() && now.Sub(z.lost) < forgetZone:
			out = append(out, z.asSilent())
		}
	}
	return out
}

// neverBack returns the zones of before the start of which nothing was heard
// since. While the node warms up it waits for them.
func (n *node) neverBack(now time.Time) []*zone {
	var out []*zone
	for name, z := range n.before {
		if n.warm && n.zones[name] == nil && now.Sub(z.lost) < forgetZone && !n.isBelow(name) {
			out = append(out, z)
		}
	}
	return out
}

// isBelow reports whether a zone is one of a region that reports, be it a silent
// one.
func (n *node) isBelow(zone string) bool {
	for c := range n.children {
		if c.zone.regional && (hasZone(c.zone.below, zone) || slices.ContainsFunc(c.nodes, func(m *grlv1.Node) bool { return m.GetZone() == zone })) {
			return true
		}
	}
	return false
}

// inRegions returns the zones in which regions tell of nodes, each with its region.
func (n *node) inRegions() map[string]*zone {
	of := make(map[string]*zone)
	for c := range n.children {
		if c.zone.regional {
			for _, m := range c.nodes {
				of[m.GetZone()] = c.zone
			}
		}
	}
	return of
}

func hasZone(zones []silentZone, name string) bool {
	return slices.ContainsFunc(zones, func(s silentZone) bool { return s.name == name })
}

// hearSilences takes in which zones of a region are silent. The region does not say
// what they offered to: it is no more than what the region did when it told of
// them first, if their rates were in its sums then. A controller of the region that
// begins may not know of a zone: it stays silent until somebody is in it.
func (n *node) hearSilences(now time.Time, region *zone, told []*grlv1.Silence) {
	before := region.below
	region.below = nil
	if len(told)+len(before) == 0 {
		return // as nearly always
	}
	at := n.inRegions()
	add := func(s silentZone) {
		reportsHere := n.zones[s.name] != nil
		if len(region.below) < mostSilent && !reportsHere && now.Sub(s.lost) < forgetZone && !hasZone(region.below, s.name) {
			region.below = append(region.below, s)
		}
	}
	offered := sync.OnceValue(func() map[part]bool { return n.offeredBy(now, region) })
	for _, m := range told[:min(len(told), mostSilent)] {
		if in := at[m.GetZone()]; in != nil && in != region || limiter.CheckName(m.GetZone()) != nil {
			continue
		}
		lasts := time.Duration(min(m.GetSilentMs(), uint64(forgetZone.Milliseconds()))) * time.Millisecond
		s := silentZone{name: m.GetZone(), region: region.region, lost: now.Add(-lasts), counted: m.GetCounted(), hosts: int(m.GetHosts()), below: true}
		if i := slices.IndexFunc(before, func(b silentZone) bool { return b.name == s.name }); i >= 0 {
			s.offered = before[i].offered
		} else if s.counted {
			s.offered = offered()
		}
		add(s)
	}
	for _, s := range before {
		if at[s.name] == nil {
			s.counted = false
			add(s)
		}
	}
}

// offering returns which of some silent zones offered something to a cell of b
// before. What they offer now is not in its figures, but for a while as it was
// last.
func offering(all []silentZone, b *limiter.Bucket, id limiter.CellID) []string {
	var names []string
	for i := range all {
		if all[i].offeredTo(b, id.Instance) {
			names = append(names, all[i].name)
		}
	}
	return names
}

// silentMessages returns the silent zones that are named as the API has them.
func silentMessages(now time.Time, all []silentZone, named func(zone string) bool) []*grlv1.SilentZone {
	var out []*grlv1.SilentZone
	for _, s := range all {
		if named(s.name) {
			out = append(out, &grlv1.SilentZone{Name: s.name, Region: s.region, SilentMs: now.Sub(s.lost).Milliseconds(), Counted: s.counted})
		}
	}
	return out
}

// unheard returns how many hosts the silent zones had, as far as that is known.
func (n *node) unheard(now time.Time) int {
	hosts := 0
	for _, s := range n.silent(now) {
		hosts += s.hosts
	}
	return hosts
}

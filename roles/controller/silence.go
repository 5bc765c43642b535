package controller

import (
	"slices"
	"strings"
	"time"

	"grl/limiter"
	grlv1 "grl/proto/grl/v1"
)

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
		}
	}
}

func (n *node) newSilence(now time.Time, z *zone) *silence {
	s := &silence{offered: make(map[part]bool)}
	n.cells.Each(func(i int, id limiter.CellID) {
		if z.sum.Rate(now, i).Offered > 0 {
			s.offered[part{id.Bucket, id.Instance}] = true
			s.offered[part{id.Bucket, ""}] = true
		}
	})
	for _, c := range z.kept {
		s.hosts += int(c.hosts())
	}
	return s
}

// offeredTo reports whether a silent zone offered something to a bucket before,
// or may have, if nobody knows: a cap may be younger than the silence. The
// instance "" stands for any.
func (z *zone) offeredTo(b *limiter.Bucket, instance string) bool {
	if z.silence == nil || b.Cap != nil {
		return instance == "" || instance == b.Instance(z.name, z.region)
	}
	return z.silence.offered[part{b.FullName(), instance}]
}

// counted reports whether the last known rates of a silent zone are still in the
// sums.
func (z *zone) counted() bool { return len(z.kept) > 0 }

// silent returns the zones from which nothing comes any more, by name.
func (n *node) silent(now time.Time) []*zone {
	var out []*zone
	for _, z := range n.order {
		if z.live == 0 && !z.lost.IsZero() && now.Sub(z.lost) < forgetZone {
			out = append(out, z)
		}
	}
	out = append(out, n.neverBack(now)...)
	slices.SortFunc(out, func(a, b *zone) int { return strings.Compare(a.name, b.name) })
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

// isBelow reports whether a zone is one of a region that reports.
func (n *node) isBelow(zone string) bool {
	for c := range n.children {
		for _, m := range c.nodes {
			if c.zone.regional && m.GetZone() == zone {
				return true
			}
		}
	}
	return false
}

// offering returns which of some silent zones offered something to a cell of b
// before. What they offer now is not in its figures, but for a while as it was
// last.
func offering(silent []*zone, b *limiter.Bucket, id limiter.CellID) []string {
	var names []string
	for _, z := range silent {
		if z.offeredTo(b, id.Instance) {
			names = append(names, z.name)
		}
	}
	return names
}

// silentMessages returns the silent zones that are named as the API has them.
func silentMessages(now time.Time, silent []*zone, named func(zone string) bool) []*grlv1.SilentZone {
	var out []*grlv1.SilentZone
	for _, z := range silent {
		if named(z.name) {
			out = append(out, &grlv1.SilentZone{Name: z.name, Region: z.region, SilentMs: now.Sub(z.lost).Milliseconds(), Counted: z.counted()})
		}
	}
	return out
}

// unheard returns how many hosts the silent zones had, as far as that is known.
func (n *node) unheard(now time.Time) int {
	hosts := 0
	for _, z := range n.silent(now) {
		if z.silence != nil {
			hosts += z.silence.hosts
		}
	}
	return hosts
}

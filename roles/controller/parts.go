package controller

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"grl/limiter"
	"grl/limiter/law"
	"grl/web/page"
)

// Parts returns what a bucket is offered now by zone, the largest first. The
// zones share the drop ratio of a cell, so of what is dropped each has its part
// by load.
func (v view) Parts(bucket, instance string) []page.Part {
	cells := v.cellsOf(bucket)
	v.mu.Lock()
	defer v.mu.Unlock()
	n, now := v.node, time.Now()
	b := n.buckets[bucket]
	parts := make([]page.Part, 0, len(n.order))
	total := 0.0
	for _, z := range slices.Concat(n.order, n.neverBack(now)) {
		if p, seen := n.partOf(now, z, cells, b, instance); seen {
			total += p.OfferedRPS
			parts = append(parts, p)
		}
	}
	for i := range parts {
		if total > 0 {
			parts[i].Share = parts[i].OfferedRPS / total
		}
	}
	slices.SortFunc(parts, func(a, b page.Part) int {
		return cmp.Or(cmp.Compare(b.OfferedRPS, a.OfferedRPS), strings.Compare(a.Zone, b.Zone))
	})
	return parts
}

// partOf returns what a zone offers to the cells of a bucket, or of one instance of
// it; false: nothing, now or before it fell silent.
func (n *node) partOf(now time.Time, z *zone, cells []int, b *limiter.Bucket, instance string) (page.Part, bool) {
	p := page.Part{Zone: z.name, Region: z.region, Silent: z.live == 0 && !z.lost.IsZero()}
	seen := false
	for _, i := range cells {
		if i >= len(n.states) || b == nil || n.states[i].bucket == nil || n.states[i].bucket.FullName() != b.FullName() || instance != "" && n.cells.ID(i).Instance != instance {
			continue // it was forgotten since
		}
		rate := z.sum.Rate(now, i)
		dropped, shadowDropped := n.flows[i].shares(n.ticks)
		p.OfferedRPS += rate.Offered.RPS()
		p.DroppedRPS += dropped * rate.Offered.RPS()
		p.ShadowDroppedRPS += shadowDropped * rate.Offered.RPS()
		p.Hosts = max(p.Hosts, int(rate.Hosts)) // a host may offer to several cells
		seen = seen || rate.Offered > 0
	}
	if p.Silent {
		p.SilentFor = now.Sub(z.lost)
		p.AutonomousFor = max(0, law.DeciderSilent+law.Autonomy-p.SilentFor)
		s := z.asSilent()
		p.Counted = s.counted
		seen = seen || b != nil && s.offeredTo(b, instance)
	}
	return p, seen
}

// cellsOf returns the cells of a bucket, as they were at the last look at all.
func (c *Controller) cellsOf(bucket string) []int {
	c.sight()
	c.sights.mu.Lock()
	defer c.sights.mu.Unlock()
	if f := c.sights.named[bucket]; f != nil && f.seen == c.sights.looks {
		return slices.Clone(f.cells)
	}
	return nil
}

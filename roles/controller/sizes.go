package controller

import (
	"cmp"
	"slices"

	grlv1 "grl/proto/grl/v1"
)

// sizes says how many aggregators each zone of the fleet has. Children need it
// for the time when they are cut off: one that does not know its share of a cell
// takes an equal part.
type sizes struct {
	zones   []*grlv1.ZoneSize // by region and zone; shared with messages: never written
	version uint64            // counts changes
}

// zoneKey names a zone of the fleet.
type zoneKey struct{ region, zone string }

// resize counts the aggregators anew; should a number have changed, children are
// sent all of them again.
func (n *node) resize() {
	count := make(map[zoneKey]uint32)
	for c := range n.children {
		if !c.zone.regional {
			count[zoneKey{c.zone.region, c.zone.name}]++
			continue
		}
		for _, m := range c.nodes {
			if m.GetRole() == grlv1.Role_ROLE_AGGREGATOR {
				count[zoneKey{c.zone.region, m.GetZone()}]++
			}
		}
	}
	if n.region != nil {
		for _, z := range n.region.sizes {
			if z.GetRegion() != n.region.name { // here it is known better
				count[zoneKey{z.GetRegion(), z.GetZone()}] = z.GetAggregators()
			}
		}
	}
	zones := make([]*grlv1.ZoneSize, 0, len(count))
	for k, aggregators := range count {
		zones = append(zones, &grlv1.ZoneSize{Zone: k.zone, Region: k.region, Aggregators: aggregators})
	}
	slices.SortFunc(zones, func(a, b *grlv1.ZoneSize) int {
		return cmp.Or(cmp.Compare(a.Region, b.Region), cmp.Compare(a.Zone, b.Zone))
	})
	if !slices.EqualFunc(zones, n.sizes.zones, func(a, b *grlv1.ZoneSize) bool {
		return a.Region == b.Region && a.Zone == b.Zone && a.Aggregators == b.Aggregators
	}) {
		n.sizes = sizes{zones, n.sizes.version + 1}
	}
}

package controller

import "time"

// mostSilent bounds the zones that are remembered for the fleet's view although
// nobody is in them: names come from hellos.
const mostSilent = 100

// forgetZones forgets the zones that nobody is in and that count nothing, but
// for those that are shown as silent.
func (n *node) forgetZones(now time.Time) {
	inUse := make(map[*zone]bool, len(n.zones))
	for c := range n.children {
		inUse[c.zone] = true
	}
	silent := 0
	kept := n.order[:0]
	for _, z := range n.order {
		if !inUse[z] && len(z.kept) == 0 {
			if silent++; z.lost.IsZero() || now.Sub(z.lost) >= forgetZone || silent > mostSilent {
				delete(n.zones, z.name)
				continue
			}
		}
		kept = append(kept, z)
	}
	clear(n.order[len(kept):])
	n.order = kept
}

// foreign returns the region of a zone that is in use in another one than
// region, "" if a node of that zone and region may join. A zone that nobody is
// in any more may come back in another region: the first hello of its name may
// have been wrong.
func (n *node) foreign(name, region string) string {
	z := n.zones[name]
	if z == nil || z.region == region {
		return ""
	}
	if len(z.kept) > 0 {
		return z.region
	}
	for c := range n.children {
		if c.zone == z {
			return z.region
		}
	}
	return ""
}

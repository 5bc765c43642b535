package controller

import (
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"grl/limiter/law"
	grlv1 "grl/proto/grl/v1"
	"grl/proto/uplink"
	"grl/proto/wire"
)

// rosterBytes bounds the fleet's view: a report with more would break its size,
// and with it the stream. Nodes beyond it count, but are not shown.
const rosterBytes = 4 << 20

// source is what a region tells its parent at a moment: all cells, those that it
// decides itself too, and all nodes.
type source struct {
	*node
	now  time.Time
	full bool // all cells are asked for
}

// source returns what there is to tell now; full says that it will be asked for
// all cells.
func (n *node) source(now time.Time, full bool) source {
	if full {
		n.sumUp(now)
	}
	return source{n, now, full}
}

// Cells has all cells of the region.
func (s source) Cells() *law.Cells { return &s.cells }

// Rate returns the sum over the region's zones.
func (s source) Rate(cell int) law.Rate {
	if s.full {
		return s.sums[cell]
	}
	return s.offered(s.now, cell)
}

// Counts returns what the children counted, as far as it was released.
func (s source) Counts(cell int) law.Counts { return s.region.played.Counts(cell) }

// Contains says which reports of children the sums contain.
func (s source) Contains() uplink.Contains {
	return uplink.Contains{Rates: s.received, Counts: s.region.released}
}

// Roster counts changes of which nodes there are and which zones are silent; how
// nodes are is told from time to time.
func (s source) Roster() uint64 { return s.region.roster }

// AddRoster names in a report all nodes of the region, and which of its zones are
// silent.
func (s source) AddRoster(now time.Time, m *grlv1.Report) {
	m.Nodes = s.shownNodes(now)
	for _, z := range s.silent(now) {
		m.Silences = append(m.Silences, &grlv1.Silence{
			Zone: z.name, SilentMs: uint64(now.Sub(z.lost).Milliseconds()), Counted: z.counted, Hosts: uint32(z.hosts),
		})
	}
}

// shownNodes returns all nodes of the region, as far as there is room: aggregators
// first, since the parent counts them.
func (s source) shownNodes(now time.Time) []*grlv1.Node {
	all := s.tree(now)
	slices.SortStableFunc(all, func(a, b *grlv1.Node) int { return int(b.GetRole()) - int(a.GetRole()) })
	bytes := 0
	for i, m := range all {
		const tag = 8 // bytes, at most, before each
		if bytes += proto.Size(m) + tag; bytes > rosterBytes {
			return all[:i]
		}
	}
	return all
}

// Sign says in a report which configuration and directive the node holds.
func (s source) Sign(m *grlv1.Report) {
	m.ConfigEpoch, m.ConfigRevision, m.ConfigSerial = s.config.Epoch, s.config.Revision, s.config.Serial
	m.RefusedRevision, m.RefusedReason = s.region.refused.revision, s.region.refused.reason
	if s.region.taken != (law.Stamp{}) {
		m.Taken = append(m.Taken, wire.Taken(globalDecider, s.region.taken))
	}
}

// hello returns what the node says of itself on a new stream to a parent.
func (n *node) hello(p *uplink.Parent, name, version string, bootID uint64) *grlv1.Hello {
	heard := map[string]uint64{globalDecider: n.region.epoch}
	return &grlv1.Hello{
		Role:        grlv1.Role_ROLE_CONTROLLER,
		Node:        name,
		Region:      n.region.name,
		BootId:      bootID,
		Version:     version,
		AllServices: true,
		Heard:       wire.Heard(heard),
		Confirmed:   p.Reopen(heard),
	}
}

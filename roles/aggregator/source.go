package aggregator

import (
	"time"

	"google.golang.org/protobuf/proto"

	"grl/limiter/law"
	grlv1 "grl/proto/grl/v1"
	"grl/proto/uplink"
	"grl/proto/wire"
)

// rosterBytes bounds the fleet's view: a report with more would break its size,
// and with it the stream. Hosts beyond it count, but are not shown.
const rosterBytes = 4 << 20

// Cells has the cells of the zone's hosts.
func (n *node) Cells() *law.Cells { return &n.cells }

// Rate returns the sum of what the hosts are offered.
func (n *node) Rate(cell int) law.Rate {
	n.sum.Settle(cell, &n.states[cell].told)
	return n.sum.Rate(cell)
}

// Counts returns what the hosts counted, as far as it was released.
func (n *node) Counts(cell int) law.Counts { return n.played.Counts(cell) }

// Contains says which reports of hosts the sums contain.
func (n *node) Contains() uplink.Contains {
	return uplink.Contains{Rates: n.received, Counts: n.released}
}

// Roster counts changes of what AddRoster names.
func (n *node) Roster() uint64 { return n.roster }

// Sign says in a report which configuration and directives the node holds.
func (n *node) Sign(m *grlv1.Report) {
	m.ConfigEpoch, m.ConfigRevision, m.ConfigSerial = n.config.Epoch, n.config.Revision, n.config.Serial
	m.RefusedRevision, m.RefusedReason = n.refused.revision, n.refused.reason
	for name, d := range n.deciders {
		m.Taken = append(m.Taken, wire.Taken(name, d.taken))
	}
}

// AddRoster names the hosts in a report, for the fleet's view.
func (n *node) AddRoster(now time.Time, m *grlv1.Report) {
	m.Nodes = make([]*grlv1.Node, 0, len(n.hosts))
	bytes := 0
	for h := range n.hosts {
		node := &grlv1.Node{
			Role:            grlv1.Role_ROLE_CLIENT,
			Name:            h.hello.GetNode(),
			Zone:            n.zone,
			Region:          n.region,
			Version:         h.hello.GetVersion(),
			ConfigRevision:  h.last.GetConfigRevision(),
			ConfigSerial:    h.last.GetConfigSerial(),
			DisabledHere:    h.last.GetDisabledHere(),
			RefusedRevision: h.last.GetRefusedRevision(),
			RefusedReason:   h.last.GetRefusedReason(),
			ReportAgeMs:     uint32(now.Sub(h.heard).Milliseconds()),
			DirectiveAgeMs:  uint32(n.directiveAge(h).Milliseconds()),
			BytesReceived:   h.bytesIn,
			BytesSent:       h.bytesOut,
			Reports:         h.reports,
		}
		const tag = 8 // bytes, at most, before each
		if bytes += proto.Size(node) + tag; bytes > rosterBytes {
			break
		}
		m.Nodes = append(m.Nodes, node)
	}
}

// hello returns what the node says of itself on a new stream to a parent.
func (n *node) hello(p *uplink.Parent, name, version string, bootID uint64) *grlv1.Hello {
	return &grlv1.Hello{
		Role:        grlv1.Role_ROLE_AGGREGATOR,
		Node:        name,
		Zone:        n.zone,
		Region:      n.region,
		BootId:      bootID,
		Version:     version,
		AllServices: true,
		Heard:       wire.Heard(n.heard),
		Confirmed:   p.Reopen(n.heard),
	}
}

// directiveAge returns how old the directive was that a host had taken, when it
// reported last; of several deciders, the oldest.
func (n *node) directiveAge(h *host) time.Duration {
	var age time.Duration
	for _, t := range h.last.GetTaken() {
		if d := n.deciders[t.GetDecider()]; d != nil {
			age = max(age, d.trail.Age(h.heard, wire.Stamp(t)))
		}
	}
	return age
}

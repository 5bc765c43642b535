package controller

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"grl/limiter/law"
	grlv1 "grl/proto/grl/v1"
)

// tree returns the nodes below the controller: its children, each followed by
// those below it as it told of them last.
func (n *node) tree(now time.Time) []*grlv1.Node {
	var out []*grlv1.Node
	for _, c := range n.sortedChildren() {
		out = append(out, n.treeNode(now, c))
		for _, h := range c.nodes {
			out = append(out, &grlv1.Node{
				Role:            h.GetRole(),
				Name:            h.GetName(),
				Zone:            h.GetZone(),
				Region:          h.GetRegion(),
				Version:         h.GetVersion(),
				ConfigRevision:  h.GetConfigRevision(),
				ConfigSerial:    h.GetConfigSerial(),
				DisabledHere:    h.GetDisabledHere(),
				RefusedRevision: h.GetRefusedRevision(),
				RefusedReason:   h.GetRefusedReason(),
				ReportAgeMs:     reportAge(h, now.Sub(c.nodesAt)),
				DirectiveAgeMs:  h.GetDirectiveAgeMs(),
				BytesReceived:   h.GetBytesReceived(),
				BytesSent:       h.GetBytesSent(),
				Reports:         h.GetReports(),
				Hosts:           h.GetHosts(),
			})
		}
	}
	return out
}

// sortedChildren returns the children by what they are, where and who.
func (n *node) sortedChildren() []*child {
	return slices.SortedFunc(maps.Keys(n.children), func(a, b *child) int {
		return cmp.Or(
			cmp.Compare(a.hello.GetRole(), b.hello.GetRole()), // aggregators first
			strings.Compare(a.zone.region, b.zone.region),
			strings.Compare(a.zone.name, b.zone.name),
			strings.Compare(a.hello.GetNode(), b.hello.GetNode()),
		)
	})
}

// treeNode returns a child as the fleet's view shows it.
func (n *node) treeNode(now time.Time, c *child) *grlv1.Node {
	return &grlv1.Node{
		Role:            c.hello.GetRole(),
		Name:            c.hello.GetNode(),
		Zone:            c.hello.GetZone(),
		Region:          c.zone.region,
		Version:         c.hello.GetVersion(),
		ConfigRevision:  c.last.GetConfigRevision(),
		ConfigSerial:    c.last.GetConfigSerial(),
		RefusedRevision: c.last.GetRefusedRevision(),
		RefusedReason:   c.last.GetRefusedReason(),
		ReportAgeMs:     uint32(now.Sub(c.heard).Milliseconds()),
		DirectiveAgeMs:  uint32(n.directiveAge(c).Milliseconds()),
		BytesReceived:   c.bytesIn,
		BytesSent:       c.bytesOut,
		Reports:         c.reports,
		Hosts:           c.hosts(),
	}
}

// count returns how many of the children are regional controllers, or are not.
func (n *node) count(regional bool) int {
	count := 0
	for c := range n.children {
		if c.zone.regional == regional {
			count++
		}
	}
	return count
}

// hosts returns how many hosts are below the child.
func (c *child) hosts() uint32 {
	var hosts uint32
	for _, m := range c.nodes {
		if m.GetRole() == grlv1.Role_ROLE_CLIENT {
			hosts++
		}
	}
	return hosts
}

// reportAge returns the age of a host's last report, told so long ago: one that
// falls silent is told of at once, so a host that was not has gone on reporting.
func reportAge(h *grlv1.Node, told time.Duration) uint32 {
	if age := time.Duration(h.GetReportAgeMs()) * time.Millisecond; age > law.HostSilent {
		return uint32((age + told).Milliseconds())
	}
	return h.GetReportAgeMs()
}

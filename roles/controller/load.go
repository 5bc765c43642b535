package controller

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"grl/limiter"
	"grl/policy/guard"
	grlv1 "grl/proto/grl/v1"
	"grl/roles/controller/desk"
)

// load answers what the desk asks of the traffic.
type load struct{ *Controller }

// detailKept is how long a detail, which comes every ten seconds, speaks for
// now.
const detailKept = 30 * time.Second

// Offered returns the requests per second that are offered now to a service by
// callers and procedures that match, also what is dropped of them; false: cannot
// tell. Where the service has limits, a bucket must cover the match: of single
// procedures nothing else is known.
func (l load) Offered(service string, match limiter.Match) (float64, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	told, known := l.node.pairsOffered(now, service, match) // by details, whose windows are rough
	measured, exact := 0.0, false
	for name, b := range l.node.buckets {
		if b.Service != service || b.Cap != nil || !same(b.Match.Procedure, match.Procedure) || !covers(b.Match.Caller, match.Caller) {
			continue
		}
		before := l.node.droppedBefore(b, match)
		if same(b.Match.Caller, match.Caller) || b.HasCallers() {
			measured, exact = max(measured, l.node.bucketOffered(b, match.Caller)+before), true
		} else {
			told, known = max(told, l.node.callersOffered(now, name, match.Caller)+before), true
		}
	}
	if measured > 0 {
		return measured, true
	}
	return told, known || exact
}

// bucketOffered sums the cells of a bucket whose callers match.
func (n *node) bucketOffered(b *limiter.Bucket, caller limiter.Pattern) (rps float64) {
	for i := range n.states {
		if s := &n.states[i]; s.bucket == b && (!b.HasCallers() || matches(caller, n.cells.ID(i).Caller)) {
			rps += s.rate.Offered.RPS()
		}
	}
	return rps
}

// droppedBefore sums what is dropped of the requests that match by what is tried
// before b, which covers the match: running caps, and buckets that select a part
// of it. What they drop does not reach b, and would have reached a cap.
func (n *node) droppedBefore(b *limiter.Bucket, match limiter.Match) (rps float64) {
	for i := range n.states {
		before := n.states[i].bucket
		if before == nil || before.Service != b.Service ||
			!covers(match.Caller, before.Match.Caller) || !covers(match.Procedure, before.Match.Procedure) ||
			before.Cap == nil && same(before.Match.Caller, b.Match.Caller) && same(before.Match.Procedure, b.Match.Procedure) {
			continue
		}
		dropped, _ := n.flows[i].shares(n.ticks)
		rps += dropped * n.states[i].rate.Offered.RPS()
	}
	return rps
}

// pairsOffered sums the pairs of a service without limits.
func (n *node) pairsOffered(now time.Time, service string, match limiter.Match) (rps float64, known bool) {
	for c := range n.children {
		d := c.detail
		if d == nil || now.Sub(c.detailAt) > detailKept || d.GetWindowMs() == 0 {
			continue
		}
		for _, s := range d.GetServices() {
			if s.GetService() != service {
				continue
			}
			known = true
			requests := uint64(0)
			for _, p := range s.GetPairs() {
				if matches(match.Caller, p.GetCaller()) && matches(match.Procedure, p.GetProcedure()) {
					requests += p.GetOffered()
				}
			}
			if anyOf(match.Caller) && anyOf(match.Procedure) {
				requests += s.GetRestOffered()
			}
			rps += float64(requests) * 1000 / float64(d.GetWindowMs())
		}
	}
	return rps, known
}

// callersOffered sums the callers of a bucket that match.
func (n *node) callersOffered(now time.Time, bucket string, caller limiter.Pattern) (rps float64) {
	for c := range n.children {
		d := c.detail
		if d == nil || now.Sub(c.detailAt) > detailKept || d.GetWindowMs() == 0 {
			continue
		}
		for _, b := range d.GetBuckets() {
			if b.GetBucket() != bucket {
				continue
			}
			for _, counts := range b.GetCallers() {
				if matches(caller, counts.GetCaller()) {
					rps += float64(counts.GetOffered()) * 1000 / float64(d.GetWindowMs())
				}
			}
		}
	}
	return rps
}

// anyOf reports whether a pattern selects every name.
func anyOf(p limiter.Pattern) bool { return p == "" || p == "*" }

// same reports whether two patterns select the same names.
func same(a, b limiter.Pattern) bool { return a == b || anyOf(a) && anyOf(b) }

// matches reports whether a pattern selects a name.
func matches(p limiter.Pattern, name string) bool {
	if prefix, ok := strings.CutSuffix(string(p), "*"); ok || p == "" {
		return strings.HasPrefix(name, prefix)
	}
	return string(p) == name
}

// covers reports whether wide selects all names that narrow does.
func covers(wide, narrow limiter.Pattern) bool {
	if same(wide, narrow) {
		return true
	}
	prefix, ok := strings.CutSuffix(string(wide), "*")
	return (ok || wide == "") && strings.HasPrefix(strings.TrimSuffix(string(narrow), "*"), prefix) && narrow != ""
}

// History returns what the cells of a bucket were offered in the minutes that
// start in [from, to), as far as there is any.
func (l load) History(ctx context.Context, bucket string, from, to time.Time) ([]guard.Cell, error) {
	var cells []guard.Cell
	for _, id := range l.opts.Store.CellsOf(bucket) {
		minutes, err := l.opts.Store.Minutes(ctx, id, from, to)
		if err != nil {
			return nil, err
		}
		if len(minutes) == 0 {
			continue
		}
		cell := guard.Cell{ID: id}
		for _, m := range minutes {
			cell.Minutes = append(cell.Minutes, guard.Minute{
				Start:     m.Start.Unix() / 60,
				Offered:   float64(m.Offered) / 60,
				ShadowRPS: float64(m.ShadowDropped) / 60,
			})
		}
		cells = append(cells, cell)
	}
	return cells, nil
}

// Cap returns what a cap does now; zero if it is not known yet.
func (l load) Cap(service, id string) desk.CapLoad {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.node
	var out desk.CapLoad
	if i, ok := n.cells.Find(limiter.CellID{Bucket: service + "/" + limiter.CapPrefix + id}); ok {
		dropped, _ := n.flows[i].shares(n.ticks)
		out.OfferedRPS = n.states[i].rate.Offered.RPS()
		out.DroppedRPS = dropped * out.OfferedRPS
	}
	for c := range n.children {
		for _, m := range c.nodes {
			if m.GetRole() != grlv1.Role_ROLE_CLIENT {
				continue
			}
			out.Clients++
			if m.GetConfigSerial() >= n.config.Serial {
				out.Holding++
			}
		}
	}
	out.Unheard = n.unheard(time.Now())
	return out
}

// Zones returns the names of the zones that live, in the order in which a
// rollout reaches them: those with the fewest hosts first, since less depends on
// them, and last those that are away for a moment.
func (l load) Zones() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	live, away := l.node.rolloutZones(time.Now())
	return append(live, away...)
}

// Regions returns the same zones by their region, in the order of the first zone
// of each.
func (l load) Regions() [][]string {
	l.mu.Lock()
	defer l.mu.Unlock()
	live, away := l.node.rolloutZones(time.Now())
	return l.node.byRegion(append(live, away...))
}

// byRegion divides zones by their region, in the order of the first zone of
// each.
func (n *node) byRegion(zones []string) [][]string {
	var regions [][]string
	at := make(map[string]int) // region → index
	for _, zone := range zones {
		region := n.regionOf(zone)
		i, ok := at[region]
		if !ok {
			i = len(regions)
			at[region] = i
			regions = append(regions, nil)
		}
		regions[i] = append(regions[i], zone)
	}
	return regions
}

// regionOf returns the region of a zone that is there, or was before the start.
func (n *node) regionOf(zone string) string {
	if z := n.zones[zone]; z != nil {
		return z.region
	}
	if z := n.before[zone]; z != nil {
		return z.region
	}
	return ""
}

// rolloutZones returns the zones that a rollout goes through: those that live,
// in their order, and those that are away for less than a step of it, such as
// all of them when the controller has just begun.
func (n *node) rolloutZones(now time.Time) (live, away []string) {
	live = n.zonesByHosts()
	for _, z := range n.order {
		if z.live == 0 && !z.lost.IsZero() && now.Sub(z.lost) < rolloutStep && !slices.Contains(live, z.name) {
			away = append(away, z.name)
		}
	}
	if now.Sub(n.began) < rolloutStep {
		for name := range n.before {
			if !slices.Contains(live, name) && !slices.Contains(away, name) {
				away = append(away, name)
			}
		}
	}
	slices.Sort(away)
	return live, away
}

func (n *node) zonesByHosts() []string {
	hosts := make(map[string]uint32)
	for c := range n.children {
		if c.begun {
			hosts[c.zone.name] += c.hosts()
		}
	}
	names := make([]string, 0, len(hosts))
	for name := range hosts {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(hosts[a], hosts[b]), cmp.Compare(a, b)) })
	return names
}

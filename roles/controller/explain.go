package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"connectrpc.com/connect"

	"grl/limiter"
	grlv1 "grl/proto/grl/v1"
	"grl/proto/wire"
)

// maxExplainName bounds a name in a question: longer ones are no names of
// requests.
const maxExplainName = 256

// Explain says what happens to a request now, and why.
func (v view) Explain(_ context.Context, r *grlv1.ExplainRequest) (*grlv1.ExplainResponse, error) {
	if err := checkExplain(r); err != nil {
		return nil, rpcError(connect.CodeInvalidArgument, err)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	z := v.node.zones[r.GetZone()]
	if r.GetZone() != "" && z == nil {
		return nil, rpcError(connect.CodeNotFound, fmt.Errorf("zone: no node of %q is in the tree", r.GetZone()))
	}
	return v.node.explain(time.Now(), r, z), nil
}

func checkExplain(r *grlv1.ExplainRequest) error {
	if err := limiter.CheckName(r.GetService()); err != nil {
		return fmt.Errorf("service: %w", err)
	}
	for _, f := range []struct{ name, value string }{{"caller", r.GetCaller()}, {"procedure", r.GetProcedure()}, {"zone", r.GetZone()}} {
		if len(f.value) > maxExplainName {
			return fmt.Errorf("%s: %d bytes, at most %d", f.name, len(f.value), maxExplainName)
		}
		if !utf8.ValidString(f.value) {
			return errors.New(f.name + ": not UTF-8")
		}
	}
	return nil
}

// explain walks a request through the configuration of a zone, nil for the one
// that all shall have.
func (n *node) explain(now time.Time, r *grlv1.ExplainRequest, z *zone) *grlv1.ExplainResponse {
	c := n.config
	request := limiter.Request{Service: r.GetService(), Caller: r.GetCaller(), Procedure: r.GetProcedure(), Verified: r.GetVerified()}
	var zone, region string
	if z != nil {
		c, zone, region = n.configuration(z), z.name, z.region
	}
	out := &grlv1.ExplainResponse{Epoch: n.epoch, Revision: c.Revision, Service: r.GetService()}
	out.Known = slices.ContainsFunc(c.Caps, func(p limiter.Cap) bool { return p.Service == r.GetService() })
	for i := range c.Services {
		if s := &c.Services[i]; s.Name == r.GetService() {
			out.Known, out.Owner, out.Enforce = true, s.Owner, wire.FromService(s).GetEnforce()
		}
	}
	out.Disabled = c.AllDisabled || slices.Contains(c.Disabled, r.GetService())
	steps, exempt := c.Walk(request, zone, region)
	out.Exempt = exempt
	passes := 1.0
	var worst *explained
	silent := make(map[string]bool)
	for _, s := range steps {
		ratio := 0.0
		for _, e := range n.explainStep(now, s, z, out.GetOwner()) {
			out.Cells = append(out.Cells, e.message(n))
			for _, name := range e.SilentZones {
				silent[name] = true
			}
			if !s.Shadow && e.Ratio > ratio {
				ratio = e.Ratio
				if worst == nil || ratio > worst.Ratio {
					worst = &e
				}
			}
		}
		passes *= 1 - ratio
	}
	out.DropRatio = 1 - passes
	out.Silent = silentMessages(now, n.silent(now), func(zone string) bool { return silent[zone] })
	out.Advice = advice(now, out, worst)
	return out
}

// explained is one cell on the way of a request.
type explained struct {
	row
	id     limiter.CellID
	shadow bool // drops nothing
	now    time.Time
}

// explainStep returns the cells of a step: one, or where the bucket has several
// classes of requests, or the request may be in several instances, all of them.
func (n *node) explainStep(now time.Time, s limiter.Step, z *zone, owner string) []explained {
	instances, classes := []string{s.Cell.Instance}, s.Bucket.Classes()
	if z == nil {
		instances = n.instances(s.Bucket)
	}
	if len(classes) == 0 {
		classes = []string{""}
	}
	var out []explained
	for _, instance := range instances {
		for _, class := range classes {
			id := s.Cell
			id.Instance, id.Class = instance, class
			out = append(out, explained{row: n.rowOf(now, s.Bucket, id, owner), id: id, shadow: s.Shadow, now: now})
		}
	}
	return out
}

// rowOf returns what is seen of a cell in the zones that hold that bucket: where
// a new revision has not reached all of them, the cell may be decided twice.
func (n *node) rowOf(now time.Time, b *limiter.Bucket, id limiter.CellID, owner string) row {
	if i, ok := n.cells.Find(id); ok && n.stage != nil {
		if t, twin := n.stage.twins[i]; twin && n.stage.buckets[id.Bucket] == b {
			return n.row(n.glance(now), b, n.cells.ID(t), owner)
		}
	}
	return n.row(n.glance(now), b, id, owner)
}

// instances returns the instances of a bucket's scope that there are now, sorted;
// at least one, which may be "".
func (n *node) instances(b *limiter.Bucket) []string {
	if b.Scope == limiter.Global {
		return []string{""}
	}
	there := make(map[string]bool)
	for _, z := range n.order {
		if instance := b.Instance(z.name, z.region); !z.regional || b.Scope == limiter.Region {
			there[instance] = true
		}
	}
	n.cells.Each(func(i int, id limiter.CellID) {
		if n.states[i].bucket == b {
			there[id.Instance] = true
		}
	})
	if len(there) == 0 {
		return []string{""}
	}
	return sortedKeys(there)
}

// message returns the cell as the API has it.
func (e *explained) message(n *node) *grlv1.ExplainCell {
	m := &grlv1.ExplainCell{
		Bucket:  e.row.message(),
		Match:   &grlv1.Match{Caller: string(e.bucket.Match.Caller), Procedure: string(e.bucket.Match.Procedure)},
		Decider: n.decidedBy(e.bucket, e.id),
		Verdict: e.verdict(),
	}
	if c := e.bucket.Cap; c != nil {
		m.Author, m.Reason, m.RemainingMs = c.Author, c.Reason, c.Ends.Sub(e.now).Milliseconds()
	}
	return m
}

// decidedBy names who decides a cell: the controller of its region if it has
// one, else this node or its parent.
func (n *node) decidedBy(b *limiter.Bucket, id limiter.CellID) string {
	if b.Scope == limiter.Global {
		return globalDecider
	}
	if z := n.zones[regionZone(id.Instance)]; b.Scope == limiter.Region && z != nil {
		return z.region
	}
	return n.own.name
}

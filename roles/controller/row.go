package controller

import (
	"time"

	"grl/limiter"
	"grl/limiter/law"
	grlv1 "grl/proto/grl/v1"
	"grl/proto/wire"
	"grl/web/page"
)

// row is what the controller sees of a cell now, or of a bucket that nobody
// calls.
type row struct {
	page.Cell
	bucket       *limiter.Bucket
	candidateRPS float64       // would be dropped by the candidate
	age          time.Duration // of the last directive that spoke of the cell; below 0: none did
	follows      bool          // another controller sends the directives
}

// Cells returns a row for each cell, and one for each bucket that nobody
// calls.
func (v view) Cells() []page.Cell {
	v.mu.Lock()
	defer v.mu.Unlock()
	now, owners := time.Now(), v.node.owners()
	entries := v.node.entries("")
	out := make([]page.Cell, len(entries))
	for i, e := range entries {
		out[i] = v.node.row(now, e.bucket, e.id, owners[e.bucket.Service]).Cell
	}
	return out
}

// owners returns the owners of services.
func (n *node) owners() map[string]string {
	owners := make(map[string]string, len(n.config.Services))
	for i := range n.config.Services {
		owners[n.config.Services[i].Name] = n.config.Services[i].Owner
	}
	return owners
}

// row returns what is seen of a cell of b, which may not be yet.
func (n *node) row(now time.Time, b *limiter.Bucket, id limiter.CellID, owner string) row {
	r := row{bucket: b, age: -1, follows: !n.leads, Cell: page.Cell{
		Service:  b.Service,
		Name:     b.Name,
		Owner:    owner,
		Match:    matchText(b),
		Selects:  b.Match,
		Instance: id.Instance,
		Caller:   id.Caller,
		Class:    id.Class,
		Scope:    b.Scope,
		Behavior: b.Behavior,
		Block:    b.Block,
	}}
	if b.Block {
		r.Ratio = 1
	} else {
		r.LimitRPS = b.Limit(id.Instance)
	}
	if i, ok := n.cells.Find(id); ok {
		n.live(now, i, &r)
	}
	if b.Cap != nil {
		r.Ratio = law.RampOut(r.Ratio, now.Sub(b.Cap.Ends))
	}
	return r
}

func matchText(b *limiter.Bucket) string {
	caller, procedure := string(b.Match.Caller), string(b.Match.Procedure)
	if caller == "" {
		caller = "*"
	}
	if b.PerCaller {
		caller = "each " + caller
	}
	if procedure == "" {
		procedure = "*"
	}
	return caller + " → " + procedure
}

// live fills in what is measured of a cell, and was decided of it.
func (n *node) live(now time.Time, i int, r *row) {
	s := &n.states[i]
	var live law.MicroRPS
	for _, z := range n.zones {
		rate := z.sum.Rate(now, i)
		if z.live > 0 {
			live += rate.Offered
		}
	}
	dropped, shadowDropped := n.flows[i].shares(n.ticks)
	r.OfferedRPS = s.rate.Offered.RPS()
	r.DroppedRPS, r.ShadowDroppedRPS = dropped*r.OfferedRPS, shadowDropped*r.OfferedRPS
	r.AdmittedRPS = r.OfferedRPS - r.DroppedRPS
	r.Hosts = int(s.rate.Hosts)
	r.Silent = s.rate.Offered > 0 && live == 0
	if !r.Block {
		r.Ratio = law.Ratio(n.admit(i))
	}
	if v := n.voice(i); n.leads && s.version > 0 && v.stamp != (law.Stamp{}) {
		r.age = v.trail.Age(now, v.stamp)
	}
	if c := n.recorder.candidates[s.bucket.Gate(n.cells.ID(i))]; c != nil {
		r.candidateRPS = c.last
	}
}

// admit returns what was published of a cell. A controller that follows decides
// the same as the leader, and says nothing of it.
func (n *node) admit(i int) float64 {
	if !n.leads && n.decides(n.voice(i)) {
		return n.decider.Admit(i)
	}
	return n.states[i].published.Admit
}

// message returns the row as the API has it.
func (r *row) message() *grlv1.BucketView {
	m := &grlv1.BucketView{
		Bucket:           r.Service + "/" + r.Name,
		Owner:            r.Owner,
		Instance:         r.Instance,
		Caller:           r.Caller,
		Class:            r.Class,
		Scope:            wire.FromScope(r.Scope),
		Behavior:         wire.FromBehavior(r.Behavior),
		Block:            r.Block,
		LimitRps:         r.LimitRPS,
		OfferedRps:       r.OfferedRPS,
		AdmittedRps:      r.AdmittedRPS,
		DroppedRps:       r.DroppedRPS,
		ShadowDroppedRps: r.ShadowDroppedRPS,
		DropRatio:        r.Ratio,
		Hosts:            uint32(r.Hosts),

		CandidateDroppedRps: r.candidateRPS,
		DirectiveAgeMs:      -1,
	}
	if r.age >= 0 {
		m.DirectiveAgeMs = r.age.Milliseconds()
	}
	if rps := r.bucket.CandidateRPS; rps > 0 {
		m.CandidateRps = &rps
	}
	if r.bucket.Cap != nil {
		m.CapId = r.bucket.Cap.ID
	}
	return m
}

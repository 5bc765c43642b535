package controller

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"grl/limiter"
	"grl/web/page"
)

const (
	// sightAge is for how long one look at all cells serves everybody who asks.
	sightAge = 500 * time.Millisecond
	// sightPart is how many cells are looked at before others may decide: a look
	// at all of them would hold up a directive.
	sightPart = 8192
	// sightTries is how often a look begins again since the configuration changed
	// under it; then it holds up the others.
	sightTries = 3
)

// sight is what was seen of all cells at one moment. It does not change.
type sight struct {
	at    time.Time
	cells []page.Cell
	total page.Load
}

// sights looks at all cells for the dashboard. The zero value has seen nothing.
type sights struct {
	last atomic.Pointer[sight]

	mu     sync.Mutex // held by who looks: the others wait for what that one sees; guards all below
	config *limiter.Configuration
	faces  map[*limiter.Bucket]*face
	all    []*face          // of the buckets of config
	named  map[string]*face // the same by full name
	byCell []*face          // by cell of the node, as it was last
	looks  uint64
}

// face is what does not move of the rows of a bucket.
type face struct {
	bucket *limiter.Bucket
	row    page.Cell
	last   bool              // the way of requests ends there
	caps   []*limiter.Bucket // that are tried before it on some of its requests
	seen   uint64            // the look at which it had a cell
	cells  []int             // of the node, at that look
}

// sight returns what is seen of all cells, at most sightAge old.
func (c *Controller) sight() *sight {
	s := &c.sights
	if last := s.last.Load(); last.fresh() {
		return last
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if last := s.last.Load(); last.fresh() {
		return last
	}
	for try := range sightTries {
		part := sightPart
		if try == sightTries-1 {
			part = math.MaxInt
		}
		if next := c.look(part); next != nil {
			s.last.Store(next)
			return next
		}
	}
	panic("controller: a look at all cells at once was interrupted")
}

func (s *sight) fresh() bool { return s != nil && time.Since(s.at) < sightAge }

// look looks at all cells, so many at a time. It returns nil if another
// configuration came meanwhile, which it cannot if part is math.MaxInt. sights.mu
// is held.
func (c *Controller) look(part int) *sight {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, s := c.node, &c.sights
	now, config := time.Now(), n.config
	switch buckets, ends := n.buckets, n.endings; {
	case s.config == config:
	case part < math.MaxInt:
		c.mu.Unlock()
		s.meet(config, buckets, ends) // of what does not change: it may take its time
		c.mu.Lock()
	default:
		s.meet(config, buckets, ends)
	}
	s.looks++
	g := n.glance(now)
	out := &sight{at: now, cells: make([]page.Cell, 0, max(n.cells.Count(), len(s.all)))}
	for i := 0; i < len(n.states); {
		for end := min(i+part, len(n.states)); i < end; i++ {
			n.see(g, i, s, out)
		}
		if i < len(n.states) {
			c.mu.Unlock()
			c.mu.Lock()
		}
		if n.config != config {
			return nil
		}
	}
	for _, j := range n.recorder.candidates {
		out.total.CandidateDroppedRPS += j.last
	}
	for _, f := range s.all {
		if f.seen != s.looks {
			r := out.add(f, limiter.CellID{}, now)
			r.SilentZones = offering(g.silent, f.bucket, limiter.CellID{})
			rampOut(r, f.bucket, now)
		}
	}
	t := &out.total
	t.OfferedRPS = t.AdmittedRPS + t.DroppedRPS
	t.ShadowDroppedRPS = min(t.ShadowDroppedRPS, t.AdmittedRPS)
	return out
}

// see adds the row of a cell, if there is one.
func (n *node) see(g glance, i int, s *sights, out *sight) {
	b := n.states[i].bucket
	if b == nil || n.original(i) != i {
		return
	}
	f := s.face(i, b, n)
	if f.seen != s.looks {
		f.seen, f.cells = s.looks, f.cells[:0]
	}
	f.cells = append(f.cells, i)
	id := n.cells.ID(i)
	r := out.add(f, id, g.now)
	r.SilentZones = offering(g.silent, b, id)
	n.live(g, i, r)
	rampOut(r, b, g.now)
	out.total.DroppedRPS += r.DroppedRPS
	out.total.ShadowDroppedRPS += r.ShadowDroppedRPS
	if f.last {
		out.total.AdmittedRPS += r.AdmittedRPS
	}
}

// add adds the row of a cell of a bucket, of which nothing is measured yet.
func (s *sight) add(f *face, id limiter.CellID, now time.Time) *page.Cell {
	s.cells = append(s.cells, f.row)
	r := &s.cells[len(s.cells)-1]
	ofCell(r, f.bucket, id)
	for _, b := range f.caps {
		if now.Before(b.Cap.Ends) && (r.Caller == "" || matches(b.Match.Caller, r.Caller)) {
			r.Capped = true
		}
	}
	return r
}

// meet takes in what does not move of a configuration. Those of before are kept
// as far as they are in it.
func (s *sights) meet(config *limiter.Configuration, buckets map[string]*limiter.Bucket, ends endings) {
	owners := make(map[string]string, len(config.Services))
	for i := range config.Services {
		owners[config.Services[i].Name] = config.Services[i].Owner
	}
	caps := make(map[string][]*limiter.Bucket) // service → those of its caps
	for _, b := range buckets {
		if b.Cap != nil {
			caps[b.Service] = append(caps[b.Service], b)
		}
	}
	s.config, s.byCell = config, nil
	s.faces, s.all = make(map[*limiter.Bucket]*face, len(buckets)), make([]*face, 0, len(buckets))
	s.named = make(map[string]*face, len(buckets))
	for name, b := range buckets {
		f := &face{bucket: b, row: still(b, owners[b.Service]), last: ends.isLast(b)}
		for _, p := range caps[b.Service] {
			if b.Cap == nil && overlap(p.Match, b.Match) {
				f.caps = append(f.caps, p)
			}
		}
		s.faces[b], s.named[name] = f, f
		s.all = append(s.all, f)
	}
}

// face returns that of a cell's bucket, which may be one that the last zones of a
// rollout hold. The node's lock is held.
func (s *sights) face(i int, b *limiter.Bucket, n *node) *face {
	if i < len(s.byCell) && s.byCell[i] != nil && s.byCell[i].bucket == b {
		return s.byCell[i]
	}
	f := s.faces[b]
	if f == nil {
		f = &face{bucket: b, row: still(b, ""), last: n.stage != nil && n.stage.endings.isLast(b)}
		s.faces[b] = f
	}
	for len(s.byCell) <= i {
		s.byCell = append(s.byCell, nil)
	}
	s.byCell[i] = f
	return f
}

// overlap reports whether there may be requests that both select.
func overlap(a, b limiter.Match) bool {
	return (covers(a.Caller, b.Caller) || covers(b.Caller, a.Caller)) &&
		(covers(a.Procedure, b.Procedure) || covers(b.Procedure, a.Procedure))
}

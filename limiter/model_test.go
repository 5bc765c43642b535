package limiter

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// model is the cascade as it is written down, in the dumbest form: it looks at
// every bucket for every request and keeps no leaf. Only ratios 0 and 1 exist
// in it, so that it needs no coin.
type model struct {
	service *Service
	caps    []Cap
	closed  map[CellID]bool // ratio 1
	counts  map[CellID]Counts
	retries uint64

	disabled bool
}

func newModel(s *Service, caps ...Cap) *model {
	return &model{service: s, caps: caps, closed: map[CellID]bool{}, counts: map[CellID]Counts{}}
}

// decide returns the name of the bucket that drops r, "" if none does. counted
// is the caller it is counted as.
func (m *model) decide(r Request, counted string) string {
	if r.Caller == "" {
		r.Caller, counted = UnknownCaller, UnknownCaller
	}
	if r.Attempt > 0 {
		m.retries++
	}
	if m.exempts(r) {
		return ""
	}
	for _, b := range m.matching(r) {
		id := m.cell(b, r, counted)
		cost := uint64(max(b.Cost.Fixed, 1))
		if b.Cost.Header != "" {
			cost = uint64(min(max(r.Cost, 1), 1_000_000))
		}
		c := m.counts[id]
		c.Offered += cost
		closed := b.Block || m.closed[id]
		switch {
		case closed && b.Behavior == Deny && !m.disabled:
			c.Dropped += cost
		case closed:
			c.ShadowDropped += cost
		}
		m.counts[id] = c
		if closed && b.Behavior == Deny && !m.disabled {
			return b.Name
		}
	}
	return ""
}

func (m *model) exempts(r Request) bool {
	return slices.ContainsFunc(m.service.Exempt, func(e Match) bool {
		return e.Caller.Match(r.Caller) && e.Procedure.Match(r.Procedure)
	})
}

// cell returns the cell that r, counted as that caller, passes in b.
func (m *model) cell(b *Bucket, r Request, counted string) CellID {
	id := CellID{Bucket: b.FullName(), Instance: b.Instance("z1", "r1")}
	caller, as := r.Caller, counted
	if b.Verified && !r.Verified {
		caller, as = UnknownCaller, UnknownCaller
	}
	if b.PerCaller || b.Share == MaxMin {
		id.Caller = as
	}
	id.Class = m.class(b, caller, r)
	return id
}

// class returns the class of a request in b, word for word as docs/concepts.md
// has it.
func (m *model) class(b *Bucket, caller string, r Request) string {
	tier := ""
	if len(b.Tiers) > 0 {
		tier = b.Tiers[len(b.Tiers)-1].Name
	}
	for _, t := range slices.Backward(b.Tiers) { // so that the first one stays
		for _, p := range t.Callers {
			if p.Match(caller) {
				tier = t.Name
			}
		}
		for _, v := range t.Values {
			if r.Tier == m.service.Tier(v) {
				tier = t.Name
			}
		}
	}
	switch {
	case !b.ShedRetriesFirst:
		return tier
	case tier == "" && r.Attempt > 0:
		return "retry"
	case tier == "":
		return "first"
	case r.Attempt > 0:
		return tier + "/retry"
	default:
		return tier
	}
}

// matching returns the buckets that r passes, sorted by the rule of the
// design.
func (m *model) matching(r Request) []*Bucket {
	var all, list []*Bucket
	for i := range m.caps {
		b := m.caps[i].Bucket()
		all = append(all, &b)
	}
	for i := range m.service.Buckets {
		all = append(all, &m.service.Buckets[i])
	}
	for _, b := range all {
		caller := r.Caller
		if b.Verified && !r.Verified {
			caller = UnknownCaller
		}
		if b.PerCaller && caller == UnknownCaller && (b.Match.Caller == "" || b.Match.Caller == "*") {
			continue
		}
		if b.Match.Caller.Match(caller) && b.Match.Procedure.Match(r.Procedure) {
			list = append(list, b)
		}
	}
	slices.SortFunc(list, func(a, b *Bucket) int {
		return cmp.Or(slices.Compare(modelKey(a), modelKey(b)), strings.Compare(a.Name, b.Name))
	})
	return list
}

func modelKey(b *Bucket) []int {
	present := map[[2]bool]int{{true, true}: 0, {true, false}: 1, {false, true}: 2, {false, false}: 3}
	kind := func(p Pattern) (int, int) {
		switch {
		case p == "*":
			return 2, 0
		case strings.HasSuffix(string(p), "*"):
			return 1, -len(p)
		default:
			return 0, 0
		}
	}
	callerKind, callerLength := kind(b.Match.Caller)
	procedureKind, procedureLength := kind(b.Match.Procedure)
	scope := map[Scope]int{Zone: 0, Region: 1, Global: 2}[b.Scope]
	configured := 1
	if b.Cap != nil {
		configured = 0
	}
	return []int{
		configured, present[[2]bool{b.Match.Caller != "", b.Match.Procedure != ""}],
		callerKind, callerLength, procedureKind, procedureLength, scope,
	}
}

// Few letters, so that patterns and names meet.
var (
	modelCallers    = []string{"", "a", "ab", "abc", "b", "ba", "_unknown", "_other", "c"}
	modelProcedures = []string{"", "x", "xy", "xyz", "y", "yx", "z"}
	callerPatterns  = []Pattern{"", "*", "a", "a*", "ab", "ab*", "abc", "abc*", "b*", "_*", "_unknown", "_unknown*"}
	tierValues      = []string{"high", "mid", "low", ""}
	procPatterns    = []Pattern{"", "*", "x", "x*", "xy", "xy*", "xyz", "y*", "yx"}
)

func pick[T any](r *rand.Rand, list []T) T { return list[r.IntN(len(list))] }

// randomService returns a service that Validate accepts.
func randomService(r *rand.Rand, name string) Service {
	s := Service{Name: name}
	type rule struct {
		match     Match
		perCaller bool
		scope     Scope
	}
	seen := map[rule]bool{}
	for i := range r.IntN(14) {
		b := Bucket{
			Service: name, Name: fmt.Sprintf("b%d", (i*7)%15),
			Match:     Match{pick(r, callerPatterns), pick(r, procPatterns)},
			PerCaller: r.IntN(3) == 0, Scope: Scope(r.IntN(3)), Behavior: Behavior(r.IntN(2)),
			Verified: r.IntN(4) == 0, LimitRPS: 10,
		}
		if r.IntN(8) == 0 {
			b.Block, b.LimitRPS = true, 0
		} else {
			divide(r, &b)
		}
		switch r.IntN(5) {
		case 0:
			b.Cost.Fixed = uint32(r.IntN(5))
		case 1:
			b.Cost.Header = "x-cost"
		}
		if k := (rule{b.Match, b.PerCaller, b.Scope}); !seen[k] {
			seen[k] = true
			s.Buckets = append(s.Buckets, b)
		}
	}
	for range r.IntN(3) {
		if r.IntN(2) == 0 {
			s.Exempt = append(s.Exempt, Match{pick(r, callerPatterns[2:]), pick(r, procPatterns)})
		}
	}
	return s
}

// randomCaps returns caps of the service "s", some with equal matches.
func randomCaps(r *rand.Rand) []Cap {
	var caps []Cap
	for i := range max(0, r.IntN(6)-2) {
		c := Cap{ID: fmt.Sprintf("c%d", (i*2)%5), Service: "s", Match: Match{pick(r, callerPatterns), pick(r, procPatterns)}, LimitRPS: 1, Ends: time.Unix(1, 0)}
		if r.IntN(3) == 0 {
			c.Block, c.LimitRPS = true, 0
		}
		caps = append(caps, c)
	}
	return caps
}

// divide makes b have cells of its own for callers and classes, now and then.
func divide(r *rand.Rand, b *Bucket) {
	if !b.PerCaller && r.IntN(3) == 0 {
		b.Share = MaxMin
		if r.IntN(2) == 0 {
			b.Weights = map[string]float64{"a": 2, "ba": 0.5}
		}
	}
	b.ShedRetriesFirst, b.Coherent = r.IntN(4) == 0, r.IntN(4) == 0
	if r.IntN(3) != 0 {
		return
	}
	for i := range 2 + r.IntN(3) {
		t := Tier{Name: fmt.Sprintf("t%d", i)}
		if r.IntN(2) == 0 {
			t.Callers = []Pattern{pick(r, callerPatterns[1:]), pick(r, callerPatterns[1:])}
		}
		if len(t.Callers) == 0 || r.IntN(2) == 0 {
			t.Header, t.Values = "x-priority", []string{pick(r, tierValues[:3])}
		}
		b.Tiers = append(b.Tiers, t)
	}
}

func seeds(t *testing.T) []uint64 {
	fresh := rand.Uint64()
	t.Logf("fresh seed %d", fresh)
	return []uint64{1, 2, 3, fresh}
}

// TestModel compares decisions and counts with the model, by each way in, and
// across collections, new configurations and evictions.
func TestModel(t *testing.T) {
	for _, seed := range seeds(t) {
		r := rand.New(rand.NewPCG(seed, 0))
		for range 150 {
			checkModel(t, r, seed, 0)
		}
	}
}

// TestModelBeyondBounds is TestModel where hardly a name has a place of its
// own: decisions stay those of the true names.
func TestModelBeyondBounds(t *testing.T) {
	for _, seed := range seeds(t) {
		r := rand.New(rand.NewPCG(seed, 1))
		for range 150 {
			checkModel(t, r, seed, 1)
		}
	}
}

func checkModel(t *testing.T, r *rand.Rand, seed uint64, maxNames int) {
	t.Helper()
	l := New(Options{Zone: "z1", Region: "r1", MaxNames: maxNames})
	s := randomService(r, "s")
	m := newModel(&s, randomCaps(r)...)
	c := Configuration{Services: []Service{s}, Caps: m.caps}
	set := func() {
		t.Helper()
		if err := l.Install(c); err != nil {
			t.Fatal(err)
		}
	}
	set()
	local := false // disabled by SetDisabled
	now := time.Unix(0, 0)
	// Beyond the bounds, per-caller cells are shared, so the model cannot tell
	// their ratios apart.
	closable := func(id CellID) bool { return maxNames == 0 || id.Caller == "" }
	for range 300 {
		req := Request{
			Service: "s", Caller: pick(r, modelCallers), Procedure: pick(r, modelProcedures),
			Cost: uint32(r.IntN(4)), Verified: r.IntN(2) == 0,
			Attempt: uint32(max(r.IntN(5)-2, 0)), Tier: s.Tier(pick(r, tierValues)),
		}
		if r.IntN(2) == 0 {
			req.TraceID[r.IntN(16)] = 1
		}
		want := m.decide(req, req.Caller)
		if got := decideSomehow(l, r, req); got != want {
			t.Fatalf("seed %d: %+v dropped by %q, want %q\n%+v", seed, req, got, want, s)
		}
		if maxNames == 0 {
			checkWalk(t, &c, m, req, seed)
		}
		switch r.IntN(22) {
		case 21:
			c.Disabled = map[bool][]string{true: {"s"}}[c.Disabled == nil]
			set()
			m.disabled = local || c.Disabled != nil
		case 20:
			local = !local
			l.SetDisabled(local)
			m.disabled = local || c.Disabled != nil
		case 0:
			now = now.Add(time.Duration(r.IntN(20)) * time.Second)
			l.Collect(now)
		case 1:
			l.Collect(now)
			cells := slices.Collect(l.Cells())
			if len(cells) == 0 {
				continue
			}
			if c := pick(r, cells); closable(c.ID()) {
				m.closed[c.ID()] = !m.closed[c.ID()]
				c.SetRatio(map[bool]float64{true: 1}[m.closed[c.ID()]])
			}
		}
	}
	l.Collect(now)
	compareCounts(t, l, m, maxNames > 0, seed)
	var retries uint64
	for _, n := range l.Retries() {
		retries += n
	}
	if retries != m.retries {
		t.Fatalf("seed %d: %d retries, want %d", seed, retries, m.retries)
	}
}

// checkWalk compares the way that Walk knows with that of the model.
func checkWalk(t *testing.T, c *Configuration, m *model, req Request, seed uint64) {
	t.Helper()
	steps, exempt := c.Walk(req, "z1", "r1")
	if req.Caller == "" {
		req.Caller = UnknownCaller
	}
	if exempt != m.exempts(req) {
		t.Fatalf("seed %d: Walk(%+v) says exempt %v\n%+v", seed, req, exempt, m.service)
	}
	var got, want []string
	for _, s := range steps {
		got = append(got, fmt.Sprint(s.Cell, s.Bucket.FullName(), s.Shadow))
	}
	if !exempt {
		for _, b := range m.matching(req) {
			want = append(want, fmt.Sprint(m.cell(b, req, req.Caller), b.FullName(), b.Behavior == Allow || c.Disabled != nil))
		}
	}
	if !slices.Equal(got, want) {
		t.Fatalf("seed %d: Walk(%+v) = %v, want %v\n%+v", seed, req, got, want, m.service)
	}
}

// decideSomehow decides by one of the ways in, and returns the name of the
// bucket that dropped.
func decideSomehow(l *Limiter, r *rand.Rand, req Request) string {
	var d Decision
	plain := req.Cost <= 1 && !req.Verified && req.Attempt == 0 && req.Tier == 0
	switch way := r.IntN(4); {
	case way == 0 && plain:
		d = l.Service(req.Service).Decide(req.Caller, req.Procedure)
	case way == 1 && plain:
		d = l.Handle(req.Service, req.Caller, req.Procedure).Decide()
	case way == 2:
		d = l.Service(req.Service).DecideRequest(req)
	default:
		d = l.Decide(req)
	}
	if d.Dropped {
		return d.Bucket.Name
	}
	return ""
}

// compareCounts compares what cells counted; with folded, the sum over all
// callers of each bucket.
func compareCounts(t *testing.T, l *Limiter, m *model, folded bool, seed uint64) {
	t.Helper()
	key := func(id CellID) CellID {
		if folded {
			id.Caller = ""
		}
		return id
	}
	got, want := map[CellID]Counts{}, map[CellID]Counts{}
	for c := range l.Cells() {
		sum := got[key(c.ID())]
		sum.add(c.Counts())
		got[key(c.ID())] = sum
	}
	for id, c := range m.counts {
		sum := want[key(id)]
		sum.add(c)
		want[key(id)] = sum
	}
	maps.DeleteFunc(got, func(_ CellID, c Counts) bool { return c == (Counts{}) })
	if !maps.Equal(got, want) {
		t.Fatalf("seed %d: counts = %+v, want %+v\n%+v", seed, got, want, m.service)
	}
}

func install(t testing.TB, l *Limiter, services ...Service) {
	t.Helper()
	if err := l.Install(Configuration{Services: services}); err != nil {
		t.Fatal(err)
	}
}

package limiter

import (
	"strings"
	"sync/atomic"
)

// defaultMaxNames is Options.MaxNames when it is 0.
const defaultMaxNames = 10_000

// Bounds on the leaves of a service, the first two in multiples of
// Options.MaxNames.
const (
	maxOwnLeaves   = 4 // of a caller and procedure that are told apart
	maxMixedLeaves = 4 // of a caller that is, and a class of procedures
	// maxClassLeaves bounds those of classes on both sides. Only the
	// configuration makes classes, and few pairs of them occur.
	maxClassLeaves = 1 << 16
)

// maxNameBytes is the longest name that is told apart; a longer one is in no
// configuration, and would let a stranger fill the memory.
const maxNameBytes = 256

// level says how finely the requests of a leaf are told apart.
type level uint8

const (
	own      level = iota // by caller and procedure
	byCaller              // by caller and class of procedure
	byClass               // by class of caller and class of procedure
	levels
)

// table is a service under one content: its matcher and its leaves.
// Finding is lock-free; adding needs Limiter.mu.
//
// Distinct names are bounded. A request beyond the bounds is limited like any
// other, since its class decides which buckets it passes, but it is counted as
// Other, in a leaf it shares with its class.
type table struct {
	content
	callee     *Callee
	matcher    *matcher
	maxNames   int
	callers    names
	procedures names
	views      []view // by number of the variant

	full [levels]atomic.Bool // no room for further leaves of that level

	leaves []*leaf     // guarded by Limiter.mu; readers may keep a prefix
	count  [levels]int // of live leaves, guarded by Limiter.mu
}

// place is where a request belongs.
type place struct {
	view              *view
	level             level
	caller, procedure string    // key in the index of that level
	class             [2]*class // of caller and procedure
}

func newTable(s *Callee, c content, m *matcher, maxNames int) *table {
	t := &table{content: c, callee: s, matcher: m, maxNames: maxNames}
	t.callers.max, t.procedures.max = maxNames, maxNames
	t.views = newViews(m, &s.own)
	return t
}

// find returns the place of a request and the leaf there, nil if there is none
// yet.
func (t *table) find(r *Request) (place, *leaf) {
	p := t.place(r.Caller, r.Procedure, &t.views[t.matcher.variantOf(r)])
	return p, p.view.index(p.level).Load().find(p.caller, p.procedure)
}

// place returns where a request belongs as long as the bounds are where they
// are.
func (t *table) place(caller, procedure string, v *view) place {
	c, p := t.matcher.callers.class(caller), t.matcher.procedures.class(procedure)
	class := [2]*class{c, p}
	knownCaller := c.exact || t.callers.takes(caller)
	if knownCaller && (p.exact || t.procedures.takes(procedure)) && (!t.full[own].Load() || v.plain() && t.matcher.named(c, p)) {
		return place{v, own, caller, procedure, class}
	}
	// A known caller keeps its cells even where its procedures are beyond.
	if t.matcher.perCaller && knownCaller && !c.exact && !t.full[byCaller].Load() {
		return place{v, byCaller, caller, string(p.pattern), class}
	}
	if t.full[byClass].Load() {
		if !v.plain() {
			return t.place(caller, procedure, &t.views[v.number&verifiedBit])
		}
		// The last resort passes over buckets of procedures: there are no more
		// such leaves than patterns of callers.
		p = t.matcher.procedures.rest
		class[1] = p
	}
	return place{v, byClass, string(c.pattern), string(p.pattern), class}
}

// tells reports whether caller has cells of its own, Other among them.
func (t *table) tells(caller string) bool {
	return caller == Other || t.matcher.callers.class(caller).exact || t.callers.takes(caller)
}

// leaf returns the leaf of a request, and adds it if need be. It returns nil
// if t is no longer the callee's table.
func (t *table) leaf(r *Request) *leaf {
	if _, f := t.find(r); f != nil {
		return f
	}
	l := t.callee.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	if t.callee.table.Load() != t {
		return nil
	}
	p, f := t.find(r)
	if f == nil {
		f = t.add(p)
	}
	return f
}

// add makes the leaf of p; Limiter.mu is held.
func (t *table) add(p place) *leaf {
	// One allocation of our own: the request's names may point into a buffer.
	f := &leaf{names: strings.Clone(p.caller + p.procedure), split: uint32(len(p.caller)), table: t, level: p.level, class: p.class}
	t.callee.limiter.build(f, p.view.variant)
	t.hold(f)
	t.leaves = append(t.leaves, f)
	index := p.view.index(f.level)
	index.Store(index.Load().add(f))
	return f
}

// hold counts a new leaf and its names against the bounds.
func (t *table) hold(f *leaf) {
	t.count[f.level]++
	t.full[f.level].Store(t.count[f.level] >= t.maxLeaves(f.level))
	if f.level != byClass && !f.class[0].exact {
		t.callers.hold(f.caller())
	}
	if f.level == own && !f.class[1].exact {
		t.procedures.hold(f.procedure())
	}
}

// drop undoes hold.
func (t *table) drop(f *leaf) {
	t.count[f.level]--
	t.full[f.level].Store(t.count[f.level] >= t.maxLeaves(f.level))
	if f.level != byClass && !f.class[0].exact {
		t.callers.drop(f.caller())
	}
	if f.level == own && !f.class[1].exact {
		t.procedures.drop(f.procedure())
	}
}

func (t *table) maxLeaves(l level) int {
	switch l {
	case own:
		return maxOwnLeaves * t.maxNames
	case byCaller:
		return maxMixedLeaves * t.maxNames
	default:
		return maxClassLeaves
	}
}

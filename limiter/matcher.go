package limiter

import (
	"cmp"
	"slices"
	"strings"
)

// matcher finds the buckets of a request, in the order of the cascade. It is
// immutable but for the cells of its rules, which Install fills in before the
// matcher is used.
type matcher struct {
	callers    *classifier
	procedures *classifier
	rules      map[Match][]*rule
	all        []*rule // in the order of the cascade
	exempt     map[Match]struct{}
	unknown    *class   // of UnknownCaller
	perCaller  bool     // a bucket has a cell for each caller
	verified   bool     // a bucket asks for verified callers
	tierValues []string // header values that select tiers
}

// rule is a bucket as the matcher sees it.
type rule struct {
	bucket *Bucket
	id     CellID  // without caller and class
	cells  []*Cell // one for each class; nil if each caller has cells
	rank   int     // place in the cascade
}

// newMatcher compiles a service and its caps for a node of zone and region.
func newMatcher(s *Service, caps []Cap, zone, region string) *matcher {
	m := &matcher{rules: map[Match][]*rule{}, exempt: map[Match]struct{}{}, tierValues: s.TierValues()}
	callers, procedures := []Pattern{UnknownCaller}, []Pattern{}
	buckets := make([]*Bucket, 0, len(caps)+len(s.Buckets))
	for i := range caps {
		b := caps[i].Bucket()
		buckets = append(buckets, &b)
	}
	for i := range s.Buckets {
		buckets = append(buckets, &s.Buckets[i])
	}
	for _, b := range buckets {
		callers, procedures = append(callers, b.Match.Caller), append(procedures, b.Match.Procedure)
		callers = append(callers, b.callerPatterns()...)
		m.all = append(m.all, &rule{bucket: b, id: CellID{Bucket: b.FullName(), Instance: b.Instance(zone, region)}})
		m.perCaller = m.perCaller || b.HasCallers()
		m.verified = m.verified || b.Verified
	}
	for _, e := range s.Exempt {
		callers, procedures = append(callers, e.Caller), append(procedures, e.Procedure)
		m.exempt[e] = struct{}{}
	}
	m.callers, m.procedures = newClassifier(callers), newClassifier(procedures)
	m.unknown = m.callers.class(UnknownCaller)
	slices.SortFunc(m.all, func(a, b *rule) int { return cascade(a.bucket, b.bucket) })
	for rank, r := range m.all {
		r.rank = rank
		m.rules[r.bucket.Match] = append(m.rules[r.bucket.Match], r)
	}
	return m
}

// cascade compares two buckets by their place in the cascade.
func cascade(a, b *Bucket) int {
	return cmp.Or(
		compareCaps(a, b),
		cmp.Compare(a.Match.width(), b.Match.width()),
		compareWidth(a.Match.Caller, b.Match.Caller),
		compareWidth(a.Match.Procedure, b.Match.Procedure),
		cmp.Compare(b.Scope, a.Scope), // zone, region, global
		strings.Compare(a.Name, b.Name),
	)
}

// compareCaps orders caps before all that is configured.
func compareCaps(a, b *Bucket) int {
	switch {
	case a.Cap != nil && b.Cap == nil:
		return -1
	case a.Cap == nil && b.Cap != nil:
		return 1
	default:
		return 0
	}
}

// width orders matches by which of their patterns are present: both, the
// caller's, the procedure's, none.
func (m Match) width() int {
	switch {
	case m.Caller != "" && m.Procedure != "":
		return 0
	case m.Caller != "":
		return 1
	case m.Procedure != "":
		return 2
	default:
		return 3
	}
}

// compareWidth orders exact patterns before prefixes before "*", and longer
// prefixes before shorter ones.
func compareWidth(a, b Pattern) int {
	aPrefix, bPrefix := strings.HasSuffix(string(a), "*"), strings.HasSuffix(string(b), "*")
	switch {
	case aPrefix && bPrefix:
		return cmp.Compare(len(b), len(a))
	case aPrefix:
		return 1
	case bPrefix:
		return -1
	default:
		return 0
	}
}

// named reports whether a bucket names exactly this caller and procedure.
func (m *matcher) named(caller, procedure *class) bool {
	if !caller.exact || !procedure.exact {
		return false
	}
	_, ok := m.rules[Match{caller.pattern, procedure.pattern}]
	return ok
}

// exempts reports whether requests of these classes are never limited.
func (m *matcher) exempts(caller, procedure *class) bool {
	if len(m.exempt) == 0 {
		return false
	}
	for c := caller; c != nil; c = c.wider {
		for p := procedure; p != nil; p = p.wider {
			if _, ok := m.exempt[Match{c.pattern, p.pattern}]; ok {
				return true
			}
		}
	}
	return false
}

// match returns the rules for requests of these classes in the order of the
// cascade; verified says whether the caller is. Where a rule asks for a
// verified caller and this one is not, it is looked up as UnknownCaller.
func (m *matcher) match(caller, procedure *class, verified bool) []*rule {
	rules := m.gather(nil, caller, procedure, func(r *rule) bool { return verified || !r.bucket.Verified })
	if m.verified && !verified {
		rules = m.gather(rules, m.unknown, procedure, func(r *rule) bool { return r.bucket.Verified })
	}
	slices.SortFunc(rules, func(a, b *rule) int { return cmp.Compare(a.rank, b.rank) })
	return rules
}

func (m *matcher) gather(rules []*rule, caller, procedure *class, accept func(*rule) bool) []*rule {
	for c := caller; c != nil; c = c.wider {
		for p := procedure; p != nil; p = p.wider {
			for _, r := range m.rules[Match{c.pattern, p.pattern}] {
				if accept(r) && (caller != m.unknown || r.bucket.selectsUnknown()) {
					rules = append(rules, r)
				}
			}
		}
	}
	return rules
}

// passes returns as whom requests of caller, which is of that class of names,
// count at r, and the place of their class among those of its bucket.
func (m *matcher) passes(r *rule, caller string, names *class, v variant) (as string, class int) {
	if r.bucket.Verified && !v.verified {
		caller, names = UnknownCaller, m.unknown
	}
	return caller, r.bucket.classOf(names, v)
}

// cellID names the cell for requests of caller and of the class at that place.
func (r *rule) cellID(caller string, class int) CellID {
	id := r.id
	if r.bucket.HasCallers() {
		id.Caller = caller
	}
	if classes := r.bucket.Classes(); classes != nil {
		id.Class = classes[class]
	}
	return id
}

// selectsUnknown reports whether a bucket whose patterns select UnknownCaller
// means it. A limit for each caller, of any name, is not for requests without
// one; a limit that callers share is, whatever divides it.
func (b *Bucket) selectsUnknown() bool {
	return !b.PerCaller || b.Match.Caller != "" && b.Match.Caller != "*"
}

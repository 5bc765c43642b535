package limiter

// Last returns the full names of the buckets of s, and of those that stand for
// its caps, that are the last ones on the way of some requests: no later one of
// the cascade selects all that they select. So each request that some bucket
// selects passes at least one of them; and only one, unless a later one selects a
// part of what an earlier one does.
func (s *Service) Last(caps []Cap) map[string]bool {
	m := newMatcher(s, caps, "", "")
	last := make(map[string]bool)
	for _, r := range m.all {
		if !m.goesOn(r) {
			last[r.id.Bucket] = true
		}
	}
	return last
}

// goesOn reports whether a later rule selects all that r does. Only patterns
// that contain those of r may do so, and these are the chains of its classes.
func (m *matcher) goesOn(r *rule) bool {
	for c := m.callers.of(r.bucket.Match.Caller); c != nil; c = c.wider {
		for p := m.procedures.of(r.bucket.Match.Procedure); p != nil; p = p.wider {
			for _, later := range m.rules[Match{c.pattern, p.pattern}] {
				if later.rank > r.rank && later.bucket.includes(r.bucket) {
					return true
				}
			}
		}
	}
	return false
}

// of returns the class of all names that a pattern of the classifier selects:
// the chain of the patterns that contain it.
func (c *classifier) of(p Pattern) *class {
	switch {
	case p == "" || p == "*":
		return c.rest // both select every name
	case c.exact[string(p)] != nil:
		return c.exact[string(p)]
	}
	for k := c.widest(string(p[:len(p)-1])); k != nil; k = k.wider {
		if k.pattern == p {
			return k
		}
	}
	return c.rest
}

// includes reports whether b, whose patterns contain those of other, selects all
// requests that other does: they may differ in what they take a request for
// whose caller is unknown, or was not verified.
func (b *Bucket) includes(other *Bucket) bool {
	unknown := b.takesUnknown()
	switch {
	case other.takesUnknown() && !unknown:
		return false
	case other.Verified && !b.Verified && other.takesUnknown():
		// Of those that were not verified it selects all, whoever they say they are.
		return b.Match.Caller == "" || b.Match.Caller == "*"
	case b.Verified && !other.Verified:
		return unknown
	}
	return true
}

// takesUnknown reports whether b selects requests of UnknownCaller.
func (b *Bucket) takesUnknown() bool {
	return b.Match.Caller.Match(UnknownCaller) && b.selectsUnknown()
}

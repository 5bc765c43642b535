package guard

import (
	"reflect"
	"slices"
	"strings"

	"grl/limiter"
)

// Pairs returns the buckets that differ between two configurations, in the
// order of their names. A bucket that only got another name makes one pair, if
// it differs otherwise. Where a service comes to exempt everything its enforced
// buckets count as removed, and where it is enforced on the other side all its
// buckets count as changed.
func Pairs(before, after []limiter.Service) []Pair {
	old, next := byName(before), byName(after)
	var pairs []Pair
	for name, s := range old {
		pairs = append(pairs, pairsOf(s, next[name])...)
	}
	for name, s := range next {
		if old[name] == nil {
			pairs = append(pairs, pairsOf(nil, s)...)
		}
	}
	slices.SortFunc(pairs, func(a, b Pair) int { return strings.Compare(a.Name(), b.Name()) })
	return pairs
}

// Name returns the full name of the bucket as it shall be, or as it was if it
// goes.
func (p Pair) Name() string {
	if p.After != nil {
		return p.After.FullName()
	}
	return p.Before.FullName()
}

func byName(services []limiter.Service) map[string]*limiter.Service {
	m := make(map[string]*limiter.Service, len(services))
	for i := range services {
		m[services[i].Name] = &services[i]
	}
	return m
}

// pairsOf compares the buckets of one service, of which one side may be nil.
func pairsOf(before, after *limiter.Service) []Pair {
	if before != nil && after != nil && exemptsAll(after) && !exemptsAll(before) {
		return removed(before)
	}
	all := before != nil && after != nil && before.Enforce != after.Enforce
	old, next := buckets(before), buckets(after)
	var pairs []Pair
	gone := map[selection]*limiter.Bucket{}
	for name, b := range old {
		switch a := next[name]; {
		case a == nil:
			gone[selectionOf(b)] = b
		case all || !equal(b, a):
			pairs = append(pairs, Pair{b, a})
		}
	}
	for name, a := range next {
		if old[name] != nil {
			continue
		}
		b := gone[selectionOf(a)]
		delete(gone, selectionOf(a))
		if b == nil || all || !equal(b, a) {
			pairs = append(pairs, Pair{b, a})
		}
	}
	for _, b := range gone {
		pairs = append(pairs, Pair{Before: b})
	}
	return pairs
}

func removed(s *limiter.Service) []Pair {
	var pairs []Pair
	for i := range s.Buckets {
		if s.Buckets[i].Behavior == limiter.Deny {
			pairs = append(pairs, Pair{Before: &s.Buckets[i]})
		}
	}
	return pairs
}

// selection is what no two buckets of a service have in common.
type selection struct {
	match     limiter.Match
	perCaller bool
	scope     limiter.Scope
}

func selectionOf(b *limiter.Bucket) selection { return selection{b.Match, b.PerCaller, b.Scope} }

// equal ignores the names.
func equal(a, b *limiter.Bucket) bool {
	renamed := *b
	renamed.Name = a.Name
	return reflect.DeepEqual(*a, renamed)
}

func buckets(s *limiter.Service) map[string]*limiter.Bucket {
	m := map[string]*limiter.Bucket{}
	if s == nil {
		return m
	}
	for i := range s.Buckets {
		m[s.Buckets[i].Name] = &s.Buckets[i]
	}
	return m
}

func exemptsAll(s *limiter.Service) bool {
	return slices.ContainsFunc(s.Exempt, func(m limiter.Match) bool {
		return (m.Caller == "" || m.Caller == "*") && (m.Procedure == "" || m.Procedure == "*")
	})
}

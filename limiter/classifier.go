package limiter

import (
	"slices"
	"strings"
)

// class is the set of patterns that select a name, as a chain from the most
// specific one on: the name itself, prefixes from long to short, "*", and "".
// Names of the same class pass the same buckets.
type class struct {
	pattern Pattern
	exact   bool   // the pattern is one whole name
	wider   *class // the next pattern of the chain; nil after ""
}

// in reports whether p selects the names of the class.
func (c *class) in(p Pattern) bool {
	for ; c != nil; c = c.wider {
		if c.pattern == p {
			return true
		}
	}
	return false
}

// classifier knows the classes that the patterns of a service tell apart. It
// is immutable; the zero value is not usable.
type classifier struct {
	exact    map[string]*class
	prefixes []*class // sorted by pattern
	rest     *class   // of names that only "*" and "" select
}

// newClassifier returns the classifier of these patterns, in any order.
func newClassifier(patterns []Pattern) *classifier {
	c := &classifier{exact: map[string]*class{}, rest: &class{pattern: "*", wider: &class{}}}
	patterns = slices.Clone(patterns)
	slices.Sort(patterns)
	patterns = slices.Compact(patterns)
	c.addPrefixes(patterns)
	for _, p := range patterns {
		if p != "" && !strings.HasSuffix(string(p), "*") {
			c.exact[string(p)] = &class{pattern: p, exact: true, wider: c.widest(string(p))}
		}
	}
	return c
}

// addPrefixes links each prefix to the longest one it begins with. In sorted
// order that is the last one still open. "*" sorts before some bytes, so the
// order is that of the prefixes, not of the patterns.
func (c *classifier) addPrefixes(patterns []Pattern) {
	for _, p := range patterns {
		if len(p) > 1 && strings.HasSuffix(string(p), "*") {
			c.prefixes = append(c.prefixes, &class{pattern: p})
		}
	}
	slices.SortFunc(c.prefixes, func(a, b *class) int { return strings.Compare(a.prefix(), b.prefix()) })
	open := c.rest
	for _, p := range c.prefixes {
		for open != c.rest && !strings.HasPrefix(p.prefix(), open.prefix()) {
			open = open.wider
		}
		p.wider = open
		open = p
	}
}

func (c *class) prefix() string { return string(c.pattern[:len(c.pattern)-1]) }

// class returns the class of name.
func (c *classifier) class(name string) *class {
	if k, ok := c.exact[name]; ok {
		return k
	}
	return c.widest(name)
}

// widest returns the class of the longest prefix of name. All prefixes between
// that one and name begin with it, so the last prefix that is not after name
// has it in its chain.
func (c *classifier) widest(name string) *class {
	low, high := 0, len(c.prefixes)
	for low < high {
		middle := (low + high) / 2
		if c.prefixes[middle].prefix() <= name {
			low = middle + 1
		} else {
			high = middle
		}
	}
	if low == 0 {
		return c.rest
	}
	k := c.prefixes[low-1]
	for k != c.rest && !strings.HasPrefix(name, k.prefix()) {
		k = k.wider
	}
	return k
}

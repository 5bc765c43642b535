package limiter

import (
	"slices"
	"strings"
	"testing"
)

// TestClass compares the chain of a name with all patterns, each tried alone.
func TestClass(t *testing.T) {
	patterns := []Pattern{"", "*", "a", "a*", "a!*", "a!", "ab*", "abc*", "abc", "b*", "b0*", "*x", "a*b"}
	c := newClassifier(patterns)
	for _, name := range []string{"", "a", "a!", "a!!", "a0", "ab", "abc", "abcd", "abz", "b", "b0", "b1", "bz", "c", "*x", "*", "a*b", "a*bc"} {
		checkChain(t, c, patterns, name)
	}
}

func checkChain(t *testing.T, c *classifier, patterns []Pattern, name string) {
	t.Helper()
	var got, want []Pattern
	for k := c.class(name); k != nil; k = k.wider {
		got = append(got, k.pattern)
	}
	for _, p := range slices.Concat(patterns, []Pattern{"*", ""}) {
		if p.Match(name) && !slices.Contains(want, p) {
			want = append(want, p)
		}
	}
	slices.SortFunc(want, func(a, b Pattern) int { return width(a) - width(b) })
	if !slices.Equal(got, want) {
		t.Errorf("chain of %q = %q, want %q", name, got, want)
	}
}

// width orders patterns that select the same name.
func width(p Pattern) int {
	switch {
	case p == "":
		return 1 << 20
	case strings.HasSuffix(string(p), "*"):
		return 1<<19 - len(p)
	default:
		return 0
	}
}

// FuzzMatch looks for patterns and names for which the compiled matcher and
// the patterns themselves disagree.
func FuzzMatch(f *testing.F) {
	f.Add("a*\nab*\nabc\n*", "x*\nxyz", "abcd", "xyz", true)
	f.Add("a*\na!*\na", "", "a!b", "", false)
	f.Add("_unknown\n_*\n*", "*", "", "y", false)
	f.Fuzz(func(t *testing.T, callers, procedures, caller, procedure string, verified bool) {
		s := Service{Name: "s"}
		seen := map[Match]bool{}
		for i, c := range strings.Split(callers, "\n") {
			for j, p := range strings.Split(procedures, "\n") {
				if m := (Match{Pattern(c), Pattern(p)}); !seen[m] && len(s.Buckets) < 64 {
					seen[m] = true
					s.Buckets = append(s.Buckets, Bucket{
						Service: "s", Name: string(rune('a'+i%26)) + string(rune('a'+j%26)) + string(rune('0'+len(s.Buckets))),
						Match: m, PerCaller: (i+j)%2 == 0, Verified: (i+j)%3 == 0, LimitRPS: 1,
					})
				}
			}
		}
		name := caller
		if name == "" {
			name = UnknownCaller
		}
		m := newMatcher(&s, nil, "", "")
		var got []*Bucket
		for _, r := range m.match(m.callers.class(name), m.procedures.class(procedure), verified) {
			got = append(got, r.bucket)
		}
		want := newModel(&s).matching(Request{Caller: name, Procedure: procedure, Verified: verified})
		if !slices.Equal(got, want) {
			t.Errorf("%d buckets match %q %q, want %d", len(got), name, procedure, len(want))
		}
	})
}

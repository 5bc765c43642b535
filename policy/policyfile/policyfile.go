// Package policyfile reads policy files: the YAML that says from what history
// the limits of which buckets are computed, and what becomes of them.
// docs/policies.md has the schema.
//
// The reader is strict, as that of limits files: see package yamlfile. What a
// kind of policy does not use is refused, so that no key is without effect.
package policyfile

import (
	"fmt"
	"slices"
	"strings"

	"grl/limiter"
	"grl/limiter/yamlfile"
	"grl/policy"
)

// Bounds on what is accepted.
const (
	MaxFileBytes = 64 << 10 // of one file
	MaxPolicies  = 1000
	MaxListItems = 1000 // of events, capacity, ignore and quota each
	MaxRegions   = 200  // limits of single regions in a quota
)

// Errors are all the things that do not hold, sorted by file and place.
type Errors = yamlfile.Errors

// Source is a policy file as it was read.
type Source struct {
	Name string // path, for errors
	Data []byte
}

// Is reports whether data is meant as a policy file: it has the key kind and not
// the key service, which each limits file has.
func Is(data []byte) bool { return yamlfile.HasKey(data, "kind") && !yamlfile.HasKey(data, "service") }

// Parse reads one policy file and checks all that can be told from it alone.
// The name is used in errors only. The error is an Errors.
func Parse(name string, data []byte) (policy.Spec, error) {
	f := decode(name, data)
	if len(f.errs) > 0 {
		return policy.Spec{}, f.errs.Sorted()
	}
	return f.spec, nil
}

// Load parses sources, sorted by the policies' names, and checks what they say
// about each other: no two have the same name, or the same match. It reports the
// errors of all of them together, as an Errors.
func Load(sources []Source) ([]policy.Spec, error) {
	if len(sources) > MaxPolicies {
		return nil, Errors{{
			File: sources[MaxPolicies].Name, Found: fmt.Sprintf("%d policies", len(sources)), Expected: fmt.Sprintf("at most %d", MaxPolicies),
		}}
	}
	var errs Errors
	files := make([]file, len(sources))
	for i, s := range sources {
		files[i] = decode(s.Name, s.Data)
		errs = append(errs, files[i].errs...)
	}
	if errs = append(errs, disagreements(files)...); len(errs) > 0 {
		return nil, errs.Sorted()
	}
	specs := make([]policy.Spec, len(files))
	for i := range files {
		specs[i] = files[i].spec
	}
	slices.SortFunc(specs, func(a, b policy.Spec) int { return strings.Compare(a.Name, b.Name) })
	return specs, nil
}

// file is what one source says.
type file struct {
	source string
	spec   policy.Spec
	errs   Errors
	// name and match are where those stand; zero: nowhere, or they do not hold.
	name, match yamlfile.Place
}

// String names the policy with its place.
func (f *file) String() string {
	return fmt.Sprintf("%s at %s:%d:%d", yamlfile.Quote(f.spec.Name), f.source, f.name.Line, f.name.Column)
}

// disagreements reports the policies that cannot stand beside an earlier one.
func disagreements(files []file) (errs Errors) {
	names, matches := map[string]*file{}, map[policy.Match]*file{}
	for i := range files {
		f := &files[i]
		if f.name == (yamlfile.Place{}) {
			continue
		}
		if first, again := names[f.spec.Name]; again {
			errs = append(errs, &yamlfile.Error{
				File: f.source, Line: f.name.Line, Column: f.name.Column, Key: "name", Problem: fmt.Sprintf("the same as that of policy %v", first),
			})
		} else {
			names[f.spec.Name] = f
		}
		if f.match == (yamlfile.Place{}) {
			continue
		}
		match := selection(f.spec.Match)
		if first, again := matches[match]; again {
			errs = append(errs, &yamlfile.Error{
				File: f.source, Line: f.match.Line, Column: f.match.Column, Key: "match",
				Problem: fmt.Sprintf("policy %s selects the same buckets as policy %v: each has one policy", yamlfile.Quote(f.spec.Name), first),
			})
		} else {
			matches[match] = f
		}
	}
	return errs
}

// selection returns what m selects: "*" and no pattern select the same of a
// service and a name. A caller of "*" must be there.
func selection(m policy.Match) policy.Match {
	if m.Service == "*" {
		m.Service = ""
	}
	if m.Bucket == "*" {
		m.Bucket = ""
	}
	return m
}

// Choose returns the policy that computes the limit of a bucket, nil if none
// does, as of one that blocks. Of several that match it is the most specific
// one: by the pattern of the bucket's name, then of its caller, then of its
// service, of which an exact one comes first, then longer beginnings before
// shorter ones, then "*", then none; then by name. The policy is one of specs.
func Choose(specs []policy.Spec, b limiter.Bucket) *policy.Spec {
	if b.Block {
		return nil
	}
	var best *policy.Spec
	for i := range specs {
		s := &specs[i]
		if selects(s.Match, &b) && (best == nil || before(s, best)) {
			best = s
		}
	}
	return best
}

// selects reports whether all that m gives matches. The caller is a pattern of
// the bucket, all of which that of the policy must select.
func selects(m policy.Match, b *limiter.Bucket) bool {
	return m.Service.Match(b.Service) && m.Bucket.Match(b.Name) &&
		(m.Caller == "" || b.Match.Caller != "" && m.Caller.Match(string(b.Match.Caller)))
}

// before reports whether s is chosen when both match.
func before(s, other *policy.Spec) bool {
	pairs := [][2]limiter.Pattern{
		{s.Match.Bucket, other.Match.Bucket}, {s.Match.Caller, other.Match.Caller}, {s.Match.Service, other.Match.Service},
	}
	for _, p := range pairs {
		if a, b := rank(p[0]), rank(p[1]); a != b {
			return a > b
		}
	}
	return s.Name < other.Name
}

// rank is higher for a pattern that says more.
func rank(p limiter.Pattern) int {
	stem, prefix := strings.CutSuffix(string(p), "*")
	switch {
	case p == "":
		return 0
	case !prefix:
		return 2 + yamlfile.MaxNameBytes
	default:
		return 1 + len(stem) // 1 for "*"
	}
}

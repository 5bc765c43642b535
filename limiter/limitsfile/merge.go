package limitsfile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"grl/limiter"
	"grl/limiter/yamlfile"
)

// merge joins files into services. Files without a service's name are left
// out: they were reported when they were read.
func merge(files []*File) ([]limiter.Service, Errors) {
	byService := map[string][]*File{}
	var names []string
	buckets := 0
	var errs Errors
	for _, f := range files {
		name := f.Service.Name
		if name == "" {
			continue
		}
		if byService[name] == nil {
			names = append(names, name)
		}
		byService[name] = append(byService[name], f)
		if buckets += len(f.Service.Buckets); buckets > MaxBuckets {
			return nil, Errors{{
				File: f.Name, Line: f.service.Line, Column: f.service.Column,
				Found: fmt.Sprintf("more than %d buckets in all files up to this one", MaxBuckets), Expected: fmt.Sprintf("at most %d", MaxBuckets),
			}}
		}
	}
	slices.Sort(names)
	services := make([]limiter.Service, 0, len(names))
	for _, name := range names {
		s, bad := mergeService(name, byService[name])
		services, errs = append(services, s), append(errs, bad...)
	}
	return services, errs
}

// mergeService joins the files of one service.
func mergeService(name string, files []*File) (limiter.Service, Errors) {
	s := limiter.Service{Name: name}
	errs := agree(&s, files)
	routes, known := []placedRoute(nil), map[string]*File{}
	for _, f := range files {
		for i, route := range f.Service.Routes {
			// The same route may stand in two files, but not twice in one.
			if known[route] == nil || known[route] == f {
				routes = append(routes, placedRoute{route, f, f.routes[i]})
				known[route] = f
			}
		}
		s.Routes = append(s.Routes, f.Service.Routes...)
		s.Exempt = append(s.Exempt, f.Service.Exempt...)
		s.Buckets = append(s.Buckets, f.Service.Buckets...)
	}
	if len(routes) > MaxListItems || len(s.Exempt) > MaxListItems {
		last := files[len(files)-1]
		errs = append(errs, &Error{
			File: last.Name, Line: last.service.Line, Column: last.service.Column,
			Found: fmt.Sprintf("%d routes and %d exempt entries of the service", len(routes), len(s.Exempt)), Expected: fmt.Sprintf("at most %d of each", MaxListItems),
		})
	} else {
		errs = append(errs, checkRoutes(routes)...)
	}
	errs = append(errs, checkBuckets(files)...)
	errs = append(errs, checkProcedures(files, s.Routes)...)
	return canonical(s), errs
}

// agree takes owner and enforce from the files that state them.
func agree(s *limiter.Service, files []*File) (errs Errors) {
	var owner, enforce *File
	for _, f := range files {
		if f.owner != (yamlfile.Place{}) {
			if owner == nil {
				owner, s.Owner = f, f.Service.Owner
			} else if f.Service.Owner != s.Owner {
				errs = append(errs, disagreement(f, f.owner, "owner", f.Service.Owner, s.Owner, owner, owner.owner))
			}
		}
		if f.enforce != (yamlfile.Place{}) {
			if enforce == nil {
				enforce, s.Enforce = f, f.Service.Enforce
			} else if f.Service.Enforce != s.Enforce {
				errs = append(errs, disagreement(f, f.enforce, "enforce", f.Service.Enforce.String(), s.Enforce.String(), enforce, enforce.enforce))
			}
		}
	}
	return errs
}

func disagreement(f *File, at yamlfile.Place, key, found, expected string, first *File, firstAt yamlfile.Place) *Error {
	return &Error{
		File: f.Name, Line: at.Line, Column: at.Column, Key: key,
		Problem: "files of service " + f.Service.Name + " disagree", Found: yamlfile.Quote(found),
		Expected: fmt.Sprintf("%s as at %s:%d:%d", yamlfile.Quote(expected), first.Name, firstAt.Line, firstAt.Column),
	}
}

// selection is what makes two buckets of a service the same rule.
type selection struct {
	match limiter.Match
	per   bool
	scope limiter.Scope
}

// placedBucket is a bucket and where it stands.
type placedBucket struct {
	bucket *limiter.Bucket
	file   *File
	at     item
}

func (b placedBucket) String() string {
	return fmt.Sprintf("%q at %s:%d:%d", b.bucket.Name, b.file.Name, b.at.Line, b.at.Column)
}

func (b placedBucket) problem(format string, args ...any) *Error {
	return &Error{
		File: b.file.Name, Line: b.at.Line, Column: b.at.Column, Key: fmt.Sprintf("buckets[%d]", b.at.index),
		Problem: yamlfile.Quote(b.bucket.Name) + " " + fmt.Sprintf(format, args...),
	}
}

// checkBuckets reports the buckets of a service that cannot stand beside an
// earlier one.
func checkBuckets(files []*File) (errs Errors) {
	names, selections := map[string]placedBucket{}, map[selection]placedBucket{}
	var cost, tiers *placedBucket // the first with such a header
	tierValues := map[string]bool{}
	for _, f := range files {
		for i := range f.Service.Buckets {
			b := placedBucket{&f.Service.Buckets[i], f, f.buckets[i]}
			if first, again := names[b.bucket.Name]; again {
				errs = append(errs, b.problem("has the name of bucket %v", first))
			} else {
				names[b.bucket.Name] = b
			}
			sel := selectionOf(b.bucket)
			if first, again := selections[sel]; again {
				errs = append(errs, b.problem("has the same match, per and scope as bucket %v", first))
			} else {
				selections[sel] = b
			}
			if header := b.bucket.Cost.Header; header != "" && cost == nil {
				cost = &b
			} else if header != "" && !strings.EqualFold(header, cost.bucket.Cost.Header) {
				errs = append(errs, b.problem("takes its cost from %q, but bucket %v from %q: a request has one cost", header, *cost, cost.bucket.Cost.Header))
			}
			errs = append(errs, checkTierHeader(b, &tiers, tierValues)...)
			if len(errs) >= MaxErrors {
				return errs
			}
		}
	}
	return errs
}

// checkProcedures reports the buckets of a service whose procedure no request
// can have: HTTP procedures are the service's routes, once it has any.
func checkProcedures(files []*File, routes []string) (errs Errors) {
	for _, f := range files {
		for i := range f.Service.Buckets {
			b := placedBucket{&f.Service.Buckets[i], f, f.buckets[i]}
			pattern := string(b.bucket.Match.Procedure)
			switch {
			case strings.HasPrefix(pattern, "/"):
				errs = append(errs, b.problem("matches no request: procedure %s is a path, and procedures are pkg.Service/Method or METHOD /route", yamlfile.Quote(pattern)))
			case len(routes) > 0 && !isRouted(b.bucket.Match.Procedure, routes):
				errs = append(errs, b.problem("matches no request: procedure %s is none of the service's routes", yamlfile.Quote(pattern)))
			}
			if len(errs) >= MaxErrors {
				return errs
			}
		}
	}
	return errs
}

// isRouted reports whether a request to a service with these routes can have a
// procedure that p selects.
func isRouted(p limiter.Pattern, routes []string) bool {
	method, path, isHTTP := strings.Cut(string(p), " ")
	if !isHTTP || strings.HasPrefix("/{other}", strings.TrimSuffix(path, "*")) {
		return true // an RPC, or what matches no route
	}
	for _, route := range routes {
		if !strings.Contains(route, " ") {
			route = method + " " + route // of every method
		}
		if p.Match(route) {
			return true
		}
	}
	return false
}

// selectionOf returns what b selects. "*" and no pattern select the same.
func selectionOf(b *limiter.Bucket) selection {
	sel := selection{b.Match, b.PerCaller, b.Scope}
	if sel.match.Caller == "*" {
		sel.match.Caller = ""
	}
	if sel.match.Procedure == "*" {
		sel.match.Procedure = ""
	}
	return sel
}

// canonical returns s in the order and form in which equal meaning is equal
// value: lists without an order sorted, repeated routes and exempt entries once, cost 1
// and UTC left out. It shares nothing that it changes.
func canonical(s limiter.Service) limiter.Service {
	s.Routes = compacted(s.Routes, strings.Compare)
	s.Exempt = compacted(s.Exempt, compareMatch)
	s.Buckets = compacted(s.Buckets, nil)
	slices.SortFunc(s.Buckets, func(a, b limiter.Bucket) int { return strings.Compare(a.Name, b.Name) })
	for i := range s.Buckets {
		b := &s.Buckets[i]
		if b.Cost.Fixed == 1 {
			b.Cost.Fixed = 0
		}
		if b.TimeZone == "UTC" {
			b.TimeZone = ""
		}
		b.Tiers = compacted(b.Tiers, nil)
		for j := range b.Tiers {
			t := &b.Tiers[j]
			t.Callers, t.Values = compacted(t.Callers, cmp.Compare), compacted(t.Values, strings.Compare)
		}
	}
	return s
}

func compareMatch(a, b limiter.Match) int {
	if c := strings.Compare(string(a.Caller), string(b.Caller)); c != 0 {
		return c
	}
	return strings.Compare(string(a.Procedure), string(b.Procedure))
}

// compacted returns a copy of list, nil if it is empty; with compare it is
// sorted and has equal elements once.
func compacted[E any](list []E, compare func(a, b E) int) []E {
	if len(list) == 0 {
		return nil
	}
	list = slices.Clone(list)
	if compare != nil {
		slices.SortFunc(list, compare)
		list = slices.CompactFunc(list, func(a, b E) bool { return compare(a, b) == 0 })
	}
	return list
}

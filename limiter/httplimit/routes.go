package httplimit

import (
	"net/http"
)

// Routes are the ServeMux patterns of a service, compiled. nil matches
// nothing. It is immutable.
type Routes struct {
	mux   *http.ServeMux
	names map[string]map[string]string // pattern without a method → method → name
}

// NewRoutes compiles patterns. One that ServeMux refuses, or that conflicts
// with an earlier one, is left out: its requests count under /{other}, and no
// request fails for it.
func NewRoutes(patterns []string) *Routes {
	if len(patterns) == 0 {
		return nil
	}
	rs := &Routes{mux: http.NewServeMux(), names: make(map[string]map[string]string)}
	for _, p := range patterns {
		rs.add(p)
	}
	return rs
}

func (rs *Routes) add(pattern string) {
	// ServeMux panics on a bad pattern; it is checked by whoever accepts a
	// limits file, so this is the last line of defence.
	defer func() { _ = recover() }()
	rs.mux.Handle(pattern, http.NotFoundHandler())
	if hasMethod(pattern) {
		return
	}
	names := make(map[string]string, len(methods)+1)
	for _, m := range methods {
		names[m] = m + " " + pattern
	}
	names[otherMethod] = otherMethod + " " + pattern
	rs.names[pattern] = names
}

// match returns the procedure of the route that r matches, "" if none does.
func (rs *Routes) match(r *http.Request) string {
	// For CONNECT, ServeMux may return a raw path in place of a pattern.
	if rs == nil || r.Method == http.MethodConnect {
		return ""
	}
	// The handler may be a redirect to a cleaner path; the pattern is the
	// right one even then.
	_, pattern := rs.mux.Handler(r)
	if names, ok := rs.names[pattern]; ok {
		return names[knownMethod(r.Method)]
	}
	return pattern
}

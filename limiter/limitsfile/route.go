package limitsfile

import (
	"fmt"
	"net/http"
	"strings"

	"grl/limiter/yamlfile"
)

// route reads one net/http ServeMux pattern.
func (d *decoder) route(n *yamlfile.Node, path string) (string, bool) {
	route, ok := d.Scalar(n, path, `a route, such as "GET /v1/charges/{id}"`)
	if !ok {
		return "", false
	}
	if expected := procedureName.Fault(route); expected != "" {
		d.Fail(n.Place, path, yamlfile.Quote(route), expected)
		return "", false
	}
	if why := register(http.NewServeMux(), route); why != "" {
		d.Fail(n.Place, path, yamlfile.Quote(route), "a net/http ServeMux pattern: "+why)
		return "", false
	}
	return route, true
}

// register adds route to mux and returns why it cannot be; "" is added. The
// mux has no other way to say so than to panic.
func register(mux *http.ServeMux, route string) (why string) {
	defer func() {
		if r := recover(); r != nil {
			why = reason(fmt.Sprint(r))
		}
	}()
	mux.Handle(route, http.NotFoundHandler())
	return ""
}

// reason takes from the mux's words what a reader of the file can use: the
// first line of the cause, without the places in Go source.
func reason(panicked string) string {
	if strings.Contains(panicked, "conflicts with pattern") {
		return "both match some requests, and neither is the more specific one"
	}
	line, _, _ := strings.Cut(panicked, "\n")
	if _, cause, ok := strings.Cut(line, `": `); ok {
		line = cause
	}
	return yamlfile.Clip(line)
}

// placedRoute is a route of a service and where it stands.
type placedRoute struct {
	route string
	file  *File
	at    item
}

func (r placedRoute) String() string {
	return fmt.Sprintf("%s at %s:%d:%d", yamlfile.Quote(r.route), r.file.Name, r.at.Line, r.at.Column)
}

// checkRoutes reports the routes that cannot stand beside an earlier one, with
// both places.
func checkRoutes(routes []placedRoute) (errs Errors) {
	mux := http.NewServeMux()
	for i, r := range routes {
		why := register(mux, r.route)
		if why == "" {
			continue
		}
		problem := "conflicts with another route: " + why
		if other := conflicting(routes[:i], r.route); other != nil && other.route == r.route {
			problem = fmt.Sprintf("the same as %v", other)
		} else if other != nil {
			problem = fmt.Sprintf("%s conflicts with %v: %s", yamlfile.Quote(r.route), other, why)
		}
		errs = append(errs, &Error{
			File: r.file.Name, Line: r.at.Line, Column: r.at.Column,
			Key: fmt.Sprintf("routes[%d]", r.at.index), Problem: problem,
		})
		if len(errs) >= MaxErrors {
			return errs
		}
	}
	return errs
}

// conflicting returns the first of routes that cannot stand beside route.
func conflicting(routes []placedRoute, route string) *placedRoute {
	for i := range routes {
		mux := http.NewServeMux()
		if register(mux, routes[i].route) == "" && register(mux, route) != "" {
			return &routes[i]
		}
	}
	return nil
}

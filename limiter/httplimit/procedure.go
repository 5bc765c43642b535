package httplimit

import (
	"net/http"
	"strings"
)

// Procedure names what r asks for: pkg.Service/Method for gRPC, gRPC-Web,
// Connect and YARPC, METHOD /route/{template} for HTTP. The template is that
// of the service's routes (nil: none), else that of a ServeMux that has
// matched r, else /{other}: a raw path is never a name. JSON posted to a path
// like /pkg.Service/Method that is no route is a Connect call whose client
// leaves out the protocol's header, as curl does. Methods outside RFC 9110 and
// RFC 5789 are OTHER.
//
// What an RPC calls is what the request says it calls. A bucket for the whole
// service counts the request that lies.
func Procedure(r *http.Request, routes *Routes) string {
	if protocolOf(r) != plainHTTP {
		if name := lastTwoSegments(r.URL.Path); validName(name) {
			return name
		}
		return otherRoute(r.Method)
	}
	if name := yarpcProcedure(r.Header); name != "" {
		return name
	}
	if name := routes.match(r); name != "" {
		return name
	}
	if r.Pattern != "" {
		return withMethod(r.Pattern, r.Method)
	}
	if name := bareCall(r); name != "" {
		return name
	}
	return otherRoute(r.Method)
}

// bareCall returns the procedure of a Connect call without the protocol's
// header: JSON posted to /pkg.Service/Method.
func bareCall(r *http.Request) string {
	if r.Method != http.MethodPost || !strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") {
		return ""
	}
	service, method, ok := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if !ok || !strings.Contains(service, ".") || strings.Contains(method, "/") {
		return ""
	}
	if name := service + "/" + method; method != "" && validName(name) {
		return name
	}
	return ""
}

// lastTwoSegments returns Service/Method of a path that may have a prefix, ""
// if it has not two segments.
func lastTwoSegments(path string) string {
	method := strings.LastIndexByte(path, '/')
	if method <= 0 || method == len(path)-1 {
		return ""
	}
	service := strings.LastIndexByte(path[:method], '/')
	if service < 0 || service+1 == method {
		return ""
	}
	return path[service+1:]
}

// yarpcProcedure turns Service::Method into Service/Method.
func yarpcProcedure(h http.Header) string {
	service, method, ok := strings.Cut(first(h, "Rpc-Procedure"), "::")
	if !ok || service == "" || method == "" {
		return ""
	}
	if name := service + "/" + method; validName(name) {
		return name
	}
	return ""
}

// methods are those that may stand in a procedure's name.
var methods = [...]string{
	http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
	http.MethodHead, http.MethodOptions, http.MethodConnect, http.MethodTrace,
}

const otherMethod = "OTHER"

func knownMethod(method string) string {
	for _, m := range methods {
		if m == method {
			return m
		}
	}
	return otherMethod
}

func otherRoute(method string) string {
	switch method { // constants, so that the usual request allocates nothing
	case http.MethodGet:
		return "GET /{other}"
	case http.MethodPost:
		return "POST /{other}"
	case http.MethodPut:
		return "PUT /{other}"
	case http.MethodDelete:
		return "DELETE /{other}"
	}
	return knownMethod(method) + " /{other}"
}

// withMethod returns a ServeMux pattern with method in front, unless it has
// one.
func withMethod(pattern, method string) string {
	if hasMethod(pattern) {
		return pattern
	}
	return knownMethod(method) + " " + pattern
}

func hasMethod(pattern string) bool { return strings.ContainsAny(pattern, " \t") }

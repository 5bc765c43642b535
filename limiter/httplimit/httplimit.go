// Package httplimit puts a limiter in front of an http.Handler: it says who
// calls and what is called, decides, and answers a drop in the words of the
// protocol that the request speaks (HTTP, gRPC, gRPC-Web, Connect).
//
//	handler = httplimit.Middleware(l, httplimit.Options{Service: "payments", Identity: id})(handler)
package httplimit

import (
	"net/http"

	"grl/limiter"
)

// Middleware returns what puts the decision of l in front of a handler. A
// panic of the limiter admits the request; a panic of the handler goes its
// way. Inside a ServeMux the pattern that matched names the procedure of an
// HTTP request which no route of the limits files matches.
func Middleware(l *limiter.Limiter, o Options) func(http.Handler) http.Handler {
	gate := NewGate(l, o)
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if d, dropped := gate.Decide(r); dropped {
				WriteDrop(w, r, d)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

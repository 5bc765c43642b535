// Package web is the dashboard: pages rendered by the controller, complete
// without JavaScript, updated in place through htmx where the browser allows
// it. Package page is what they are made of; each kind of page has a package of
// its own.
package web

import (
	"log/slog"
	"net/http"

	"grl/proto/access"
	"grl/web/account"
	"grl/web/alerts"
	"grl/web/bucket"
	"grl/web/buckets"
	"grl/web/caps"
	"grl/web/changes"
	"grl/web/explain"
	"grl/web/fleet"
	"grl/web/overview"
	"grl/web/page"
	"grl/web/policies"
	"grl/web/runs"
	"grl/web/shadow"
)

// Options is what the dashboard needs to know.
type Options struct {
	// Backend is where the numbers come from. Required.
	Backend page.Backend
	// Services change things. View is required.
	Services page.Services
	// People signs people in; nil: there are no pages for it.
	People page.People
	// Log receives failures to render; nil discards them.
	Log *slog.Logger
	// Version of this binary, shown at the foot; empty: not shown.
	Version string
	// Hosts are further names that the Host header may carry, without port,
	// such as the host of public_url. localhost, 127.0.0.0/8 and [::1] always
	// may.
	Hosts []string
	// AnyHost turns the check of the Host header off, for an address that is
	// reachable from outside under names this process does not know. A
	// loopback address needs the check against DNS rebinding.
	AnyHost bool
	// Stop is closed when the server is about to shut down: pages that stream
	// would else keep it from ending. Nil: never.
	Stop <-chan struct{}
}

// New returns the handler of all pages and of their assets below /assets/. It
// answers only GET and HEAD, and POST where there is a form, sets the security
// headers on every answer, and may be used concurrently. It panics without a
// Backend or without the files embedded in this package.
func New(o Options) http.Handler {
	if o.Backend == nil {
		panic("web: no Backend")
	}
	assets, err := newAssets(static, dist)
	if err != nil {
		panic("web: " + err.Error())
	}
	return newHandler(o, assets)
}

// newHandler is New with other assets than the embedded ones.
func newHandler(o Options, assets *assets) http.Handler {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &page.Site{Backend: o.Backend, Services: o.Services, People: o.People, Log: o.Log, Version: o.Version, Assets: assets.paths, Stop: o.Stop}

	mux := http.NewServeMux()
	for _, route := range routes(s) {
		mux.Handle(route.Pattern, guarded(s, route))
	}
	mux.HandleFunc("GET /assets/{name}", assets.serve)
	mux.HandleFunc("GET /favicon.ico", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, assets.paths.Icon, http.StatusFound)
	})
	mux.HandleFunc("GET /", func(w http.ResponseWriter, r *http.Request) {
		s.Render(w, r, http.StatusNotFound, notFound(s.Door(r, "No such page")))
	})
	return secure(o, mux)
}

// routes are all pages and forms.
func routes(s *page.Site) []page.Route {
	var all []page.Route
	for _, of := range []func(*page.Site) []page.Route{
		overview.Routes, buckets.Routes, bucket.Routes, shadow.Routes, explain.Routes, caps.Routes,
		policies.Routes, runs.Routes, fleet.Routes, alerts.Routes, changes.Routes, page.Routes,
	} {
		all = append(all, of(s)...)
	}
	if s.People != nil {
		all = append(all, account.Routes(s)...)
	}
	return all
}

// guarded lets those to a page through who may call the procedure that it stands
// for. The gate in front has let viewers in only; the service behind decides
// again.
func guarded(s *page.Site, route page.Route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case route.Procedure == "" || access.From(r.Context()).Person == nil && r.Method != http.MethodPost:
			// The gate in front decides who may look at all.
		case !page.May(r.Context(), route.Procedure):
			s.Render(w, r, http.StatusForbidden, forbidden(s.Page(r, "Not allowed", "")))
			return
		}
		if s.Services.Elsewhere != "" && page.AtParent(route.Procedure) {
			s.Render(w, r, http.StatusConflict, elsewhere(s.Page(r, "Not here", ""), s.Services.Elsewhere))
			return
		}
		route.Serve(w, r)
	})
}

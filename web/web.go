// Package web is the dashboard: pages rendered by the controller, complete
// without JavaScript, updated in place through htmx where the browser allows
// it.
//
// A page consists of regions. Each region has a URL of its own, which answers
// with the whole page or, to a request with the header HX-Request, with what
// the region contains:
//
//	/         the summary of the fleet, above every page
//	/buckets  one row a cell, filtered, sorted and paged by its query
//	/fleet    one row a node
//
// Whatever is printed comes from a Backend.
package web

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/a-h/templ"
)

// Backend is where the pages get their data. Each method is called at most
// once a request, concurrently, and must answer from memory at once. What is
// returned belongs to neither side: web does not change it, and the backend
// must not change it afterwards.
type Backend interface {
	// Buckets returns a row for each cell, in any order.
	Buckets() []Bucket
	// Fleet returns the state of the tree.
	Fleet() Fleet
}

// Options is what the dashboard needs to know.
type Options struct {
	// Backend is where the data comes from. Required.
	Backend Backend
	// People signs people in; nil: there are no pages for it.
	People People
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
}

// New returns the handler of all pages and of their assets below /assets/. It
// answers only GET and HEAD, and POST where people sign in and out, sets the security headers on every answer, and
// may be used concurrently. It panics without a Backend or without the files
// embedded in this package.
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
	s := &site{backend: o.Backend, people: o.People, log: o.Log, version: o.Version, assets: assets}

	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.serveOverview)
	mux.HandleFunc("GET /buckets", s.serveBuckets)
	mux.HandleFunc("GET /fleet", s.serveFleet)
	mux.HandleFunc("GET /explain", serveExplain)
	mux.HandleFunc("GET /assets/{name}", assets.serve)
	mux.HandleFunc("GET /favicon.ico", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, assets.icon, http.StatusFound)
	})
	mux.HandleFunc("GET /", s.serveNotFound)
	if o.People != nil {
		s.routePeople(mux)
	}
	return secure(o, mux)
}

// serveExplain is where the link in a refusal leads: to the buckets of the
// service that refused.
func serveExplain(w http.ResponseWriter, r *http.Request) {
	q := url.Values{"q": {r.FormValue("service") + "/"}}
	http.Redirect(w, r, "/buckets?"+q.Encode(), http.StatusFound)
}

// site renders pages. It is immutable.
type site struct {
	backend Backend
	people  People // nil: nobody signs in
	log     *slog.Logger
	version string
	assets  *assets
}

// page is what surrounds the regions.
type page struct {
	Title   string // also the heading
	Current string // path of the navigation link that leads here
	Version string
	AsOf    stamp // of the numbers; zero: the page has none
	Assets  *assets
	Who     who
}

func (s *site) page(r *http.Request, title, current string, now time.Time) page {
	return page{
		Title: title, Current: current, Version: s.version, AsOf: newStamp(now, now), Assets: s.assets,
		Who: whoOf(r.Context()),
	}
}

// door is page for who is not inside yet.
func (s *site) door(r *http.Request, title string) page {
	p := s.page(r, title, "", time.Now())
	p.AsOf = stamp{}
	return p
}

func (s *site) serveOverview(w http.ResponseWriter, r *http.Request) {
	now, cells, fleet := time.Now(), s.backend.Buckets(), s.backend.Fleet()
	sum := summarize(cells, fleet, now)
	if wantsFragment(r) {
		s.render(w, r, http.StatusOK, summaryRegion(sum))
		return
	}
	s.render(w, r, http.StatusOK, overviewPage(
		s.page(r, "Overview", "/", now), sum,
		newBucketsView(cells, query{Rows: overviewRows}), newFleetView(fleet, 1),
	))
}

func (s *site) serveBuckets(w http.ResponseWriter, r *http.Request) {
	q := parseQuery(r.URL.Query())
	now, cells := time.Now(), s.backend.Buckets()
	view := newBucketsView(cells, q)
	if wantsFragment(r) {
		s.render(w, r, http.StatusOK, bucketsRegion(view))
		return
	}
	sum := summarize(cells, s.backend.Fleet(), now)
	s.render(w, r, http.StatusOK, bucketsPage(s.page(r, "Buckets", "/buckets", now), sum, view))
}

func (s *site) serveFleet(w http.ResponseWriter, r *http.Request) {
	number, err := strconv.Atoi(r.URL.Query().Get("page"))
	if err != nil {
		number = 1
	}
	now, fleet := time.Now(), s.backend.Fleet()
	view := newFleetView(fleet, number)
	if wantsFragment(r) {
		s.render(w, r, http.StatusOK, fleetRegion(view))
		return
	}
	sum := summarize(s.backend.Buckets(), fleet, now)
	s.render(w, r, http.StatusOK, fleetPage(s.page(r, "Fleet", "/fleet", now), sum, view))
}

func (s *site) serveNotFound(w http.ResponseWriter, r *http.Request) {
	s.render(w, r, http.StatusNotFound, notFoundPage(s.door(r, "No such page")))
}

// wantsFragment reports whether htmx asks for the content of a region.
func wantsFragment(r *http.Request) bool { return r.Header.Get("HX-Request") == "true" }

// render answers with c, or with an error if c cannot be rendered: never with
// half a page.
func (s *site) render(w http.ResponseWriter, r *http.Request, status int, c templ.Component) {
	var b bytes.Buffer
	if err := c.Render(r.Context(), &b); err != nil {
		if errors.Is(err, context.Canceled) {
			return // the reader went away
		}
		s.log.ErrorContext(r.Context(), "render page", "path", r.URL.Path, "err", err)
		http.Error(w, "This page cannot be shown: see the log of the controller.", http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Length", fmt.Sprint(b.Len()))
	// Numbers age; and one URL has two answers, which a history entry must
	// not mix up.
	h.Set("Cache-Control", "no-store")
	h.Set("Vary", "HX-Request")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // the reader went away; there is no one to tell
}

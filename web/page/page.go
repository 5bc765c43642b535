// Package page is what the pages of the dashboard are made of: the frame around
// them, the parts they share, who looks, forms, refusals, and where their
// numbers come from.
//
// A page has regions that update in place. Each region has a URL of its own,
// which answers with the whole page or, to a request with the header HX-Request,
// with what the region contains. A form is posted and answered with 303, or with
// the page again and what is wrong. All works without scripts; what scripts add,
// and the attributes by which a page asks for it, is said at the top of each in
// web/static: data-title, data-keep-order, data-bulk, data-key.
package page

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/a-h/templ"

	"grl/web/format"
)

// Site is what all pages share. It is immutable, and may be used concurrently.
type Site struct {
	Backend  Backend
	Services Services
	People   People // nil: nobody signs in
	Log      *slog.Logger
	Version  string // empty: not shown
	Assets   Assets
	Stop     <-chan struct{} // closed: streams end; nil: they end with their readers
}

// Assets are the paths of files to print into pages.
type Assets struct {
	Style, Icon string
	// Script says how old numbers are, Hands keeps them from under the hand, Keys
	// has the shortcuts; "": not there.
	Script, Hands, Keys string
	// Zoom turns the numbers of one chart into one that can be looked into, with
	// Plot.
	Zoom string
	// Of third parties; empty: built without them.
	HTMX, Events, Plot, PlotStyle string
}

// Route is one page or form.
type Route struct {
	// Pattern is that of http.ServeMux, such as "GET /caps" or "POST /caps/lift".
	Pattern string
	// Procedure of the API whose rule says who may; "": the page itself asks, and
	// anyone may come to it.
	Procedure string
	Serve     http.HandlerFunc
}

// Page is what surrounds the regions.
type Page struct {
	Title   string // of the browser's window, and the heading
	Current string // path of the navigation link that leads here
	Crumbs  []Crumb
	Version string
	AsOf    format.Stamp // of the numbers; zero: the page has none
	Assets  Assets
	Who     Who
	Theme   string // light, dark, or "": the system's
	KeysOff bool   // no shortcuts
	Links   []LinkGroup
	Path    string // of the request, to come back to
	Notices []Notice
	// Scripts and Styles are further ones of this page, such as those of a chart:
	// paths of Assets.
	Scripts, Styles []string
}

// Crumb is a step on the way to a page; the last one has no Path.
type Crumb struct{ Name, Path string }

// Page returns what surrounds a page with numbers.
func (s *Site) Page(r *http.Request, title, current string) Page {
	now := time.Now()
	p := s.Door(r, title)
	p.Current, p.Crumbs, p.Links = current, []Crumb{{Name: title}}, s.links(r.Context(), current)
	p.AsOf = format.NewStamp(now, now)
	if r.Method == http.MethodPost { // a form that was refused has no page of its own
		p.Path = cmp.Or(current, "/")
	}
	return p
}

// Door is Page for one without numbers, such as the one for who is not inside yet.
func (s *Site) Door(r *http.Request, title string) Page {
	return Page{
		Title: title, Version: format.Printable(s.Version), Assets: s.Assets, Who: whoOf(r.Context()),
		Theme: themeOf(r), KeysOff: keysOff(r), Path: r.URL.RequestURI(),
	}
}

// Fragment reports whether htmx asks for the content of a region.
func Fragment(r *http.Request) bool { return r.Header.Get("HX-Request") == "true" }

// renderWithin is how long a reader may take to take a page.
const renderWithin = 30 * time.Second

// Render answers with c, or with an error if c cannot be rendered: never with
// half a page.
func (s *Site) Render(w http.ResponseWriter, r *http.Request, status int, c templ.Component) {
	var b bytes.Buffer
	if err := c.Render(r.Context(), &b); err != nil {
		if errors.Is(err, context.Canceled) {
			return // the reader went away
		}
		s.Log.ErrorContext(r.Context(), "render page", "path", r.URL.Path, "err", err)
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
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(renderWithin)) // a recorder of tests has none
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // the reader went away; there is no one to tell
}

// Fail answers with a page that says why something could not be shown, or was
// refused.
func (s *Site) Fail(w http.ResponseWriter, r *http.Request, err error) {
	refusal := s.Refusal(r, err)
	if Fragment(r) {
		s.Render(w, r, refusal.Status, RefusalNotice(refusal))
		return
	}
	s.Render(w, r, refusal.Status, failedPage(s.Page(r, refusedWord(refusal.Status), ""), refusal))
}

// refusedWord is the heading of a page that answers with a status of HTTP.
func refusedWord(status int) string {
	switch status {
	case http.StatusNotFound:
		return "Not found"
	case http.StatusForbidden:
		return "Not allowed"
	case http.StatusServiceUnavailable:
		return "Not available"
	case http.StatusInternalServerError:
		return "Failed"
	default:
		return "Refused"
	}
}

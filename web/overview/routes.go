// Package overview has the page that says how the fleet is, and that of how near
// to their limits buckets came.
package overview

import (
	"context"
	"net/http"
	"time"

	"github.com/a-h/templ"

	"grl/proto/grl/v1/grlv1connect"
	"grl/web/page"
)

const (
	// lively is how often the figures of now are looked at, and slowly those that
	// come from the history or from services, in multiples of it.
	lively = time.Second
	slowly = 10
)

// site serves the pages.
type site struct{ *page.Site }

// Routes returns the pages.
func Routes(p *page.Site) []page.Route {
	s := site{p}
	look := grlv1connect.ViewServiceGetFleetProcedure
	return []page.Route{
		{Pattern: "GET /{$}", Procedure: look, Serve: s.serve},
		{Pattern: "GET /events", Procedure: look, Serve: s.events},
		{Pattern: "GET /headroom", Procedure: look, Serve: s.headroom},
	}
}

func (s site) serve(w http.ResponseWriter, r *http.Request) {
	v := s.view(r)
	v.now(r.Context(), s, time.Now())
	v.slow(r.Context(), s, time.Now())
	if page.Fragment(r) {
		s.Render(w, r, http.StatusOK, content(v))
		return
	}
	s.Render(w, r, http.StatusOK, overviewPage(s.Page(r, "Overview", "/"), v))
}

// view returns an empty one for who asks.
func (s site) view(r *http.Request) *view {
	return &view{
		Range:     rangeOf(r.URL.Query().Get("range")),
		Elsewhere: s.Services.Elsewhere,
		MayCap:    s.Services.Incident != nil && page.May(r.Context(), grlv1connect.IncidentServicePlaceCapProcedure),
	}
}

// events sends the parts of the page that changed: those of now each time, the
// others now and then.
func (s site) events(w http.ResponseWriter, r *http.Request) {
	v, shown := s.view(r), make(map[string]string)
	turn := 0
	s.Stream(w, r, lively, func(ctx context.Context) templ.Component {
		now := time.Now()
		v.now(ctx, s, now)
		all := turn%slowly == 0
		if all {
			v.slow(ctx, s, now)
		}
		turn++
		return parts(ctx, v, all, shown)
	})
}

// Package overview has the page that says how the fleet is.
package overview

import (
	"net/http"
	"time"

	"grl/proto/grl/v1/grlv1connect"
	"grl/web/page"
)

// site serves the page.
type site struct{ *page.Site }

// Routes returns the page and its forms.
func Routes(p *page.Site) []page.Route {
	s := site{p}
	return []page.Route{
		{Pattern: "GET /{$}", Procedure: grlv1connect.ViewServiceGetFleetProcedure, Serve: s.serve},
	}
}

func (s site) serve(w http.ResponseWriter, r *http.Request) {
	v := summarize(s.Backend.Cells(), s.Backend.Fleet(), time.Now())
	if page.Fragment(r) {
		s.Render(w, r, http.StatusOK, summaryRegion(v))
		return
	}
	s.Render(w, r, http.StatusOK, overviewPage(s.Page(r, "Overview", "/"), v))
}

// Package fleet has the page of the tree: controllers, aggregators and hosts.
package fleet

import (
	"net/http"
	"strconv"

	"grl/proto/grl/v1/grlv1connect"
	"grl/web/page"
)

// site serves the page.
type site struct{ *page.Site }

// Routes returns the page and its forms.
func Routes(p *page.Site) []page.Route {
	s := site{p}
	return []page.Route{
		{Pattern: "GET /fleet", Procedure: grlv1connect.ViewServiceGetFleetProcedure, Serve: s.serve},
	}
}

func (s site) serve(w http.ResponseWriter, r *http.Request) {
	number, err := strconv.Atoi(r.URL.Query().Get("page"))
	if err != nil {
		number = 1
	}
	view := newFleetView(s.Backend.Fleet(), number)
	if page.Fragment(r) {
		s.Render(w, r, http.StatusOK, fleetRegion(view))
		return
	}
	s.Render(w, r, http.StatusOK, fleetPage(s.Page(r, "Fleet", "/fleet"), view))
}

// Package runs has the pages of what the RLC computed.
package runs

import (
	"net/http"

	"grl/proto/grl/v1/grlv1connect"
	"grl/web/page"
)

// site serves the page.
type site struct{ *page.Site }

// Routes returns the page and its forms.
func Routes(p *page.Site) []page.Route {
	s := site{p}
	return []page.Route{
		{Pattern: "GET /rlc", Procedure: grlv1connect.RLCServiceListRunsProcedure, Serve: s.serve},
	}
}

func (s site) serve(w http.ResponseWriter, r *http.Request) {
	s.Render(w, r, http.StatusOK, show(s.Page(r, "RLC runs", "/rlc")))
}

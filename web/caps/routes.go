// Package caps has the page of incident limits.
package caps

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
		{Pattern: "GET /caps", Procedure: grlv1connect.IncidentServiceListCapsProcedure, Serve: s.serve},
	}
}

func (s site) serve(w http.ResponseWriter, r *http.Request) {
	s.Render(w, r, http.StatusOK, show(s.Page(r, "Caps", "/caps")))
}

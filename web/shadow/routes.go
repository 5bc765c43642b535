// Package shadow has the page of what is not enforced, with the evidence.
package shadow

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
		{Pattern: "GET /shadow", Procedure: grlv1connect.ViewServiceListBucketsProcedure, Serve: s.serve},
	}
}

func (s site) serve(w http.ResponseWriter, r *http.Request) {
	s.Render(w, r, http.StatusOK, show(s.Page(r, "Shadow", "/shadow")))
}

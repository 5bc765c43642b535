// Package bucket has the page of one bucket, and the forms that change it.
package bucket

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
		{Pattern: "GET /bucket", Procedure: grlv1connect.ViewServiceListBucketsProcedure, Serve: s.serve},
	}
}

func (s site) serve(w http.ResponseWriter, r *http.Request) {
	s.Render(w, r, http.StatusOK, show(s.Page(r, "Bucket", "/buckets")))
}

// Package buckets has the page that lists all cells, filtered, sorted and paged by
// its query.
package buckets

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
		{Pattern: "GET /buckets", Procedure: grlv1connect.ViewServiceListBucketsProcedure, Serve: s.serve},
	}
}

func (s site) serve(w http.ResponseWriter, r *http.Request) {
	q := parseQuery(r.URL.Query())
	view := newBucketsView(s.Backend.Cells(), q)
	if page.Fragment(r) {
		s.Render(w, r, http.StatusOK, bucketsRegion(view))
		return
	}
	s.Render(w, r, http.StatusOK, bucketsPage(s.Page(r, "Buckets", "/buckets"), view))
}

// Package buckets has the page that lists all cells, filtered, sorted and paged by
// its query.
package buckets

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"grl/proto/grl/v1/grlv1connect"
	"grl/web/page"
)

// site serves the page.
type site struct{ *page.Site }

// Routes returns the page.
func Routes(p *page.Site) []page.Route {
	s := site{p}
	return []page.Route{
		{Pattern: "GET /buckets", Procedure: grlv1connect.ViewServiceListBucketsProcedure, Serve: s.serve},
	}
}

func (s site) serve(w http.ResponseWriter, r *http.Request) {
	cells := s.Backend.Cells()
	v := newBucketsView(cells, parseQuery(r.URL.Query()))
	v.lack(s.Backend)
	days, err := s.Backend.Sparks(r.Context(), v.ids())
	if err != nil && !errors.Is(err, context.Canceled) {
		// The numbers of now do not depend on the history.
		s.Log.ErrorContext(r.Context(), "read sparklines", "err", err)
	}
	v.draw(days)
	if page.Fragment(r) {
		s.Render(w, r, http.StatusOK, bucketsRegion(v))
		return
	}
	v.suggest(cells)
	if revision := s.Backend.Fleet().Revision; revision > 0 {
		v.Revision = fmt.Sprintf("r%d", revision)
	}
	v.MayAdd = s.Services.Config != nil && page.May(r.Context(), grlv1connect.ConfigServiceApplyProcedure)
	s.Render(w, r, http.StatusOK, bucketsPage(s.Page(r, "Buckets", "/buckets"), v))
}

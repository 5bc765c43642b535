// Package explain has the page that says what happens to a request, and why.
package explain

import (
	"cmp"
	"errors"
	"net/http"

	"connectrpc.com/connect"

	"grl/proto/grl/v1/grlv1connect"
	"grl/web/page"
)

// site serves the page.
type site struct{ *page.Site }

// Routes returns the page.
func Routes(p *page.Site) []page.Route {
	s := site{p}
	return []page.Route{
		{Pattern: "GET /explain", Procedure: grlv1connect.ViewServiceExplainProcedure, Serve: s.serve},
	}
}

// serve answers a question, or with the form for one. What cannot be answered is
// said at the field, in a region in its place.
func (s site) serve(w http.ResponseWriter, r *http.Request) {
	cells := s.Backend.Cells()
	v := view{question: parseQuestion(r.URL.Query(), cells)}
	status := http.StatusOK
	if v.asks() {
		answer, err := s.Services.View.Explain(r.Context(), v.request())
		var refused *connect.Error
		switch {
		case err == nil:
			v.explain(answer, s.Backend.Counts().Caps, s.Backend.Fleet())
			v.offer(r.Context(), cells)
		case errors.As(err, &refused) && !page.Fragment(r):
			status = page.StatusOf(refused.Code())
			v.refuse(refused.Message())
		default:
			s.Fail(w, r, err)
			return
		}
	}
	if !page.Fragment(r) {
		v.suggest(cells, s.Backend.Fleet())
		s.Render(w, r, status, explainPage(s.Page(r, cmp.Or(v.title(), "Explain"), "/explain"), v))
		return
	}
	s.Render(w, r, status, answerRegion(v))
}

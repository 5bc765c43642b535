// Package shadow has the page of what is not enforced, with the evidence, and
// promotes it.
package shadow

import (
	"net/http"

	"grl/proto/grl/v1/grlv1connect"
	"grl/web/page"
)

// site serves the pages.
type site struct{ *page.Site }

// Routes returns the pages and their forms.
func Routes(p *page.Site) []page.Route {
	s := site{p}
	return []page.Route{
		{Pattern: "GET /shadow", Procedure: grlv1connect.ViewServiceListBucketsProcedure, Serve: s.list},
		{Pattern: "POST /shadow/chosen", Procedure: grlv1connect.ViewServiceListBucketsProcedure, Serve: s.chosen},
		{Pattern: "GET /shadow/promote", Procedure: grlv1connect.ConfigServicePromoteProcedure, Serve: s.review},
		{Pattern: "POST /shadow/promote", Procedure: grlv1connect.ConfigServicePromoteProcedure, Serve: s.promote},
		{Pattern: "GET /shadow/promoted", Procedure: grlv1connect.AuditServiceListAuditProcedure, Serve: s.promoted},
	}
}

// list answers with the page of all limits that are not enforced.
func (s site) list(w http.ResponseWriter, r *http.Request) {
	v := s.newListView(r, parseQuery(r.URL.Query()))
	if page.Fragment(r) {
		s.Render(w, r, http.StatusOK, verdictsRegion(v))
		return
	}
	s.Render(w, r, http.StatusOK, listPage(s.Page(r, "Shadow", "/shadow"), v))
}

// chosen answers with what the ticked limits would have done together.
func (s site) chosen(w http.ResponseWriter, r *http.Request) {
	if !page.ReadForm(w, r) {
		return
	}
	limits := collect(s.Backend.Cells(), s.Backend.Past())
	s.Render(w, r, http.StatusOK, chosenRegion(chosenText(pick(limits, r.PostForm["bucket"]))))
}

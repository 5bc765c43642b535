// Package changes has the page of the audit: who changed what, when, from where and
// why, what that was before, and the way back.
package changes

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
		{Pattern: "GET /changes", Procedure: grlv1connect.AuditServiceListAuditProcedure, Serve: s.serve},
		{Pattern: "GET /changes/newer", Procedure: grlv1connect.AuditServiceListAuditProcedure, Serve: s.serveNewer},
		{Pattern: "GET /changes/export", Procedure: grlv1connect.AuditServiceListAuditProcedure, Serve: s.export},
		{Pattern: "GET /changes/rollback", Procedure: grlv1connect.ConfigServiceRollbackProcedure, Serve: s.serveRollback},
		{Pattern: "POST /changes/rollback", Procedure: grlv1connect.ConfigServiceRollbackProcedure, Serve: s.rollback},
	}
}

func (s site) serve(w http.ResponseWriter, r *http.Request) {
	q := parseQuery(r.URL.Query())
	found, err := s.find(r.Context(), q, pageRows)
	if err != nil {
		s.Fail(w, r, err)
		return
	}
	v := s.newView(r.Context(), q, found)
	if q.Done > 0 {
		v.Done = s.done(r.Context(), q.Done)
	}
	s.Render(w, r, http.StatusOK, show(s.Page(r, "Changes", "/changes"), v))
}

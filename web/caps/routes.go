// Package caps has the page of incident limits: what a cap would do, placing,
// extending and lifting one, those that run, and the switch that stops all
// dropping.
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
		{Pattern: "GET /caps/events", Procedure: grlv1connect.IncidentServiceListCapsProcedure, Serve: s.stream},
		{Pattern: "POST /caps", Procedure: grlv1connect.IncidentServicePlaceCapProcedure, Serve: s.place},
		{Pattern: "GET /caps/preview", Procedure: grlv1connect.IncidentServicePlaceCapProcedure, Serve: s.preview},
		{Pattern: "POST /caps/effect", Procedure: grlv1connect.IncidentServicePlaceCapProcedure, Serve: s.effect},
		{Pattern: "POST /caps/lift", Procedure: grlv1connect.IncidentServiceLiftCapProcedure, Serve: s.lift},
		{Pattern: "POST /caps/extend", Procedure: grlv1connect.IncidentServiceExtendCapProcedure, Serve: s.extend},
		{Pattern: "POST /caps/disable", Procedure: grlv1connect.IncidentServiceDisableProcedure, Serve: s.disable},
		{Pattern: "POST /caps/enable", Procedure: grlv1connect.IncidentServiceEnableProcedure, Serve: s.enable},
	}
}

// serve answers with the page, or with what it says of the act that led to it.
func (s site) serve(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	if page.Fragment(r) {
		done, err := s.done(r.Context(), query)
		if err != nil {
			s.Fail(w, r, err)
			return
		}
		s.Render(w, r, http.StatusOK, doneContent(done))
		return
	}
	v := view{Request: arrival(query)}
	if id := query.Get("extend"); id != "" {
		v.Longer = &longer{ID: id}
	}
	s.show(w, r, http.StatusOK, v)
}

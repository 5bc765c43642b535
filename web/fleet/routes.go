// Package fleet has the page of the tree: controllers, aggregators and hosts,
// and the rollout of a configuration.
package fleet

import (
	"net/http"
	"strconv"
	"time"

	"grl/proto/grl/v1/grlv1connect"
	"grl/web/page"
)

// site serves the page.
type site struct {
	*page.Site
	rates rates
}

// Routes returns the page and its forms.
func Routes(p *page.Site) []page.Route {
	s := &site{Site: p}
	return []page.Route{
		{Pattern: "GET /fleet", Procedure: grlv1connect.ViewServiceGetFleetProcedure, Serve: s.serve},
		{Pattern: "GET /fleet/now", Procedure: grlv1connect.ViewServiceGetFleetProcedure, Serve: s.serve},
		{Pattern: "GET /fleet/configurator", Procedure: grlv1connect.ViewServiceGetFleetProcedure, Serve: s.serve},
		{Pattern: "POST /fleet/rollout", Procedure: grlv1connect.ConfigServiceFinishRolloutProcedure, Serve: s.finish},
	}
}

func (s *site) serve(w http.ResponseWriter, r *http.Request) {
	s.render(w, r, http.StatusOK, newFinish(""))
}

// render shows the page, with the form as it was handed in, or one region of it.
func (s *site) render(w http.ResponseWriter, r *http.Request, status int, form finishView) {
	now := time.Now()
	if page.Fragment(r) && r.URL.Path == "/fleet/configurator" {
		s.Render(w, r, status, configuratorRegion(s.configurator(r, now)))
		return
	}
	state := s.Backend.Fleet()
	v := newView(&state, s.rates.look(now, state.Nodes), now)
	out := look(v, newQuery(r.URL.Query()))
	if page.Fragment(r) {
		if r.URL.Path == "/fleet/now" {
			s.Render(w, r, status, nowRegion(out))
			return
		}
		s.Render(w, r, status, fleetRegion(out))
		return
	}
	out.Configurator = s.configurator(r, now)
	out.MayFinish = state.Rollout != nil && s.Services.Config != nil && page.May(r.Context(), grlv1connect.ConfigServiceFinishRolloutProcedure)
	p := s.Page(r, "Fleet", "/fleet")
	if revision, err := strconv.ParseUint(r.URL.Query().Get("finished"), 10, 64); err == nil && revision > 0 {
		p.Notices = append(p.Notices, finished(v, revision))
	}
	s.Render(w, r, status, fleetPage(p, out, form))
}

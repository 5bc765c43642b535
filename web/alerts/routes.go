// Package alerts has the page of what needs a person, mutes, and the rules for
// Prometheus.
package alerts

import (
	_ "embed"
	"net/http"
	"net/url"

	grlv1 "grl/proto/grl/v1"
	"grl/proto/grl/v1/grlv1connect"
	"grl/web/page"
)

// prometheusRules are the same rules for Prometheus.
//
//go:embed prometheus.yml
var prometheusRules []byte

// site serves the page.
type site struct{ *page.Site }

// Routes returns the page and its forms.
func Routes(p *page.Site) []page.Route {
	s := site{p}
	return []page.Route{
		{Pattern: "GET /alerts", Procedure: grlv1connect.AlertServiceListAlertsProcedure, Serve: s.serve},
		{Pattern: "POST /alerts/mute", Procedure: grlv1connect.AlertServiceMuteAlertProcedure, Serve: s.mute},
		{Pattern: "GET /alerts/rules", Procedure: grlv1connect.AlertServiceListAlertsProcedure, Serve: s.rules},
	}
}

func (s site) serve(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	s.show(w, r, http.StatusOK, asked(q), page.Refusal{}, q)
}

// show answers with the page; ask is the form for a mute, nil: none.
func (s site) show(w http.ResponseWriter, r *http.Request, status int, ask *muteForm, refusal page.Refusal, q url.Values) {
	answer, err := s.Services.Alert.ListAlerts(r.Context(), &grlv1.ListAlertsRequest{})
	if err != nil {
		s.Fail(w, r, err)
		return
	}
	v := newView(answer, page.May(r.Context(), grlv1connect.AlertServiceMuteAlertProcedure))
	if page.Fragment(r) {
		s.Render(w, r, status, table(v))
		return
	}
	v.Refusal, v.Done = refusal, v.done(answer, q)
	if v.May && ask != nil {
		v.Ask = ask.named(answer)
	}
	p := s.Page(r, "Alerts", "/alerts")
	p.Title = v.windowTitle()
	s.Render(w, r, status, show(p, v))
}

// mute mutes an alert, or ends that.
func (s site) mute(w http.ResponseWriter, r *http.Request) {
	if !page.ReadForm(w, r) {
		return
	}
	ask := posted(r.PostForm)
	_, err := s.Services.Alert.MuteAlert(r.Context(), ask.request())
	if err != nil {
		refusal := s.Refusal(r, err)
		ask.refused(&refusal)
		s.show(w, r, refusal.Status, &ask, refusal, nil)
		return
	}
	// The page reads back whether it is muted, and until when.
	http.Redirect(w, r, "/alerts?"+url.Values{"done": {ask.Rule}, "of": {ask.Subject}}.Encode(), http.StatusSeeOther)
}

// rules hands out the rules for Prometheus.
func (s site) rules(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "application/yaml")
	h.Set("Content-Disposition", `attachment; filename="grl-rules.yml"`)
	_, _ = w.Write(prometheusRules) // the reader went away; there is no one to tell
}

package caps

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	grlv1 "grl/proto/grl/v1"
	"grl/proto/grl/v1/grlv1connect"
	"grl/web/format"
	"grl/web/page"
)

// kill is the switch that stops all dropping.
type kill struct {
	All      bool      // nothing is dropped anywhere
	Services []stopped // those of which nothing is, mostStopped at most
	Stopped  int       // how many there are
	May      bool      // stop one
	MayAll   bool
	// Of a form that was refused.
	Service, Why string
	Error        string
	Open         bool
}

// mostStopped is how many services are listed.
const mostStopped = 50

// stopped is a service of which nothing is dropped.
type stopped struct {
	Name, Shown string
	May         bool // have it dropped again
}

// now fills in the state.
func (k kill) now(ctx context.Context, f page.Fleet, cells []page.Cell) kill {
	k.All = f.AllDisabled
	k.May = page.May(ctx, grlv1connect.IncidentServiceDisableProcedure)
	k.MayAll = page.MayForce(ctx)
	k.Stopped = len(f.Disabled)
	shown := f.Disabled[:min(k.Stopped, mostStopped)]
	owner := owners(cells, shown)
	for _, name := range shown {
		k.Services = append(k.Services, stopped{name, format.Printable(name), k.May && page.MayEdit(ctx, name, owner[name])})
	}
	return k
}

// state says what is dropped, in a sentence.
func (k kill) state() string {
	switch {
	case k.All:
		return "Nothing is dropped anywhere. Limits, caps and blocks count, and drop nothing."
	case len(k.Services) > 0:
		return "Nothing is dropped for " + format.Plural(k.Stopped, "service") + ":"
	}
	return "Dropping is enabled everywhere."
}

// disable stops dropping, of one service or of everything.
func (s site) disable(w http.ResponseWriter, r *http.Request) {
	if !page.ReadForm(w, r) {
		return
	}
	all := r.PostForm.Get("all") == "yes"
	k := kill{Service: strings.TrimSpace(r.PostForm.Get("off")), Why: strings.TrimSpace(r.PostForm.Get("why")), Open: true}
	request := &grlv1.DisableRequest{Service: k.Service, All: all, Reason: k.Why}
	if all {
		request.Service = ""
	}
	if k.Why == "" {
		k.Error = "To stop dropping needs a reason."
		s.arrive(w, r, http.StatusUnprocessableEntity, view{Switch: k, Refusal: &page.Refusal{Title: "Dropping goes on: one field needs a change"}})
		return
	}
	_, err := s.Services.Incident.Disable(r.Context(), request)
	s.then(w, r, err, url.Values{"switched": {"off"}}, view{Switch: k}, "Dropping goes on")
}

// enable undoes disable.
func (s site) enable(w http.ResponseWriter, r *http.Request) {
	if !page.ReadForm(w, r) {
		return
	}
	request := &grlv1.EnableRequest{Service: r.PostForm.Get("off"), All: r.PostForm.Get("all") == "yes"}
	_, err := s.Services.Incident.Enable(r.Context(), request)
	s.then(w, r, err, url.Values{"switched": {"on"}}, view{}, "Not enabled")
}

package caps

import (
	"context"
	"net/http"
	"strconv"
	"time"

	grlv1 "grl/proto/grl/v1"
	"grl/proto/grl/v1/grlv1connect"
	"grl/web/format"
	"grl/web/page"
)

// view is the page, ready to print.
type view struct {
	Done     done
	Refusal  *page.Refusal // of a form; nil: none
	Request  request
	Errors   map[string]string // by field of the form
	Forecast forecast
	Services []string // to offer
	Names    names
	Ready    []string
	Curve    *curve // nil: nothing is asked for yet
	MayPlace bool
	Scripts  bool // forms are asked for their effect while one types
	Running  running
	Longer   *longer // the form for another end of a cap; nil: not asked for
	Ended    []endedCap
	Switch   kill
}

// longer is the form for another end of a running cap.
type longer struct {
	ID, What string
	Until    string // as typed
	Error    string
}

// show answers with the page around what v says.
func (s site) show(w http.ResponseWriter, r *http.Request, status int, v view) {
	ctx, now := r.Context(), time.Now()
	caps, err := s.running(ctx)
	if err != nil {
		s.Fail(w, r, err)
		return
	}
	acts, err := s.log(ctx)
	if err != nil {
		s.Fail(w, r, err)
		return
	}
	if v.Done, err = s.done(ctx, r.URL.Query()); err != nil {
		s.Fail(w, r, err)
		return
	}
	cells := s.Backend.Cells()
	v.Running = newRunning(ctx, caps, owners(cells, services(caps)), pageOf(r), now)
	v.Running.lack(s.Backend, cells)
	v.Ended = s.ended(ctx, acts, now)
	v.Switch = v.Switch.now(ctx, s.Backend.Fleet(), cells)
	v.MayPlace = page.May(ctx, grlv1connect.IncidentServicePlaceCapProcedure)
	v.Scripts = s.Assets.HTMX != ""
	if v.Longer != nil && !v.Longer.find(ctx, caps, owners(cells, services(caps)), now) {
		v.Longer = nil
	}
	if v.MayPlace {
		own := cellsOf(cells, v.Request.Service)
		s.fill(r, &v, own, now)
		v.Ready = v.Forecast.ready(acts)
		v.Services, v.Names = s.services(ctx, cells), s.names(ctx, v.Request.Service, own)
	}
	s.Render(w, r, status, show(s.Page(r, "Caps", "/caps"), v))
}

// fill says what the cap of the form would do. A form without any size is given
// a quarter of what is offered.
func (s site) fill(r *http.Request, v *view, cells []*page.Cell, now time.Time) {
	q := &v.Request
	v.Forecast = s.forecast(r, q, cells)
	if q.To == "" && q.Typed == "" && v.Errors == nil {
		v.Forecast.choose(q, "quarter")
	}
	v.Forecast.settle(r.Context(), q, cells, now)
	v.Curve = s.curve(r.Context(), q, &v.Forecast, cells, now)
}

// find names the cap, and reports whether this person may extend it.
func (l *longer) find(ctx context.Context, caps []*grlv1.CapView, owners map[string]string, now time.Time) bool {
	c := find(caps, l.ID)
	if c == nil {
		return false
	}
	row := newRunningCap(ctx, c, owners, now)
	l.What = row.What
	return row.May && !row.Ramps
}

// choices are the sizes to choose from, each with what it stands for.
func (v *view) choices() []page.Choice {
	var out []page.Choice
	for _, size := range []struct {
		value, name string
		rps         float64
	}{{"half", "Half", v.Forecast.Sizes.Half}, {"quarter", "Quarter", v.Forecast.Sizes.Quarter}, {"usual", "Usual", v.Forecast.Sizes.Usual}} {
		if size.rps > 0 {
			out = append(out, page.Choice{Value: size.value + " " + plain(size.rps), Name: size.name, Note: format.RPS(size.rps)})
		}
	}
	return append(out, page.Choice{Value: block, Name: "Block", Note: "0"})
}

// chosen is the size that counts, "" where a number was typed.
func (v *view) chosen() string {
	if v.Forecast.Gate.Size == "" {
		return ""
	}
	return v.Request.To
}

// number is what the field of the number says: what counts.
func (v *view) number() string {
	switch g := v.Forecast.Gate; {
	case g.Block:
		return ""
	case g.Size != "":
		return plain(g.RPS)
	}
	return v.Request.Typed
}

// spans are how long a cap may hold, to choose from.
var spans = []page.Choice{{Value: "15m", Name: "15 min"}, {Value: "1h", Name: "1 h"}, {Value: "4h", Name: "4 h"}, {Value: "24h", Name: "24 h"}}

// field is one of the form, with what is wrong with it.
func (v *view) field(name, label, value string) page.Field {
	return page.Field{Name: name, Label: label, Value: value, Error: v.Errors[name]}
}

// listed returns the field with a list of what is known.
func (v *view) listed(name, label, value, list string) page.Field {
	f := v.field(name, label, value)
	f.List = list
	return f
}

func (v *view) rps() page.Field {
	f := v.field("rps", "Requests a second", v.number())
	f.Unit, f.Number, f.Max = "rps", true, 20
	return f
}

func (v *view) until() page.Field {
	f := v.field("until", "Or until", v.Request.Until)
	f.Hint, f.Placeholder, f.Max = "A span, or a time of day in UTC. At most 24 h.", "45m, 2h30m or 22:40", 20
	return f
}

func (v *view) reason() page.Field {
	f := v.field("reason", "Reason", v.Request.Reason)
	f.Hint = "Callers that are dropped see it too."
	f.Max = 1000
	return f
}

// effect is the box of what the cap would do.
func (v *view) effect() page.Effect {
	e := v.Forecast.Effect
	if v.Scripts {
		e.URL = "/caps/effect"
	}
	return e
}

// sum says how many fields need a change.
func sum(errors map[string]string) string {
	if len(errors) == 1 {
		return "Not placed: one field needs a change"
	}
	return "Not placed: " + strconv.Itoa(len(errors)) + " fields need a change"
}

// agrees reports whether what is ticked is what would be done.
func (v *view) agrees() bool {
	return v.Forecast.Agree.Key != "" && v.Forecast.Agree.Key == v.Request.Agreed
}

// swapAgree is how the box to tick is replaced: one that stays keeps its focus,
// one that asks for something else is a new one.
func (v *view) swapAgree() string {
	if v.agrees() {
		return "outerMorph"
	}
	return "outerHTML"
}

// swapSizes is how the sizes are replaced: so that the one under the finger
// stays, or, where a number is typed, so that none is chosen.
func (v *view) swapSizes() string {
	if v.Forecast.Gate.Size != "" {
		return "outerMorph"
	}
	return "outerHTML"
}

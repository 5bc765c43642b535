package caps

import (
	"crypto/rand"
	"net/http"
	"net/url"
	"time"

	grlv1 "grl/proto/grl/v1"
	"grl/web/page"
)

// place places a cap.
func (s site) place(w http.ResponseWriter, r *http.Request) {
	if !page.ReadForm(w, r) {
		return
	}
	q, now := posted(r.PostForm), time.Now()
	v := view{Request: q, Errors: q.errors(now)}
	if len(v.Errors) > 0 {
		v.Refusal = &page.Refusal{Title: sum(v.Errors)}
		s.show(w, r, http.StatusUnprocessableEntity, v)
		return
	}
	f := s.forecast(r, &q, cellsOf(s.Backend.Cells(), q.Service))
	agree := f.consequence(r.Context(), &q)
	if agree.Key != "" && q.Agreed != agree.Key {
		v.Errors = map[string]string{"yes": "Tick this, if it is meant."}
		v.Refusal = &page.Refusal{Title: "Not placed: this cap needs a yes"}
		s.show(w, r, http.StatusUnprocessableEntity, v)
		return
	}
	answer, err := s.Services.Incident.PlaceCap(r.Context(), q.message(f.Gate, now))
	if err != nil {
		refusal := s.Refusal(r, err)
		if f.Refused != "" {
			refusal = page.Refusal{Title: "Not placed", Text: f.Refused, Status: refusal.Status}
		}
		if used(&refusal) {
			v.Request.ID = rand.Text()
		}
		v.Refusal, v.Errors = &refusal, fields(&refusal)
		s.show(w, r, refusal.Status, v)
		return
	}
	http.Redirect(w, r, "/caps?"+url.Values{"placed": {answer.GetCap().GetCap().GetId()}}.Encode(), http.StatusSeeOther)
}

// errors are what is wrong with the form by itself, by field.
func (q *request) errors(now time.Time) map[string]string {
	errs := make(map[string]string)
	if q.Service == "" {
		errs["service"] = "Name the service that is called."
	}
	if g := q.gate(); g.Problem != "" {
		errs["rps"] = g.Problem
	}
	if _, problem := q.span(now); problem != "" {
		errs["until"] = problem
	}
	if q.because() == "" {
		errs["reason"] = "A cap needs a reason."
	}
	return errs
}

// message is the cap that is asked for. Over everything it needs force: that was
// agreed to.
func (q *request) message(g gate, now time.Time) *grlv1.PlaceCapRequest {
	span, _ := q.span(now)
	r := &grlv1.PlaceCapRequest{
		RequestId: q.ID, Service: q.Service, Caller: q.Caller, Procedure: q.Procedure,
		DurationMs: span.Milliseconds(), Reason: q.because(), Force: q.everything() && q.Agreed != "",
	}
	if g.Block {
		r.Gate = &grlv1.PlaceCapRequest_Block{Block: true}
	} else {
		r.Gate = &grlv1.PlaceCapRequest_Rps{Rps: g.RPS}
	}
	return r
}

// used reports whether a form was refused because it placed a cap before, and
// says so.
func used(f *page.Refusal) bool {
	for _, p := range f.Problems {
		if p.Field == "request_id" {
			f.Title, f.Text, f.Problems = "Not placed: this form placed a cap before", "That one runs, or is over. For another one, place it again.", nil
			return true
		}
	}
	return false
}

// fields takes out of a refusal what is said at a field of the form instead.
func fields(f *page.Refusal) map[string]string {
	names := map[string]string{"service": "service", "caller": "caller", "procedure": "procedure", "rps": "rps", "duration": "until", "reason": "reason"}
	errs := make(map[string]string)
	var others []page.Problem
	for _, p := range f.Problems {
		if name, ours := names[p.Field]; ours {
			errs[name] = f.At(p.Field)
		} else {
			others = append(others, p)
		}
	}
	if f.Problems = others; len(errs) > 0 {
		f.Title = sum(errs)
	}
	return errs
}

// preview shows the page with what the cap of its form would do. It is asked for,
// not sent, so that one can come back to it.
func (s site) preview(w http.ResponseWriter, r *http.Request) {
	s.show(w, r, http.StatusOK, view{Request: posted(r.URL.Query())})
}

// effect answers with the parts of the form that say what its cap would do.
func (s site) effect(w http.ResponseWriter, r *http.Request) {
	if !page.ReadForm(w, r) {
		return
	}
	v := view{Request: posted(r.PostForm), Scripts: true}
	q, now := &v.Request, time.Now()
	cells := cellsOf(s.Backend.Cells(), q.Service)
	v.Forecast = s.forecast(r, q, cells)
	if size := v.Forecast.Gate.Size; size != "" {
		v.Forecast.choose(q, size)
	}
	v.Forecast.settle(r.Context(), q, cells, now)
	v.Curve = s.curve(r.Context(), q, &v.Forecast, cells, now)
	v.Names = s.names(r.Context(), q.Service, cells)
	s.Render(w, r, http.StatusOK, previewed(v))
}

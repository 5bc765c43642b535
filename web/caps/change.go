package caps

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	grlv1 "grl/proto/grl/v1"
	"grl/web/format"
	"grl/web/page"
)

// lift ends a cap at once.
func (s site) lift(w http.ResponseWriter, r *http.Request) {
	if !page.ReadForm(w, r) {
		return
	}
	id, _, _ := strings.Cut(r.PostForm.Get("cap"), " ")
	_, err := s.Services.Incident.LiftCap(r.Context(), &grlv1.LiftCapRequest{Id: id})
	s.then(w, r, err, url.Values{"lifted": {id}}, view{}, "Not lifted")
}

// extend has a cap end later: by a span after the end that the page showed, so
// that a form that is sent twice extends it once; or at the end that was typed.
func (s site) extend(w http.ResponseWriter, r *http.Request) {
	if !page.ReadForm(w, r) {
		return
	}
	id, base, _ := strings.Cut(r.PostForm.Get("cap"), " ")
	now := time.Now()
	v := view{}
	span, problem := laterBy(r.PostForm.Get("by"), base, now)
	if r.PostForm.Has("longer") {
		v.Longer = &longer{ID: id, Until: strings.TrimSpace(r.PostForm.Get("longer"))}
		span, problem = spanUntil(v.Longer.Until, now)
		v.Longer.Error = problem
	}
	if problem != "" {
		v.Refusal = &page.Refusal{Title: "Not extended", Text: problem}
		s.arrive(w, r, http.StatusUnprocessableEntity, v)
		return
	}
	_, err := s.Services.Incident.ExtendCap(r.Context(), &grlv1.ExtendCapRequest{Id: id, DurationMs: span.Milliseconds()})
	s.then(w, r, err, url.Values{"extended": {id}}, v, "Not extended")
}

// laterBy returns how long from now a cap holds whose end moves by a span.
func laterBy(by, base string, now time.Time) (time.Duration, string) {
	more, err := time.ParseDuration(by)
	if err != nil || more <= 0 {
		return 0, "Say by how much."
	}
	ms, err := strconv.ParseInt(base, 10, 64)
	if err != nil {
		return 0, "Say from which end on."
	}
	span := time.UnixMilli(ms).Add(more).Sub(now)
	if span > longestSpan {
		return 0, "It may end at most 24 h from now."
	}
	return span, ""
}

// then leads to the page that reads an act back, or shows what was not done, and
// why.
func (s site) then(w http.ResponseWriter, r *http.Request, err error, proof url.Values, v view, not string) {
	if err == nil {
		http.Redirect(w, r, "/caps?"+proof.Encode(), http.StatusSeeOther)
		return
	}
	refusal := s.Refusal(r, err)
	why := refusal.Title
	if len(refusal.Problems) > 0 {
		why = refusal.Problems[0].Text
	}
	v.Refusal = &page.Refusal{Title: not, Text: format.Sentence(why)}
	s.arrive(w, r, refusal.Status, v)
}

// arrive shows the page with an empty form for a cap.
func (s site) arrive(w http.ResponseWriter, r *http.Request, status int, v view) {
	v.Request = arrival(nil)
	s.show(w, r, status, v)
}

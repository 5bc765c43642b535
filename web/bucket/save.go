package bucket

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"grl/limiter/limitsfile"
	grlv1 "grl/proto/grl/v1"
	"grl/web/page"
)

// sent reads a form of the page of a bucket, or answers that it cannot be read.
func sent(w http.ResponseWriter, r *http.Request) (query, url.Values, bool) {
	if !page.ReadForm(w, r) {
		return query{}, nil, false
	}
	return readQuery(url.Values{"name": {r.PostForm.Get("name")}}), r.PostForm, true
}

// save takes the form that changes the bucket.
func (s site) save(w http.ResponseWriter, r *http.Request) {
	if q, form, ok := sent(w, r); ok {
		s.answerChange(w, r, q, readDraft(form), false)
	}
}

// preview shows the form with what it would do. It is asked for, not sent, so that
// one can come back to it.
func (s site) preview(w http.ResponseWriter, r *http.Request) {
	form := r.URL.Query()
	s.answerChange(w, r, readQuery(url.Values{"name": {form.Get("name")}}), readDraft(form), true)
}

func (s site) answerChange(w http.ResponseWriter, r *http.Request, q query, d draft, preview bool) {
	c, b, after, refusal := s.change(r, q, &d)
	switch {
	case refusal != nil:
		s.refuseOr(w, r, q, d, refusal)
		return
	case limitsfile.BucketText(b) == limitsfile.BucketText(after):
		if !preview {
			refusal = &page.Refusal{Title: "Nothing changed", Text: "The form says what the bucket has already."}
		}
		s.refuseOr(w, r, q, d, refusal)
		return
	}
	got, err := s.apply(r.Context(), c, *after, d, preview)
	if err != nil {
		refused := s.Refusal(r, err)
		if len(refused.Conflicts) > 0 {
			s.conflict(w, r, q, d, refused)
			return
		}
		refusal = withoutRails(refused)
	}
	if refusal != nil || preview {
		s.refuseOr(w, r, q, d, refusal)
		return
	}
	s.proceed(w, r, q, got.GetRevision().GetNumber())
}

// proceed leads to the page that proves what was made.
func (s site) proceed(w http.ResponseWriter, r *http.Request, q query, revision uint64) {
	q.Saved = revision
	http.Redirect(w, r, q.path(""), http.StatusSeeOther)
}

// withoutRails returns a refusal without what guard rails say, which stands beside
// the tick that passes them.
func withoutRails(f page.Refusal) *page.Refusal {
	if f.NeedsForce() {
		f.Title, f.Text, f.Findings = "Not saved: a guard rail is in the way", "It may be passed by force, with a reason.", nil
	}
	return &f
}

// refuseOr shows the form again with what is wrong, if anything is.
func (s site) refuseOr(w http.ResponseWriter, r *http.Request, q query, d draft, refusal *page.Refusal) {
	status := http.StatusOK
	if refusal != nil {
		status = cmp.Or(refusal.Status, http.StatusUnprocessableEntity)
	}
	s.respond(w, r, q, status, input{draft: &d, refusal: refusal})
}

// effect answers what the form would do.
func (s site) effect(w http.ResponseWriter, r *http.Request) {
	q, form, ok := sent(w, r)
	if !ok {
		return
	}
	c, err := s.configuration(r.Context(), q.Service, 0)
	if err != nil {
		s.Fail(w, r, err)
		return
	}
	if c.bucket(q.Name) == nil {
		s.Render(w, r, http.StatusOK, page.EffectContent(page.Effect{Lead: "The bucket was removed."}))
		return
	}
	seen := s.cells(q)
	v, err := s.editView(r, q, c, &seen, readDraft(form), nil)
	if err != nil {
		s.Fail(w, r, err)
		return
	}
	s.Render(w, r, http.StatusOK, typed(v))
}

func (s site) promote(w http.ResponseWriter, r *http.Request) {
	q, form, ok := sent(w, r)
	if !ok {
		return
	}
	if s.Services.Config == nil {
		s.missingConfig(w, r)
		return
	}
	request := &grlv1.PromoteRequest{Bucket: q.bucket(), Reason: form.Get("reason"), Force: form.Get("force") == "yes"}
	if d := readDraft(form); d.base != 0 {
		request.Base = &d.base
	}
	got, err := s.Services.Config.Promote(r.Context(), request)
	if err != nil {
		refusal := s.Refusal(r, err)
		if len(refusal.Conflicts) > 0 {
			refusal.Title = fmt.Sprintf("Not promoted: r%d changed this bucket while you were looking", refusal.Conflicts[0].Revision)
			refusal.Text = "The page shows the bucket as it is now."
		}
		s.respond(w, r, q, refusal.Status, input{refusal: &refusal, promote: true})
		return
	}
	s.proceed(w, r, q, got.GetOutcome().GetRevision().GetNumber())
}

// textOf is a bucket as YAML; "": it is not there.
func textOf(c *configured, name string) string {
	if b := c.bucket(name); b != nil {
		return limitsfile.BucketText(b)
	}
	return ""
}

// rollback undoes a revision that was made here, and that alone.
func (s site) rollback(w http.ResponseWriter, r *http.Request) {
	q, form, ok := sent(w, r)
	if !ok {
		return
	}
	if s.Services.Config == nil {
		s.missingConfig(w, r)
		return
	}
	revision, err := strconv.ParseUint(form.Get("revision"), 10, 64)
	if err != nil || revision == 0 {
		s.respond(w, r, q, http.StatusUnprocessableEntity, input{refusal: &page.Refusal{Title: "Not rolled back: the form names no revision"}})
		return
	}
	got, err := s.Services.Config.Rollback(r.Context(), &grlv1.RollbackRequest{
		Revision: revision, Alone: true, Reason: fmt.Sprintf("undo r%d: %s", revision, q.bucket()),
	})
	if err != nil {
		refusal := s.Refusal(r, err)
		s.respond(w, r, q, refusal.Status, input{refusal: &refusal})
		return
	}
	s.proceed(w, r, q, got.GetOutcome().GetRevision().GetNumber())
}

// missingConfig says that limits are not changed at this controller.
func (s site) missingConfig(w http.ResponseWriter, r *http.Request) {
	http.Error(w, "Limits are changed at the parent of this controller.", http.StatusNotFound)
}

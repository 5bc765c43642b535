package bucket

import (
	"net/http"

	"grl/limiter"
	"grl/web/page"
)

// change makes the change that was typed of the bucket as it was at the base of
// the draft. The refusal says what is wrong with it; nil: it may be tried.
func (s site) change(r *http.Request, q query, d *draft) (c *configured, before, after *limiter.Bucket, refusal *page.Refusal) {
	refuse := func(f page.Refusal) (*configured, *limiter.Bucket, *limiter.Bucket, *page.Refusal) {
		return nil, nil, nil, &f
	}
	present, err := s.configuration(r.Context(), q.Service, 0)
	if err != nil {
		return refuse(s.Refusal(r, err))
	}
	if present == nil {
		return refuse(page.Refusal{Title: "Limits are changed at the parent of this controller", Status: http.StatusNotFound})
	}
	if d.base == 0 || d.base > present.revision {
		d.base = present.revision // of nobody's form: as if it were typed now
	}
	base, err := s.configuration(r.Context(), q.Service, d.base)
	if err != nil {
		return refuse(s.Refusal(r, err))
	}
	b := base.bucket(q.Name)
	if b == nil {
		return refuse(page.Refusal{Title: "There is no such bucket any more", Text: "Changes says who removed it.", Status: http.StatusNotFound})
	}
	edited, wrong := d.on(*b)
	if len(wrong) > 0 {
		return refuse(page.Refusal{Title: counted(len(wrong)), Status: http.StatusUnprocessableEntity, Problems: wrong})
	}
	return base, b, &edited, nil
}

// counted says how many fields are wrong.
func counted(n int) string {
	if n == 1 {
		return "Not saved: one field is wrong"
	}
	return "Not saved: " + numberWord(n) + " fields are wrong"
}

func numberWord(n int) string {
	words := [...]string{2: "two", 3: "three", 4: "four", 5: "five"}
	if n < len(words) {
		return words[n]
	}
	return "several"
}

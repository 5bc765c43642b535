package runs

import (
	"net/http"

	"grl/web/format"
	"grl/web/page"
)

// refusal is that of an error, whose title says what was not done and the text or
// the details below it why.
func (s site) refusal(r *http.Request, err error, undone string) page.Refusal {
	f := s.Refusal(r, err)
	switch {
	case f.NeedsForce():
		f.Title, f.Text = undone+": a guard rail is in the way", "An admin can pass it, with a reason."
	case len(f.Problems) > 0 || len(f.Findings) > 0:
		f.Title = undone
	case f.Text == "":
		f.Title, f.Text = undone, format.Sentence(f.Title)
	}
	return f
}

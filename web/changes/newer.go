package changes

import (
	"net/http"

	"grl/web/format"
)

// serveNewer says how many entries came since a page was printed.
func (s site) serveNewer(w http.ResponseWriter, r *http.Request) {
	q := parseQuery(r.URL.Query())
	found, err := s.find(r.Context(), q, pageRows)
	if err != nil {
		s.Fail(w, r, err)
		return
	}
	text := ""
	switch n := len(found.Entries); {
	case found.Next > 0:
		text = "More than " + format.Count(uint64(n)) + " newer entries"
	case n == 1:
		text = "1 newer entry"
	case n > 0:
		text = format.Count(uint64(n)) + " newer entries"
	}
	s.Render(w, r, http.StatusOK, newer(text, q.url("/changes", 0, 0)))
}

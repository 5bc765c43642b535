package bucket

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"grl/limiter"
	"grl/limiter/limitsfile"
	"grl/proto/access"
	"grl/web/format"
	"grl/web/page"
)

// conflictView shows both versions of a bucket that two people changed.
type conflictView struct {
	Service, Name, Bucket string
	Sub, Title            string
	Theirs, Yours         version
	Keep                  string // the page as they left it
	Base                  string // their revision, on which the edit goes on
	Draft                 draft
}

// version is one side of it.
type version struct {
	Title, Who string
	At         format.Stamp // zero: now
	Facts      []page.Fact
}

// conflict answers an edit of a bucket that was changed meanwhile.
func (s site) conflict(w http.ResponseWriter, r *http.Request, q query, d draft, refusal page.Refusal) {
	c := conflictOf(refusal.Conflicts, q.bucket())
	base, theirs, ours := parsed(q, c.Base), parsed(q, c.Theirs), parsed(q, c.Ours)
	seen := s.cells(q)
	now := time.Now()
	v := conflictView{
		Service: format.Printable(q.Service), Name: format.Printable(q.Name), Bucket: q.bucket(),
		Sub:   fmt.Sprintf("Your edit was based on r%d; the bucket changed since", c.BaseRevision),
		Title: fmt.Sprintf("Not saved: r%d changed this bucket while you were editing", c.Revision),
		Keep:  q.path(""), Base: fmt.Sprint(c.Revision), Draft: d,
		Theirs: version{Title: fmt.Sprintf("Theirs, r%d", c.Revision), Who: c.Author, At: format.NewStamp(time.UnixMilli(c.At), now), Facts: changes(base, theirs, &seen)},
		Yours:  version{Title: "Yours", Who: "now", Facts: changes(base, ours, &seen)},
	}
	if who := access.From(r.Context()).Person; who != nil {
		v.Yours.Who = format.Printable(who.Name) + ", now"
	}
	p := s.page(r, q, &seen)
	p.Title = "Not saved: " + format.Printable(q.bucket())
	p.Crumbs = crumbs(q)
	p.Crumbs[len(p.Crumbs)-1].Path = q.path("")
	p.Crumbs = append(p.Crumbs, page.Crumb{Name: "Stale edit"})
	s.Render(w, r, http.StatusConflict, conflictPage(p, v))
}

// conflictOf returns that of a bucket.
func conflictOf(all []page.Conflict, bucket string) page.Conflict {
	for _, c := range all {
		if c.Bucket == format.Printable(bucket) {
			return c
		}
	}
	return all[0]
}

// parsed reads a bucket as it stands in a limits file, at the margin; nil: there
// is none.
func parsed(q query, text string) *limiter.Bucket {
	if text == "" {
		return nil
	}
	var file strings.Builder
	file.Write(limitsfile.Normalize(limiter.Service{Name: q.Service}))
	file.WriteString("buckets:\n")
	for i, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		indent := "    "
		if i == 0 {
			indent = "  - "
		}
		file.WriteString(indent + line + "\n")
	}
	f, err := limitsfile.Parse("conflict", []byte(file.String()))
	if err != nil || len(f.Service.Buckets) != 1 {
		return nil
	}
	return &f.Service.Buckets[0]
}

// changes lists the values of a bucket, and what they were at the base.
func changes(base, is *limiter.Bucket, seen *sum) []page.Fact {
	was := make(map[string]string)
	if base != nil {
		for _, f := range factsOf(base) {
			was[f.Name] = f.Value
		}
	}
	facts := factsOf(is)
	for i := range facts {
		if old := was[facts[i].Name]; old != facts[i].Value {
			facts[i].Old = old
		}
	}
	if is == nil {
		return facts
	}
	drops := 0.0
	if enforces(is) {
		drops = droppedNow(seen, is)
	}
	return append(facts, page.Fact{Name: "Would drop now", Value: format.Share(drops)})
}

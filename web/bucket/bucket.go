package bucket

import (
	"context"
	"net/http"

	"github.com/a-h/templ"

	"grl/proto/grl/v1/grlv1connect"
	"grl/web/format"
	"grl/web/page"
)

// view is the page: regions that update by themselves, and forms.
type view struct {
	Refused                    templ.Component // why a form was; nil: none was
	Saved                      templ.Component // what was made here just now; nil: nothing
	Notices                    []page.Notice
	Now, Chart, Callers, Zones region
	Edit                       templ.Component
	Evidence                   templ.Component // nil: all is enforced
	History                    templ.Component
}

// region is a part of the page with a URL of its own.
type region struct {
	id, url, when string
	content       templ.Component
}

const (
	often  = "every 2s, refresh"
	seldom = "every 10s, refresh" // of what changes once a minute
)

// input is what was typed into one of the forms of the page, to be shown again.
type input struct {
	draft   *draft        // of the change; nil: as the bucket is
	refusal *page.Refusal // of that, of a promotion or of a roll back; nil: none
	promote bool          // it was the promotion that was refused
}

func (s site) serve(w http.ResponseWriter, r *http.Request) {
	s.respond(w, r, readQuery(r.URL.Query()), http.StatusOK, input{})
}

// region serves the content of a region to htmx, else the whole page.
func (s site) region(content func(context.Context, query) (templ.Component, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !page.Fragment(r) {
			s.serve(w, r)
			return
		}
		c, err := content(r.Context(), readQuery(r.URL.Query()))
		if err != nil {
			s.Fail(w, r, err)
			return
		}
		s.Render(w, r, http.StatusOK, c)
	}
}

// respond answers with the page, with what was typed and refused if anything was.
func (s site) respond(w http.ResponseWriter, r *http.Request, q query, status int, f input) {
	ctx := r.Context()
	c, err := s.configuration(ctx, q.Service, 0)
	if err != nil {
		s.Fail(w, r, err)
		return
	}
	seen := s.cells(q.of("", ""))
	if c.bucket(q.Name) == nil && len(seen.cells) == 0 {
		s.missing(w, r, q, c)
		return
	}
	v := view{}
	for _, part := range []struct {
		to   *region
		id   string
		when string
		make func(context.Context, query) (templ.Component, error)
	}{
		{&v.Now, "now", often, s.now},
		{&v.Chart, "chart", often, s.chart},
		{&v.Callers, "callers", seldom, s.callers},
		{&v.Zones, "zones", often, s.zones},
	} {
		content, err := part.make(ctx, q)
		if err != nil {
			s.Fail(w, r, err)
			return
		}
		*part.to = region{part.id, q.path("/" + part.id), part.when, content}
	}
	if err := s.fill(r, q, &v, c, &seen, f); err != nil {
		s.Fail(w, r, err)
		return
	}
	s.Render(w, r, status, show(s.page(r, q, &seen), v))
}

// fill makes what does not update by itself.
func (s site) fill(r *http.Request, q query, v *view, c *configured, seen *sum, f input) error {
	ctx := r.Context()
	if f.refusal != nil {
		v.Refused = page.RefusalNotice(*f.refusal)
	}
	if q.Saved != 0 {
		made, err := s.savedView(ctx, q)
		if err != nil {
			return err
		}
		v.Saved = savedNotice(made)
	}
	var err error
	if v.Edit, err = s.edit(r, q, c, seen, f); err != nil {
		return err
	}
	if v.Evidence, err = s.evidence(ctx, q, c, f); err != nil {
		return err
	}
	v.History, err = s.history(ctx, q, c.bucket(q.Name))
	return err
}

// page is the frame: its title says the state, so that a tab does.
func (s site) page(r *http.Request, q query, seen *sum) page.Page {
	title := format.Printable(q.bucket())
	p := s.Page(r, title, "/buckets")
	p.Crumbs = crumbs(q)
	switch {
	case seen.silent:
	case seen.dropped > 0:
		p.Title += " " + format.Share(seen.ratio()) + " dropped"
	}
	return p
}

func crumbs(q query) []page.Crumb {
	return []page.Crumb{
		{Name: "Buckets", Path: "/buckets"},
		{Name: format.Printable(q.Service), Path: servicePath(q.Service)},
		{Name: format.Printable(q.Name)},
	}
}

// missing says that there is no such bucket.
func (s site) missing(w http.ResponseWriter, r *http.Request, q query, c *configured) {
	v := missingView{Bucket: format.Printable(q.bucket()), Service: servicePath(q.Service)}
	owner := ""
	if c != nil {
		owner = c.service.Owner
	}
	if c != nil && q.Service != "" && page.MayEdit(r.Context(), q.Service, owner) && page.May(r.Context(), grlv1connect.ConfigServiceApplyProcedure) {
		v.New = newPath(q.Service, q.Name)
	}
	p := s.Page(r, "No such bucket", "/buckets")
	p.Crumbs = crumbs(q)
	s.Render(w, r, http.StatusNotFound, missing(p, v))
}

type missingView struct {
	Bucket  string
	Service string // the table of its buckets
	New     string // the form of a new one; "": not for this person
}

package changes

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"

	"connectrpc.com/connect"

	grlv1 "grl/proto/grl/v1"
	"grl/web/diff"
	"grl/web/format"
	"grl/web/page"
)

var errNoRevision = errors.New("there is no such change of the configuration")

// mostShown is how many changes of a roll back are shown.
const mostShown = 20

// rollbackView is the page that rolls one change back, with what that would do.
type rollbackView struct {
	Entry     string
	Revision  string // "r1479", that is undone
	Head      string // number of the present revision
	Next      string // that the roll back would make
	Effect    page.Effect
	Findings  []page.Finding
	Items     []item
	LeftOut   string
	NeedsYes  bool // passes only by force
	MayForce  bool
	Yes       page.Field
	Reason    page.Field
	Refusal   page.Refusal // "": nothing was refused
	Conflicts []conflict
	Nothing   bool // it changes nothing, or cannot
	URL       string
}

// item is what becomes of one bucket.
type item struct {
	Bucket string
	Lines  []diff.Line
}

// conflict is a bucket that was changed since.
type conflict struct {
	Bucket, Path string
	Who          string // "r1483 by ann: reason"
	Theirs, Ours []diff.Line
}

// serveRollback answers with the page or, to htmx, with what is in its effect box.
func (s site) serveRollback(w http.ResponseWriter, r *http.Request) {
	number, _ := strconv.ParseUint(r.URL.Query().Get("entry"), 10, 64)
	s.showRollback(w, r, http.StatusOK, number, rollbackView{})
}

// showRollback asks what the roll back of an entry would do, and shows it. v has
// what was typed, and why that was refused.
func (s site) showRollback(w http.ResponseWriter, r *http.Request, status int, number uint64, v rollbackView) {
	e, err := s.undoable(r.Context(), number)
	if err != nil {
		s.Fail(w, r, err)
		return
	}
	v.name(e)
	v.MayForce = page.MayForce(r.Context())
	answer, err := s.Services.Config.Rollback(r.Context(), &grlv1.RollbackRequest{Revision: e.GetRevision(), Alone: true, Reason: "what it would do", DryRun: true})
	if err != nil {
		v.cannot(s.Refusal(r, err))
	} else {
		v.would(answer.GetOutcome(), s.Backend.Cells())
	}
	if page.Fragment(r) {
		s.Render(w, r, http.StatusOK, effectContent(v))
		return
	}
	if v.Nothing && status == http.StatusOK && v.Refusal.Status != 0 {
		status = v.Refusal.Status
	}
	p := s.Page(r, "Roll back "+v.Revision, "/changes")
	p.Crumbs = []page.Crumb{{Name: "Changes", Path: "/changes"}, {Name: "Roll back " + v.Revision}}
	s.Render(w, r, status, rollbackPage(p, v))
}

// undoable returns an entry of a revision of the configuration.
func (s site) undoable(ctx context.Context, number uint64) (*grlv1.AuditEntry, error) {
	e, err := s.entry(ctx, number)
	if err != nil {
		return nil, err
	}
	if e == nil || !makesRevision(e) {
		return nil, connect.NewError(connect.CodeNotFound, errNoRevision)
	}
	return e, nil
}

// name sets what is known without asking.
func (v *rollbackView) name(e *grlv1.AuditEntry) {
	v.Entry, v.Revision = strconv.FormatUint(e.GetNumber(), 10), revisionText(e.GetRevision())
	v.URL = "/changes/rollback?entry=" + v.Entry
	v.Reason.Name, v.Reason.Label, v.Reason.Max, v.Reason.Required = "reason", "Reason", 700, true
	v.Yes.Name = "force"
}

// would sets what a dry run said.
func (v *rollbackView) would(o *grlv1.Outcome, cells []page.Cell) {
	head := o.GetRevision().GetNumber()
	v.Head, v.Next = strconv.FormatUint(head, 10), revisionText(head+1)
	v.Findings = page.Findings(o.GetFindings())
	for _, f := range v.Findings {
		v.NeedsYes = v.NeedsYes || f.NeedsForce
	}
	if !o.GetChanged() {
		v.Nothing = true
		v.Effect.Lead = "Nothing would change: it is as it was before " + v.Revision + "."
		return
	}
	d := predict(o.GetChanges(), cells)
	v.Effect.Lead, v.Effect.Bad = d.sentence(), d.then > d.now
	all := len(o.GetChanges()) + int(o.GetChangesLeftOut())
	v.Effect.Facts = []page.Fact{
		{Name: "Changes", Value: format.Plural(all, "bucket")},
		{Name: "Offered now", Value: format.RPS(d.offered) + " rps"},
		{Name: "Would drop", Old: format.RPS(d.now), Value: format.RPS(d.then) + " rps"},
	}
	for _, c := range o.GetChanges()[:min(len(o.GetChanges()), mostShown)] {
		v.Items = append(v.Items, item{Bucket: c.GetBucket(), Lines: diff.Lines(c.GetBefore(), c.GetAfter())})
	}
	if more := all - len(v.Items); more > 0 {
		v.LeftOut = "and " + format.Plural(more, "more bucket")
	}
}

// cannot sets why it cannot be rolled back now. What was refused before stays on
// top.
func (v *rollbackView) cannot(refusal page.Refusal) {
	v.Nothing = true
	v.Effect.Lead = "Cannot be rolled back now."
	for _, c := range refusal.Conflicts {
		who := revisionText(c.Revision)
		if c.Author != "" {
			who += " by " + c.Author
		}
		if c.Reason != "" {
			who += ": " + c.Reason
		}
		v.Conflicts = append(v.Conflicts, conflict{
			Bucket: c.Bucket, Path: page.BucketPath(c.Bucket, "", ""), Who: who,
			Theirs: diff.Lines(c.Base, c.Theirs), Ours: diff.Lines(c.Base, c.Ours),
		})
	}
	if v.Refusal.Title != "" {
		return
	}
	v.Refusal = refusal
	if len(refusal.Conflicts) > 0 {
		v.Refusal.Title = "Not rolled back: " + v.Revision + " was changed since"
		v.Refusal.Text = "Nothing was overwritten. Both versions are below; change the bucket on its own page."
	}
}

// rollback rolls an entry back, if all is still as it was shown.
func (s site) rollback(w http.ResponseWriter, r *http.Request) {
	if !page.ReadForm(w, r) {
		return
	}
	number, _ := strconv.ParseUint(r.PostForm.Get("entry"), 10, 64)
	e, err := s.undoable(r.Context(), number)
	if err != nil {
		s.Fail(w, r, err)
		return
	}
	var v rollbackView
	v.Reason.Value, v.Yes.Value = r.PostForm.Get("reason"), r.PostForm.Get("force")
	moved, err := s.moved(r.Context(), r.PostForm.Get("seen"))
	if err != nil {
		s.Fail(w, r, err)
		return
	}
	if moved != "" {
		v.Refusal = page.Refusal{Title: "Not rolled back: " + moved + " was made while you were looking", Text: "Nothing was changed. What it would do now is below.", Status: http.StatusConflict}
		s.showRollback(w, r, http.StatusConflict, number, v)
		return
	}
	answer, err := s.Services.Config.Rollback(r.Context(), &grlv1.RollbackRequest{
		Revision: e.GetRevision(), Alone: true, Reason: v.Reason.Value, Force: v.Yes.Value == "yes",
	})
	if err != nil {
		v.Refusal = s.Refusal(r, err)
		if v.Reason.Error = v.Refusal.At("reason"); v.Reason.Error != "" {
			v.Refusal.Title, v.Refusal.Problems = "Not rolled back", nil
		}
		v.Refusal.Findings = nil // the box says them
		s.showRollback(w, r, v.Refusal.Status, number, v)
		return
	}
	if !answer.GetOutcome().GetChanged() {
		v.Refusal = page.Refusal{Title: "Not rolled back: there is nothing to roll back", Text: "No revision was made.", Status: http.StatusConflict}
		s.showRollback(w, r, v.Refusal.Status, number, v)
		return
	}
	made := strconv.FormatUint(answer.GetOutcome().GetRevision().GetNumber(), 10)
	http.Redirect(w, r, "/changes?"+url.Values{"done": {made}}.Encode(), http.StatusSeeOther)
}

// moved returns the present revision if it is not the one that was seen.
func (s site) moved(ctx context.Context, seen string) (string, error) {
	answer, err := s.Services.Config.ListRevisions(ctx, &grlv1.ListRevisionsRequest{PageSize: 1})
	if err != nil {
		return "", err
	}
	for _, head := range answer.GetRevisions() {
		if strconv.FormatUint(head.GetNumber(), 10) != seen {
			return revisionText(head.GetNumber()), nil
		}
	}
	return "", nil
}

// done reads back what a roll back made.
func (s site) done(ctx context.Context, revision uint64) page.Notice {
	answer, err := s.Services.Config.ListRevisions(ctx, &grlv1.ListRevisionsRequest{Before: revision + 1, PageSize: 1})
	if err != nil || len(answer.GetRevisions()) == 0 || answer.GetRevisions()[0].GetNumber() != revision {
		return page.Notice{Kind: "bad", Title: "There is no " + revisionText(revision)}
	}
	fleet := s.Backend.Fleet()
	n := page.Notice{Kind: "good", Title: "Saved as " + revisionText(revision), Link: page.Crumb{Name: "Roll back", Path: "/changes?" + url.Values{"revision": {strconv.FormatUint(revision, 10)}}.Encode()}}
	if fleet.Revision >= revision {
		n.Title += " and active"
	}
	hosts, have := 0, 0
	for i := range fleet.Nodes {
		if fleet.Nodes[i].Role == "client" {
			hosts++
			if fleet.Nodes[i].Revision >= revision {
				have++
			}
		}
	}
	if hosts > 0 {
		n.Text = page.ConfirmedText(have, hosts, fleet.Unheard)
	}
	return n
}

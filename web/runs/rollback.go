package runs

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	grlv1 "grl/proto/grl/v1"
	"grl/web/diff"
	"grl/web/format"
	"grl/web/page"
)

const (
	didRollBack = "rollback"
	// mostChanges is how many changes of a roll back are shown.
	mostChanges = 20
	// mostLater is how many revisions after a run are named.
	mostLater = 20
)

// rollbackView is the page that rolls a run back, with what that would do.
type rollbackView struct {
	ID       uint64
	Number   string
	Back     string // URL of the run
	To, From string // revisions
	Seen     string // number of the present revision
	Changes  []changeView
	Count    string
	More     string
	Later    []laterRow // revisions that are taken back too, the newest first
	Findings []page.Finding
	Force    bool // needed
	MayForce bool
	Forced   bool // ticked
	Reason   string
	Refusal  page.Refusal
	Nothing  bool
}

// changeView is what becomes of one bucket.
type changeView struct {
	Bucket string
	Lines  []diff.Line
}

// laterRow is a revision that was made after the run.
type laterRow struct{ Number, Author, Reason string }

func (s site) serveRollback(w http.ResponseWriter, r *http.Request) {
	s.renderRollback(w, r, http.StatusOK, rollbackView{ID: number(r.URL.Query(), "id")})
}

// renderRollback asks what the roll back would do, and shows it.
func (s site) renderRollback(w http.ResponseWriter, r *http.Request, status int, v rollbackView) {
	run, err := s.made(r, v.ID)
	if err != nil {
		s.Fail(w, r, err)
		return
	}
	v.Number, v.Back, v.MayForce = strconv.FormatUint(v.ID, 10), runPath(v.ID), page.MayForce(r.Context())
	dry, err := s.Services.Config.Rollback(r.Context(), &grlv1.RollbackRequest{Revision: run.GetBaseRevision(), Reason: "what it would do", DryRun: true})
	if err == nil {
		v.effect(dry.GetOutcome(), run.GetBaseRevision())
		err = s.later(r, &v, dry.GetOutcome().GetRevision().GetNumber(), run.GetBaseRevision())
	}
	if err != nil {
		if v.Refusal.Title == "" {
			v.Refusal = s.refusal(r, err, "Not rolled back")
			status = v.Refusal.Status
		}
		v.Nothing = true
	}
	p := s.Page(r, "Roll back run "+v.Number, "/rlc")
	p.Crumbs = []page.Crumb{{Name: "RLC runs", Path: "/rlc"}, {Name: "Run " + v.Number, Path: v.Back}, {Name: "Roll back"}}
	s.Render(w, r, status, rollbackPage(p, v))
}

// made returns a run that can be rolled back.
func (s site) made(r *http.Request, id uint64) (*grlv1.Run, error) {
	if id == 0 {
		return nil, errNoRun()
	}
	answer, err := s.Services.RLC.GetRun(r.Context(), &grlv1.GetRunRequest{Id: id, PageSize: 1})
	if err != nil {
		return nil, err
	}
	if answer.GetRun().GetBaseRevision() == 0 {
		return nil, errNoRun()
	}
	return answer.GetRun(), nil
}

// effect sets what a dry run said.
func (v *rollbackView) effect(o *grlv1.Outcome, to uint64) {
	v.To, v.From, v.Seen = fmt.Sprintf("r%d", to), fmt.Sprintf("r%d", o.GetRevision().GetNumber()), strconv.FormatUint(o.GetRevision().GetNumber(), 10)
	v.Nothing = !o.GetChanged()
	for _, c := range o.GetChanges()[:min(len(o.GetChanges()), mostChanges)] {
		v.Changes = append(v.Changes, changeView{Bucket: c.GetBucket(), Lines: diff.Lines(c.GetBefore(), c.GetAfter())})
	}
	all := len(o.GetChanges()) + int(o.GetChangesLeftOut())
	v.Count = format.Plural(all, "bucket")
	if more := all - len(v.Changes); more > 0 {
		v.More = "and " + format.Count(more) + " more"
	}
	v.Findings = page.Findings(o.GetFindings())
	for _, f := range v.Findings {
		v.Force = v.Force || f.NeedsForce
	}
}

// later names the revisions that are taken back.
func (s site) later(r *http.Request, v *rollbackView, head, base uint64) error {
	list, err := s.Services.Config.ListRevisions(r.Context(), &grlv1.ListRevisionsRequest{Before: head + 1, PageSize: mostLater})
	if err != nil {
		return err
	}
	for _, n := range list.GetRevisions() {
		if n.GetNumber() > base {
			v.Later = append(v.Later, laterRow{
				Number: fmt.Sprintf("r%d", n.GetNumber()), Author: format.Printable(n.GetAuthor()), Reason: format.Printable(n.GetReason()),
			})
		}
	}
	return nil
}

// rollback rolls a run back, if what is taken back is what was shown.
func (s site) rollback(w http.ResponseWriter, r *http.Request) {
	if !page.ReadForm(w, r) {
		return
	}
	v := rollbackView{ID: number(r.PostForm, "id"), Reason: r.PostForm.Get("reason"), Forced: r.PostForm.Get("force") != ""}
	run, err := s.made(r, v.ID)
	if err != nil {
		s.Fail(w, r, err)
		return
	}
	head, err := s.Services.Config.ListRevisions(r.Context(), &grlv1.ListRevisionsRequest{PageSize: 1})
	if err != nil {
		s.Fail(w, r, err)
		return
	}
	if n := head.GetRevisions(); len(n) > 0 && n[0].GetNumber() != number(r.PostForm, "seen") {
		v.Refusal = page.Refusal{
			Title: fmt.Sprintf("Not rolled back: r%d was made while you were looking", n[0].GetNumber()),
			Text:  "What would be taken back now is shown below.", Status: http.StatusConflict,
		}
		s.renderRollback(w, r, v.Refusal.Status, v)
		return
	}
	answer, err := s.Services.Config.Rollback(r.Context(), &grlv1.RollbackRequest{Revision: run.GetBaseRevision(), Reason: v.Reason, Force: v.Forced})
	if err != nil {
		v.Refusal = s.refusal(r, err, "Not rolled back")
		s.renderRollback(w, r, v.Refusal.Status, v)
		return
	}
	q := url.Values{"did": {didRollBack}, "revision": {strconv.FormatUint(answer.GetOutcome().GetRevision().GetNumber(), 10)}}
	http.Redirect(w, r, runPath(v.ID)+"&"+q.Encode(), http.StatusSeeOther)
}

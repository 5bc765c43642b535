package policies

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"connectrpc.com/connect"

	grlv1 "grl/proto/grl/v1"
	"grl/proto/grl/v1/grlv1connect"
	"grl/web/diff"
	"grl/web/format"
	"grl/web/page"
)

// versionView is the page of one version of the policies.
type versionView struct {
	Number   string
	Facts    []page.Fact
	Reason   string
	Changes  []changeView
	Active   bool
	Back     []changeView // what rolling back to it would change
	MayBack  bool
	Base     string // the present one
	Typed    string // reason for rolling back
	Refusal  page.Refusal
	LeftOut  string
	Previous string // number of the version before
}

// changeView is what becomes of one policy.
type changeView struct {
	Title string
	Lines []diff.Line
}

// mostChanged is how many policies of a version are shown.
const mostChanged = 20

// errNoVersion says that the address names no version.
func errNoVersion() error {
	return connect.NewError(connect.CodeNotFound, errors.New("there is no such version of the policies"))
}

func (s site) serveVersion(w http.ResponseWriter, r *http.Request) {
	s.renderVersion(w, r, http.StatusOK, versionView{}, number(r.URL.Query(), "number"))
}

func (s site) renderVersion(w http.ResponseWriter, r *http.Request, status int, v versionView, number uint64) {
	ctx := r.Context()
	if number == 0 {
		s.Fail(w, r, errNoVersion())
		return
	}
	is, err := s.read(ctx, number)
	if err != nil {
		s.Fail(w, r, err)
		return
	}
	was, err := s.at(ctx, number-1)
	if err != nil {
		s.Fail(w, r, err)
		return
	}
	present, err := s.read(ctx, 0)
	if err != nil {
		s.Fail(w, r, err)
		return
	}
	v.Number, v.Previous, v.Base = digits(number), digits(number-1), digits(present.revision.GetNumber())
	v.Active = present.revision.GetNumber() == number
	v.Reason = format.Printable(is.revision.GetReason())
	v.Facts = []page.Fact{{Name: "By", Value: format.Printable(is.revision.GetAuthor())}, {Name: "When", At: moment(is.revision.GetAtMs())}}
	v.Changes = v.changes(was, is)
	if !v.Active {
		v.Back = v.changes(present, is)
		v.MayBack = page.May(ctx, grlv1connect.PolicyServiceRollbackPoliciesProcedure)
	}
	title := "Policies, version " + v.Number
	p := s.Page(r, title, "/policies")
	p.Crumbs = []page.Crumb{{Name: "Policies", Path: "/policies"}, {Name: "Version " + v.Number}}
	s.Render(w, r, status, versionPage(p, v))
}

// changes lists what differs between two versions, by name.
func (v *versionView) changes(from, to set) []changeView {
	texts := make(map[string][2]string)
	for _, p := range from.policies {
		texts[p.GetName()] = [2]string{string(p.GetData()), ""}
	}
	for _, p := range to.policies {
		texts[p.GetName()] = [2]string{texts[p.GetName()][0], string(p.GetData())}
	}
	var out []changeView
	more := 0
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		lines := diff.Lines(texts[name][0], texts[name][1])
		switch {
		case len(lines) == 0:
		case len(out) == mostChanged:
			more++
		default:
			out = append(out, changeView{Title: name, Lines: lines})
		}
	}
	if more > 0 {
		v.LeftOut = "and " + format.Count(more) + " more"
	}
	return out
}

// rollback makes the policies those of an older version.
func (s site) rollback(w http.ResponseWriter, r *http.Request) {
	if !page.ReadForm(w, r) {
		return
	}
	to := number(r.PostForm, "number")
	v := versionView{Typed: r.PostForm.Get("reason")}
	present, err := s.read(r.Context(), 0)
	if err != nil {
		s.Fail(w, r, err)
		return
	}
	if n := present.revision.GetNumber(); n != number(r.PostForm, "base") {
		v.Refusal = page.Refusal{
			Title: fmt.Sprintf("Not rolled back: version %d was made while you were looking", n), Text: "What would change now is shown below.", Status: http.StatusConflict,
		}
		s.renderVersion(w, r, v.Refusal.Status, v, to)
		return
	}
	outcome, err := s.Services.Policy.RollbackPolicies(r.Context(), &grlv1.RollbackPoliciesRequest{Revision: to, Reason: v.Typed})
	if err != nil {
		v.Refusal = s.Refusal(r, err)
		if len(v.Refusal.Problems) > 0 {
			v.Refusal.Title = "Not rolled back"
		}
		s.renderVersion(w, r, v.Refusal.Status, v, to)
		return
	}
	http.Redirect(w, r, path("/policies", "done", digits(outcome.GetOutcome().GetRevision().GetNumber())), http.StatusSeeOther)
}

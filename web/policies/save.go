package policies

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"grl/policy"
	grlv1 "grl/proto/grl/v1"
	"grl/web/diff"
	"grl/web/format"
	"grl/web/page"
)

// draft is what a form says of a policy.
type draft struct {
	oneView
	text []byte
	spec policy.Spec
	base set // of the revision that the form was made from
	all  set // the present one
}

// draftOf reads a form, and what it was made from.
func (s site) draftOf(r *http.Request) (draft, error) {
	f := r.PostForm
	d := draft{oneView: oneView{
		Name: f.Get("was"), New: f.Get("was") == "", YAML: f.Get("as") == "yaml", Base: digits(number(f, "base")), Reason: f.Get("reason"),
		Cell: cellQuery{f.Get("bucket"), f.Get("instance"), f.Get("caller")},
	}}
	var err error
	if d.all, err = s.read(r.Context(), 0); err != nil {
		return d, err
	}
	if number(f, "base") > d.all.revision.GetNumber() {
		d.Base = digits(d.all.revision.GetNumber()) // nobody can have seen a later one
	}
	d.base = d.all
	if number(f, "base") < d.all.revision.GetNumber() {
		if d.base, err = s.at(r.Context(), number(f, "base")); err != nil {
			return d, err
		}
	}
	if d.YAML {
		d.Text = strings.ReplaceAll(f.Get("text"), "\r\n", "\n") // as browsers send it
		d.text = []byte(d.Text)
	} else {
		d.Values = typed(f)
		if !d.New {
			d.Values["name"] = d.Name
		}
		var from []byte
		if p := d.base.of(d.Name); p != nil && !d.New {
			from = p.GetData()
		}
		d.text, d.Lost = compose(from, d.Values)
		d.Text = string(d.text)
	}
	d.spec, d.Faults = faultsOf(d.text, !d.YAML)
	return d, nil
}

// save makes what was typed the policy.
func (s site) save(w http.ResponseWriter, r *http.Request) {
	if !page.ReadForm(w, r) {
		return
	}
	d, err := s.draftOf(r)
	if err != nil {
		s.Fail(w, r, err)
		return
	}
	if d.Faults.any() {
		s.refuse(w, r, d, page.Refusal{})
		return
	}
	base := number(r.PostForm, "base")
	outcome, err := s.Services.Policy.ApplyPolicies(r.Context(), &grlv1.ApplyPoliciesRequest{
		Files: []*grlv1.LimitsFile{{Name: "policy.yaml", Data: d.text}}, Base: &base, Reason: d.Reason,
	})
	if err != nil {
		s.refuse(w, r, d, s.Refusal(r, err))
		return
	}
	http.Redirect(w, r, path("/policies/show", "name", d.spec.Name, "saved", digits(outcome.GetOutcome().GetRevision().GetNumber()), "as", r.PostForm.Get("as")), http.StatusSeeOther)
}

// refuse shows the form again with why it was not saved.
func (s site) refuse(w http.ResponseWriter, r *http.Request, d draft, f page.Refusal) {
	d.Faults.add(f.Problems, !d.YAML)
	switch {
	case d.Faults.any():
		n := d.Faults.count()
		f.Title, f.Text, f.Problems = "Not saved: "+format.Plural(n, "field")+" to correct", "", d.Faults.rest
		if d.YAML {
			f.Title = "Not saved: " + format.Plural(n, "fault")
		}
	case len(f.Conflicts) > 0:
		d.conflict(f.Conflicts[0])
		f.Title = fmt.Sprintf("Not saved: version %d changed this policy while you were editing", f.Conflicts[0].Revision)
		f.Text = "Nothing was overwritten. Take theirs, or save yours on top of it."
	}
	f.Status = cmp.Or(f.Status, http.StatusUnprocessableEntity)
	d.Refusal = f
	s.renderOne(w, r, f.Status, d.oneView, d.all)
}

// conflict sets both versions, and lets the next save be on top of theirs.
func (d *draft) conflict(c page.Conflict) {
	d.Conflict = &conflictView{
		Theirs: fmt.Sprintf("Theirs, version %d", c.Revision), TheirsNote: c.Author, Yours: "Yours", YoursNote: "now",
		TheirLines: diff.Lines(c.Base, c.Theirs), OurLines: diff.Lines(c.Base, c.Ours), Keep: path("/policies/show", "name", d.Name),
	}
	if d.New {
		d.Conflict.Keep = path("/policies/show", "name", d.spec.Name)
	}
	d.Base = digits(c.Revision)
}

// preview says what would become of what was typed: as the page, or as the region
// of the trial alone.
func (s site) preview(w http.ResponseWriter, r *http.Request) {
	if !page.ReadForm(w, r) {
		return
	}
	d, err := s.draftOf(r)
	if err != nil {
		s.Fail(w, r, err)
		return
	}
	refused := s.check(r, &d)
	trial, matches, err := s.tryDraft(r.Context(), askerOf(r), d)
	if page.Fragment(r) {
		s.renderTrial(w, r, trial, err)
		return
	}
	d.Matches = matches
	switch {
	case err == nil:
		d.Trial = &trial
	case !errors.Is(err, errSuperseded):
		s.Fail(w, r, err)
		return
	}
	status := http.StatusOK
	switch {
	case d.Faults.any():
		status = http.StatusUnprocessableEntity
		d.Refusal = page.Refusal{Title: "No preview: " + format.Plural(d.Faults.count(), "fault"), Problems: d.Faults.rest}
	case refused.Title != "":
		status, d.Refusal = refused.Status, refused
	}
	s.renderOne(w, r, status, d.oneView, d.all)
}

// check asks whether what was typed could be saved: how it goes together with the
// others only the service knows. What it says of the text joins the faults.
func (s site) check(r *http.Request, d *draft) page.Refusal {
	if d.Faults.any() {
		return page.Refusal{}
	}
	base := number(r.PostForm, "base")
	_, err := s.Services.Policy.ApplyPolicies(r.Context(), &grlv1.ApplyPoliciesRequest{
		Files: []*grlv1.LimitsFile{{Name: "policy.yaml", Data: d.text}}, Base: &base, DryRun: true, Reason: d.Reason,
	})
	if err == nil {
		return page.Refusal{}
	}
	f := s.Refusal(r, err)
	switch {
	case len(f.Problems) > 0:
		d.Faults.add(f.Problems, !d.YAML)
	case len(f.Conflicts) > 0:
		f.Title = fmt.Sprintf("Version %d changed this policy while you were editing", f.Conflicts[0].Revision)
		f.Text = "Saving will show both."
	}
	return f
}

func (s site) tryDraft(ctx context.Context, asker string, d draft) (trialView, string, error) {
	if d.Faults.any() {
		return emptyTrial("No preview: "+format.Plural(d.Faults.count(), "fault"), d.Faults.first()), "", nil
	}
	saved := ""
	if p := d.all.of(d.Name); p != nil && string(p.GetData()) == string(d.text) {
		saved = d.Name
	}
	trial, err := s.trialOf(ctx, asker, d.text, &d.spec, d.all, d.Cell, saved)
	return trial, s.match(&d.spec, d.all.specs).text(), err
}

// first is one of the faults in a sentence.
func (f faults) first() string {
	for _, key := range append(slices.Clone(order), "reason") {
		for field, text := range f.at {
			if field == key || strings.HasPrefix(field, key+".") || strings.HasPrefix(field, key+"[") {
				return field + ": " + text
			}
		}
	}
	if len(f.rest) > 0 {
		return f.rest[0].Field + ": " + f.rest[0].Text
	}
	return ""
}

// remove deletes a policy.
func (s site) remove(w http.ResponseWriter, r *http.Request) {
	if !page.ReadForm(w, r) {
		return
	}
	name, reason := r.PostForm.Get("name"), r.PostForm.Get("reason")
	all, err := s.read(r.Context(), 0)
	if err != nil {
		s.Fail(w, r, err)
		return
	}
	v := oneView{Name: name, Delete: reason}
	seen := number(r.PostForm, "base")
	was, err := s.at(r.Context(), min(seen, all.revision.GetNumber()))
	if err != nil {
		s.Fail(w, r, err)
		return
	}
	switch is := all.of(name); {
	case is == nil:
		s.Fail(w, r, errNoPolicy())
		return
	case was.of(name) == nil || string(was.of(name).GetData()) != string(is.GetData()):
		v.Refusal = page.Refusal{Title: "Not deleted: it was changed while you were looking", Text: "As it is now is shown below.", Status: http.StatusConflict}
	case strings.TrimSpace(reason) == "":
		v.Refusal = page.Refusal{Title: "Not deleted", Status: http.StatusUnprocessableEntity}
		v.DeleteProblem = "A reason is missing."
	}
	if v.Refusal.Title != "" {
		s.renderOne(w, r, v.Refusal.Status, v, all)
		return
	}
	outcome, err := s.Services.Policy.DeletePolicy(r.Context(), &grlv1.DeletePolicyRequest{Name: name, Reason: reason})
	if err != nil {
		v.Refusal = s.Refusal(r, err)
		s.renderOne(w, r, v.Refusal.Status, v, all)
		return
	}
	http.Redirect(w, r, path("/policies", "done", digits(outcome.GetOutcome().GetRevision().GetNumber())), http.StatusSeeOther)
}

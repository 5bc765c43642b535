package shadow

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"grl/policy/verdict"
	grlv1 "grl/proto/grl/v1"
	"grl/web/diff"
	"grl/web/format"
	"grl/web/page"
)

// mostChosen bounds the limits that are promoted at once: each is a revision.
const mostChosen = pageRows

// promotePath returns the address that shows what promoting limits would do.
func promotePath(buckets ...string) string {
	return "/shadow/promote?" + url.Values{"bucket": buckets}.Encode()
}

// reviewView is what promoting would do, ready to print.
type reviewView struct {
	Title   string
	Items   []item
	Effect  string
	Base    string       // revision that is shown
	Refusal page.Refusal // zero: none
	Reason  page.Field
	Force   string // the sentence to agree to; "": none is needed, or it may not be
	Forced  bool   // it was agreed to
	Blocked string // why there is no button; "": there is
	Button  string
}

// item is one limit of it.
type item struct {
	bucket             string
	Label              page.Label
	Kind, Symbol, Word string
	Say                []verdict.Phrase
	Facts              []page.Fact
	Title              string // of the difference
	Lines              []diff.Line
	Findings           []page.Finding
	Refused            string // why it cannot be promoted; "": it can
	Theirs             []diff.Line
	TheirTitle         string
	Done               uint64 // revision that promoted it; 0: it was not
}

// wish is what a person asks for.
type wish struct {
	buckets []string
	base    *uint64 // nil: as it is now
	reason  string
	force   bool
}

// readWish reads a query or form.
func readWish(v url.Values) wish {
	w := wish{reason: strings.TrimSpace(v.Get("reason")), force: v.Get("force") == "yes"}
	for _, name := range v["bucket"] {
		if !slices.Contains(w.buckets, name) && len(w.buckets) <= mostChosen {
			w.buckets = append(w.buckets, name)
		}
	}
	if n, err := strconv.ParseUint(v.Get("base"), 10, 64); err == nil {
		w.base = &n
	}
	return w
}

// refusal returns why a wish makes no sense, or is none of who asks: without a
// title if it does.
func (s site) refusal(ctx context.Context, w wish, limits []limit) page.Refusal {
	switch {
	case len(w.buckets) == 0:
		return page.Refusal{Title: "Nothing is chosen", Text: "Tick the limits that are meant.", Status: http.StatusUnprocessableEntity}
	case len(w.buckets) > mostChosen:
		return page.Refusal{Title: fmt.Sprintf("At most %d limits at once", mostChosen), Text: "Untick some.", Status: http.StatusUnprocessableEntity}
	case len(limits) < len(w.buckets):
		return page.Refusal{Title: "Not in shadow, and without a candidate", Text: "Somebody may have promoted it, or taken it away.", Status: http.StatusNotFound}
	}
	for i := range limits {
		if !s.mayPromote(ctx, &limits[i]) {
			text := "Editors of " + format.Printable(limits[i].service) + ": admins alone."
			if limits[i].owner != "" {
				text = "Editors of " + format.Printable(limits[i].service) + ": " + format.Printable(limits[i].owner) + "."
			}
			return page.Refusal{Title: "You can look, not change", Text: text, Status: http.StatusForbidden}
		}
	}
	return page.Refusal{}
}

// review shows what promoting would do.
func (s site) review(w http.ResponseWriter, r *http.Request) {
	asked := readWish(r.URL.Query())
	asked.base, asked.force, asked.reason = nil, false, "" // as it is now
	s.plan(w, r, asked, http.StatusOK)
}

// plan answers with what a wish would do, and whether anything stands against
// it. What was refused before has a status.
func (s site) plan(w http.ResponseWriter, r *http.Request, asked wish, status int) {
	limits := pick(collect(s.Backend.Cells(), s.Backend.Past()), asked.buckets)
	if refusal := s.refusal(r.Context(), asked, limits); refusal.Title != "" {
		s.refuse(w, r, refusal)
		return
	}
	items, _ := s.try(r, asked, limits)
	s.show(w, r, s.newReview(r, asked, limits, items), status)
}

func (s site) show(w http.ResponseWriter, r *http.Request, v reviewView, status int) {
	p := s.Page(r, v.Title, "/shadow")
	p.Crumbs = []page.Crumb{{Name: "Shadow", Path: "/shadow"}, {Name: v.Title}}
	s.Render(w, r, status, reviewPage(p, v))
}

// refuse answers with the list, and what is wrong.
func (s site) refuse(w http.ResponseWriter, r *http.Request, refusal page.Refusal) {
	p := s.Page(r, "Promote", "/shadow")
	p.Crumbs = []page.Crumb{{Name: "Shadow", Path: "/shadow"}, {Name: "Promote"}}
	s.Render(w, r, refusal.Status, refusedPage(p, refusal))
}

// try asks for each limit what promoting it would do, and returns the status of
// the worst refusal, 0 if there is none.
func (s site) try(r *http.Request, asked wish, limits []limit) (items []item, status int) {
	for i := range limits {
		it := newItem(&limits[i])
		request := asked.request(limits[i].name, true)
		answer, err := s.Services.Config.Promote(r.Context(), request)
		if err != nil {
			refusal := s.Refusal(r, err)
			it.refuse(refusal)
			status = worse(status, refusal.Status)
			if len(refusal.Conflicts) > 0 { // what it would do now is shown beside
				request.Base = nil
				answer, err = s.Services.Config.Promote(r.Context(), request)
			}
		}
		if err == nil {
			it.outcome(answer.GetOutcome())
			if it.needsForce() && !asked.force {
				status = worse(status, http.StatusUnprocessableEntity)
			}
		}
		items = append(items, it)
	}
	return items, status
}

// worse returns which of two statuses says more: that somebody changed something
// meanwhile, then what a person can do least about.
func worse(a, b int) int {
	if a == http.StatusConflict || b == http.StatusConflict {
		return http.StatusConflict
	}
	return max(a, b)
}

func (w *wish) request(bucket string, dryRun bool) *grlv1.PromoteRequest {
	return &grlv1.PromoteRequest{Bucket: bucket, Base: w.base, DryRun: dryRun, Force: w.force && !dryRun, Reason: w.reason}
}

func newItem(l *limit) item {
	r := newRow(l, query{}, false)
	return item{bucket: l.name, Label: r.Label, Kind: r.Kind, Symbol: r.Symbol, Word: r.Word, Say: r.Say, Facts: r.Facts}
}

// outcome takes in what a dry run says.
func (i *item) outcome(o *grlv1.Outcome) {
	for _, c := range o.GetChanges() {
		i.Title, i.Lines = c.GetBucket(), diff.Lines(c.GetBefore(), c.GetAfter())
	}
	i.Findings = page.Findings(o.GetFindings())
	for j := range i.Findings {
		i.Findings[j].Text = format.Sentence(i.Findings[j].Text)
	}
}

func (i *item) needsForce() bool {
	return slices.ContainsFunc(i.Findings, func(f page.Finding) bool { return f.NeedsForce })
}

// refuse takes in why it cannot be promoted: if somebody changed it meanwhile,
// with what it was and is.
func (i *item) refuse(f page.Refusal) {
	i.Refused, i.Findings = f.Title, f.Findings
	for _, c := range f.Conflicts {
		i.Refused = fmt.Sprintf("r%d changed it while you were looking", c.Revision)
		i.TheirTitle = fmt.Sprintf("r%d by %s: %s", c.Revision, c.Author, c.Reason)
		i.Theirs = diff.Lines(c.Base, c.Theirs)
	}
}

// newReview returns what is shown of a wish.
func (s site) newReview(r *http.Request, asked wish, limits []limit, items []item) reviewView {
	v := reviewView{
		Title: "Promote " + format.Plural(len(items), "limit"), Items: items, Effect: format.Sentence(chosenText(limits)),
		Base:   strconv.FormatUint(s.Backend.Fleet().Revision, 10),
		Reason: page.Field{Name: "reason", Label: "Reason", Value: asked.reason, Max: 1000, Placeholder: "Shown in Changes"},
		Forced: asked.force, Button: fmt.Sprintf("Promote %d to deny", len(items)),
	}
	if len(items) == 1 {
		v.Title = "Promote " + items[0].Label.Service + "/" + items[0].Label.Name
		v.Button = "Promote to deny"
	}
	needs := false
	for i := range items {
		needs = needs || items[i].needsForce()
	}
	switch {
	case needs && page.MayForce(r.Context()):
		v.Force, v.Reason.Required = "Yes, enforce in spite of what the guard rails say", true
		v.Reason.Hint = "To pass the guard rails needs one."
	case needs:
		v.Blocked = "A guard rail stands against it: only an admin can pass it."
	}
	return v
}

// promote promotes limits one by one, if nothing stands against any of them.
func (s site) promote(w http.ResponseWriter, r *http.Request) {
	if !page.ReadForm(w, r) {
		return
	}
	asked := readWish(r.PostForm)
	limits := pick(collect(s.Backend.Cells(), s.Backend.Past()), asked.buckets)
	if refusal := s.refusal(r.Context(), asked, limits); refusal.Title != "" {
		s.refuse(w, r, refusal)
		return
	}
	if r.PostForm.Get("do") != "promote" {
		http.Redirect(w, r, promotePath(asked.buckets...), http.StatusSeeOther)
		return
	}
	items, status := s.try(r, asked, limits)
	v := s.newReview(r, asked, limits, items)
	switch {
	case asked.force && asked.reason == "":
		v.Reason.Error = "To pass the guard rails needs a reason."
		v.Refusal = page.Refusal{Title: "Nothing was promoted: a reason is missing"}
		s.show(w, r, v, http.StatusUnprocessableEntity)
		return
	case status != 0:
		v.Refusal = page.Refusal{Title: "Nothing was promoted", Text: refusedText(items)}
		s.show(w, r, v, status)
		return
	}
	revisions, status := s.promoteAll(r, asked, items)
	if status == 0 {
		http.Redirect(w, r, promotedPath(revisions), http.StatusSeeOther)
		return
	}
	left := slices.DeleteFunc(slices.Clone(limits), func(l limit) bool {
		return slices.ContainsFunc(items, func(i item) bool { return i.bucket == l.name && i.Done != 0 })
	})
	v.Effect = format.Sentence(chosenText(left))
	v.Refusal = page.Refusal{Title: fmt.Sprintf("%d of %d promoted", len(revisions), len(items)), Text: refusedText(items)}
	v.Button = fmt.Sprintf("Promote the other %d", len(left))
	s.show(w, r, v, status)
}

// promoteAll promotes each, and returns the revisions that did and the status of
// the worst refusal, 0 if there is none.
func (s site) promoteAll(r *http.Request, asked wish, items []item) (revisions []uint64, status int) {
	for i := range items {
		answer, err := s.Services.Config.Promote(r.Context(), asked.request(items[i].bucket, false))
		if err != nil {
			refusal := s.Refusal(r, err)
			items[i].refuse(refusal)
			status = worse(status, refusal.Status)
			continue
		}
		items[i].Done = answer.GetOutcome().GetRevision().GetNumber()
		revisions = append(revisions, items[i].Done)
	}
	return revisions, status
}

// refusedText says what stands against a wish.
func refusedText(items []item) string {
	refused, rails := 0, 0
	for i := range items {
		switch {
		case items[i].Refused != "":
			refused++
		case items[i].needsForce() && items[i].Done == 0:
			rails++
		}
	}
	var parts []string
	if refused > 0 {
		parts = append(parts, format.Plural(refused, "limit")+" refused; see why below.")
	}
	if rails > 0 {
		parts = append(parts, "Guard rails stand against "+format.Plural(rails, "limit")+".")
	}
	return strings.Join(parts, " ")
}

func doneText(revision uint64) string { return fmt.Sprintf("Promoted as r%d", revision) }

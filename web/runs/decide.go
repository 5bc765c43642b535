package runs

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	grlv1 "grl/proto/grl/v1"
	"grl/web/format"
	"grl/web/page"
)

// What one can do with proposals that are ticked.
const (
	doApprove = "approve"
	doReject  = "reject"
	doPreview = "preview"
)

// decide approves or rejects the proposals that are ticked, or says what that
// would do.
func (s site) decide(w http.ResponseWriter, r *http.Request) {
	if !page.ReadForm(w, r) {
		return
	}
	v := runView{Query: queryOf(r), Reason: r.PostForm.Get("reason"), Force: r.PostForm.Get("force") != ""}
	buckets, ticked, err := s.ticked(r, v.Query)
	if err != nil {
		s.Fail(w, r, err)
		return
	}
	v.Query.All = false // what is ticked says it all from here on
	do := r.PostForm.Get("do")
	switch {
	case do != doApprove && do != doReject:
		if page.Fragment(r) {
			s.renderChosen(w, r, v, ticked)
			return
		}
		s.renderRun(w, r, http.StatusOK, v, ticked)
		return
	case len(buckets) == 0:
		// No names would mean all that wait.
		v.Refusal = page.Refusal{Title: "Nothing is chosen", Text: "Tick the proposals that are meant.", Status: http.StatusUnprocessableEntity}
		s.renderRun(w, r, v.Refusal.Status, v, ticked)
		return
	case v.Force && v.Reason == "":
		v.ReasonProblem = "To pass the guard rails needs a reason."
		v.Refusal = page.Refusal{Title: "Nothing was decided: a reason is missing", Status: http.StatusUnprocessableEntity}
		s.renderRun(w, r, v.Refusal.Status, v, ticked)
		return
	}
	answer, err := s.Services.RLC.DecideProposals(r.Context(), &grlv1.DecideProposalsRequest{
		Run: v.Query.ID, Buckets: buckets, Approve: do == doApprove, Force: v.Force && do == doApprove, Reason: v.Reason,
	})
	if err != nil {
		v.Refusal = s.refusal(r, err, "Nothing was decided")
		s.renderRun(w, r, v.Refusal.Status, v, ticked)
		return
	}
	http.Redirect(w, r, decidedPath(v.Query, do, answer.GetOutcome().GetRevision().GetNumber()), http.StatusSeeOther)
}

// ticked returns the proposals that a form names: those ticked, and where all of
// a tab are meant those, as far as who asks may decide them.
func (s site) ticked(r *http.Request, q query) (buckets []string, ticked map[string]bool, err error) {
	ticked = make(map[string]bool)
	add := func(bucket string) {
		if !ticked[bucket] {
			ticked[bucket] = true
			buckets = append(buckets, bucket)
		}
	}
	for _, bucket := range r.PostForm["bucket"] {
		add(bucket)
	}
	if r.PostForm.Get("rest") == "" {
		return buckets, ticked, nil
	}
	// The rest of the tab: what is on its other pages. What is on this page was
	// seen, and is ticked or not.
	seen := make(map[string]bool)
	for _, bucket := range r.PostForm["seen"] {
		seen[bucket] = true
	}
	v := runView{Query: q}
	_, results, err := s.read(r.Context(), &v)
	if err != nil {
		return nil, nil, err
	}
	may := s.editable(r.Context())
	for _, m := range results {
		if v.Query.selects(m) && v.Query.chosen(m) && may(serviceOf(m.GetBucket())) && !seen[m.GetBucket()] {
			add(m.GetBucket())
		}
	}
	return buckets, ticked, nil
}

// renderChosen answers with what the ticked ones would do.
func (s site) renderChosen(w http.ResponseWriter, r *http.Request, v runView, ticked map[string]bool) {
	_, results, err := s.read(r.Context(), &v)
	if err != nil {
		s.Fail(w, r, err)
		return
	}
	v.chosen(results, nil, ticked)
	s.Render(w, r, http.StatusOK, chosenRegion(v.Chosen))
}

// decidedPath leads back to the tab, and says what to read back.
func decidedPath(q query, do string, revision uint64) string {
	v := url.Values{"did": {do}}
	if do == doApprove && revision > 0 {
		v.Set("revision", strconv.FormatUint(revision, 10))
	}
	return q.at(0).path() + "&" + v.Encode()
}

// decided sets the notices of what was just done, as it can be read back.
func (s site) decided(r *http.Request, v *runView, run *grlv1.Run, results []*grlv1.RunResult) {
	q := r.URL.Query()
	did := q.Get("did")
	if r.Method != http.MethodGet || did == "" {
		return
	}
	revision := number(q, "revision")
	approved, rejected, superseded, waiting := 0, 0, 0, 0
	for _, m := range results {
		if m.GetOutcome() != grlv1.RunOutcome_RUN_OUTCOME_PROPOSED {
			continue
		}
		switch m.GetState() {
		case grlv1.ProposalState_PROPOSAL_STATE_APPROVED:
			if m.GetRevision() == revision {
				approved++
			}
		case grlv1.ProposalState_PROPOSAL_STATE_REJECTED:
			rejected++
		case grlv1.ProposalState_PROPOSAL_STATE_SUPERSEDED:
			superseded++
		case grlv1.ProposalState_PROPOSAL_STATE_PENDING:
			waiting++
		}
	}
	n := page.Notice{Kind: "good", Text: format.Count(waiting) + " still wait."}
	if superseded > 0 {
		n.Text += " " + format.Count(superseded) + " superseded: their buckets were changed meanwhile, or a later run proposes otherwise."
	}
	switch {
	case did == doReject:
		n.Title = format.Plural(rejected, "proposal") + " of this run rejected"
	case did == doApprove && approved > 0:
		n.Title = fmt.Sprintf("Approved: %s, saved as r%d", format.Plural(approved, "limit"), revision)
		n.Text += activeText(s.Backend.Fleet().Revision, revision)
	case did == doApprove:
		n.Kind, n.Title = "warn", "Nothing was approved"
	case did == didRollBack:
		n.Title, n.Text = fmt.Sprintf("Rolled back to r%d, as r%d", run.GetBaseRevision(), revision), activeText(s.Backend.Fleet().Revision, revision)
	default:
		return
	}
	v.Notices = append(v.Notices, n)
}

// activeText says whether a revision is what the controller gives out.
func activeText(active, revision uint64) string {
	if active >= revision {
		return fmt.Sprintf(" r%d is active.", active)
	}
	return fmt.Sprintf(" r%d is still active: the new one is on its way.", active)
}

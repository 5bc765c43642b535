package bucket

import (
	"context"
	"fmt"

	"github.com/a-h/templ"

	"grl/limiter"
	"grl/policy/verdict"
	"grl/proto/grl/v1/grlv1connect"
	"grl/web/format"
	"grl/web/page"
)

// evidenceView is what a limit that is not enforced would have done, beside the
// button that enforces it.
type evidenceView struct {
	Title        string
	Verdicts     []verdictView
	More         string // cells that are not shown; "": none
	Bucket, Base string
	May          bool
	Button       string
	Why          string // why it cannot be pressed yet; "": it can
	Force        string // the sentence to agree to; "": no force is needed
	Shadow       string
	ReasonField  page.Field
	Unknown      string // why there is no verdict; "": there is
}

// verdictView is what is said of one cell.
type verdictView struct {
	Kind, Symbol, Word string
	Cell               string // "": the bucket has but one
	Sentences          []verdict.Phrase
}

const shownVerdicts = 3

// evidence returns what there is to say before the bucket is enforced; nil: it
// is, and has no candidate.
func (s site) evidence(ctx context.Context, q query, c *configured, f input) (templ.Component, error) {
	b := c.bucket(q.Name)
	if b == nil || b.Behavior == limiter.Deny && b.CandidateRPS <= 0 || b.Block {
		return nil, nil
	}
	v := evidenceView{
		Title: "In shadow, " + limitWords(b), Bucket: q.bucket(), Base: fmt.Sprint(c.revision), Button: "Enforce the limit", Shadow: "/shadow",
		ReasonField: page.Field{Name: "promote-reason", Label: "Reason", Placeholder: "Shown in Changes and in the commit", Max: 1000},
		May:         page.MayEdit(ctx, q.Service, c.service.Owner) && page.May(ctx, grlv1connect.ConfigServicePromoteProcedure),
	}
	if b.Behavior == limiter.Deny {
		v.Title, v.Button = "Candidate "+candidateWords(b), "Promote to limit"
	}
	v.verdicts(s.Backend.Past(), q)
	if f.promote && f.refusal.NeedsForce() && page.MayForce(ctx) {
		v.Force = "Yes, enforce " + format.Printable(q.bucket()) + " in spite of that"
	}
	return evidenceCard(v), nil
}

// verdicts fills in what is said of the cells of the bucket, those that would be
// hurt first.
func (v *evidenceView) verdicts(past *page.Past, q query) {
	var found []*page.Evidence
	for i := range past.Evidence {
		e := &past.Evidence[i]
		if e.Cell.Bucket == q.bucket() && (q.Instance == "" || e.Cell.Instance == q.Instance) && (q.Caller == "" || e.Cell.Caller == q.Caller) {
			found = append(found, e)
		}
	}
	if len(found) == 0 {
		v.Unknown = "Nothing was counted yet: a verdict needs 7 days with a weekend."
		if past.At.IsZero() || past.Read < 1 {
			v.Unknown = "The history is being read: " + format.Share(past.Read) + " so far."
		}
		v.Why = "There is no verdict yet."
		return
	}
	rank := map[verdict.Kind]int{verdict.WouldHurt: 0, verdict.TooLittle: 1, verdict.Safe: 2}
	little := false
	for _, want := range []int{0, 1, 2} {
		for _, e := range found {
			if rank[e.Kind] != want {
				continue
			}
			little = little || e.Kind == verdict.TooLittle
			if len(v.Verdicts) < shownVerdicts {
				v.Verdicts = append(v.Verdicts, verdictOf(e, len(found) > 1))
			}
		}
	}
	if n := len(found) - len(v.Verdicts); n > 0 {
		v.More = format.Plural(n, "more cell")
	}
	if little {
		v.Why = "A verdict needs 7 days with a weekend."
	}
}

func verdictOf(e *page.Evidence, several bool) verdictView {
	words := verdict.Words{LimitRPS: e.LimitRPS, Candidate: e.Candidate, Caller: e.HitCaller}
	v := verdictView{Kind: "waiting", Symbol: "clock", Word: e.Kind.String(), Sentences: e.Sentences(words)}
	switch e.Kind {
	case verdict.WouldHurt:
		v.Kind, v.Symbol = "over", "over"
	case verdict.Safe:
		v.Kind, v.Symbol = "good", "ok"
	}
	if several {
		v.Cell = e.Cell.Instance + e.Cell.Caller
		if e.Cell.Instance != "" && e.Cell.Caller != "" {
			v.Cell = e.Cell.Instance + ", " + e.Cell.Caller
		}
		v.Cell = format.Printable(v.Cell)
	}
	for i := range v.Sentences {
		v.Sentences[i].Text = format.Printable(v.Sentences[i].Text)
	}
	return v
}

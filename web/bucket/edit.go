package bucket

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/a-h/templ"

	"grl/limiter"
	"grl/limiter/limitsfile"
	grlv1 "grl/proto/grl/v1"
	"grl/proto/grl/v1/grlv1connect"
	"grl/web/diff"
	"grl/web/format"
	"grl/web/page"
)

// editView is the form that changes the bucket.
type editView struct {
	Bucket, Base string
	Note         string
	Action       string // where the form goes
	Effect       page.Effect
	Findings     []page.Finding
	Force        string // the sentence to agree to; "": no force is needed, or may be used
	Forced       page.Field
	Wall         string // why it cannot be saved by this person; "": it can
	File         string
	Diff         []diff.Line

	Limit, Candidate, Behavior, Reason page.Field
	Regions                            []regionInput
	Save                               string // what the button says
	Discard                            string
}

// regionInput is the field of one region, and the hidden one with its name.
type regionInput struct {
	NameField, Name string
	Field           page.Field
}

var behaviors = []page.Choice{
	{Value: "deny", Name: "deny", Note: "enforced"},
	{Value: "allow", Name: "allow", Note: "shadow"},
}

// lookView is the same for those who may not change it.
type lookView struct {
	Facts       []page.Fact
	Title, Text string // why not
}

// edit returns the form, or the values as text.
func (s site) edit(r *http.Request, q query, c *configured, seen *sum, f input) (templ.Component, error) {
	ctx, b := r.Context(), c.bucket(q.Name)
	if b == nil {
		v := lookView{Title: "Limits are changed elsewhere", Text: "This controller takes its configuration from its parent."}
		if s.Services.Elsewhere != "" {
			v.Text = "This controller takes its configuration from " + s.Services.Elsewhere + "."
		}
		if c != nil {
			v = lookView{Title: "The bucket was removed", Text: "Its last numbers stay until its cells are forgotten."}
		}
		return look(v), nil
	}
	if !page.MayEdit(ctx, q.Service, c.service.Owner) || !page.May(ctx, grlv1connect.ConfigServiceApplyProcedure) {
		return look(lookOf(ctx, b, c)), nil
	}
	d := draftOf(b, c.revision, seen.instances())
	if f.draft != nil {
		d = *f.draft
	}
	v, err := s.editView(r, q, c, seen, d, f.refusal)
	return editForm(v), err
}

func lookOf(ctx context.Context, b *limiter.Bucket, c *configured) lookView {
	v := lookView{Title: "You can look, not change", Facts: factsOf(b)}
	v.Text = "Only an admin may change " + format.Printable(b.Service) + ": it has no owner."
	if c.service.Owner != "" {
		v.Text = "Editors of " + format.Printable(b.Service) + ": " + format.Printable(c.service.Owner) + "."
	}
	if !page.May(ctx, grlv1connect.ConfigServiceApplyProcedure) {
		v.Text = "Your role is viewer. " + v.Text
	}
	return v
}

// factsOf are the values of a bucket as text.
func factsOf(b *limiter.Bucket) []page.Fact {
	if b == nil {
		return []page.Fact{{Name: "Bucket", Value: "removed"}}
	}
	out := []page.Fact{{Name: "Limit", Value: limitWords(b)}}
	for _, r := range regionsOf(b, nil) {
		out = append(out, page.Fact{Name: "Limit in " + format.Printable(r), Value: plain(b.Regions[r]) + " rps"})
	}
	return append(out,
		page.Fact{Name: "Candidate", Value: candidateWords(b)},
		page.Fact{Name: "Behavior", Value: b.Behavior.String()},
	)
}

func limitWords(b *limiter.Bucket) string {
	switch {
	case b.Block:
		return "block"
	case b.Hourly != nil:
		low, high := b.Hourly[0], b.Hourly[0]
		for _, rps := range b.Hourly {
			low, high = min(low, rps), max(high, rps)
		}
		return "by the hour, " + plain(low) + " to " + plain(high) + " rps"
	}
	return plain(b.LimitRPS) + " rps"
}

func candidateWords(b *limiter.Bucket) string {
	if b.CandidateRPS <= 0 {
		return "none"
	}
	return plain(b.CandidateRPS) + " rps"
}

// editView prepares the form: what was typed, what it would do, and what is wrong
// with it.
func (s site) editView(r *http.Request, q query, c *configured, seen *sum, d draft, refusal *page.Refusal) (editView, error) {
	ctx, b := r.Context(), c.bucket(q.Name)
	v := editView{
		Bucket: q.bucket(), Base: fmt.Sprint(d.base), Note: fmt.Sprintf("based on r%d", d.base), Action: "/bucket",
		Save: fmt.Sprintf("Save as r%d", c.revision+1), Discard: q.path(""), File: "limits/" + q.Service + ".yaml",
	}
	after, wrong := d.on(*b)
	o, err := s.predict(ctx, q, seen, b, &after)
	if err != nil {
		return v, err
	}
	if o.changed && len(wrong) == 0 {
		refused := s.try(r, c, after, d, &o, &v)
		if refusal == nil {
			refusal = refused
		}
	}
	v.Findings = capitals(v.Findings)
	v.Effect = o.effect("/bucket/effect")
	if len(wrong) > 0 {
		v.Effect.Lead, v.Effect.Facts = "", nil
	} else {
		v.Diff = diff.Lines(limitsfile.BucketText(b), limitsfile.BucketText(&after))
	}
	v.fields(b, d, &o, append(wrong, problemsOf(refusal)...))
	v.force(ctx, q, &o, d)
	return v, nil
}

// capitals returns findings as people write sentences.
func capitals(findings []page.Finding) []page.Finding {
	for i := range findings {
		findings[i].Text = format.Sentence(findings[i].Text)
	}
	return findings
}

func problemsOf(f *page.Refusal) []page.Problem {
	if f == nil {
		return nil
	}
	return f.Problems
}

// try asks what the guard rails say of a change, without making it.
func (s site) try(r *http.Request, c *configured, after limiter.Bucket, d draft, o *outcome, v *editView) *page.Refusal {
	got, err := s.apply(r.Context(), c, after, d, true)
	if err != nil {
		refusal := s.Refusal(r, err)
		v.Findings = refusal.Findings
		return &refusal
	}
	v.Findings = page.Findings(got.GetFindings())
	for _, f := range got.GetFindings() {
		if f.PredictedDropShare != nil {
			o.predicted = f.GetPredictedDropShare()
		}
	}
	return nil
}

// apply makes a change of one bucket, or says what it would do.
func (s site) apply(ctx context.Context, c *configured, after limiter.Bucket, d draft, dryRun bool) (*grlv1.Outcome, error) {
	text := limitsfile.Normalize(with(c.service, after))
	got, err := s.Services.Config.Apply(ctx, &grlv1.ApplyRequest{
		Files: []*grlv1.LimitsFile{{Name: c.service.Name + ".yaml", Data: text}},
		Base:  &d.base, DryRun: dryRun, Force: d.force && !dryRun, Reason: d.reason, Edit: true,
	})
	return got.GetOutcome(), err
}

// fields fills in what was typed, with what is wrong.
func (v *editView) fields(b *limiter.Bucket, d draft, o *outcome, wrong []page.Problem) {
	refusal := page.Refusal{Problems: wrong}
	v.Limit = page.Field{Name: "limit", Label: "Limit", Value: d.limit, Unit: "rps", Number: true, Hint: limitHint(b, o), Error: refusal.At("limit")}
	v.Candidate = page.Field{
		Name: "candidate", Label: "Candidate", Value: d.cand, Unit: "rps", Number: true,
		Hint: "Judged beside the limit; drops nothing. Empty: none.", Error: refusal.At("candidate"),
	}
	v.Behavior = page.Field{Name: "behavior", Label: "Behavior", Value: d.behavior, Error: refusal.At("behavior")}
	v.Reason = page.Field{
		Name: "reason", Label: "Reason", Value: d.reason, Placeholder: "Shown in Changes and in the commit", Max: 1000, Error: refusal.At("reason"),
	}
	for i, r := range d.regions {
		f := page.Field{
			Name: regionField(i), Label: "Limit in " + format.Printable(r.region), Value: r.limit, Unit: "rps", Number: true,
			Hint: "Empty: as in all regions.", Error: refusal.At(regionField(i)),
		}
		if b.RegionHourly[r.region] != nil {
			f.Hint = "By the hour now. A number here replaces the table."
		}
		v.Regions = append(v.Regions, regionInput{regionNameField(i), r.region, f})
	}
}

func limitHint(b *limiter.Bucket, o *outcome) string {
	switch {
	case b.Block:
		return "Blocks all now. A number ends that."
	case b.Hourly != nil:
		return "Now " + limitWords(b) + ". A number here replaces the table; empty keeps it."
	}
	hint := "Now " + plain(b.LimitRPS) + "."
	if b.Behavior != limiter.Deny || o.several {
		return hint
	}
	if o.free > 0 {
		return hint + " Without force: " + format.RPS(o.free) + " to " + format.RPS(mostOfPresent*b.LimitRPS) + "."
	}
	return hint + " Without force: up to " + format.RPS(mostOfPresent*b.LimitRPS) + "."
}

// force asks for what passes the guard rails, or says who may.
func (v *editView) force(ctx context.Context, q query, o *outcome, d draft) {
	refusal := page.Refusal{Findings: v.Findings}
	if !refusal.NeedsForce() {
		return
	}
	if !page.MayForce(ctx) {
		v.Wall = "A guard rail is in the way. An admin may pass it by force."
		return
	}
	v.Force = "Yes, drop " + nothing(o.now) + " of " + format.Printable(q.bucket())
	if o.now <= 0 || !enforces(o.after) {
		v.Force = "Yes, pass the guard rails for " + format.Printable(q.bucket())
	}
	v.Save = "Force " + strings.TrimSuffix(limitWords(o.after), " rps") + " rps"
	if o.after.Block || o.after.Hourly != nil {
		v.Save = "Force it"
	}
	v.Reason.Required = true
	v.Forced = page.Field{Name: "force"}
	if d.force {
		v.Forced.Value = "yes"
	}
}

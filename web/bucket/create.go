package bucket

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"grl/limiter"
	"grl/limiter/limitsfile"
	grlv1 "grl/proto/grl/v1"
	"grl/web/diff"
	"grl/web/format"
	"grl/web/page"
)

// blueprint is a new bucket as it was typed.
type blueprint struct {
	draft
	service, name     string
	owner             string // of a service that is new
	caller, procedure string
	each              bool // each caller has the limit for itself
	scope             string
}

// newView is the form of a new bucket.
type newView struct {
	Refused *page.Refusal

	Service, Name, Owner, Caller, Procedure, Scope page.Field
	Each                                           page.Field
	NewService                                     bool // the service has no limits yet

	Form editView // what it has in common with a change
}

var scopes = []page.Choice{
	{Value: "global", Name: "global", Note: "the whole fleet"},
	{Value: "region", Name: "region", Note: "each region"},
	{Value: "zone", Name: "zone", Note: "each zone"},
}

func readBlueprint(v url.Values) blueprint {
	return blueprint{
		draft: readDraft(v), service: typedText(v, "service"), name: typedText(v, "bucket"), owner: typedText(v, "owner"),
		caller: typedText(v, "caller"), procedure: typedText(v, "procedure"), each: v.Get("each") == "yes", scope: typedText(v, "scope"),
	}
}

// suggested fills in what was not said by a link that leads here.
func suggested(v url.Values) blueprint {
	p := readBlueprint(v)
	if p.limit == "" {
		if rps, err := readRPS(clip(v.Get("rps"))); err == nil {
			p.limit = plain(rps)
		}
	}
	if p.behavior == "" {
		p.behavior = limiter.Allow.String()
		if v.Get("rps") != "" {
			p.behavior = limiter.Deny.String() // it takes the place of a cap, which is in force
		}
	}
	if p.scope == "" {
		p.scope = limiter.Global.String()
	}
	if p.name == "" && p.service != "" {
		p.name = suggestedName(p.caller, p.procedure)
	}
	return p
}

// suggestedName makes the name of a bucket of what it matches: price-bot, or
// charges-create.
func suggestedName(caller, procedure string) string {
	words := strings.FieldsFunc(strings.ToLower(caller+" "+procedure[strings.LastIndex(procedure, ".")+1:]), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	})
	name := strings.Join(words, "-")
	return name[:min(len(name), 60)]
}

var scopeOf = map[string]limiter.Scope{"global": limiter.Global, "region": limiter.Region, "zone": limiter.Zone}

// bucket returns the bucket that was typed, and what is wrong with it; c is its
// service.
func (p *blueprint) bucket(c *configured) (limiter.Bucket, []page.Problem) {
	b := limiter.Bucket{
		Service: p.service, Name: p.name, Match: limiter.Match{Caller: limiter.Pattern(p.caller), Procedure: limiter.Pattern(p.procedure)},
		PerCaller: p.each, Scope: scopeOf[p.scope],
	}
	b, wrong := p.on(b)
	refuse := func(field, text string) { wrong = append(wrong, page.Problem{Field: field, Text: text}) }
	if p.service == "" {
		refuse("service", "name the service that is called")
	}
	switch {
	case p.name == "":
		refuse("bucket", "a bucket needs a name")
	case strings.Contains(p.name, "/"):
		refuse("bucket", "a name has no slash")
	case c.bucket(p.name) != nil:
		refuse("bucket", "the service has a bucket of this name already")
	}
	if _, ok := scopeOf[p.scope]; !ok {
		refuse("scope", "choose global, region or zone")
	}
	if len(wrong) > 0 {
		return b, wrong
	}
	// The reader of limits files judges the rest: names, patterns, and whether the
	// bucket goes together with the others.
	next := with(p.ofService(c), b)
	_, err := limitsfile.Parse("the form", limitsfile.Normalize(next))
	var errs limitsfile.Errors
	errors.As(err, &errs)
	for _, e := range errs {
		bare := limitsfile.Error{Problem: e.Problem, Found: e.Found, Expected: e.Expected} // there is no file to have a place in
		refuse(fieldOf(e.Key), bare.Error())
	}
	return b, wrong
}

// fieldOf returns the field of the form for a key of a limits file.
func fieldOf(key string) string {
	switch name := key[strings.LastIndex(key, ".")+1:]; name {
	case "service", "owner", "caller", "procedure", "scope", "limit":
		return name
	case "per":
		return "each"
	}
	return "bucket"
}

// ofService returns the service to which the bucket is added.
func (p *blueprint) ofService(c *configured) limiter.Service {
	if len(c.service.Buckets) == 0 && c.service.Owner == "" {
		return limiter.Service{Name: p.service, Owner: p.owner}
	}
	return c.service
}

func (s site) serveNew(w http.ResponseWriter, r *http.Request) {
	s.answerNew(w, r, http.StatusOK, suggested(r.URL.Query()), nil, false)
}

// create takes the form of a new bucket.
func (s site) create(w http.ResponseWriter, r *http.Request) {
	if page.ReadForm(w, r) {
		s.answerCreate(w, r, readBlueprint(r.PostForm), false)
	}
}

// previewNew shows the form of a new bucket with what it would do.
func (s site) previewNew(w http.ResponseWriter, r *http.Request) {
	s.answerCreate(w, r, readBlueprint(r.URL.Query()), true)
}

func (s site) answerCreate(w http.ResponseWriter, r *http.Request, p blueprint, preview bool) {
	if s.Services.Config == nil {
		s.missingConfig(w, r)
		return
	}
	c, err := s.configuration(r.Context(), p.service, 0)
	if err != nil {
		s.Fail(w, r, err)
		return
	}
	b, wrong := p.bucket(c)
	switch {
	case len(wrong) > 0:
		s.answerNew(w, r, http.StatusUnprocessableEntity, p, &page.Refusal{Title: counted(len(wrong)), Problems: wrong}, true)
		return
	case preview:
		s.answerNew(w, r, http.StatusOK, p, nil, true)
		return
	}
	got, err := s.add(r, c, b, &p, false)
	if err != nil {
		refusal := withoutRails(s.Refusal(r, err))
		s.answerNew(w, r, refusal.Status, p, refusal, true)
		return
	}
	s.proceed(w, r, query{Service: p.service, Name: p.name, Range: usual}, got.GetRevision().GetNumber())
}

// add makes the new bucket, or says what it would do.
func (s site) add(r *http.Request, c *configured, b limiter.Bucket, p *blueprint, dryRun bool) (*grlv1.Outcome, error) {
	text := limitsfile.Normalize(with(p.ofService(c), b))
	base := c.revision
	got, err := s.Services.Config.Apply(r.Context(), &grlv1.ApplyRequest{
		Files: []*grlv1.LimitsFile{{Name: p.service + ".yaml", Data: text}},
		Base:  &base, DryRun: dryRun, Force: p.force && !dryRun, Reason: p.reason, Edit: true,
	})
	return got.GetOutcome(), err
}

func (s site) effectOfNew(w http.ResponseWriter, r *http.Request) {
	if !page.ReadForm(w, r) {
		return
	}
	v, err := s.newView(r, readBlueprint(r.PostForm), nil, true)
	if err != nil {
		s.Fail(w, r, err)
		return
	}
	s.Render(w, r, http.StatusOK, typed(v.Form))
}

func (s site) answerNew(w http.ResponseWriter, r *http.Request, status int, p blueprint, refusal *page.Refusal, tried bool) {
	if s.Services.Config == nil {
		s.missingConfig(w, r)
		return
	}
	v, err := s.newView(r, p, refusal, tried)
	if err != nil {
		s.Fail(w, r, err)
		return
	}
	v.Refused = refusal
	frame := s.Page(r, "New bucket", "/buckets")
	frame.Crumbs = []page.Crumb{{Name: "Buckets", Path: "/buckets"}, {Name: "New bucket"}}
	s.Render(w, r, status, showNew(frame, v))
}

// newView prepares the form, with why it was refused if it was; of one that was
// not handed in yet it does not say what is missing.
func (s site) newView(r *http.Request, p blueprint, refusal *page.Refusal, tried bool) (newView, error) {
	v := newView{Form: editView{Action: "/bucket/new", Save: "Save", Discard: "/buckets", File: "limits/" + p.service + ".yaml"}}
	c := &configured{}
	if p.service != "" {
		var err error
		if c, err = s.configuration(r.Context(), p.service, 0); err != nil || c == nil {
			return v, err
		}
		v.NewService = len(c.service.Buckets) == 0
	}
	b, wrong := p.bucket(c)
	if len(wrong) == 0 {
		if err := s.judgeNew(r, c, b, &p, &v.Form); err != nil {
			return v, err
		}
		v.Form.Save = fmt.Sprintf("Save as r%d", c.revision+1)
	} else {
		v.Form.Effect = page.Effect{URL: "/bucket/new/effect", Lead: "Fill in service, name and limit to see what it would do."}
	}
	if !tried {
		wrong = nil
	}
	wrong = append(wrong, problemsOf(refusal)...)
	v.fields(&p, wrong)
	v.Form.fields(&b, p.draft, &outcome{}, wrong)
	v.Form.Limit.Hint = "Requests per second that are admitted."
	o := outcome{after: &b}
	v.Form.force(r.Context(), query{Service: p.service, Name: p.name}, &o, p.draft)
	return v, nil
}

// judgeNew says what a new bucket would do: nothing is known of it but what the
// guard rails find among what is offered now.
func (s site) judgeNew(r *http.Request, c *configured, b limiter.Bucket, p *blueprint, v *editView) error {
	v.Effect = page.Effect{URL: "/bucket/new/effect", Lead: "Cannot tell: nothing was counted for it yet."}
	if !enforces(&b) {
		v.Effect.Lead = "Drops nothing, in shadow. What it would drop is counted from the start."
	}
	got, err := s.add(r, c, b, p, true)
	if err != nil {
		refusal := s.Refusal(r, err)
		v.Findings = refusal.Findings
		v.Effect.Lead = refusal.Title + "."
	} else {
		v.Findings = page.Findings(got.GetFindings())
	}
	v.Findings = capitals(v.Findings)
	for _, f := range v.Findings {
		if f.Bucket == format.Printable(b.FullName()) {
			v.Effect.Lead = f.Text
		}
	}
	v.Diff = diff.Lines("", limitsfile.BucketText(&b))
	return nil
}

func (v *newView) fields(p *blueprint, wrong []page.Problem) {
	refusal := page.Refusal{Problems: wrong}
	at := refusal.At
	v.Service = page.Field{Name: "service", Label: "Service", Value: p.service, Hint: "That is called.", Error: at("service"), Required: true}
	v.Name = page.Field{Name: "bucket", Label: "Name", Value: p.name, Hint: "Unique in the service.", Error: at("bucket"), Required: true}
	v.Owner = page.Field{Name: "owner", Label: "Owner", Value: p.owner, Hint: "Of a service without limits yet: whose editors may change them.", Error: at("owner")}
	v.Caller = page.Field{Name: "caller", Label: "Caller", Value: p.caller, Hint: "A name, or one that ends in *. Empty: every caller.", Error: at("caller")}
	v.Procedure = page.Field{Name: "procedure", Label: "Procedure", Value: p.procedure, Hint: "Such as payments.v1.Charges/*. Empty: every procedure.", Error: at("procedure")}
	v.Scope = page.Field{Name: "scope", Label: "Scope", Value: p.scope, Error: at("scope")}
	if v.Each = (page.Field{Name: "each", Error: at("each")}); p.each {
		v.Each.Value = "yes"
	}
}

package explain

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"grl/limiter"
	grlv1 "grl/proto/grl/v1"
	"grl/proto/grl/v1/grlv1connect"
	"grl/web/format"
	"grl/web/page"
)

const mostParts = 8 // cells of one bucket that are listed

// scopes says what an instance is.
var scopes = map[grlv1.Scope]string{grlv1.Scope_SCOPE_REGION: "region ", grlv1.Scope_SCOPE_ZONE: "zone "}

// view is the page: the question and, if there is one, its answer.
type view struct {
	question

	Answered bool
	Steps    []step
	Sum      string
	Lacks    page.Silence // what the figures lack
	Reply    reply
	Command  string
	Do       do
}

// step is one on the way of a request, ready to print.
type step struct {
	Number string
	Bucket page.Label // zero: it is none
	Name   string     // of what is not a bucket
	Path   string     // of its page; empty: none
	Off    bool       // it does not matter for this request
	Text   string
	Parts  []string // of a bucket with several cells, one each
	Passes string   // "100%" go on; empty: Out says what happens
	Out    string
	Kind   string // "drop", "virtual" or ""
}

// stage is a bucket on the way with the cells that the request may be in.
type stage struct {
	cells   []*grlv1.ExplainCell
	worst   *grlv1.ExplainCell // highest ratio
	reached float64            // share of the requests that come this far
	shadow  bool
	fleet   *page.Fleet
}

// load says how much of the limit of a cell is offered; see loadOf.
func (s *stage) load(b *grlv1.BucketView) []string {
	return loadOf(b, s.fleet.SilenceOf(b.GetSilentZones()))
}

// ratio is the share that is dropped of what reaches the stage.
func (s *stage) ratio() float64 {
	if s.shadow {
		return 0
	}
	return s.worst.GetBucket().GetDropRatio()
}

// dropped is the share of all requests that is dropped here.
func (s *stage) dropped() float64 { return s.reached * s.ratio() }

// stages groups the cells of an answer by bucket.
func stages(a *grlv1.ExplainResponse, fleet *page.Fleet) []stage {
	var out []stage
	for _, c := range a.GetCells() {
		b := c.GetBucket()
		last := len(out) - 1
		if last < 0 || out[last].worst.GetBucket().GetBucket() != b.GetBucket() {
			shadow := a.GetDisabled() || b.GetBehavior() != grlv1.Behavior_BEHAVIOR_DENY
			out = append(out, stage{worst: c, shadow: shadow, fleet: fleet})
			last++
		}
		s := &out[last]
		s.cells = append(s.cells, c)
		if b.GetDropRatio() > s.worst.GetBucket().GetDropRatio() {
			s.worst = c
		}
	}
	reached := 1.0
	for i := range out {
		out[i].reached = reached
		reached *= 1 - out[i].ratio()
	}
	return out
}

// explain takes over the answer; caps is how many run.
func (v *view) explain(a *grlv1.ExplainResponse, caps int, fleet page.Fleet) {
	v.Answered = true
	all := stages(a, &fleet)
	var silent []string
	for _, z := range a.GetSilent() {
		silent = append(silent, z.GetName())
	}
	v.Lacks = fleet.SilenceOf(silent)
	v.add(v.identity())
	v.add(exempt(a))
	if !a.GetExempt() {
		v.add(killSwitch(a))
	}
	capped := slices.ContainsFunc(all, func(s stage) bool { return s.isCap() })
	if !capped && !a.GetExempt() {
		text := "none is running"
		if caps > 0 {
			text = format.Count(caps) + " running, none for this request"
		}
		v.add(step{Name: "Caps", Off: true, Text: text, Out: "no match"})
	}
	for i := range all {
		v.add(all[i].step(a.GetEpoch()))
	}
	if v.Sum = sum(a, all); v.Lacks.Missing() {
		v.Sum += " This is what is known, " + v.Lacks.Notes()[0] + "."
	}
	v.Command = command(&v.question)
	dropping := worstOf(all)
	v.Reply = newReply(&v.question, a, dropping, fleet.PublicURL)
	v.Do = newDo(&v.question, a, dropping)
}

func (v *view) add(s step) {
	s.Number = strconv.Itoa(len(v.Steps) + 1)
	v.Steps = append(v.Steps, s)
}

// title of the page's window says what is asked.
func (v *view) title() string {
	if !v.asks() {
		return ""
	}
	title := "Explain " + format.Printable(v.Service)
	if v.Caller != "" {
		title = "Explain " + format.Printable(v.Caller) + " → " + format.Printable(v.Service)
	}
	return title
}

func (q *question) identity() step {
	switch {
	case q.Caller == "":
		return step{Name: "No caller is named", Text: "such requests count as " + limiter.UnknownCaller, Out: "unknown"}
	case q.Verified:
		return step{Name: "Caller is " + format.Printable(q.Caller), Text: "proved by a client certificate", Out: "verified"}
	}
	return step{
		Name: "Caller is " + format.Printable(q.Caller), Out: "not verified",
		Text: "by a header; buckets that ask for a verified caller take it as " + limiter.UnknownCaller,
	}
}

func exempt(a *grlv1.ExplainResponse) step {
	if a.GetExempt() {
		return step{Name: "Exempt list", Text: format.Printable(a.GetService()) + " exempts such requests: no limit is looked at", Passes: "100%"}
	}
	return step{Name: "Exempt list", Off: true, Text: "nothing that " + format.Printable(a.GetService()) + " exempts", Out: "no match"}
}

func killSwitch(a *grlv1.ExplainResponse) step {
	if a.GetDisabled() {
		return step{Name: "Dropping is disabled", Text: "what limits would drop is counted as virtual, and admitted", Passes: "100%"}
	}
	return step{Name: "Kill switch", Off: true, Text: "dropping is not disabled", Out: "off"}
}

func (s *stage) isCap() bool { return s.worst.GetBucket().GetCapId() != "" }

// step prints a stage.
func (s *stage) step(epoch uint64) step {
	w := s.worst
	b := w.GetBucket()
	p := step{Bucket: page.NewLabel(b.GetBucket(), "", b.GetCaller(), "")}
	facts := []string{s.matches()}
	if s.isCap() {
		p = step{Name: "Cap by " + format.Printable(w.GetAuthor()), Path: "/caps"}
		facts = append(facts, format.Printable(w.GetReason()), left(w.GetRemainingMs()))
	}
	if len(s.cells) == 1 {
		facts = append(facts, s.load(b)...)
		if b.GetDropRatio() > 0 && b.GetDirectiveAgeMs() >= 0 {
			facts = append(facts, fmt.Sprintf("directive %s old (epoch %s)", age(b.GetDirectiveAgeMs()), format.Count(epoch)))
		}
	} else {
		p.Parts = s.parts()
	}
	switch {
	case s.shadow:
		facts = append(facts, "counted, never ends the walk")
	case s.reached < 1:
		facts = append(facts, "counting only what came this far")
	}
	p.Text = strings.Join(facts, " · ")
	ratio, most := b.GetDropRatio(), ""
	if len(s.cells) > 1 {
		most = "up to "
	}
	switch {
	case ratio == 0:
		p.Passes = "100%"
	case s.shadow:
		p.Kind, p.Out = "virtual", most+format.Share(ratio)+" virtual"
	default:
		p.Kind, p.Out = "drop", most+format.Share(ratio)+" dropped"
	}
	return p
}

// matches says what kind of match the bucket has.
func (s *stage) matches() string {
	caller, procedure := kind("caller", s.worst.GetMatch().GetCaller()), kind("procedure", s.worst.GetMatch().GetProcedure())
	text := "service"
	switch {
	case caller != "" && procedure != "":
		text = caller + " and " + procedure
	case caller+procedure != "":
		text = caller + procedure
	}
	if c := s.worst.GetBucket().GetCaller(); c != "" && caller == "" {
		text = "each caller"
	}
	if s.shadow {
		text += ", shadow"
	}
	return text
}

func kind(noun, pattern string) string {
	switch {
	case pattern == "" || pattern == "*":
		return ""
	case strings.HasSuffix(pattern, "*"):
		return noun + " prefix"
	}
	return noun
}

// loadOf says how much of the limit is offered, where the cell is one of several
// which, and what its candidate would do.
func loadOf(b *grlv1.BucketView, lacks page.Silence) []string {
	var facts []string
	if i := b.GetInstance(); i != "" {
		facts = append(facts, scopes[b.GetScope()]+format.Printable(i))
	}
	if c := b.GetClass(); c != "" {
		facts = append(facts, format.Printable(c))
	}
	if b.GetBlock() {
		facts = append(facts, lacks.AtLeast(format.RPS(b.GetOfferedRps()))+" rps, all blocked")
	} else {
		facts = append(facts, lacks.AtLeast(format.RPS(b.GetOfferedRps()))+" of "+format.RPS(b.GetLimitRps())+" rps")
	}
	if b.GetCandidateDroppedRps() > 0 {
		facts = append(facts, fmt.Sprintf("the candidate of %s rps would drop %s rps more", format.RPS(b.GetCandidateRps()), format.RPS(b.GetCandidateDroppedRps())))
	}
	return facts
}

// parts lists the cells, those that drop most first.
func (s *stage) parts() []string {
	cells := slices.Clone(s.cells)
	slices.SortStableFunc(cells, func(a, b *grlv1.ExplainCell) int {
		switch x, y := a.GetBucket().GetDropRatio(), b.GetBucket().GetDropRatio(); {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return 0
	})
	var out []string
	for i, c := range cells {
		if i == mostParts {
			return append(out, format.Count(len(cells)-i)+" more")
		}
		text := strings.Join(s.load(c.GetBucket()), " · ")
		if ratio := c.GetBucket().GetDropRatio(); ratio > 0 {
			text += " · " + format.Share(ratio)
		}
		out = append(out, text)
	}
	return out
}

// sum adds the walk up in a sentence or two.
func sum(a *grlv1.ExplainResponse, all []stage) string {
	service := format.Printable(a.GetService())
	switch {
	case !a.GetKnown():
		return "All of these requests are admitted: no limit and no cap is known of " + service + "."
	case a.GetExempt():
		return "All of these requests are admitted: " + service + " exempts them."
	case a.GetDisabled():
		return "All of these requests are admitted: dropping is disabled."
	case len(all) == 0:
		return "All of these requests are admitted: no limit of " + service + " is on them."
	case a.GetDropRatio() == 0:
		return "All of these requests are admitted: every limit on them holds what it is offered."
	}
	text := format.Share(1-a.GetDropRatio()) + " of these requests are admitted."
	if a.GetDropRatio() >= 1 {
		text = "None of these requests is admitted."
	}
	if slices.ContainsFunc(all, func(s stage) bool { return len(s.cells) > 1 && s.dropped() > 0 }) {
		text = "Where it is worst, " + strings.ToLower(text[:1]) + text[1:]
	}
	for i := range all {
		if s := &all[i]; s.dropped() > 0 {
			text += " " + s.blame()
		}
	}
	return text
}

// blame says what a stage drops, and why.
func (s *stage) blame() string {
	b := s.worst.GetBucket()
	by := format.Printable(b.GetBucket())
	if s.isCap() {
		by = "the cap by " + format.Printable(s.worst.GetAuthor())
	}
	what := format.Share(s.dropped()) + " are dropped by " + by
	switch {
	case b.GetBlock() && s.worst.GetRemainingMs() >= 0:
		return what + ", which blocks them."
	case b.GetOfferedRps() > b.GetLimitRps():
		return what + ", because " + format.RPS(b.GetOfferedRps()) + " rps are offered and " + format.RPS(b.GetLimitRps()) + " are allowed."
	}
	return what + "."
}

// worstOf returns the stage that drops most of all requests, nil if none does.
func worstOf(all []stage) *stage {
	var worst *stage
	for i := range all {
		if s := &all[i]; s.dropped() > 0 && (worst == nil || s.dropped() > worst.dropped()) {
			worst = s
		}
	}
	return worst
}

func age(ms int64) string { return format.Age(time.Duration(ms) * time.Millisecond) }

func left(ms int64) string {
	if ms <= 0 {
		return "ramps out"
	}
	return "ends in " + format.Left(time.Duration(ms)*time.Millisecond)
}

// do is what the reader can do about the answer.
type do struct {
	Owner   string // to ask for a higher limit; empty: nothing drops, or it has none
	Advice  string // for the caller
	Bucket  string // path of the bucket to look at; empty: none
	Cap     string // path of the running caps, if one of them drops
	CapThis string // path of the form that caps the caller; empty: one may not
	Caller  string
}

func newDo(q *question, a *grlv1.ExplainResponse, dropping *stage) do {
	d := do{Advice: format.Sentence(format.Printable(a.GetAdvice())), Caller: format.Printable(q.Caller)}
	switch {
	case dropping != nil && dropping.isCap():
		d.Cap = "/caps"
	case dropping != nil:
		b := dropping.worst.GetBucket()
		d.Owner = format.Printable(b.GetOwner())
		d.Bucket = page.BucketPath(b.GetBucket(), "", "")
	case q.Bucket != "":
		d.Bucket = page.BucketPath(q.Bucket, "", "")
	}
	if q.Caller != "" && a.GetKnown() {
		d.CapThis = page.CapPath(q.Service, q.Caller, "")
	}
	return d
}

// offer leaves out what who looks may not do.
func (v *view) offer(ctx context.Context, cells []page.Cell) {
	owner := ""
	for i := range cells {
		if cells[i].Service == v.Service {
			owner = cells[i].Owner
			break
		}
	}
	if !page.May(ctx, grlv1connect.IncidentServicePlaceCapProcedure) || !page.MayEdit(ctx, v.Service, owner) {
		v.Do.CapThis = ""
	}
}

package caps

import (
	"context"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"grl/limiter"
	grlv1 "grl/proto/grl/v1"
	"grl/web/format"
	"grl/web/page"
)

// forecast is what a cap would do at the present load.
type forecast struct {
	Gate gate
	// OfferedRPS is what the cap would be tried on now; only if Known.
	OfferedRPS float64
	Known      bool
	DropShare  float64 // of it, in [0, 1]
	Sizes      sizes
	Effect     page.Effect
	// Lacks is what the figures lack of what silent zones offer.
	Lacks page.Silence
	Agree consequence
	// Refused says why this person cannot place it; "": they may.
	Refused string
}

// sizes are what a cap may be set to, in requests per second; 0: not known.
type sizes struct{ Half, Quarter, Usual float64 }

// consequence is what must be agreed to before a cap is placed; zero: nothing.
type consequence struct {
	Key  string // names it: what was ticked for one cap does not count for another
	Text string // a sentence
}

// forecast asks what the cap would do. Here and below cells are those of its
// service.
func (s site) forecast(r *http.Request, q *request, cells []*page.Cell) forecast {
	ctx := r.Context()
	f := forecast{Gate: q.gate()}
	if q.Service == "" {
		f.Effect.Lead = "Name a service, to see what a cap would do."
		return f
	}
	if f.Refused = mayNot(ctx, q, ownerOf(cells)); f.Refused != "" {
		f.Effect.Lead = f.Refused
		return f
	}
	answer, err := s.Services.Incident.PlaceCap(ctx, trial(q, f.Gate))
	if err != nil {
		f.Effect.Lead = "Cannot tell: " + problems(s.Refusal(r, err))
		return f
	}
	f.take(answer.GetEffect())
	f.Lacks = lacksOf(s.Backend, cells)
	if usual, known, err := s.Backend.Usual(ctx, q.Service, q.match()); err == nil && known && usual > 0 {
		f.Sizes.Usual = twoDigits(usual)
	}
	return f
}

// settle says what there is to say, once it is known which size is meant.
func (f *forecast) settle(ctx context.Context, q *request, cells []*page.Cell, now time.Time) {
	if f.Effect.Lead != "" {
		return
	}
	f.say(q)
	f.facts(q, cells, now)
	f.Agree = f.consequence(ctx, q)
}

// mayNot says why who asks cannot place the cap; "": they may.
func mayNot(ctx context.Context, q *request, owner string) string {
	service := format.Printable(q.Service)
	switch {
	case !page.MayEdit(ctx, q.Service, owner) && owner == "":
		return "Only editors of " + service + " may cap it."
	case !page.MayEdit(ctx, q.Service, owner):
		return "Editors of " + service + ": " + format.Printable(owner) + "."
	case q.everything() && !page.MayForce(ctx):
		return "A cap over all of " + service + " needs an admin: name a caller or a procedure."
	}
	return ""
}

// trial asks what a cap would do. How long and why do not matter to that; a gate
// that is not there yet is asked as a block, for what is offered.
func trial(q *request, g gate) *grlv1.PlaceCapRequest {
	r := &grlv1.PlaceCapRequest{
		Service: q.Service, Caller: q.Caller, Procedure: q.Procedure,
		DurationMs: time.Hour.Milliseconds(), Reason: "what it would do", DryRun: true,
	}
	if g.Block || g.Problem != "" {
		r.Gate = &grlv1.PlaceCapRequest_Block{Block: true}
	} else {
		r.Gate = &grlv1.PlaceCapRequest_Rps{Rps: g.RPS}
	}
	return r
}

// problems are those of a refusal in one line.
func problems(f page.Refusal) string {
	var texts []string
	for _, p := range f.Problems {
		texts = append(texts, p.Field+" "+p.Text)
	}
	if len(texts) == 0 {
		return f.Title
	}
	return strings.Join(texts, "; ")
}

// lacksOf returns what is not known of what is offered to a service.
func lacksOf(b page.Backend, cells []*page.Cell) page.Silence {
	of := make([]page.Cell, 0, len(cells))
	for _, c := range cells {
		of = append(of, page.Cell{SilentZones: c.SilentZones})
	}
	return page.SilenceIn(b, of)
}

func (f *forecast) take(e *grlv1.CapEffect) {
	f.OfferedRPS, f.Known, f.DropShare = e.GetOfferedRps(), e.OfferedRps != nil, e.GetDropShare()
	if f.OfferedRPS > 0 {
		f.Sizes.Half, f.Sizes.Quarter = twoDigits(f.OfferedRPS/2), twoDigits(f.OfferedRPS/4)
	}
}

// twoDigits rounds a number of requests per second to one that people say.
func twoDigits(rps float64) float64 {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(rps, 'g', 2, 64), 64)
	if err != nil {
		return 0
	}
	return max(rounded, minRPS)
}

// choose takes a size by its name, at what it stands for now.
func (f *forecast) choose(q *request, size string) {
	number := map[string]float64{"half": f.Sizes.Half, "quarter": f.Sizes.Quarter, "usual": f.Sizes.Usual}[size]
	if number == 0 {
		return
	}
	q.Typed = plain(number)
	q.To, q.Was = size+" "+q.Typed, q.Typed
	f.Gate = gate{RPS: number, Size: size}
	f.DropShare = max(0, (f.OfferedRPS-number)/f.OfferedRPS)
}

// plain prints a number as one types it.
func plain(rps float64) string { return strconv.FormatFloat(rps, 'f', -1, 64) }

// percent prints a share without needless zeros: 75%, 15.3%.
func percent(share float64) string { return strings.Replace(format.Share(share), ".0%", "%", 1) }

// say puts the effect into a sentence.
func (f *forecast) say(q *request) {
	who := whose(q.Service, q.match())
	e := &f.Effect
	switch {
	case !f.Known:
		e.Lead = "Cannot tell: no bucket counts just these requests."
	case f.OfferedRPS == 0:
		e.Lead = "Would drop nothing now: " + who + " sends nothing."
		if anyOf(q.match().Caller) {
			e.Lead = "Would drop nothing now: " + who + " is sent nothing."
		}
	case f.Gate.Problem != "":
		e.Lead = f.Gate.Problem
	case f.DropShare == 0:
		e.Lead = "Would drop nothing of " + who + " now."
	case f.Gate.Block:
		e.Lead, e.Bad = "Would drop all of "+who+" now.", true
	default:
		e.Lead, e.Bad = "Would drop "+percent(f.DropShare)+" of "+who+" now.", true
	}
}

// facts are the numbers behind the sentence.
func (f *forecast) facts(q *request, cells []*page.Cell, now time.Time) {
	add := func(name, value string) { f.Effect.Facts = append(f.Effect.Facts, page.Fact{Name: name, Value: value}) }
	if f.Known {
		add("Offered now", f.Lacks.AtLeast(format.RPS(f.OfferedRPS)+" rps"))
		for _, note := range f.Lacks.Notes() {
			add("Not all is heard", note)
		}
	}
	if already := capped(cells, q); already > 0 {
		add("Dropped already, by running caps", format.RPS(already)+" rps")
	}
	if f.Gate.Problem == "" {
		if f.Known {
			add("Admitted under the cap", format.RPS(f.OfferedRPS*(1-f.DropShare))+" rps")
		}
		switch m := q.match(); {
		case !anyOf(m.Caller):
			add("Other callers of "+format.Printable(q.Service), "not touched")
		case !anyOf(m.Procedure):
			add("Other procedures of "+format.Printable(q.Service), "not touched")
		}
		f.Effect.Facts = append(f.Effect.Facts, f.relief(q, cells)...)
	}
	if d, problem := q.span(now); problem == "" {
		f.Effect.Facts = append(f.Effect.Facts, page.Fact{Name: "Ends, with a ramp of 2 min, at", At: format.NewStamp(now.Add(d), now)})
	}
}

// capped is what running caps drop now of what a cap selects, in requests per
// second.
func capped(cells []*page.Cell, q *request) (rps float64) {
	for _, c := range cells {
		if c.Cap != "" && within(c.Selects, q.match()) {
			rps += c.DroppedRPS
		}
	}
	return rps
}

// mostRelief is how many buckets are named that would drop less.
const mostRelief = 3

// relief says what buckets that drop now would drop under the cap, which is
// tried before them: those whose requests it all selects, and those that it is
// within. Where a cap runs already, who drops what cannot be told apart.
func (f *forecast) relief(q *request, cells []*page.Cell) []page.Fact {
	type relieved struct {
		cell  *page.Cell
		ratio float64
	}
	var found []relieved
	for _, c := range cells {
		if c.Cap != "" {
			return nil
		}
		if c.Block || c.Scope != limiter.Global || c.Caller != "" || c.Class != "" || c.DropRatio() == 0 {
			continue
		}
		less := 0.0
		switch {
		case within(c.Selects, q.match()):
			less = c.OfferedRPS * f.DropShare
		case within(q.match(), c.Selects):
			less = min(c.OfferedRPS, f.OfferedRPS*f.DropShare)
		}
		if less > 0 {
			found = append(found, relieved{c, ratioOf(c.OfferedRPS-less, c.LimitRPS)})
		}
	}
	slices.SortFunc(found, func(a, b relieved) int {
		if a.cell.Ratio != b.cell.Ratio {
			return int(math.Copysign(1, b.cell.Ratio-a.cell.Ratio))
		}
		return strings.Compare(a.cell.Name, b.cell.Name)
	})
	var facts []page.Fact
	for _, r := range found[:min(len(found), mostRelief)] {
		facts = append(facts, page.Fact{
			Name: format.Printable(r.cell.Bucket()) + " would drop", Old: percent(r.cell.DropRatio()), Value: percent(r.ratio),
		})
	}
	return facts
}

// ratioOf is the share of what is offered that a limit drops.
func ratioOf(offered, limit float64) float64 {
	if offered <= limit {
		return 0
	}
	return (offered - limit) / offered
}

// Of a caller with more than busyRPS, dropping more than mostShare must be agreed
// to.
const (
	busyRPS   = 100
	mostShare = 0.9
)

// consequence is what must be agreed to: a block, nearly all of a busy caller,
// or a cap over all of a service, which is what force is for.
func (f *forecast) consequence(ctx context.Context, q *request) consequence {
	who := whose(q.Service, q.match())
	var kind, text string
	switch {
	case f.Gate.Problem != "":
		return consequence{}
	case q.everything() && !page.MayForce(ctx):
		return consequence{}
	case q.everything() && f.Gate.Block:
		kind, text = "block", "Yes, drop everything that "+who+" is sent"
	case q.everything():
		kind, text = "everything", "Yes, cap everything that "+who+" is sent"
	case f.Gate.Block:
		kind, text = "block", "Yes, drop all of "+who
	case f.DropShare > mostShare && f.OfferedRPS > busyRPS:
		kind, text = "most", "Yes, drop "+percent(f.DropShare)+" of "+who
	default:
		return consequence{}
	}
	key := url.Values{"kind": {kind}, "service": {q.Service}, "caller": {q.Caller}, "procedure": {q.Procedure}}
	return consequence{key.Encode(), text}
}

// cellsOf returns the cells of a service.
func cellsOf(cells []page.Cell, service string) []*page.Cell {
	var own []*page.Cell
	for i := range cells {
		if cells[i].Service == service {
			own = append(own, &cells[i])
		}
	}
	return own
}

// ownerOf returns the owner of a service, "" if it has none or no limits.
func ownerOf(cells []*page.Cell) string {
	for _, c := range cells {
		if c.Owner != "" {
			return c.Owner
		}
	}
	return ""
}

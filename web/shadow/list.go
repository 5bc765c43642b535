package shadow

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"math"
	"net/http"
	"strconv"
	"strings"

	"grl/limiter"
	"grl/policy/verdict"
	"grl/proto/grl/v1/grlv1connect"
	"grl/web/chart"
	"grl/web/format"
	"grl/web/page"
)

// listView is the list, ready to print.
type listView struct {
	Query     query
	Facts     []string
	Tabs      []tab
	Rows      []row
	Pager     page.Pager
	Any       bool         // something is not enforced
	Reading   string       // how much of the history was read; "": all
	LeftOut   string       // "": nothing
	MayChoose bool         // a row can be ticked
	Base      string       // revision that the list shows
	Parent    string       // where limits are changed; "": here
	Lacks     page.Silence // what the history lacks of these limits
}

// tab is a verdict with its count.
type tab struct {
	Name, Count, URL string
	Current          bool
}

// row is one limit, ready to print.
type row struct {
	ID, Bucket         string
	Label              page.Label
	Kind, Symbol, Word string
	Say                []verdict.Phrase
	Spark              chart.Sparkline
	Facts              []page.Fact
	Heat               *chart.WeekHeat // nil: it is not open
	HeatNote           string
	HeatURL            string // opens the map; "": there is nothing in it
	Promote, Try       string // URLs; "": not offered
	Anyway             bool   // to promote is against the verdict
	May                bool   // be ticked
}

// newListView returns what q shows of the present evidence.
func (s site) newListView(r *http.Request, q query) listView {
	past := s.Backend.Past()
	cells := s.Backend.Cells()
	limits := collect(cells, past)
	v := listView{Query: q, Any: len(limits) > 0, Base: strconv.FormatUint(s.Backend.Fleet().Revision, 10)}
	v.Facts = factsOf(limits)
	v.Lacks = page.SilenceIn(s.Backend, unenforced(cells))
	if past.At.IsZero() || past.Read < 1 {
		v.Reading = format.Share(past.Read)
	}
	if past.LeftOut > 0 {
		v.LeftOut = format.Plural(past.LeftOut, "cell") + " with history beyond what is kept in memory: not judged"
	}
	found := q.count(&v, limits)
	var from, to int
	v.Pager, from, to = page.NewPager(len(found), pageRows, q.Page, func(n int) string { return q.onPage(n).url() })
	shown := page.Window(found, from, to, func(i, j int) int {
		return cmp.Or(orders[q.Sort](&limits[i], &limits[j]), strings.Compare(limits[i].name, limits[j].name))
	})
	v.Query.Open = openOf(q, limits, shown)
	if s.Services.Elsewhere != "" {
		v.Parent = s.Services.Elsewhere
	}
	for _, i := range shown {
		row := newRow(&limits[i], v.Query, s.mayPromote(r.Context(), &limits[i]))
		v.MayChoose = v.MayChoose || row.May
		v.Rows = append(v.Rows, row)
	}
	return v
}

// unenforced returns the cells that the page is about.
func unenforced(cells []page.Cell) []page.Cell {
	var out []page.Cell
	for i := range cells {
		if c := &cells[i]; len(c.SilentZones) > 0 && c.Cap == "" && (c.Behavior != limiter.Deny || c.CandidateRPS > 0) {
			out = append(out, *c)
		}
	}
	return out
}

// mayPromote reports whether who looks may promote a limit here.
func (s site) mayPromote(ctx context.Context, l *limit) bool {
	return s.Services.Config != nil && page.May(ctx, grlv1connect.ConfigServicePromoteProcedure) && page.MayEdit(ctx, l.service, l.owner)
}

// factsOf says how many limits there are, and over how long they are judged.
func factsOf(limits []limit) []string {
	shadow, candidates, days := 0, 0, 0.0
	for i := range limits {
		if limits[i].candidate {
			candidates++
		} else {
			shadow++
		}
		days = max(days, limits[i].days())
	}
	facts := []string{format.Plural(shadow, "bucket") + " in shadow and " + format.Plural(candidates, "candidate")}
	switch {
	case days >= 14:
		facts = append(facts, fmt.Sprintf("judged over up to %d weeks", int(math.Round(days/7))))
	case days >= 2:
		facts = append(facts, fmt.Sprintf("judged over up to %d days", int(days)))
	}
	return append(facts, "nothing here drops a request")
}

// count fills in the tabs and returns the places of the limits to show.
func (q query) count(v *listView, limits []limit) []int {
	words := strings.Fields(strings.ToLower(q.Text))
	var found []int
	all, of := 0, make(map[verdict.Kind]int)
	for i := range limits {
		if !q.selects(&limits[i], words) {
			continue
		}
		all++
		of[limits[i].kind]++
		if q.ofKind(limits[i].kind) {
			found = append(found, i)
		}
	}
	v.Tabs = []tab{{Name: "All", Count: format.Count(all), URL: q.of("").url(), Current: q.Kind == ""}}
	for _, k := range kinds {
		v.Tabs = append(v.Tabs, tab{Name: k.kind.String(), Count: format.Count(of[k.kind]), URL: q.of(k.value).url(), Current: q.Kind == k.value})
	}
	return found
}

// openOf returns whose map is open: that asked for or, if none is, that of the
// first limit that would hurt.
func openOf(q query, limits []limit, shown []int) string {
	if q.Open != "" {
		return q.Open
	}
	for _, i := range shown {
		if limits[i].kind == verdict.WouldHurt {
			return limits[i].name
		}
	}
	return ""
}

func newRow(l *limit, q query, may bool) row {
	r := row{
		ID: idOf(l.name), Bucket: l.name, Label: page.NewLabel(l.name, "", "", l.match),
		Kind: "waiting", Symbol: "clock", Word: l.kind.String(), Facts: l.facts(), May: may,
	}
	switch l.kind {
	case verdict.Safe:
		r.Kind, r.Symbol = "good", "ok"
	case verdict.WouldHurt:
		r.Kind, r.Symbol, r.Anyway = "over", "over", true
	}
	if may && l.kind != verdict.TooLittle {
		r.Promote = promotePath(l.name)
	}
	if may && l.kind == verdict.WouldHurt {
		r.Try = r.Label.Path
	}
	if l.worst == nil {
		r.Say = []verdict.Phrase{{Text: "Nothing was counted yet. A verdict needs 7 days with a weekend."}}
		return r
	}
	r.Say = printable(l.worst.Sentences(l.words()))
	r.Spark = l.spark()
	if l.worst.Dropped > 0 {
		r.HeatURL = q.opening(l.name).url() + "#" + r.ID
		if q.Open == l.name {
			r.Heat = &chart.WeekHeat{Label: "Share that would have been dropped by weekday and hour, darkest is most", Shares: l.worst.ByHour}
			r.HeatNote = "Weekday by hour, UTC. Darkest cell: " + verdict.Percent(darkest(&l.worst.ByHour)) + " of the requests of that hour."
			if l.cells > 1 {
				r.HeatNote += " Of the cell that would be hurt most."
			}
		}
	}
	return r
}

// idOf returns an id of an element for a name, which may have any characters.
func idOf(name string) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name)) // never fails
	return fmt.Sprintf("limit-%x", h.Sum64())
}

// printable returns phrases fit to print.
func printable(phrases []verdict.Phrase) []verdict.Phrase {
	for i := range phrases {
		phrases[i].Text = format.Printable(phrases[i].Text)
	}
	return phrases
}

func darkest(byHour *[7][24]float64) float64 {
	most := 0.0
	for d := range byHour {
		for _, share := range byHour[d] {
			if share > most {
				most = share
			}
		}
	}
	return most
}

// spark returns the curve of the cell that would be hurt most.
func (l *limit) spark() chart.Sparkline {
	s := chart.Sparkline{Wide: true, Shadow: true, LimitRPS: l.rps, Label: "Highest seconds stay below the limit"}
	if l.worst.Highest > l.rps {
		s.Label = "Highest seconds pass the limit"
	}
	for _, v := range l.worst.Curve {
		s.Values = append(s.Values, float64(v))
	}
	return s
}

// facts are the numbers beside the curve.
func (l *limit) facts() []page.Fact {
	var facts []page.Fact
	add := func(name, value string) { facts = append(facts, page.Fact{Name: name, Value: value}) }
	unit := " rps"
	if l.perCaller {
		unit = " rps per caller"
	}
	switch {
	case l.block:
		add("Limit", "block")
	case l.candidate:
		add("Candidate", format.RPS(l.rps)+unit)
		add("Limit today", format.RPS(l.today)+unit)
	default:
		add("Limit", format.RPS(l.rps)+unit)
	}
	if l.worst == nil {
		return facts
	}
	name := "Virtual drops"
	if l.kind == verdict.TooLittle {
		name += " so far"
	}
	add(name, lossText(l.lost, l.offered))
	if l.lost > 0 && l.hit != "" {
		add("Most hit caller", format.Printable(l.hit)+", "+verdict.Percent(l.hitShare))
	}
	if l.cells > 1 && l.worst.Cell.Instance != "" && l.worst.Dropped > 0 {
		add("Most hit in", format.Printable(l.worst.Cell.Instance))
	}
	return facts
}

// lossText says how many requests of how many would have been dropped.
func lossText(lost, offered float64) string {
	if lost <= 0 {
		return "0 of " + format.Size(offered)
	}
	return format.Share(lost/offered) + " of " + format.Size(offered)
}

// chosenText says what chosen limits would have done together.
func chosenText(limits []limit) string {
	if len(limits) == 0 {
		return "Tick limits to promote several at once."
	}
	of := make(map[verdict.Kind]int)
	offered, lost := 0.0, 0.0
	for i := range limits {
		of[limits[i].kind]++
		offered += limits[i].offered
		lost += limits[i].lost
	}
	var parts []string
	for _, k := range []struct {
		kind verdict.Kind
		text string
	}{{verdict.WouldHurt, "would hurt"}, {verdict.TooLittle, "with too little data"}, {verdict.Safe, "safe to enforce"}} {
		switch n := of[k.kind]; {
		case n > 0 && n == len(limits) && n > 1:
			parts = append(parts, "all "+k.text)
		case n > 0 && n == len(limits):
			parts = append(parts, k.text)
		case n > 0:
			parts = append(parts, format.Count(n)+" "+k.text)
		}
	}
	return strings.Join(parts, ", ") + ": " + lossText(lost, offered) + " requests dropped in the time judged"
}

package bucket

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/a-h/templ"

	"grl/limiter"
	grlv1 "grl/proto/grl/v1"
	"grl/proto/grl/v1/grlv1connect"
	"grl/web/chart"
	"grl/web/format"
	"grl/web/page"
)

// tableView is the load of a bucket by caller, zone or region.
type tableView struct {
	ID, Title, Caption, Note string
	First                    string // head of the column of names
	Unit                     string // of the numbers
	Tabs                     []tab
	TabsName                 string
	All, AllURL              string // a link to all rows; "": they are all here
	Rows                     []row
	Since                    format.Stamp // when what is counted began; zero: it is of now
	Empty                    string       // what to say where there is none
}

// row is one caller, zone or region, ready to print.
type row struct {
	Name, Path                 string // Path "": no link
	Cap                        string // "400 rps": it is capped; "": it is not
	CapPath                    string // of the form that caps it; "": it is capped, or this person may not
	CutOff                     string // "Cut off, 18 s left: last known"; "": it is not
	Bar                        chart.Bar
	Offered, Admitted, Dropped string
	Cut                        bool // something is dropped
}

const topRows = 6

// amount is what one row counts, in requests per second or in requests.
type amount struct {
	name                     string
	path, capPath            string
	offered, dropped, shadow float64
	capped, cutOff           string
	unknown                  bool // nothing is known of it now
	lacks                    bool // a part of it is not known
	rest                     bool // it is no single one
}

func (a *amount) add(b amount) {
	a.offered += b.offered
	a.dropped += b.dropped
	a.shadow += b.shadow
	a.lacks = a.lacks || b.lacks
}

// text prints a number of it: "–" if it is not known, "≥ 240" if a part is not.
func (a *amount) text(number string) string {
	switch {
	case a.unknown:
		return "–"
	case a.lacks:
		return page.AtLeast(number)
	}
	return number
}

// rowsOf returns the largest amounts and, as one row, the rest.
func rowsOf(amounts []amount, most int, others string, print func(float64) string) []row {
	slices.SortStableFunc(amounts, func(a, b amount) int { return cmp.Compare(b.offered, a.offered) })
	if len(amounts) > most+1 {
		rest := amount{name: format.Plural(len(amounts)-most, "other "+others)}
		for _, a := range amounts[most:] {
			rest.add(a)
		}
		amounts = append(slices.Clone(amounts[:most]), rest)
	}
	scale := 0.0
	for _, a := range amounts {
		scale = max(scale, a.offered)
	}
	var out []row
	for _, a := range amounts {
		admitted := max(0, a.offered-a.dropped)
		out = append(out, row{
			Name: format.Printable(a.name), Path: a.path, Cap: a.capped, CapPath: a.capPath, CutOff: a.cutOff,
			Bar:     chart.Bar{Admitted: admitted, Dropped: a.dropped, Virtual: a.shadow, Of: scale},
			Offered: a.text(print(a.offered)), Admitted: a.text(print(admitted)), Dropped: a.text(print(a.dropped)), Cut: a.dropped > 0,
		})
	}
	return out
}

func (s site) callers(ctx context.Context, q query) (templ.Component, error) {
	v, err := s.callersView(ctx, q)
	return loadTable(v), err
}

// callersView shows who sends: from the cells where each caller has one, else
// from what hosts counted in the last hour.
func (s site) callersView(ctx context.Context, q query) (tableView, error) {
	v := tableView{ID: "callers", Title: "By caller", Caption: "Load by caller", First: "Caller", Unit: "rps"}
	most := topRows
	if q.AllCallers {
		most = mostCallers
	}
	caps, err := s.capsOf(ctx, q.Service)
	if err != nil {
		return v, err
	}
	seen := s.cells(q)
	if amounts := callersOf(q, &seen, caps); len(amounts) > 0 {
		linkCaps(ctx, q, &seen, amounts)
		v.Note = "each caller has a cell of its own, now"
		v.all(q, len(amounts), most)
		v.Rows = rowsOf(amounts, most, "caller", format.RPS)
		return v, nil
	}
	got, err := s.Services.View.GetTraffic(ctx, &grlv1.GetTrafficRequest{Service: q.Service})
	if err != nil {
		return v, err
	}
	amounts, since := trafficOf(q.bucket(), got.GetHours(), time.Now(), caps)
	linkCaps(ctx, q, &seen, amounts)
	v.Unit, v.Note = "requests", "every caller gets the same drop ratio"
	if !since.IsZero() {
		v.Since = format.NewStamp(since, time.Now())
	}
	v.all(q, len(amounts), most)
	v.Rows = rowsOf(amounts, most, "caller", format.Size)
	v.Empty = "No caller was seen in this hour or the one before."
	return v, nil
}

// linkCaps leads from each caller without a cap to the form for one, if this
// person may place it.
func linkCaps(ctx context.Context, q query, seen *sum, amounts []amount) {
	first := seen.first()
	if !page.May(ctx, grlv1connect.IncidentServicePlaceCapProcedure) || !page.MayEdit(ctx, q.Service, first.Owner) {
		return
	}
	for i := range amounts {
		if a := &amounts[i]; a.capped == "" && !a.rest {
			a.capPath = page.CapPath(q.Service, a.name, exactly(first.Selects.Procedure))
		}
	}
}

// mostCallers is how many are shown if all are asked for: aggregators name as
// many.
const mostCallers = 50

// all sets the link to all rows.
func (v *tableView) all(q query, n, most int) {
	if n > most+1 && !q.AllCallers {
		q.AllCallers = true
		v.All, v.AllURL = "All "+format.Count(n), q.path("")
	}
}

// callersOf sums the cells of each caller.
func callersOf(q query, seen *sum, caps map[string]string) []amount {
	at := make(map[string]int)
	var out []amount
	for i := range seen.cells {
		c := &seen.cells[i]
		if c.Caller == "" {
			continue
		}
		k, ok := at[c.Caller]
		if !ok {
			k = len(out)
			at[c.Caller] = k
			out = append(out, amount{name: c.Caller, path: q.of(q.Instance, c.Caller).path(""), capped: caps[c.Caller]})
		}
		out[k].add(amount{offered: c.OfferedRPS, dropped: c.DroppedRPS, shadow: c.ShadowDroppedRPS, lacks: seen.lacks.Missing()})
	}
	return out
}

// trafficOf sums what callers sent in this hour and the one before.
func trafficOf(bucket string, hours []*grlv1.TrafficHour, now time.Time, caps map[string]string) (out []amount, since time.Time) {
	at := make(map[string]int)
	first := now.Truncate(time.Hour).Add(-time.Hour)
	rest := amount{name: "others", rest: true}
	for _, h := range hours {
		start := time.UnixMilli(h.GetStartMs())
		if start.Before(first) {
			continue
		}
		for _, b := range h.GetBuckets() {
			if b.GetBucket() != bucket {
				continue
			}
			since = start
			rest.add(amountOf(b.GetRest()))
			for _, c := range b.GetCallers() {
				k, ok := at[c.GetCaller()]
				if !ok {
					k = len(out)
					at[c.GetCaller()] = k
					out = append(out, amount{name: c.GetCaller(), capped: caps[c.GetCaller()]})
				}
				out[k].add(amountOf(c))
			}
		}
	}
	if rest.offered > 0 {
		out = append(out, rest)
	}
	return out, since
}

func amountOf(c *grlv1.CallerCounts) amount {
	return amount{offered: float64(c.GetOffered()), dropped: float64(c.GetDropped()), shadow: float64(c.GetShadowDropped())}
}

// capsOf returns what running caps of a service say, by the caller that they name.
func (s site) capsOf(ctx context.Context, service string) (map[string]string, error) {
	if s.Services.Incident == nil {
		return nil, nil
	}
	got, err := s.Services.Incident.ListCaps(ctx, &grlv1.ListCapsRequest{})
	if err != nil {
		return nil, err
	}
	out := make(map[string]string)
	for _, v := range got.GetCaps() {
		c := v.GetCap()
		caller := c.GetMatch().GetCaller()
		if c.GetService() != service || caller == "" || exactly(limiter.Pattern(caller)) == "" || c.GetRemainingMs() <= 0 {
			continue
		}
		if out[caller] = format.RPS(c.GetLimit().GetRps()) + " rps"; c.GetBlock() {
			out[caller] = "Block"
		}
	}
	return out, nil
}

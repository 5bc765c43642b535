package caps

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/a-h/templ"

	"grl/limiter"
	grlv1 "grl/proto/grl/v1"
	"grl/proto/grl/v1/grlv1connect"
	"grl/web/chart"
	"grl/web/format"
	"grl/web/page"
)

// running are the caps in force and those that ramp out, ready to print.
type running struct {
	Lacks page.Silence // what the figures lack
	Note  string       // how many
	Rows  []runningCap
	Pager *page.Pager // nil: all are on one page
	// Stream is the path of the events with the same page.
	Stream string
	// Problem says that they cannot be read; "": they can.
	Problem string
}

// runningCap is one of them.
type runningCap struct {
	ID        string
	What, Why string
	Gate      string // "400 rps"; "Blocked"
	Block     bool
	Left      string
	Ends      format.Stamp
	Ramps     bool // it has ended
	Bar       chart.Bar
	Now       string // what it drops
	Confirmed string
	Author    string
	Placed    format.Stamp
	May       bool   // lift it, and extend it
	Base      string // id and present end, for extending it
	Longer    string // path of the form for another end
	Permanent string // path of the form of a bucket that lasts
}

// match is what a cap selects.
func match(c *grlv1.Cap) limiter.Match {
	return limiter.Match{Caller: limiter.Pattern(c.GetMatch().GetCaller()), Procedure: limiter.Pattern(c.GetMatch().GetProcedure())}
}

// running reads the caps.
func (s site) running(ctx context.Context) ([]*grlv1.CapView, error) {
	list, err := s.Services.Incident.ListCaps(ctx, &grlv1.ListCapsRequest{})
	if err != nil {
		return nil, err
	}
	return list.GetCaps(), nil
}

// stream answers with the region of the running caps, as it is each second.
func (s site) stream(w http.ResponseWriter, r *http.Request) {
	number := pageOf(r)
	s.Stream(w, r, time.Second, func(ctx context.Context) templ.Component {
		caps, err := s.running(ctx)
		if err != nil {
			return runningContent(running{Problem: s.Refusal(r, err).Title})
		}
		cells := s.Backend.Cells()
		v := newRunning(ctx, caps, owners(cells, services(caps)), number, time.Now())
		v.lack(s.Backend, cells)
		return runningContent(v)
	})
}

// pageOf returns which page of the running caps is asked for, from 1.
func pageOf(r *http.Request) int {
	number, err := strconv.Atoi(r.URL.Query().Get("page"))
	if err != nil || number < 1 {
		return 1
	}
	return number
}

// pagePath is the path of a page of the running caps, below prefix.
func pagePath(prefix string, number int) string {
	if number <= 1 {
		return prefix
	}
	return prefix + "?page=" + strconv.Itoa(number)
}

// services returns the services that are capped.
func services(caps []*grlv1.CapView) []string {
	var names []string
	for _, c := range caps {
		names = append(names, c.GetCap().GetService())
	}
	return names
}

// owners returns the owners of services, by name.
func owners(cells []page.Cell, services []string) map[string]string {
	of := make(map[string]string)
	for _, name := range services {
		of[name] = ""
	}
	if len(of) == 0 {
		return of
	}
	for i := range cells {
		if owner, asked := of[cells[i].Service]; asked && owner == "" {
			of[cells[i].Service] = cells[i].Owner
		}
	}
	return of
}

// mostRunning is how many caps a page lists.
const mostRunning = 50

// newRunning returns a page of the caps, from 1.
func newRunning(ctx context.Context, caps []*grlv1.CapView, owners map[string]string, number int, now time.Time) running {
	v := running{Stream: pagePath("/caps/events", number)}
	widest := 0.0
	for _, c := range caps {
		widest = max(widest, c.GetOfferedRps())
	}
	inForce := 0
	for _, c := range caps {
		row := newRunningCap(ctx, c, owners, now)
		row.Bar.Of = widest
		if !row.Ramps {
			inForce++
		}
		v.Rows = append(v.Rows, row)
	}
	if len(v.Rows) > mostRunning || number > 1 {
		pager, from, to := page.NewPager(len(v.Rows), mostRunning, number, func(n int) string { return pagePath("/caps", n) + "#running" })
		v.Rows, v.Pager = v.Rows[from:to], &pager
	}
	v.Note = format.Plural(inForce, "cap")
	return v
}

func newRunningCap(ctx context.Context, v *grlv1.CapView, owners map[string]string, now time.Time) runningCap {
	c := v.GetCap()
	ends := time.UnixMilli(v.GetEndsAtMs())
	r := runningCap{
		ID:     c.GetId(),
		What:   arrow(c.GetService(), match(c)),
		Why:    format.Printable(c.GetReason()),
		Gate:   format.RPS(c.GetLimit().GetRps()) + " rps",
		Block:  c.GetBlock(),
		Left:   format.Left(ends.Sub(now)),
		Ends:   format.NewStamp(ends, now),
		Ramps:  !ends.After(now),
		Now:    dropping(v),
		Author: format.Printable(c.GetAuthor()),
		Placed: format.NewStamp(time.UnixMilli(v.GetPlacedAtMs()), now),
		Base:   c.GetId() + " " + strconv.FormatInt(v.GetEndsAtMs(), 10),
		Longer: "/caps?" + url.Values{"extend": {c.GetId()}}.Encode() + "#extend",

		Confirmed: "confirmed by " + confirmed(v) + unheard(v),
		Permanent: permanent(c),
		May:       page.May(ctx, grlv1connect.IncidentServiceLiftCapProcedure) && page.MayEdit(ctx, c.GetService(), owners[c.GetService()]),
	}
	r.Bar.Admitted, r.Bar.Dropped = v.GetOfferedRps()-v.GetDroppedRps(), v.GetDroppedRps()
	if r.Block {
		r.Gate = "Blocked"
	}
	return r
}

// dropping says what a cap does now.
func dropping(v *grlv1.CapView) string {
	offered, dropped := v.GetOfferedRps(), v.GetDroppedRps()
	switch {
	case offered <= 0:
		return "drops nothing: nothing is offered"
	case dropped <= 0:
		return "drops nothing of " + format.RPS(offered) + " rps"
	case v.GetCap().GetBlock() && dropped >= offered*0.9995:
		return "drops everything: " + format.RPS(offered) + " rps"
	}
	return "drops " + format.Share(dropped/offered) + " now: " + format.RPS(dropped) + " of " + format.RPS(offered) + " rps"
}

// lack says what the figures of the caps lack of what silent zones offer.
func (v *running) lack(b page.Backend, cells []page.Cell) {
	var of []page.Cell
	for i := range cells {
		if cells[i].Cap != "" && len(cells[i].SilentZones) > 0 {
			of = append(of, cells[i])
		}
	}
	v.Lacks = page.SilenceIn(b, of)
	for i := range v.Rows {
		for _, note := range v.Lacks.Notes() {
			v.Rows[i].Now += " (" + note + ")"
		}
	}
}

// unheard names the sidecars of which nothing is heard, after those that
// confirmed; "": there are none.
func unheard(v *grlv1.CapView) string {
	if n := v.GetClientsUnheard(); n > 0 {
		return ", " + format.Count(uint64(n)) + " more not heard"
	}
	return ""
}

// confirmed says who holds a cap: "96,377 of 96,402 sidecars".
func confirmed(v *grlv1.CapView) string {
	return format.Count(uint64(v.GetClientsHolding())) + " of " + format.Plural(int(v.GetClients()), "sidecar")
}

// permanent is where a cap becomes a bucket that lasts.
func permanent(c *grlv1.Cap) string {
	q := url.Values{"service": {c.GetService()}}
	if caller := c.GetMatch().GetCaller(); caller != "" {
		q.Set("caller", caller)
	}
	if procedure := c.GetMatch().GetProcedure(); procedure != "" {
		q.Set("procedure", procedure)
	}
	if rps := c.GetLimit().GetRps(); rps > 0 {
		q.Set("rps", plain(rps))
	}
	return "/bucket/new?" + q.Encode()
}

// find returns the cap of an id, nil if there is none.
func find(caps []*grlv1.CapView, id string) *grlv1.CapView {
	for _, c := range caps {
		if c.GetCap().GetId() == id {
			return c
		}
	}
	return nil
}

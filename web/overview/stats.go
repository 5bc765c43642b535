package overview

import (
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"grl/limiter"
	"grl/web/format"
	"grl/web/page"
)

// stats are the few numbers of the page.
type stats struct {
	None    bool // nothing is limited
	Unheard bool // no host was ever heard of

	Offered, Admitted, Dropped, Virtual stat
	OfOffered, VirtualOfOffered         string // shares; empty: nothing is offered
	Over, Buckets, Near                 string // counts
	AnyOver                             bool
	Lacks                               []string // what the rates of now lack
}

// stat is a rate of the fleet.
type stat struct {
	Now       string // requests per second
	Any       bool
	Hour, Day string // means of the last hour and day; empty: not known
}

// now fills in what the controller sees.
func (v *stats) now(f page.Fleet, cells []page.Cell, l page.Load, n page.Counts) {
	v.None = len(cells) == 0 && n.Buckets == 0
	v.Unheard = len(f.Nodes) == 0 && len(f.SilentZones) == 0 && !f.WarmingUp && !slices.ContainsFunc(cells, offered)
	virtual, lacks := l.Virtual(), f.Silence()
	v.Lacks = lacks.Notes()
	for _, p := range []struct {
		*stat
		rps float64
	}{{&v.Offered, l.OfferedRPS}, {&v.Admitted, l.AdmittedRPS}, {&v.Dropped, l.DroppedRPS}, {&v.Virtual, virtual}} {
		p.stat.Now, p.stat.Any = lacks.AtLeast(format.RPS(p.rps)), p.rps > 0
	}
	v.OfOffered, v.VirtualOfOffered = "", ""
	if l.OfferedRPS > 0 {
		v.OfOffered, v.VirtualOfOffered = format.Share(l.DroppedRPS/l.OfferedRPS), format.Share(virtual/l.OfferedRPS)
	}
	over, near := countOver(cells)
	v.Over, v.AnyOver, v.Near, v.Buckets = format.Count(over), over > 0, format.Count(near), format.Count(n.Buckets)
}

// offered reports whether a host said what a cell is offered.
func offered(c page.Cell) bool { return c.OfferedRPS > 0 }

// countOver counts the buckets of which a cell is over its limit, and the others
// of which one is near it.
func countOver(cells []page.Cell) (over, near int) {
	type id struct{ service, name string }
	overs, nears := make(map[id]bool), make(map[id]bool)
	for i := range cells {
		c := &cells[i]
		switch {
		case isOver(c):
			overs[id{c.Service, c.Name}] = true
		case c.State() == page.Near && c.Cap == "":
			nears[id{c.Service, c.Name}] = true
		}
	}
	for b := range nears {
		if overs[b] {
			delete(nears, b)
		}
	}
	return len(overs), len(nears)
}

// isOver reports whether a cell of an enforced bucket is over its limit, whatever
// else is to say of it.
func isOver(c *page.Cell) bool {
	return c.Behavior == limiter.Deny && !c.Block && c.Cap == "" && (c.Ratio > 0 || c.OfferedRPS > c.LimitRPS)
}

// means fills in what the history says.
func (v *stats) means(ctx context.Context, s site, now time.Time) {
	for _, m := range []struct {
		window
		of func(*stat) *string
	}{
		{windows[0], func(p *stat) *string { return &p.Hour }},
		{windows[1], func(p *stat) *string { return &p.Day }},
	} {
		line, err := s.Backend.Series(ctx, m.query(now))
		if err != nil {
			s.unread(ctx, err)
			line = page.Series{} // what is not known is not shown
		}
		for _, p := range []struct {
			*stat
			values []float64
		}{{&v.Offered, line.Offered}, {&v.Admitted, line.Admitted}, {&v.Dropped, line.Dropped}, {&v.Virtual, virtualOf(line)}} {
			*m.of(p.stat) = meanText(p.values)
		}
	}
}

// meanText prints the mean of what is known; empty: nothing is.
func meanText(values []float64) string {
	m := mean(values)
	if math.IsNaN(m) {
		return ""
	}
	if m < 10_000 {
		return format.RPS(m)
	}
	return format.Size(m)
}

// mean returns that of the values that are known, NaN if none is.
func mean(values []float64) float64 {
	sum, n := 0.0, 0
	for _, v := range values {
		if !math.IsNaN(v) {
			sum, n = sum+v, n+1
		}
	}
	return sum / float64(n)
}

// overRow is a cell over its limit, ready to print.
type overRow struct {
	Label          page.Label
	Offered, Limit string // requests per second
	Ratio          string
	Silent         bool // the rates are the last known ones
	Lacks          page.Silence
}

// overRows returns the cells over their limit, the highest drop ratio first.
func overRows(f page.Fleet, cells []page.Cell) []overRow {
	var over []int
	for i := range cells {
		if isOver(&cells[i]) {
			over = append(over, i)
		}
	}
	var rows []overRow
	for _, i := range page.Window(over, 0, min(len(over), shown), func(i, j int) int { return worse(&cells[i], &cells[j]) }) {
		c := &cells[i]
		lacks := f.SilenceOf(c.SilentZones)
		label := page.NewLabel(c.Bucket(), c.Instance, c.Caller, strings.TrimSpace(c.Scope.String()+" "+c.Instance))
		label.For = format.Printable(strings.Trim(c.Caller+", "+c.Class, ", "))
		rows = append(rows, overRow{
			Label: label, Offered: lacks.AtLeast(format.RPS(c.OfferedRPS)), Limit: format.RPS(c.LimitRPS), Ratio: format.Share(c.Ratio),
			Silent: c.Silent, Lacks: lacks,
		})
	}
	return rows
}

// worse orders cells by drop ratio, then by load, the highest first, then by name.
func worse(a, b *page.Cell) int {
	switch {
	case a.Ratio != b.Ratio:
		return sign(b.Ratio - a.Ratio)
	case a.OfferedRPS != b.OfferedRPS:
		return sign(b.OfferedRPS - a.OfferedRPS)
	}
	for _, p := range [][2]string{{a.Service, b.Service}, {a.Name, b.Name}, {a.Instance, b.Instance}, {a.Caller, b.Caller}, {a.Class, b.Class}} {
		if c := strings.Compare(p[0], p[1]); c != 0 {
			return c
		}
	}
	return 0
}

func sign(d float64) int {
	if d < 0 {
		return -1
	}
	return 1
}

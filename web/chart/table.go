package chart

import (
	"math"
	"time"

	"grl/web/format"
)

// tableRows is how many rows a table has at most, if a round span allows.
const tableRows = 36

type drawnTable struct {
	caption string
	first   string // head of the column of times
	heads   []string
	rows    []tableRow
}

type tableRow struct {
	at    format.Stamp
	cells []string
}

// spanNames say what means are over.
var spanNames = map[time.Duration]string{
	time.Minute: "Minute to", time.Hour: "Hour to", day: "Day to", week: "Week to",
}

// column is one of a table: a line, or what follows from two.
type column struct {
	head    string
	values  []float64
	share   bool // in per cent
	stepped bool // the last of a span counts
}

// tableOf prepares the table of a plot.
func tableOf(p Plot) drawnTable {
	steps := stepsOf(p)
	group := groupOf(max(p.Step, time.Millisecond), steps)
	columns := p.columns()
	name, ok := spanNames[p.Step*time.Duration(group)]
	if !ok {
		name = "Until"
	}
	t := drawnTable{caption: format.Printable(p.Title), first: name}
	for _, c := range columns {
		t.heads = append(t.heads, c.head)
	}
	end := p.From.Add(p.span(steps)).Add(p.Step)
	for from := 0; from < steps; from += group {
		to := min(from+group, steps)
		row := tableRow{at: format.NewStamp(p.From.Add(p.Step*time.Duration(to)), end)}
		known := false
		for _, c := range columns {
			text := c.print(from, to)
			row.cells, known = append(row.cells, text), known || text != notKnown
		}
		if known { // gaps are left out
			t.rows = append(t.rows, row)
		}
	}
	return t
}

// groupOf returns how many steps share a row.
func groupOf(step time.Duration, steps int) int {
	for _, s := range roundSpans {
		if group := int(s / step); s%step == 0 && group >= 1 && (steps+group-1)/group <= tableRows {
			return group
		}
	}
	return (steps + tableRows - 1) / tableRows
}

// heads name kinds in a table.
var heads = [...]string{
	Offered: "Offered", Admitted: "Admitted", Limit: "Limit", Candidate: "Candidate",
	LimitBefore: "Limit today", Dropped: "Dropped", Virtual: "Virtual drops", DropRatio: "Drop ratio",
}

// columns returns a column for each line, and what was dropped if no line says
// it.
func (p Plot) columns() []column {
	var out []column
	lines := map[Kind][]float64{}
	for _, s := range p.Strips {
		for _, l := range s.Lines {
			if l.Kind < 0 || int(l.Kind) >= len(heads) || lines[l.Kind] != nil {
				continue
			}
			values := clean(l.Values)
			lines[l.Kind] = values
			out = append(out, column{head: heads[l.Kind] + " " + format.Printable(s.Unit), values: values, share: s.Unit == "%", stepped: l.Kind.stepped()})
		}
	}
	offered, admitted := lines[Offered], lines[Admitted]
	if offered == nil || admitted == nil || lines[Dropped] != nil {
		return out
	}
	dropped := make([]float64, min(len(offered), len(admitted)))
	for i := range dropped {
		dropped[i] = max(0, offered[i]-admitted[i])
	}
	return append(out, column{head: "Dropped " + format.Printable(p.Strips[0].Unit), values: dropped})
}

// notKnown is said of a span without any value.
const notKnown = "not known"

// print returns the mean of a span, or its last value.
func (c column) print(from, to int) string {
	sum, n, last := 0.0, 0.0, math.NaN()
	for _, v := range c.values[min(from, len(c.values)):min(to, len(c.values))] {
		if !math.IsNaN(v) {
			sum, n, last = sum+v, n+1, v
		}
	}
	v := sum / n
	if c.stepped {
		v = last
	}
	switch {
	case math.IsNaN(v):
		return notKnown
	case c.share:
		return format.Share(v / 100)
	}
	return format.RPS(v)
}

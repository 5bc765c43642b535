package simulate

import (
	"fmt"
	"strings"

	"grl/limiter"
	"grl/roles/fleet"
)

// bucketRow is what one bucket, or one cell of several that share it, was
// offered in a run.
type bucketRow struct {
	Name     string `json:"bucket"`
	Instance string `json:"instance,omitempty"` // region or zone
	// Shadow buckets are simulated as if they were enforced.
	Shadow bool   `json:"shadow,omitempty"`
	Caller string `json:"caller,omitempty"`
	Class  string `json:"class,omitempty"`

	LimitRPS       float64 `json:"limit_rps,omitempty"` // 0 for a cell of several
	OfferedRPS     float64 `json:"offered_rps"`         // means of the whole run
	AdmittedRPS    float64 `json:"admitted_rps"`
	DroppedPercent float64 `json:"dropped_percent"`
	// SteadyDroppedPercent is the same in steady overload; nil if there is none.
	SteadyDroppedPercent *float64 `json:"steady_dropped_percent,omitempty"`

	Cells []bucketRow `json:"cells,omitempty"` // of a bucket that has several
}

// bucketRows returns the buckets of a run, in the order of the configuration.
func (s *Section) bucketRows(r *fleet.Result) []bucketRow {
	configured := (&limiter.Configuration{Services: s.Options.Configuration}).ByName()
	cells := make([][]int, len(r.Buckets))
	for i, c := range r.Cells {
		cells[c.Bucket] = append(cells[c.Bucket], i)
	}
	rows := make([]bucketRow, len(r.Buckets))
	for i, b := range r.Buckets {
		row := bucketRow{Name: b.Name, Instance: b.Instance, Caller: b.Caller, LimitRPS: b.LimitRPS}
		row.Shadow = configured[b.Name].Behavior == limiter.Allow
		var whole, steady fleet.Counts
		for _, k := range cells[i] {
			c := r.Cells[k]
			whole, steady = sum(whole, c.Counts), sum(steady, c.Steady)
			cell := bucketRow{Name: b.Name, Caller: c.ID.Caller, Class: c.ID.Class}
			cell.count(r, c.Counts, c.Steady)
			row.Cells = append(row.Cells, cell)
		}
		if len(row.Cells) == 1 { // which has the limit alone
			row.Caller, row.Class, row.Cells = row.Cells[0].Caller, row.Cells[0].Class, nil
		}
		row.count(r, whole, steady)
		rows[i] = row
	}
	return rows
}

func sum(a, b fleet.Counts) fleet.Counts {
	return fleet.Counts{Offered: a.Offered + b.Offered, Dropped: a.Dropped + b.Dropped}
}

func (b *bucketRow) count(r *fleet.Result, whole, steady fleet.Counts) {
	seconds := r.Length.Seconds()
	b.OfferedRPS, b.AdmittedRPS = float64(whole.Offered)/seconds, float64(whole.Admitted())/seconds
	b.DroppedPercent = droppedPercent(whole)
	if steady.Offered > 0 {
		p := droppedPercent(steady)
		b.SteadyDroppedPercent = &p
	}
}

func droppedPercent(c fleet.Counts) float64 {
	if c.Offered == 0 {
		return 0
	}
	return 100 * float64(c.Dropped) / float64(c.Offered)
}

// bucketTable writes the buckets of a run, each cell of one that has several
// below it.
func (s *Section) bucketTable(r *fleet.Result) string {
	rows := [][]string{{r.Law + ", requests a second", "limit", "offered", "admitted", "dropped", "in overload"}}
	for _, b := range s.bucketRows(r) {
		rows = append(rows, b.cells(b.title(), rps(b.LimitRPS)))
		for _, c := range b.Cells {
			rows = append(rows, c.cells("  "+strings.TrimSpace(c.Caller+" "+c.Class), ""))
		}
	}
	return align(rows, 1)
}

// title names a bucket.
func (b *bucketRow) title() string {
	title := b.Name
	if b.Caller != "" {
		title += " of " + b.Caller
	}
	if b.Instance != "" {
		title += " in " + b.Instance
	}
	if b.Shadow {
		title += " (shadow)"
	}
	return title
}

func (b *bucketRow) cells(title, limit string) []string {
	overload := noMetric
	if b.SteadyDroppedPercent != nil {
		overload = fixed(*b.SteadyDroppedPercent, 1) + " %"
	}
	return []string{title, limit, rps(b.OfferedRPS), rps(b.AdmittedRPS), fixed(b.DroppedPercent, 1) + " %", overload}
}

// leftOut says what of the limits files was not simulated; "" if all was.
func (s *Section) leftOut() string {
	switch n := blocked(s.Options.Configuration); n {
	case 0:
		return ""
	case 1:
		return "\nLeft out: a bucket that blocks.\n"
	default:
		return fmt.Sprintf("\nLeft out: %d buckets that block.\n", n)
	}
}

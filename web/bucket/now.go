package bucket

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/a-h/templ"

	"grl/limiter"
	"grl/web/chart"
	"grl/web/format"
	"grl/web/page"
)

// nowView is the head and the numbers of the page.
type nowView struct {
	Service, Name string
	Match         string
	Facts         []string
	Whole         string // the page of the bucket, where one cell is looked at
	State         page.CellState
	Enforced      bool   // it is denied, whatever else is to be said
	Over          string // for how long it has been over the limit
	Silent        bool
	Lacks         page.Silence
	Explain, Cap  string // addresses; "": not for this person
	MayChange     bool
	Figures       []figure
}

// figure is one number with what stands below it.
type figure struct {
	page.Figure
	Notes []note
}

// note is a few words, and maybe a time.
type note struct {
	Text string
	At   format.Stamp // after it; zero: none
}

func (s site) now(ctx context.Context, q query) (templ.Component, error) {
	v, err := s.nowView(ctx, q)
	return head(v), err
}

func (s site) nowView(ctx context.Context, q query) (nowView, error) {
	c, err := s.configuration(ctx, q.Service, 0)
	if err != nil {
		return nowView{}, err
	}
	b, seen := c.bucket(q.Name), s.cells(q)
	first := seen.first()
	v := nowView{
		Service: format.Printable(q.Service), Name: format.Printable(q.Name), Match: format.Printable(first.Match),
		State: seen.state, Enforced: first.Behavior == limiter.Deny && !first.Block, Silent: seen.silent, Lacks: seen.lacks,
		Explain: page.ExplainPath(q.Service, exactly(first.Selects.Caller), exactly(first.Selects.Procedure)),
	}
	owner := ownerOf(c, &seen)
	if v.MayChange = b != nil && page.MayEdit(ctx, q.Service, owner); v.MayChange {
		v.Cap = page.CapPath(q.Service, q.Caller, exactly(first.Selects.Procedure))
		if q.Caller == "" {
			v.Cap = page.CapPath(q.Service, exactly(first.Selects.Caller), exactly(first.Selects.Procedure))
		}
	}
	v.facts(q, first, owner)
	if q.Instance != "" || q.Caller != "" {
		v.Whole = q.of("", "").path("")
	}
	if err := s.figures(ctx, q, &v, seen, b); err != nil {
		return nowView{}, err
	}
	return v, nil
}

// ownerOf returns who owns the service.
func ownerOf(c *configured, seen *sum) string {
	if c != nil && c.service.Owner != "" {
		return c.service.Owner
	}
	return seen.first().Owner
}

// exactly returns what a pattern selects if that is one name, else "".
func exactly(p limiter.Pattern) string {
	if n := len(p); n > 0 && p[n-1] == '*' {
		return ""
	}
	return string(p)
}

func (v *nowView) facts(q query, first page.Cell, owner string) {
	v.Facts = append(v.Facts, "scope "+first.Scope.String())
	if q.Instance != "" {
		v.Facts = append(v.Facts, "in "+format.Printable(q.Instance))
	}
	if q.Caller != "" {
		v.Facts = append(v.Facts, "caller "+format.Printable(q.Caller))
	}
	if owner != "" {
		v.Facts = append(v.Facts, "owner "+format.Printable(owner))
	}
}

// figures fills in the numbers of now, and how they compare.
func (s site) figures(ctx context.Context, q query, v *nowView, seen sum, b *limiter.Bucket) error {
	today, err := s.line(ctx, q.over(usual))
	if err != nil {
		return err
	}
	hour, err := s.line(ctx, q.over(minutes))
	if err != nil {
		return err
	}
	now := time.Now()
	limits, err := s.limits(ctx, q, seen, b, hour.From, hour.Step, len(hour.Offered))
	if err != nil {
		return err
	}
	if seen.state == page.Over {
		v.Over = overFor(hour.Offered, limits.enforced)
	}
	v.Figures = []figure{
		{page.Figure{Name: "Offered", Value: seen.lacks.AtLeast(format.RPS(seen.offered)), Unit: "rps", Key: chart.Swatch(chart.Offered)}, peakNote(&today)},
		{page.Figure{Name: "Admitted", Value: seen.lacks.AtLeast(format.RPS(seen.admitted)), Unit: "rps", Key: chart.Swatch(chart.Admitted)}, []note{{Text: fromLimit(&seen, b)}}},
		limitFigure(&seen, b, limits.changes, now),
		dropFigure(&seen),
		virtualFigure(&seen),
		s.ageFigure(seen.age),
	}
	v.lack(seen.lacks)
	return nil
}

// peakNote says the highest second of the day, or of as much of it as is known.
func peakNote(s *page.Series) []note {
	peak, known := highestOf(s.HighestSecond)
	if !known {
		return []note{{Text: "no history of 24 h yet"}}
	}
	span := "24 h"
	if n := knownOf(s.HighestSecond); n < len(s.HighestSecond)*9/10 {
		span = spanText(time.Duration(n) * s.Step)
	}
	return []note{{Text: span + " peak " + format.RPS(peak) + " in a second"}}
}

// knownOf counts the values of which something is known.
func knownOf(values []float64) int {
	n := 0
	for _, v := range values {
		if !math.IsNaN(v) {
			n++
		}
	}
	return n
}

// spanText prints a span in whole minutes, in hours from two hours on, and in days
// from two days on.
func spanText(d time.Duration) string {
	switch {
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", d/time.Minute)
	case d < 2*day:
		return fmt.Sprintf("%d h", d/time.Hour)
	default:
		return format.Plural(int(d/day), "day")
	}
}

const day = 24 * time.Hour

func highestOf(values []float64) (float64, bool) {
	peak, known := 0.0, false
	for _, v := range values {
		if v >= peak { // not of NaN
			peak, known = v, true
		}
	}
	return peak, known
}

// lack says at what is offered and admitted what it lacks.
func (v *nowView) lack(lacks page.Silence) {
	for _, text := range lacks.Notes() {
		for i := range v.Figures[:2] {
			v.Figures[i].Notes = append(v.Figures[i].Notes, note{Text: text})
		}
	}
}

// fromLimit says how far admitted is from the limit.
func fromLimit(seen *sum, b *limiter.Bucket) string {
	limit := seen.most
	if seen.lacks.Missing() {
		return "of a limit of " + format.RPS(limit)
	}
	if seen.gates(b) != 1 || limit <= 0 {
		return "of " + format.Plural(len(seen.cells), "cell")
	}
	switch off := seen.admitted/limit - 1; {
	case off >= 0.0005:
		return format.Share(off) + " above the limit"
	case off > -0.0005:
		return "at the limit"
	default:
		return format.Share(-off) + " below the limit"
	}
}

// limitFigure says the limit, and since when it holds.
func limitFigure(seen *sum, b *limiter.Bucket, changes []page.LimitChange, now time.Time) figure {
	f := figure{Figure: page.Figure{Name: "Limit", Value: format.RPS(seen.most), Unit: "rps", Key: chart.Swatch(chart.Limit)}}
	first := seen.first()
	if first.Behavior != limiter.Deny {
		f.Key = chart.Swatch(chart.Candidate)
	}
	switch {
	case first.Block:
		f.Value, f.Unit = "Block", ""
	case seen.least != seen.most:
		f.Value = format.Size(seen.least) + " to " + format.Size(seen.most)
	}
	if n := seen.gates(b); n > 1 {
		f.Notes = append(f.Notes, note{Text: fmt.Sprintf("each of %s", format.Count(n))})
	}
	if n := len(changes); n > 0 && changes[n-1].Revision != 0 {
		c := changes[n-1]
		f.Notes = append(f.Notes, note{Text: fmt.Sprintf("r%d, since", c.Revision), At: format.NewStamp(c.At, now)})
	}
	return f
}

func dropFigure(seen *sum) figure {
	f := figure{
		Figure: page.Figure{Name: "Drop ratio", Value: format.Share(seen.ratio()), Key: chart.Swatch(chart.Dropped)},
		Notes:  []note{{Text: seen.lacks.AtLeast(format.RPS(seen.dropped)) + " rps dropped"}},
	}
	if seen.dropped > 0 {
		f.Class = "stat--drop"
	}
	return f
}

func virtualFigure(seen *sum) figure {
	f := figure{Figure: page.Figure{Name: "Virtual drops", Value: seen.lacks.AtLeast(format.RPS(seen.virtual())), Unit: "rps", Key: chart.Swatch(chart.Virtual)}}
	if seen.virtual() > 0 {
		f.Class = "stat--virtual"
	}
	switch first := seen.first(); {
	case first.CandidateRPS > 0:
		f.Notes = []note{{Text: "candidate " + format.RPS(first.CandidateRPS)}}
	case first.Behavior != limiter.Deny:
		f.Notes = []note{{Text: "in shadow: drops nothing"}}
	default:
		f.Notes = []note{{Text: "nothing is judged"}}
	}
	return f
}

func (s site) ageFigure(age time.Duration) figure {
	if age < 0 {
		return figure{Figure: page.Figure{Name: "Directive age", Value: "–"}, Notes: []note{{Text: "none has spoken of it"}}}
	}
	return figure{Figure: page.Figure{Name: "Directive age", Value: format.Age(age)}, Notes: []note{{Text: "of the oldest one in force"}}}
}

// overFor says for how long the load was above the limit up to now: " for 6 min";
// "" if that is less than a minute.
func overFor(offered, limit []float64) string {
	n := 0
	for n < len(offered) && offered[len(offered)-1-n] > limit[len(limit)-1-n] {
		n++
	}
	switch {
	case n == 0:
		return ""
	case n == len(offered):
		return " for over 1 h"
	}
	return fmt.Sprintf(" for %d min", n)
}

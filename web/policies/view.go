package policies

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"connectrpc.com/connect"

	"grl/policy"
	"grl/policy/backtest"
	"grl/policy/policyfile"
	"grl/proto/access"
	"grl/web/chart"
	"grl/web/format"
	"grl/web/page"
)

// trialView is what a policy would have done, ready to print.
type trialView struct {
	Problem string // why there is nothing to see; "": there is
	Hint    string // what to do about it
	Command string // to run for it; "": none
	Figures []trialFigure
	Title   string
	Note    string
	Foot    string
	Label   page.Label
	Another string // URL
	Plot    chart.Plot
	Worst   []worstRow
}

// trialFigure is a number of it, after the change and before.
type trialFigure struct {
	page.Figure
	More string
}

// worstRow is a cell of the sample.
type worstRow struct {
	page.Label
	FD, Headroom string
	Trial        string // URL; "": it is the one that is shown, or the policy is not saved
}

const (
	mostWorst  = 10
	plotPoints = 300
)

// emptyTrial says why nothing can be tried.
func emptyTrial(problem, hint string) trialView { return trialView{Problem: problem, Hint: hint} }

// trialOf tries a policy and says what came of it. The cell is the one that is
// asked for, else the nearest to its limit. The error is errSuperseded where nobody
// waits for the answer any more.
func (s site) trialOf(ctx context.Context, asker string, text []byte, spec *policy.Spec, all set, cell cellQuery, saved string) (trialView, error) {
	found := s.match(spec, all.specs)
	if len(found.cells) == 0 {
		return emptyTrial("Cannot tell: no bucket matches", "A preview needs a bucket with history."), nil
	}
	shown := found.cells[0]
	for _, c := range found.cells {
		if cell.is(&c) {
			shown = c
		}
	}
	before := policyfile.Choose(all.specs, bucketOf(&shown))
	if p := all.of(spec.Name); before != nil && before.Name == spec.Name && bytes.Equal(p.GetData(), text) {
		before = nil // nothing is changed: there is only today to compare with
	}
	t, err := s.try(ctx, asker, text, spec, before, found, shown)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		v := emptyTrial("Cannot tell: it takes longer than 2 s", "Try it on the command line.")
		v.Command = "grl backtest --policy FILE --source history --bucket SERVICE/BUCKET"
		return v, nil
	case err != nil:
		return trialView{}, err
	case t.TooLittle:
		return emptyTrial(fmt.Sprintf("Cannot tell: %s of history", daysText(t.Days)),
			fmt.Sprintf("Of %s. A preview needs 8 days: a week to learn from, and a day to try it on.", nameOf(&t.Cell))), nil
	}
	return newTrialView(t, saved), nil
}

// askerOf names whose request for a preview it is, and whether for the page or its
// region: a page that is asked for stands, whatever the one before it asks for while
// one waits.
func askerOf(r *http.Request) string {
	asker := "page of "
	if page.Fragment(r) {
		asker = "region of "
	}
	if p := access.From(r.Context()).Person; p != nil {
		asker += p.Name
	}
	return asker
}

// cellQuery names a cell by its query; the zero value names none.
type cellQuery struct{ Bucket, Instance, Caller string }

func (q cellQuery) is(c *page.Cell) bool {
	return q.Bucket == c.Bucket() && q.Instance == c.Instance && q.Caller == c.Caller
}

func daysText(days float64) string { return strconv.FormatFloat(days, 'f', 1, 64) + " days" }

// nameOf is a cell in a sentence.
func nameOf(c *page.Cell) string {
	name := format.Printable(c.Bucket())
	if c.Instance != "" {
		name += " in " + format.Printable(c.Instance)
	}
	if c.Caller != "" {
		name += " for " + format.Printable(c.Caller)
	}
	return name
}

func newTrialView(t *trial, saved string) trialView {
	v := trialView{
		Title: "Preview on " + nameOf(&t.Cell), Note: "highest " + stepText(t.Step) + "s, " + daysText(t.Days),
		Label: page.NewLabel(t.Cell.Bucket(), t.Cell.Instance, t.Cell.Caller, ""),
		Foot:  "Cycle by cycle, each limit computed only from what was known before it.",
	}
	if saved != "" {
		v.Another = path("/policies/buckets", "name", saved)
	}
	if t.Ignored > 0 {
		v.Foot += " " + format.Plural(t.Ignored, "minute") + " do not teach: grl dropped something then, or the policy ignores them."
	}
	v.Figures = figures(t)
	v.plot(t)
	v.worst(t, saved)
	return v
}

func stepText(step time.Duration) string {
	if step == time.Minute {
		return "minute"
	}
	return fmt.Sprintf("%d-minute mean", step/time.Minute)
}

// figures are the numbers after the change, with those before.
func figures(t *trial) []trialFigure {
	tested := t.After.Tested.To.Sub(t.After.Tested.From).Hours() / 24
	fd := trialFigure{Figure: page.Figure{Name: "False drops", Value: share(t.After.FD), Key: chart.Swatch(chart.Dropped)}}
	if t.After.FD > backtest.Target {
		fd.Class = "stat--drop"
	}
	head := trialFigure{Figure: page.Figure{Name: "Mean headroom", Value: headroom(t.After.H)}}
	moves := trialFigure{Figure: page.Figure{Name: "Limit changes", Value: format.Count(changes(t.After))}}
	if t.Before != nil {
		with := " with " + format.Printable(t.BeforeName) + " as saved"
		fd.More, head.More = share(t.Before.FD)+with, headroom(t.Before.H)+with
		moves.More = format.Count(changes(t.Before)) + with
	} else {
		fd.More, head.More, moves.More = "of the normal load", "over the highest minute of a week", "in "+daysText(tested)
	}
	of := format.Plural(t.Cells, "limit")
	sample := trialFigure{
		Figure: page.Figure{Name: "False drops of all", Value: share(t.share())},
		More:   fmt.Sprintf("over %s of %s", format.Count(len(t.Sample)), of),
	}
	if t.Cut {
		sample.More += ", as far as 2 s went"
	}
	return []trialFigure{fd, head, moves, sample}
}

func share(v float64) string {
	if math.IsNaN(v) {
		return "unknown"
	}
	return format.Share(v)
}

// headroom prints how far a limit stands above a peak, if that is known.
func headroom(ratio float64) string {
	if math.IsNaN(ratio) || math.IsInf(ratio, 0) {
		return "unknown"
	}
	return format.Headroom(ratio)
}

// plot draws load and limits. Each point is the highest step of its span, and the
// limit at the step that would have had most dropped, so that no drop hides.
func (v *trialView) plot(t *trial) {
	s := t.After.Series
	each := max(1, (len(s.RPS)+plotPoints-1)/plotPoints)
	points := (len(s.RPS) + each - 1) / each
	load, passed, limit, before := make([]float64, points), make([]float64, points), make([]float64, points), make([]float64, points)
	for p := range points {
		from, to := p*each, min((p+1)*each, len(s.RPS))
		load[p], passed[p], limit[p] = point(s.RPS[from:to], t.After.Limits[from:to])
		before[p] = math.NaN()
		if t.Before != nil {
			i := t.Before.Series.Index(s.Time(to - 1))
			if i >= 0 && i < len(t.Before.Limits) {
				before[p] = t.Before.Limits[i]
			}
		} else if t.Cell.LimitRPS > 0 {
			before[p] = t.Cell.LimitRPS
		}
	}
	name := "limit today"
	if t.Before != nil {
		name = "as saved"
	}
	strip := chart.Strip{Unit: "rps", Height: 240}
	add := func(kind chart.Kind, values []float64, name string) {
		last := values[len(values)-1]
		label := ""
		if policy.Known(last) {
			label = format.RPS(last) + " " + name
		}
		strip.Lines = append(strip.Lines, chart.Line{Kind: kind, Values: values, Label: label})
	}
	add(chart.Offered, load, "load")
	strip.Lines = append(strip.Lines, chart.Line{Kind: chart.Admitted, Values: passed})
	add(chart.LimitBefore, before, name)
	add(chart.Limit, limit, "limit")
	v.Plot = chart.Plot{
		ID: "trial", Title: nameOf(&t.Cell) + ": this policy over " + daysText(t.Days),
		Desc: sentence(t),
		From: s.Start, Step: time.Duration(each) * s.Step, Steps: points, Strips: []chart.Strip{strip},
	}
}

// sentence says what the plot shows.
func sentence(t *trial) string {
	what := share(t.After.FD)
	if t.After.FD == 0 {
		what = "Nothing"
	}
	return fmt.Sprintf("%s of the load of %s would have been falsely dropped. The mean limit of a week over its highest minute: %s.",
		what, daysText(t.After.Tested.To.Sub(t.After.Tested.From).Hours()/24), headroom(t.After.H))
}

// point returns the highest load of some steps, what of it would have passed, and
// the limit at the step that would have had most dropped, else at the last.
func point(load, limits []float64) (highest, passed, limit float64) {
	highest, limit = math.NaN(), limits[len(limits)-1]
	most := 0.0
	for i, x := range load {
		if !policy.Known(x) {
			continue
		}
		if !(x <= highest) {
			highest = x
		}
		if drop := x - limits[i]; drop > most {
			most, limit = drop, limits[i]
		}
	}
	passed = highest
	if policy.Known(highest) && most > 0 {
		passed = min(highest, limit)
	}
	return highest, passed, limit
}

// worst lists the cells of the sample that would have had most dropped.
func (v *trialView) worst(t *trial, saved string) {
	order := make([]int, len(t.Sample))
	for i := range order {
		order[i] = i
	}
	rows := page.Window(order, 0, min(len(order), mostWorst), func(i, j int) int {
		switch a, b := t.Sample[i].FD, t.Sample[j].FD; {
		case a > b:
			return -1
		case a < b:
			return 1
		}
		return i - j
	})
	for _, i := range rows {
		c := t.Sample[i].Cell
		r := worstRow{Label: page.NewLabel(c.Bucket(), c.Instance, c.Caller, ""), FD: share(t.Sample[i].FD), Headroom: headroom(t.Sample[i].H)}
		if saved != "" && c.ID() != t.Cell.ID() {
			r.Trial = path("/policies/trial", "name", saved, "bucket", c.Bucket(), "instance", c.Instance, "caller", c.Caller)
		}
		v.Worst = append(v.Worst, r)
	}
}

// errNoPolicy says that the address names no policy.
func errNoPolicy() error {
	return connect.NewError(connect.CodeNotFound, errors.New("there is no such policy"))
}

// serveTrial shows what a policy as it is saved would have done.
func (s site) serveTrial(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	name := q.Get("name")
	all, err := s.read(r.Context(), 0)
	if err != nil {
		s.Fail(w, r, err)
		return
	}
	p, spec := all.of(name), all.spec(name)
	if p == nil || spec == nil {
		s.Fail(w, r, errNoPolicy())
		return
	}
	cell := cellQuery{q.Get("bucket"), q.Get("instance"), q.Get("caller")}
	v, err := s.trialOf(r.Context(), askerOf(r), p.GetData(), spec, all, cell, name)
	switch {
	case page.Fragment(r):
		s.renderTrial(w, r, v, err)
	case errors.Is(err, errSuperseded):
		s.renderOne(w, r, http.StatusOK, oneView{Name: name, Cell: cell}, all)
	case err != nil:
		s.Fail(w, r, err)
	default:
		s.renderOne(w, r, http.StatusOK, oneView{Name: name, Cell: cell, Trial: &v}, all)
	}
}

// renderTrial answers with the region of a trial alone; an outdated request gets
// no content, so that the region stays for the answer to the later one.
func (s site) renderTrial(w http.ResponseWriter, r *http.Request, v trialView, err error) {
	switch {
	case errors.Is(err, errSuperseded):
		w.WriteHeader(http.StatusNoContent)
	case err != nil:
		s.Fail(w, r, err)
	default:
		s.Render(w, r, http.StatusOK, trialRegion(v))
	}
}

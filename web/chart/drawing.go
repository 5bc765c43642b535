package chart

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"grl/web/format"
)

// drawing is a plot, ready to print.
type drawing struct{ strips []drawnStrip }

type drawnStrip struct {
	id, title, desc string
	tight           bool // no times below
	unit            string
	height          string // pixels
	box             string // view box of the paths
	keys            []key
	grid            []gridLine
	back, front     []shape
	hatch           []shape
	scale           string // from the coordinates of paths to shares of the box
	gaps            []drawnGap
	flags           []drawnFlag
	axis            []tick
	labels          []label
}

type (
	key      struct{ kind, name, value string }
	gridLine struct {
		class, y, textY, text string
	}
	shape    struct{ class, d, id string }
	drawnGap struct {
		x, width, y, height string
		text, textX, title  string
		atStart             bool // the text begins there, else it ends there
		plain               bool // grey below the hatch
	}
	drawnFlag struct {
		x, textX, number string
		cap              bool
		top              string // y of the end of its line
	}
	tick  struct{ class, text, x, y, markY, textY string }
	label struct {
		class, text, y     string
		lead               bool
		leadFrom, leadDown string
	}
)

// classes are the names of kinds in the stylesheet.
var classes = [...]string{
	Offered: "offered", Admitted: "admitted", Limit: "limit", Candidate: "candidate",
	LimitBefore: "old", Dropped: "dropped", Virtual: "virtual", DropRatio: "dropped",
}

// class returns that of a kind; of one that is not known, that of offered.
func (k Kind) class() string {
	if k < 0 || int(k) >= len(classes) {
		return classes[Offered]
	}
	return classes[k]
}

// stepped reports whether a kind keeps its value until the next.
func (k Kind) stepped() bool { return k == Limit || k == Candidate || k == LimitBefore }

// drawingOf prepares a plot. Times stand below the last strip that is no drop
// ratio: that hangs beneath them.
func drawingOf(p Plot) drawing {
	steps := stepsOf(p)
	p.Title, p.Desc = format.Printable(p.Title), format.Printable(p.Desc)
	axis := 0
	for i, s := range p.Strips {
		if !s.is(DropRatio) {
			axis = i
		}
	}
	var d drawing
	for i, s := range p.Strips {
		out := p.strip(s, steps)
		out.id = p.ID
		out.title, out.desc = p.Title, p.Desc
		if i > 0 {
			out.id = fmt.Sprintf("%s-%d", p.ID, i+1)
			out.title, out.desc = s.name()+": "+p.Title, s.labels()
		} else {
			out.flags = p.flags(steps, out.height)
		}
		for h := range out.hatch {
			out.hatch[h].id = fmt.Sprintf("%s-clip%d", out.id, h)
		}
		out.gaps = p.gaps(steps, s, i == 0)
		out.tight = i != axis
		if !out.tight {
			out.axis = p.axis(steps, s.height())
		}
		d.strips = append(d.strips, out)
	}
	return d
}

// mostSteps bounds the axis: a minute each for two years.
const mostSteps = 1 << 20

// stepsOf returns how many steps the axis of a plot has: at least 1.
func stepsOf(p Plot) int {
	if p.Steps > 0 {
		return min(p.Steps, mostSteps)
	}
	steps := 1
	for _, s := range p.Strips {
		for _, l := range s.Lines {
			steps = max(steps, len(l.Values))
		}
	}
	return min(steps, mostSteps)
}

func (s Strip) height() float64 { return float64(min(max(s.Height, 20), 2000)) }

func (s Strip) is(k Kind) bool {
	return slices.ContainsFunc(s.Lines, func(l Line) bool { return l.Kind == k })
}

// name is what a strip shows: the names at the ends of its lines.
func (s Strip) name() string {
	var names []string
	for _, l := range s.Lines {
		if _, name := l.split(); name != "" {
			names = append(names, name)
		}
	}
	return strings.Join(names, " and ")
}

func (s Strip) labels() string {
	var all []string
	for _, l := range s.Lines {
		if l.Label != "" {
			all = append(all, format.Printable(l.Label))
		}
	}
	if len(all) == 0 {
		return ""
	}
	return strings.Join(all, ", ") + "."
}

// split cuts a label into value and name.
func (l Line) split() (value, name string) {
	value, name, _ = strings.Cut(format.Printable(l.Label), " ")
	return value, name
}

// strip prepares the lines and axis of one strip.
func (p Plot) strip(s Strip, steps int) drawnStrip {
	lines := make([][]float64, len(s.Lines))
	peak := 0.0
	for i, l := range s.Lines {
		lines[i] = thin(clean(l.Values), steps)
		for _, v := range lines[i] {
			if v > peak { // not of NaN
				peak = v
			}
		}
	}
	top, step := scaleOf(peak, s.AtLeast, s.height())
	in := space{places: min(steps, mostPoints), height: s.height(), top: top}
	out := drawnStrip{
		unit: format.Printable(s.Unit), height: fmt.Sprint(s.height()), box: fmt.Sprintf("0 0 %d %v", in.width(), s.height()),
		scale: fmt.Sprintf("scale(%.6g %.6g)", 1/float64(in.width()), 1/s.height()),
		grid:  gridOf(in, step),
	}
	out.areas(in, s, lines)
	var ends []end
	for i, l := range s.Lines {
		d := in.line(lines[i])
		if l.Kind.stepped() {
			d = in.steps(lines[i])
		}
		if d != "" {
			out.front = append(out.front, shape{class: l.Kind.class(), d: d})
		}
		if l.Label == "" {
			continue
		}
		value, name := l.split()
		out.keys = append(out.keys, key{l.Kind.class(), name, value})
		if last, ok := lastKnown(lines[i]); ok {
			ends = append(ends, end{l.Kind.class(), format.Printable(l.Label), in.y(last)})
		}
	}
	out.labels = labelsOf(ends, s.height())
	return out
}

// areas prepares what lies behind the lines.
func (d *drawnStrip) areas(in space, s Strip, lines [][]float64) {
	of := func(k Kind) []float64 {
		if i := slices.IndexFunc(s.Lines, func(l Line) bool { return l.Kind == k }); i >= 0 {
			return lines[i]
		}
		return nil
	}
	fill := func(class, path string) {
		if path != "" {
			d.back = append(d.back, shape{class: class, d: path})
		}
	}
	hatch := func(path string) {
		if path != "" {
			d.hatch = append(d.hatch, shape{d: path})
		}
	}
	offered, admitted, candidate := of(Offered), of(Admitted), of(Candidate)
	fill("admitted", in.area(admitted))
	fill("dropped", in.between(offered, admitted))
	fill("dropped", in.area(of(Dropped)))
	fill("dropped", in.area(of(DropRatio)))
	hatch(in.between(admitted, candidate))
	hatch(in.area(of(Virtual)))
}

func lastKnown(values []float64) (float64, bool) {
	for _, v := range slices.Backward(values) {
		if !math.IsNaN(v) {
			return v, true
		}
	}
	return 0, false
}

// end is the end of a line with what to say there.
type end struct {
	class, text string
	y           float64
}

const labelGap = 16 // pixels

// labelsOf places labels at the ends of lines, apart from each other and as near
// to their lines as that allows.
func labelsOf(ends []end, height float64) []label {
	slices.SortStableFunc(ends, func(a, b end) int {
		switch {
		case a.y < b.y:
			return -1
		case a.y > b.y:
			return 1
		}
		return 0
	})
	places := make([]float64, len(ends))
	for i, e := range ends {
		places[i] = e.y
	}
	for range 100 {
		moved := false
		for i := 1; i < len(places); i++ {
			if near := labelGap - (places[i] - places[i-1]); near > 0.01 {
				places[i-1] -= near / 2
				places[i] += near / 2
				moved = true
			}
		}
		if !moved {
			break
		}
	}
	if n := len(places); n > 0 { // within the box, if there is room
		if over := places[n-1] - height; over > 0 {
			shift(places, -over)
		}
		if under := -6 - places[0]; under > 0 {
			shift(places, under)
		}
	}
	out := make([]label, len(ends))
	for i, e := range ends {
		out[i] = label{
			class: e.class, text: e.text, y: number1(places[i] + 4),
			lead: math.Abs(places[i]-e.y) > 3, leadFrom: number1(e.y), leadDown: number1(places[i]),
		}
	}
	return out
}

func shift(places []float64, by float64) {
	for i := range places {
		places[i] += by
	}
}

// number1 prints pixels with one decimal.
func number1(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }

// percent prints a share of the width; what is outside lies at the side.
func percent(share float64) string {
	return strconv.FormatFloat(100*min(max(share, 0), 1), 'f', 2, 64) + "%"
}

// span is how long the axis of a plot is: to its last point.
func (p Plot) span(steps int) time.Duration {
	step := max(p.Step, time.Millisecond)
	if most := time.Duration(math.MaxInt64) / time.Duration(max(1, steps)); step > most {
		step = most
	}
	return step * time.Duration(max(1, steps-1))
}

// at returns where a time lies, as a share of the axis.
func (p Plot) at(t time.Time, steps int) float64 {
	return t.Sub(p.From).Seconds() / p.span(steps).Seconds()
}

// flagRoom is how far flags are apart at least, as a share of the width.
const flagRoom = 0.046

// flags places the flags at their times, apart from each other: those that have
// no room go to the right, and at the end of the plot to the left.
func (p Plot) flags(steps int, height string) []drawnFlag {
	var out []drawnFlag
	var stands []float64
	for _, f := range p.Flags {
		x := p.at(f.At, steps)
		if x < 0 || x > 1 {
			continue
		}
		out = append(out, drawnFlag{x: percent(x), number: strconv.Itoa(f.Number), cap: f.Cap, top: height})
		if n := len(stands); n > 0 {
			x = max(x, stands[n-1]+flagRoom)
		}
		stands = append(stands, x)
	}
	most := 1.0
	for i, x := range slices.Backward(stands) {
		x = min(x, most)
		most = x - flagRoom
		out[i].textX = percent(x)
	}
	return out
}

// wordsRoom is how far the words of gaps are apart, as a share of the width.
const wordsRoom = 0.25

func (p Plot) gaps(steps int, s Strip, words bool) []drawnGap {
	var out []drawnGap
	said := -1.0 // where the last words end
	for _, g := range p.Gaps {
		from, to := p.at(g.From, steps), p.at(g.To, steps)
		if to <= 0 || from >= 1 || to <= from {
			continue
		}
		from, to = max(from, 0), min(to, 1)
		gap := drawnGap{
			x: percent(from), width: percent(to - from), textX: percent(to),
			y: "0", height: fmt.Sprint(s.height()), title: format.Printable(g.Text), plain: !g.Slim,
		}
		if g.Slim {
			gap.y, gap.height = fmt.Sprint(s.height()-8), "8"
		}
		ends := to
		if gap.atStart = to < wordsRoom; gap.atStart {
			gap.textX, ends = gap.x, from+wordsRoom
		}
		if words && !g.Slim && ends-said >= wordsRoom {
			gap.text, said = gap.title, ends
		}
		out = append(out, gap)
	}
	return out
}

// Missing returns the gaps in values, which begin at from: what is not known, and
// since when or until when, in UTC.
func Missing(from time.Time, step time.Duration, values []float64) []Gap {
	form := "15:04"
	switch span := step * time.Duration(len(values)); {
	case span > shortAxis:
		form = "2 Jan 15:04"
	case span > day:
		form = "Mon 15:04"
	}
	at := func(i int) time.Time { return from.Add(step * time.Duration(i)) }
	text := func(i int) string { return at(i).UTC().Format(form) }
	values = clean(values)
	var out []Gap
	runs(len(values), func(i int) bool { return math.IsNaN(values[i]) }, func(start, end int) {
		g := Gap{From: at(start - 1), To: at(end)}
		switch {
		case start == 0 && end == len(values):
			g.Text = "no data"
		case start == 0:
			g.Text = "no data before " + text(end)
		case end == len(values):
			g.Text = "no data since " + text(start)
		default:
			g.Text = "no data " + text(start) + " to " + text(end)
		}
		out = append(out, g)
	})
	return out
}

package chart

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/a-h/templ"
)

var update = flag.Bool("update", false, "write the golden files anew")

var start = time.Date(2026, 3, 12, 21, 40, 0, 0, time.UTC)

func render(t testing.TB, c templ.Component) string {
	t.Helper()
	var b bytes.Buffer
	if err := c.Render(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// day24 is a plot of a day with everything that a plot may have.
func day24() Plot {
	const n = 289
	offered, admitted, limit, candidate, ratio := make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n)
	for i := range n {
		offered[i] = 6000 + 4600*math.Sin(float64(i)/40)
		limit[i] = 8400
		if i > 210 {
			limit[i] = 9000
		}
		admitted[i] = min(offered[i], limit[i])
		if candidate[i] = math.NaN(); i > 130 {
			candidate[i] = 7500
		}
		if i > 90 && i < 100 {
			offered[i], admitted[i] = math.NaN(), math.NaN()
		}
		ratio[i] = 100 * (offered[i] - admitted[i]) / offered[i]
	}
	return Plot{
		ID: "load", Title: "payments/writes, last 24 hours", Desc: "Offered rose to 10,600 rps.",
		From: start, Step: 5 * time.Minute, Steps: n,
		Strips: []Strip{
			{Unit: "rps", Height: 300, Lines: []Line{
				{Offered, offered, "10,624 offered"},
				{Admitted, admitted, "9,009 admitted"},
				{Limit, limit, "9,000 limit"},
				{Candidate, candidate, "7,500 candidate"},
			}},
			{Unit: "%", Height: 52, AtLeast: 20, Lines: []Line{{DropRatio, ratio, "15.3% drop ratio"}}},
		},
		Flags: []Flag{{start.Add(11 * time.Hour), 1, false}, {start.Add(18 * time.Hour), 2, true}},
		Gaps:  Missing(start, 5*time.Minute, admitted),
	}
}

func TestGoldenPlot(t *testing.T) {
	got := render(t, Draw(day24())) + "\n" + render(t, Table(day24())) + "\n"
	const name = "testdata/day.html"
	if *update {
		if err := os.WriteFile(name, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the plot is not that of %s; go test ./web/chart -update writes it anew, then look at it", name)
	}
}

func TestWhatAPlotSays(t *testing.T) {
	got := render(t, Draw(day24()))
	for _, part := range []string{
		`<title id="load-t">payments/writes, last 24 hours</title>`, "Offered rose to 10,600 rps.",
		`class="chart__area--dropped"`, `url(#hatch-virtual)`, `url(#hatch-gap)`,
		"no data Fri 05:15 to Fri 06:00", ">10,624 offered</text>", "offered <b>10,624</b>", ">7.5k</text>", ">UTC</text>",
		`preserveAspectRatio="none"`, "chart__flag--cap",
	} {
		if !strings.Contains(got, part) {
			t.Errorf("the plot has no %q", part)
		}
	}
	if strings.Contains(got, "style=") || strings.Contains(got, "<script") {
		t.Error("the plot has a style or script of its own")
	}
	if n := strings.Count(got, "chart__grid"); n > 2*mostTicks {
		t.Errorf("%d lines of the grid, want at most %d an axis", n, mostTicks)
	}
}

// TestTheGapIsTheDrop: the filled area lies between the two lines, and only where
// something was dropped.
func TestTheGapIsTheDrop(t *testing.T) {
	offered, admitted := []float64{50, 50, 80, 100, 50, 50, 50, 50}, []float64{50, 50, 60, 60, 50, 50, 50, 50}
	in := space{places: len(offered), height: 100, top: 100}
	if got, want := in.between(offered, admitted), "M1 50 2 20 3 0 4 50 4 50 3 40 2 40 1 50Z"; got != want {
		t.Errorf("dropped is %q, want %q", got, want)
	}
	if got := in.between(admitted, admitted); got != "" {
		t.Errorf("dropped is %q where nothing was", got)
	}
}

// TestLabelsStandApart: labels of lines that end close to each other do not
// overlap, and lines that end alone have their label beside them.
func TestLabelsStandApart(t *testing.T) {
	ends := []end{{"a", "1 a", 50}, {"b", "2 b", 51}, {"c", "3 c", 52}, {"d", "4 d", 250}}
	labels := labelsOf(ends, 300)
	last := -1.0
	for _, l := range labels {
		y, err := strconv.ParseFloat(l.y, 64)
		if err != nil {
			t.Fatal(err)
		}
		if last >= 0 && y-last < labelGap-0.2 {
			t.Errorf("labels at %v and %v, want %d apart", last, y, labelGap)
		}
		last = y
	}
	if labels[3].lead || labels[3].y != "254.0" {
		t.Errorf("the label that is alone stands at %s, want beside its line", labels[3].y)
	}
	if !labels[0].lead {
		t.Error("a label that was moved has no leader")
	}
}

// TestFlagsStandApart: those close to each other do not overlap, and none leaves
// the plot.
func TestFlagsStandApart(t *testing.T) {
	at := func(share float64) time.Time { return start.Add(time.Duration(share * 100 * float64(time.Minute))) }
	p := Plot{From: start, Step: time.Minute, Steps: 101, Flags: []Flag{{at(0.5), 1, false}, {at(0.51), 2, false}, {at(0.99), 3, true}, {at(1), 4, false}, {at(2), 5, false}}}
	var got []string
	for _, f := range p.flags(101, "300") {
		got = append(got, f.number+" "+f.x+" "+f.textX)
	}
	want := "1 50.00% 50.00%, 2 51.00% 54.60%, 3 99.00% 95.40%, 4 100.00% 100.00%"
	if text := strings.Join(got, ", "); text != want {
		t.Errorf("flags at %s, want %s", text, want)
	}
}

func TestScale(t *testing.T) {
	tests := []struct {
		name                  string
		peak, atLeast, height float64
		top, step             float64
	}{
		{"thousands", 10_680, 0, 300, 11_107.2, 2500},
		{"per cent", 3, 20, 52, 20, 10},
		{"above what it reaches at least", 60, 20, 52, 62.4, 25},
		{"nothing", 0, 0, 300, 1, 0.25},
		{"small", 0.02, 0, 300, 0.0208, 0.005},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			top, step := scaleOf(tt.peak, tt.atLeast, tt.height)
			if math.Abs(top-tt.top) > 1e-9*tt.top || math.Abs(step-tt.step) > 1e-9*tt.step {
				t.Errorf("scaleOf(%v, %v, %v) = %v, %v, want %v, %v", tt.peak, tt.atLeast, tt.height, top, step, tt.top, tt.step)
			}
		})
	}
}

func TestThin(t *testing.T) {
	values := make([]float64, 1000)
	values[500] = 7
	got := thin(values, 1000)
	if len(got) != mostPoints {
		t.Fatalf("%d points, want %d", len(got), mostPoints)
	}
	if peak := got[500*mostPoints/1000]; peak != 7 {
		t.Errorf("the highest value became %v: thinning hides a peak", peak)
	}
	if got := thin(values[:500], 1000); len(got) != mostPoints/2 {
		t.Errorf("half of the values became %d points, want half of %d", len(got), mostPoints)
	}
}

func TestMissing(t *testing.T) {
	nan := math.NaN()
	tests := []struct {
		name   string
		values []float64
		want   []string
	}{
		{"nothing is", []float64{1, 2, 3}, nil},
		{"since", []float64{1, nan, nan}, []string{"no data since 21:41"}},
		{"before", []float64{nan, 2, 3}, []string{"no data before 21:41"}},
		{"between", []float64{1, nan, 3}, []string{"no data 21:41 to 21:42"}},
		{"all", []float64{nan, nan}, []string{"no data"}},
		{"two", []float64{1, nan, 3, nan, math.Inf(1)}, []string{"no data 21:41 to 21:42", "no data since 21:43"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, g := range Missing(start, time.Minute, tt.values) {
				got = append(got, g.Text)
			}
			if fmt.Sprint(got) != fmt.Sprint(tt.want) {
				t.Errorf("gaps %q, want %q", got, tt.want)
			}
		})
	}
}

// TestSparkIsSmall: a row of a table with a sparkline has room for 1.4 kB.
func TestSparkIsSmall(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	values := make([]float64, 72)
	for i := range values {
		values[i] = 5e5 + 4e5*math.Sin(float64(i)/12) + 2e4*r.Float64()
	}
	got := render(t, Spark(Sparkline{Label: "Offered load of the last 24 hours, 1,000 to 1,000,000 rps", Values: values, LimitRPS: 5e5}))
	if len(got) > 1400 {
		t.Errorf("a sparkline of %d bytes, want at most 1,400", len(got))
	}
}

func TestBar(t *testing.T) {
	tests := []struct {
		name string
		bar  Bar
		want drawnBar
	}{
		{"admitted and dropped", Bar{Admitted: 60, Dropped: 20, Of: 100}, drawnBar{admitted: "60.0%", dropped: "20.0%"}},
		{"virtual is part of admitted", Bar{Admitted: 60, Virtual: 15, Of: 100}, drawnBar{admitted: "60.0%", virtualX: "45.0%", virtual: "15.0%"}},
		{"beyond the scale", Bar{Admitted: 90, Dropped: 90, Of: 100}, drawnBar{admitted: "90.0%", dropped: "10.0%"}},
		{"no scale", Bar{Admitted: 90}, drawnBar{}},
		{"no numbers", Bar{Admitted: math.NaN(), Dropped: math.Inf(1), Of: 10}, drawnBar{admitted: "0.0%"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := barOf(tt.bar); got != tt.want {
				t.Errorf("barOf(%+v) = %+v, want %+v", tt.bar, got, tt.want)
			}
		})
	}
}

func TestHeat(t *testing.T) {
	var h WeekHeat
	h.Label = "Share that would have been dropped"
	h.Shares[0][14], h.Shares[6][0], h.Shares[6][1] = 0.012, 0.1, math.NaN()
	got := render(t, Heat(h))
	for _, part := range []string{"<title>Mon 14:00: 1.2%</title>", "<title>Sun 00:00: 10.0%</title>", "heat__cell--4", "url(#hatch-gap)", `aria-label="Share that would have been dropped"`} {
		if !strings.Contains(got, part) {
			t.Errorf("the map has no %q", part)
		}
	}
	if n := strings.Count(got, `class="heat__cell`); n != 168 {
		t.Errorf("%d cells, want 168", n)
	}
}

// TestTable recomputes the means of a table.
func TestTable(t *testing.T) {
	p := day24()
	table := tableOf(p)
	if table.first != "Hour to" || len(table.rows) > 60 {
		t.Fatalf("%q and %d rows, want a row an hour", table.first, len(table.rows))
	}
	offered := p.Strips[0].Lines[0].Values
	for i, row := range table.rows {
		sum, n := 0.0, 0.0
		for _, v := range offered[12*i : min(12*i+12, len(offered))] {
			if !math.IsNaN(v) {
				sum, n = sum+v, n+1
			}
		}
		got, err := strconv.ParseFloat(strings.ReplaceAll(row.cells[0], ",", ""), 64)
		if err != nil || math.Abs(got-sum/n) > 0.51 {
			t.Errorf("hour %d: offered %s, want %.0f", i, row.cells[0], sum/n)
		}
	}
	if got := strings.Join(table.heads, ", "); got != "Offered rps, Admitted rps, Limit rps, Candidate rps, Drop ratio %, Dropped rps" {
		t.Errorf("heads %q", got)
	}
}

// FuzzDraw holds for any plot: what is drawn is well formed, has no coordinate
// that is no number, and lies within the box.
func FuzzDraw(f *testing.F) {
	f.Add(uint64(1), 300, int64(time.Minute), "10 offered", 300)
	f.Add(uint64(2), 0, int64(0), "", 0)
	f.Add(uint64(3), 1, int64(-1), `"><script>`, -5)
	f.Add(uint64(4), 5000, int64(math.MaxInt64), "\x00\xff\u202e", 1<<40)
	f.Fuzz(func(t *testing.T, seed uint64, n int, step int64, text string, steps int) {
		if n < 0 || n > 3000 {
			return
		}
		r := rand.New(rand.NewPCG(seed, 0))
		p := wild(r, n, step, text, steps)
		drawn := render(t, Draw(p))
		check(t, drawn)
		check(t, render(t, Table(p)))
		check(t, render(t, Spark(Sparkline{Label: text, Values: wildValues(r, n), LimitRPS: wildValue(r), Before: wildValue(r), Shadow: seed%2 == 0})))
		check(t, render(t, BarOf(Bar{wildValue(r), wildValue(r), wildValue(r), wildValue(r)})))
		var h WeekHeat
		for d := range h.Shares {
			copy(h.Shares[d][:], wildValues(r, 24))
		}
		check(t, render(t, Heat(h)))
	})
}

func wild(r *rand.Rand, n int, step int64, text string, steps int) Plot {
	p := Plot{ID: "p", Title: text, Desc: text, From: start, Step: time.Duration(step), Steps: steps}
	for range r.IntN(4) {
		s := Strip{Unit: text, Height: r.IntN(500) - 50, AtLeast: wildValue(r)}
		for range r.IntN(5) {
			s.Lines = append(s.Lines, Line{Kind(r.IntN(10) - 1), wildValues(r, r.IntN(n+1)), text})
		}
		p.Strips = append(p.Strips, s)
	}
	for i := range r.IntN(4) {
		p.Flags = append(p.Flags, Flag{start.Add(time.Duration(r.Int64N(1e15) - 5e14)), i, i%2 == 0})
		p.Gaps = append(p.Gaps, Gap{start.Add(time.Duration(r.Int64N(1e15) - 5e14)), start.Add(time.Duration(r.Int64N(1e15))), text, i%2 == 0})
	}
	return p
}

func wildValues(r *rand.Rand, n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = wildValue(r)
	}
	return out
}

func wildValue(r *rand.Rand) float64 {
	switch r.IntN(8) {
	case 0:
		return math.NaN()
	case 1:
		return math.Inf(1 - 2*r.IntN(2))
	case 2:
		return -r.Float64()
	case 3:
		return math.MaxFloat64
	case 4:
		return math.SmallestNonzeroFloat64
	case 5:
		return 0
	}
	return r.ExpFloat64() * 1000
}

// check reports what is not well formed, or not within its box.
func check(t testing.TB, text string) {
	t.Helper()
	for _, bad := range []string{"NaN", "Inf", "e+", "<script"} {
		for _, tag := range strings.SplitAfter(text, ">") {
			if i := strings.Index(tag, "<path"); i >= 0 && strings.Contains(tag[i:], bad) || bad == "<script" && strings.Contains(tag, bad) {
				t.Fatalf("%q in %s", bad, tag)
			}
		}
	}
	d := xml.NewDecoder(strings.NewReader("<x>" + strings.ReplaceAll(text, " hidden>", ">") + "</x>"))
	d.Strict, d.AutoClose, d.Entity = true, xml.HTMLAutoClose, xml.HTMLEntity
	boxes := [][2]float64{{math.Inf(1), math.Inf(1)}}
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("not well formed: %v\n%.2000s", err, text)
		}
		switch e := token.(type) {
		case xml.StartElement:
			box := boxes[len(boxes)-1]
			for _, a := range e.Attr {
				switch a.Name.Local {
				case "viewBox":
					var x, y float64
					if _, err := fmt.Sscan(a.Value, &x, &y, &box[0], &box[1]); err != nil {
						t.Fatalf("view box %q: %v", a.Value, err)
					}
				case "d":
					within(t, a.Value, box)
				}
			}
			boxes = append(boxes, box)
		case xml.EndElement:
			boxes = boxes[:len(boxes)-1]
		}
	}
}

// within reports a coordinate of a path that is outside a box.
func within(t testing.TB, d string, box [2]float64) {
	t.Helper()
	y := false // of pairs, x comes first
	for _, word := range strings.FieldsFunc(strings.NewReplacer("M", " M ", "H", " H ", "V", " V ", "Z", " Z ").Replace(d), func(r rune) bool { return r == ' ' }) {
		switch word {
		case "M", "H", "Z":
			y = false
			continue
		case "V":
			y = true
			continue
		}
		v, err := strconv.ParseFloat(word, 64)
		limit := box[0]
		if y {
			limit = box[1]
		}
		if err != nil || v < 0 || v > limit {
			t.Fatalf("coordinate %q outside of %v in %.300s", word, box, d)
		}
		y = !y
	}
}

func BenchmarkDraw(b *testing.B) {
	p := day24()
	for b.Loop() {
		var out bytes.Buffer
		if err := Draw(p).Render(b.Context(), &out); err != nil {
			b.Fatal(err)
		}
	}
}

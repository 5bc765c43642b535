package simulate

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"grl/roles/command/chart"
	"grl/roles/fleet"
)

// TestPlotIsAPicture reads a picture: it is XML, has a panel for each scenario
// and law, and nothing lies outside.
func TestPlotIsAPicture(t *testing.T) {
	for _, o := range []Options{
		{Scenarios: []string{"step", "pulse"}, Laws: []string{All}, Hosts: 12, LimitRPS: 400, Length: 45 * time.Second},
		{Scenarios: []string{"low"}, Hosts: 12},
		{Hosts: 4, LimitRPS: 0.001, Length: time.Second},
		{Hosts: 4, LimitRPS: 1e8, Length: 2 * time.Second},
		{Hosts: 4, Length: 5 * time.Minute},
	} {
		sections := ran(t, o)
		var b strings.Builder
		if err := WritePlot(&b, sections); err != nil {
			t.Fatal(err)
		}
		svg := b.String()
		height := wellFormed(t, svg)
		panels := len(sections) * len(sections[0].Laws)
		if n := strings.Count(svg, `class="admitted"`); n != panels {
			t.Errorf("%+v: %d panels, want %d", o, n, panels)
		}
		for _, law := range sections[0].Laws {
			if n := strings.Count(svg, ">"+law+"</text>"); n != len(sections) {
				t.Errorf("%+v: %d panels of %s, want %d", o, n, law, len(sections))
			}
		}
		inside(t, svg, height)
	}
}

// wellFormed parses svg and returns its height.
func wellFormed(t *testing.T, svg string) (height float64) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(svg))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return height
		}
		if err != nil {
			t.Fatalf("no XML: %v", err)
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "svg" {
			for _, a := range e.Attr {
				if a.Name.Local == "height" {
					height, _ = strconv.ParseFloat(a.Value, 64)
				}
			}
		}
	}
}

// inside fails for a point of a path, or a text, that is not in the picture.
func inside(t *testing.T, svg string, height float64) {
	t.Helper()
	points := regexp.MustCompile(`[ML](\S+?) ([^MLVHZ" ]+)`).FindAllStringSubmatch(strings.Join(
		regexp.MustCompile(` d="[^"]*"`).FindAllString(svg, -1), "\n"), -1)
	texts := regexp.MustCompile(`<text [^>]*x="([^"]*)" y="([^"]*)"`).FindAllStringSubmatch(svg, -1)
	for _, m := range append(points, texts...) {
		x, errX := strconv.ParseFloat(m[1], 64)
		y, errY := strconv.ParseFloat(m[2], 64)
		if errX != nil || errY != nil || !(x >= 0 && x <= plotWidth && y >= 0 && y <= height) {
			t.Fatalf("%s is not in a picture of %d by %v", m[0], plotWidth, height)
		}
	}
	if len(points) == 0 || len(texts) == 0 {
		t.Fatal("no lines or no texts")
	}
}

// TestPlotEscapes has a path with characters that mean something in XML.
func TestPlotEscapes(t *testing.T) {
	s := ran(t, Options{Hosts: 4, LimitRPS: 10, Length: time.Second})[0]
	s.Command += ` --trace '<script>"&'`
	var b strings.Builder
	if err := WritePlot(&b, []*Section{s}); err != nil {
		t.Fatal(err)
	}
	wellFormed(t, b.String())
	if strings.Contains(b.String(), "<script>") || !strings.Contains(b.String(), "&lt;script&gt;") {
		t.Error("a name is not escaped")
	}
}

// TestPathKeepsPeaks draws more values than pixels, and as many as there are.
func TestPathKeepsPeaks(t *testing.T) {
	const seed = 4
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	x, y := chart.NewAxis(1, 8, 0, 100), chart.NewAxis(1000, 5, 1000, 0)
	for _, n := range []int{2, 99, 200, 201, 5000} {
		values := make([]float64, n)
		for i := range values {
			values[i] = math.Floor(random.Float64() * 900)
		}
		values[random.IntN(n)] = 1000
		d := path(values, 100/float64(n), x, y)
		for _, v := range []float64{slices.Min(values), 1000} {
			if at := chart.Coordinate(y.Pixel(v)); !strings.Contains(d+"L", " "+at+"L") {
				t.Errorf("%d values: no point at %s in %s", n, at, d)
			}
		}
		if points := strings.Count(d, "L") + 1; points > 2*100+2 {
			t.Errorf("%d values make %d points on 100 pixels", n, points)
		}
	}
}

func TestPathLeavesOutWhatIsLevel(t *testing.T) {
	x, y := chart.NewAxis(1, 8, 0, 6), chart.NewAxis(10, 5, 10, 0)
	got := path([]float64{1, 1, 1, 5, 5, 1}, 1, x, y)
	if want := "M0.5 9L2.5 9L3.5 5L4.5 5L5.5 9"; got != want {
		t.Errorf("path = %s, want %s", got, want)
	}
}

// TestCurveOfALowLimit is the mean of so many slots that the limit has 50
// requests in each.
func TestCurveOfALowLimit(t *testing.T) {
	slots := make([]float64, 5200) // 260 s of 50 ms
	for i := range slots {
		slots[i] = float64(i % 2 * 10)
	}
	c := newCurve(fleet.Series{Slot: 50 * time.Millisecond, Offered: slots, Admitted: slots, Limit: 5})
	if c.each != 10*time.Second || len(c.offered) != 26 || c.offered[3] != 5 || c.length != 260*time.Second {
		t.Errorf("%d means of %v over %v, %v, want 26 of 10s over 4m20s, all 5", len(c.offered), c.each, c.length, c.offered)
	}
	if c := newCurve(fleet.Series{Slot: 50 * time.Millisecond, Offered: slots, Admitted: slots, Limit: 44_000}); c.each != 50*time.Millisecond {
		t.Errorf("means of %v for a limit of 44,000, want of 50ms", c.each)
	}
}

package backtest

import (
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"grl/policy"
	"grl/policy/backtest"
)

var monday = time.Date(2024, time.January, 1, 0, 0, 0, 0, time.UTC)

// hours is a result of so many hours of which the first week teaches. Load is 50,
// but for each of the spikes, which is 150; the limit is as given.
func hours(n int, limit func(hour int) float64, spikes ...int) *backtest.Result {
	at := func(hour int) time.Time { return monday.Add(time.Duration(hour) * time.Hour) }
	r := &backtest.Result{
		Name: "shop", Policy: "peak", Periods: 1, FD: 0.001, FDWorst: 0.002, H: 1.5, HLowest: 1, T: 2, AnomalyDrop: nan,
		Series: policy.Series{Start: monday, Step: time.Hour},
		Tested: backtest.Window{From: at(168), To: at(n)},
		Worst:  backtest.Window{From: at(168), To: at(192)},
	}
	for i := range n {
		load, l := 50.0, policy.Unknown
		if i >= 168 {
			l = limit(i)
		}
		r.Series.RPS, r.Limits = append(r.Series.RPS, load), append(r.Limits, l)
	}
	for _, i := range spikes {
		r.Series.RPS[i] = 150
	}
	return r
}

func always(rps float64) func(int) float64 { return func(int) float64 { return rps } }

func picture(t *testing.T, results ...*backtest.Result) string {
	t.Helper()
	var b strings.Builder
	if err := WritePlot(&b, results); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestPlotIsAPicture reads pictures: they are XML, have two panels a result, and
// nothing lies outside.
func TestPlotIsAPicture(t *testing.T) {
	zero := hours(400, always(100))
	clear(zero.Series.RPS)
	none := hours(400, always(policy.Unknown))
	none.Periods = 0
	huge := hours(60*24*365/10, always(1e9))
	tiny := hours(170, always(0.001))
	gap := hours(400, always(100), 200)
	for i := 210; i < 300; i++ {
		gap.Series.RPS[i] = policy.Unknown
	}
	gap.Anomalies = []backtest.Window{
		{From: monday.Add(-time.Hour), To: monday.Add(time.Hour), Kind: "labelled"},
		{From: monday.Add(1000 * time.Hour), To: monday.Add(1001 * time.Hour), Kind: "labelled"},
		{From: monday.Add(200 * time.Hour), To: monday.Add(100 * time.Hour), Kind: "missing"},
	}
	for name, results := range map[string][]*backtest.Result{
		"two": {hours(800, always(100), 300), hours(800, always(70))}, "zero": {zero}, "no limits": {none},
		"huge": {huge}, "tiny": {tiny}, "gap": {gap},
	} {
		t.Run(name, func(t *testing.T) {
			svg := picture(t, results...)
			height := wellFormed(t, svg)
			inside(t, svg, height)
			panels := 2 * len(results)
			if name == "no limits" {
				panels = 1
			}
			if n := strings.Count(svg, `class="offered" d="`); n != panels+1 { // and the legend
				t.Errorf("%d lines of load, want %d", n, panels+1)
			}
			for _, want := range []string{`role="img" aria-labelledby="title desc"`, `<desc id="desc">shop under peak`} {
				if !strings.Contains(svg, want) {
					t.Errorf("no %s", want)
				}
			}
		})
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
	points := regexp.MustCompile(`[ML](\S+?) ([^ML" ]+)`).FindAllStringSubmatch(strings.Join(
		regexp.MustCompile(` d="[^"]*"`).FindAllString(svg, -1), "\n"), -1)
	texts := regexp.MustCompile(`<(?:text|rect) [^>]*x="([^"]*)" y="([^"]*)"`).FindAllStringSubmatch(svg, -1)
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

// TestPlotMarksDrops finds a lone hour above the limit in a year of them.
func TestPlotMarksDrops(t *testing.T) {
	dropped := regexp.MustCompile(`class="dropped" d="([^"]*)"`)
	calm := dropped.FindAllString(picture(t, hours(8760, always(100))), -1)
	if len(calm) != 1 { // the legend
		t.Errorf("%d marks of drops where none are", len(calm)-1)
	}
	found := dropped.FindAllStringSubmatch(picture(t, hours(8760, always(100), 170)), -1)
	if len(found) != 3 || strings.Count(found[1][1], "M") < 2 {
		t.Errorf("marks %q, want a line and a mark below the axis in both panels", found)
	}
}

func TestPlotOfLimitsThatMoveWithinAPixel(t *testing.T) {
	byHour := func(hour int) float64 { return 60 + float64(hour%24) }
	svg := picture(t, hours(8760, byHour))
	if n := strings.Count(svg, `class="limit band"`); n != 1 {
		t.Errorf("%d bands, want one: of the whole year", n)
	}
}

func TestPlotEscapes(t *testing.T) {
	r := hours(400, always(100))
	r.Name = `<script>"&'`
	svg := picture(t, r)
	wellFormed(t, svg)
	if strings.Contains(svg, "<script>") {
		t.Error("a name is not escaped")
	}
}

func TestTicks(t *testing.T) {
	tests := []struct {
		name        string
		length      time.Duration
		first, last string
		most        int
	}{
		{"hours", 10 * time.Hour, "00:00", "09:00", 12},
		{"a day", 40 * time.Hour, "1 Jan 00:00", "2 Jan 12:00", 12},
		{"two weeks", 14 * 24 * time.Hour, "Mon 1 Jan", "Sat 13 Jan", 12},
		{"a quarter", 90 * 24 * time.Hour, "1 Jan 2024", "25 Mar 2024", 13},
		{"a year", 365 * 24 * time.Hour, "Jan 2024", "Dec 2024", 12},
		{"eight years", 8 * 365 * 24 * time.Hour, "2024", "2031", 12},
		{"two centuries", 200 * 365 * 24 * time.Hour, "2050", "2200", 12},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ticks := timeAxis{monday, monday.Add(tt.length)}.ticks()
			if len(ticks) < 1 || len(ticks) > tt.most || ticks[0].text != tt.first || ticks[len(ticks)-1].text != tt.last {
				t.Errorf("%d ticks, %v, want from %s to %s", len(ticks), ticks, tt.first, tt.last)
			}
		})
	}
}

func TestTickNumbers(t *testing.T) {
	for _, tt := range []struct {
		v, top float64
		want   string
	}{{0, 5, "0"}, {20000, 44000, "20,000"}, {2.5, 5, "2.5"}, {0.25, 0.5, "0.25"}, {0.002, 0.01, "0.002"}} {
		if got := tick(tt.v, tt.top); got != tt.want {
			t.Errorf("tick(%v, %v) = %s, want %s", tt.v, tt.top, got, tt.want)
		}
	}
}

package main

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"grl/policy/backtest"
)

// files are the shortest series of testdata, one of them cut.
func files(t *testing.T) []*backtest.File {
	t.Helper()
	all, err := readAll("../../testdata")
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 3 || all[0].Name != "api_1h" {
		t.Fatalf("%d series, want those of testdata in the order of their names", len(all))
	}
	var short []*backtest.File
	for _, f := range all {
		if f.Name == "api_1h" || f.Name == "purchase1_1h" {
			f.Series.RPS = f.Series.RPS[:min(len(f.Series.RPS), 24*70)]
			short = append(short, f)
		}
	}
	return short
}

// TestVaryingNothing computes limits anew from the figures behind them, with the
// constants as they are: what comes out is what the policies themselves compute.
func TestVaryingNothing(t *testing.T) {
	all := files(t)
	for _, same := range []struct{ plain, varied trial }{
		{peakRails, find(t, priors(peakRails), "1.1, 8 weeks")}, {forecastFree, find(t, margins(), "1.1")},
	} {
		want, err := same.plain.run(t.Context(), all)
		if err != nil {
			t.Fatal(err)
		}
		got, err := same.varied.run(t.Context(), all)
		if err != nil {
			t.Fatal(err)
		}
		for i := range want {
			for j, limit := range want[i].Limits {
				if other := got[i].Limits[j]; math.Abs(other-limit) > 1e-9*limit {
					t.Fatalf("%s, %s: limit %v of step %d, want %v", same.varied.name, want[i].Name, other, j, limit)
				}
			}
		}
	}
}

func find(t *testing.T, trials []trial, name string) trial {
	t.Helper()
	for _, tr := range trials {
		if tr.name == name {
			return tr
		}
	}
	t.Fatalf("no trial %q", name)
	return trial{}
}

// TestLeaveOneOut has two values and three series: on a and b the second value is
// better, c it breaks.
func TestLeaveOneOut(t *testing.T) {
	of := func(fd, h float64) *backtest.Result { return &backtest.Result{FD: fd, H: h} }
	s := &study{
		trials:  []trial{{name: "one"}, {name: "two"}},
		results: [][]*backtest.Result{{of(0, 1.3), of(0, 1.4), of(0, 1.5)}, {of(0, 1.1), of(0, 1.2), of(0.5, 1)}},
		figure:  func(r *backtest.Result) float64 { return r.H },
	}
	if best := s.best(-1); best != 0 {
		t.Errorf("best of all is %d, want the first, which keeps all within", best)
	}
	out, chosen := s.leaveOneOut()
	if want := (score{2, 1.3}); out != want || chosen[0] != 2 || chosen[1] != 1 {
		t.Errorf("leave one out = %+v, chosen %v, want %+v and [2 1]", out, chosen, want)
	}
}

func TestCheckSays(t *testing.T) {
	b := bound{peakRails, 17, 1.22, 1.9}
	if err := b.holds(backtest.Summary{Series: 19, Within: 17, H: 1.22, T: 1.9}); err != nil {
		t.Errorf("at the bounds: %v", err)
	}
	err := b.holds(backtest.Summary{Series: 19, Within: 16, H: 1.23, T: math.NaN()})
	for _, want := range []string{"on 16 series, want at least 17", "median H 1.230, want at most 1.22", "median T NaN"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("holds = %v, want %q", err, want)
		}
	}
}

func TestWrite(t *testing.T) {
	document := filepath.Join(t.TempDir(), "rlc.md")
	text := "# RLC\n\n" + begin + "old\n" + end + "\nMore.\n"
	if err := os.WriteFile(document, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := write(t.Context(), files(t), document); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"# RLC\n\n" + begin + "\n### All series\n", "| `purchase1_1h` | 3 | 0.000 % | 0.00 % | 5.83 (2.13) |", "\n" + end + "\nMore.\n"} {
		if !strings.Contains(string(data), want) {
			t.Errorf("the document lacks %q:\n%s", want, data)
		}
	}
	if strings.Contains(string(data), "old") {
		t.Error("the document has the old tables still")
	}
}

func TestWrongUse(t *testing.T) {
	dir := t.TempDir()
	for _, args := range [][]string{nil, {"check"}, {"check", dir}, {"write", "../../testdata"}, {"write", "../../testdata", dir + "/missing.md"}, {"x", dir}} {
		if err := run(context.Background(), args); err == nil {
			t.Errorf("run(%q) = nil, want an error", args)
		}
	}
}

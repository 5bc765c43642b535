package command_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"grl/limiter"
	"grl/roles/command"
	"grl/store"
)

// seriesOf is the path of a series of real traffic.
func seriesOf(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs("../../policy/backtest/testdata/" + name + ".csv.gz")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func runBacktest(t *testing.T, ctx context.Context, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	cmd := command.Backtest()
	var out, errOut bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&errOut)
	cmd.SetArgs(args)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err = cmd.ExecuteContext(ctx)
	return out.String(), errOut.String(), err
}

const nightlyPolicy = `name: nightly
kind: peak
mode: propose
match: {service: "*"}
`

// TestBacktestFigures runs each way to name a policy and its bounds, on passengers
// of taxis.
func TestBacktestFigures(t *testing.T) {
	file := filepath.Join(t.TempDir(), "nightly.yaml")
	writeTo(t, file, nightlyPolicy)
	weekly := filepath.Join(t.TempDir(), "weekly.yaml")
	writeTo(t, weekly, strings.Replace(nightlyPolicy, "mode: propose", `cycle: "0 0 * * 2"`, 1))
	tests := []struct {
		name    string
		args    []string
		policy  string
		periods int
		h, t    float64 // within 0.01
	}{
		{"peak", nil, "peak", 27, 1.11, 1.73},
		{"peak with all that is live", []string{"--bounds", "live"}, "peak", 27, 1.11, 1.74},
		{"a file", []string{"--policy", file}, "nightly", 27, 1.11, 1.74},
		{"a file, rails alone", []string{"--policy", file, "--bounds", "rails"}, "nightly", 27, 1.11, 1.73},
		{"a file that runs once a week", []string{"--policy", weekly, "--bounds", "none"}, "nightly", 27, 1.13, 1.75},
		{"other lengths", []string{"--train", "8w", "--test", "2w"}, "peak", 11, 1.10, 1.82},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			stdout, stderr, err := runBacktest(t, t.Context(), append(tt.args, "--json", "--series", seriesOf(t, "taxi_30m"))...)
			if err != nil || stderr != "" {
				t.Fatalf("backtest %v = %v, stderr %q", tt.args, err, stderr)
			}
			var got struct {
				Series, Policy string
				Periods        int
				FD, H, T       float64
			}
			if err := json.Unmarshal([]byte(stdout), &got); err != nil {
				t.Fatal(err)
			}
			if got.Series != "taxi_30m" || got.Policy != tt.policy || got.Periods != tt.periods ||
				!(math.Abs(got.H-tt.h) <= 0.01) || !(math.Abs(got.T-tt.t) <= 0.01) || !(got.FD <= 0.001) {
				t.Errorf("%+v, want %s, %d periods, H %v, T %v", got, tt.policy, tt.periods, tt.h, tt.t)
			}
		})
	}
}

// TestBacktestOfSeveral prints a line for each and one for all, draws, and says
// what is odd in a file.
func TestBacktestOfSeveral(t *testing.T) {
	plot := filepath.Join(t.TempDir(), "plot.svg")
	stdout, stderr, err := runBacktest(t, t.Context(), "--plot", plot, "--series", seriesOf(t, "purchase1_1h"), seriesOf(t, "api_1h"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"purchase1_1h  peak          3  0.000 %  0.00 %  5.83", "\napi_1h        peak         33", "\n\n2 series: FD within 0.1 % on 2, median H ",
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}
	if !strings.Contains(stderr, "api_1h.csv.gz: 1 rows have the time of the row before") {
		t.Errorf("stderr %q says nothing of the hour that is there twice", stderr)
	}
	svg, err := os.ReadFile(plot)
	if err != nil || !bytes.Contains(svg, []byte(">api_1h, peak</text>")) {
		t.Errorf("the plot lacks a series: %v", err)
	}
}

// TestBacktestOfTheController takes policy and past from a controller: six weeks of
// minutes, of which one was dropped in and a day is lost, with an hour that the
// policy ignores and seconds of twice the mean.
func TestBacktestOfTheController(t *testing.T) {
	db := filepath.Join(t.TempDir(), "db")
	fillHistory(t, db)
	controlOf(t, db)
	incident := time.Now().Truncate(time.Hour).Add(-incidentAge).UTC()
	writeTo(t, "nightly.yaml", nightlyPolicy+fmt.Sprintf("ignore: [{from: %s, to: %s, reason: incident}]\n",
		incident.Format(time.RFC3339), incident.Add(time.Hour).Format(time.RFC3339)))
	if r := grl(t, "policy", "apply", "-f", "nightly.yaml", "--reason", "try"); r.code != 0 {
		t.Fatalf("policy apply: %+v", r)
	}
	stdout, stderr, err := runBacktest(t, t.Context(), "--policy", "nightly", "--source", "history", "--bucket", "payments/checkout", "--json")
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Series, Policy string
		Periods        int
		FD, H          float64
	}
	if err := json.Unmarshal([]byte(stdout), &got); err != nil {
		t.Fatal(err)
	}
	if got.Series != "payments/checkout" || got.Policy != "nightly" || got.Periods != 3 || !(got.FD <= 0.001) || !(got.H > 2 && got.H < 2.8) {
		t.Errorf("%+v, want three periods of payments/checkout, and room for its highest seconds", got)
	}
	if !strings.Contains(stderr, "payments/checkout: 1 minutes in which it dropped do not teach") {
		t.Errorf("stderr %q says nothing of the minute with drops", stderr)
	}
	for _, args := range [][]string{{"--policy", "weekly"}, {"--bucket", "payments/other"}} {
		if _, _, err := runBacktest(t, t.Context(), append([]string{"--source", "history", "--bucket", "payments/checkout"}, args...)...); err == nil {
			t.Errorf("backtest %v = nil, want an error", args)
		}
	}
}

// incidentAge is how long ago fifty times as much came for an hour.
const incidentAge = 5 * 24 * time.Hour

// fillHistory writes six weeks of a bucket that pauses every third minute.
func fillHistory(t *testing.T, db string) {
	t.Helper()
	s, err := store.Open(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	end := time.Now().Truncate(time.Hour)
	row := &store.CellHour{Cell: limiter.CellID{Bucket: "payments/checkout"}, Zone: "zone-a"}
	for at := end.Add(-6 * 7 * 24 * time.Hour); at.Before(end); at = at.Add(time.Hour) {
		if age := end.Sub(at); age > 24*time.Hour && age < 48*time.Hour {
			continue // lost
		}
		for m := range row.Minutes {
			offered := uint64(6000 + 100*at.Hour())
			if m%3 == 0 {
				offered = 0 // idle
			}
			if end.Sub(at) == incidentAge {
				offered *= 50
			}
			row.Minutes[m] = store.Minute{Offered: offered, Admitted: offered, HighestSecond: offered / 30}
		}
		if end.Sub(at) == 72*time.Hour {
			row.Minutes[1] = store.Minute{Offered: 1e6, Admitted: 9000, Dropped: 1e6 - 9000}
		}
		if err := s.PutHours(t.Context(), at, slices.Values([]*store.CellHour{row})); err != nil {
			t.Fatal(err)
		}
	}
}

func TestBacktestWrongUse(t *testing.T) {
	dir := t.TempDir()
	path := func(name, text string) string {
		writeTo(t, filepath.Join(dir, name), text)
		return filepath.Join(dir, name)
	}
	taxi := seriesOf(t, "taxi_30m")
	tests := []struct {
		name string
		args []string
		want string
	}{
		{"nothing", nil, "name a file with --series"},
		{"a source without a bucket", []string{"--source", "history"}, "--source and --bucket: want both"},
		{"two sources", []string{"--source", "history", "--bucket", "a/b", "--series", taxi}, "--series and --source: want one"},
		{"no such source", []string{"--source", "graphite", "--bucket", "a/b"}, `--source "graphite": want history or prometheus`},
		{"prometheus without a URL", []string{"--source", "prometheus", "--bucket", "a/b"}, "--prometheus URL: want both"},
		{"a wrong URL", []string{"--source", "prometheus", "--prometheus", "x", "--bucket", "a/b"}, `history source "x" is no URL`},
		{"a wrong bucket", []string{"--source", "history", "--bucket", "b"}, `--bucket "b": want SERVICE/BUCKET`},
		{"a caller of a file", []string{"--series", taxi, "--caller", "web"}, "want --source history"},
		{"no such file", []string{"--series", dir + "/missing.csv"}, "missing.csv: no such file"},
		{"a bad row", []string{"--series", path("bad.csv", "t_unix,rps\n0,1\n60,x\n")}, `bad.csv: line 3: value "x"`},
		{"no such policy", []string{"--series", taxi, "--policy", "peek"}, "--policy peek: neither a kind (peak, forecast"},
		{"a policy that does not hold", []string{"--series", taxi, "--policy", path("bad.yaml", "name: x\n")}, "no kind"},
		{"a quota", []string{"--series", taxi, "--policy", "quota"}, "a quota is agreed"},
		{"no time", []string{"--series", taxi, "--train", "soon"}, `--train: "soon" is no duration`},
		{"too short", []string{"--series", taxi, "--test", "0d"}, `--test: "0d" is not between`},
		{"nothing left to test", []string{"--series", taxi, "--train", "52w"}, "leave nothing to test"},
		{"a wrong step", []string{"--series", taxi, "--step", "1h"}, "is not whole steps of 3600 s"},
		{"no such bounds", []string{"--series", taxi, "--bounds", "some"}, `--bounds "some": want rails, live, none`},
		{"no such folder", []string{"--series", taxi, "--plot", dir + "/x/y.svg"}, "no such directory"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := runBacktest(t, t.Context(), tt.args...)
			var exit *command.ExitError
			if !errors.As(err, &exit) || exit.Code != command.ExitWrongUse || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("backtest %v = %v, want wrong use, %q", tt.args, err, tt.want)
			}
		})
	}
}

func TestBacktestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := runBacktest(t, ctx, "--series", seriesOf(t, "taxi_30m")); err == nil || err.Error() != "interrupted" {
		t.Errorf("backtest = %v, want interrupted", err)
	}
}

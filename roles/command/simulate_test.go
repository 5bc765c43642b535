package command_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	"grl/roles/command"
	"grl/roles/fleet"
)

const (
	shopLimits = `service: shop
buckets:
  - name: checkout
    match: {procedure: "shop.Checkout/*"}
    limit: {rps: 300}
    share: max-min
    weights: {web: 3, app: 1}
    behavior: deny
  - name: search
    match: {procedure: "shop.Search/*"}
    limit: {rps: 500}
    tiers:
      - {name: people, callers: [web, app]}
      - {name: batch, callers: [crawler]}
    retries: first-shed
    behavior: deny
  - {name: each, match: {caller: "*"}, per: caller, limit: {rps: 200}, behavior: allow}
  - {name: near, scope: region, limit: {rps: 900, regions: {eu: 400}}, behavior: deny}
  - {name: bad, match: {caller: bad}, block: true, behavior: deny}
`
	shopTrace = "t_seconds,caller,procedure,status\n" +
		"0.1,web,shop.Checkout/Pay,-\n1.5,app,shop.Search/Find,200\n1.7,web,shop.Search/Find,200\n12,app,shop.Cart/Get,-\n"
)

// simulateIn executes grl simulate in a directory with limits/shop.yaml and
// trace.csv.
func simulateIn(t *testing.T, dir string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	t.Chdir(dir)
	for name, text := range map[string]string{"limits/shop.yaml": shopLimits, "trace.csv": shopTrace} {
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		writeTo(t, name, text)
	}
	return runSimulate(t, t.Context(), args...)
}

func writeTo(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

func runSimulate(t *testing.T, ctx context.Context, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	cmd := command.Simulate()
	var out, errOut bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&errOut)
	cmd.SetArgs(args)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err = cmd.ExecuteContext(ctx)
	return out.String(), errOut.String(), err
}

// small are the flags of a fleet that needs no time.
func small(more ...string) []string {
	return append([]string{"--hosts", "12", "--limit", "400", "--seconds", "45"}, more...)
}

func TestSimulateSameSeedSameBytes(t *testing.T) {
	for _, format := range []string{"table", "json", "yaml", "markdown"} {
		run := func(seed string) (string, string) {
			plot := filepath.Join(t.TempDir(), "plot.svg")
			args := small("--law", "all", "--scenario", "step,churn", "-o", format, "--plot", plot, "--seed", seed)
			stdout, stderr, err := runSimulate(t, t.Context(), args...)
			if err != nil || stderr != "" {
				t.Fatalf("simulate %v = %v, stderr %q", args, err, stderr)
			}
			svg, err := os.ReadFile(plot)
			if err != nil {
				t.Fatal(err)
			}
			return stdout, string(svg)
		}
		out1, svg1 := run("7")
		out2, svg2 := run("7")
		if out1 != out2 || svg1 != svg2 {
			t.Errorf("%s: two runs with one seed differ", format)
		}
		if out3, svg3 := run("8"); out1 == out3 || svg1 == svg3 {
			t.Errorf("%s: runs with two seeds are the same", format)
		}
	}
}

// TestSimulateFirstLineRepeatsIt runs the command that each table begins with.
func TestSimulateFirstLineRepeatsIt(t *testing.T) {
	for _, args := range [][]string{
		{},
		small("--base", "50", "--regions", "2", "--zones", "3", "--services", "2", "--seed", "18446744073709551615"),
		small("--guard", "0", "--delta", "100ms", "--host-link", "5ms", "--node-link", "80ms", "--jitter", "20ms"),
		small("--loss", "0.1", "--duplication", "0.25", "--law", "published,grl", "--scenario", "retry"),
		{"--scenario", "low", "--seconds", "30"},
		{"--limits", "limits", "--hosts", "12", "--regions", "2", "--scenario", "retry"},
		{"--limits", "limits/shop.yaml", "--trace", "trace.csv"},
		{"--trace", "trace.csv", "--guard", "3"},
	} {
		first, stderr, err := simulateIn(t, t.TempDir(), args...)
		if err != nil || stderr != "" {
			t.Errorf("simulate %v = %v, stderr %q", args, err, stderr)
			continue
		}
		line, _, _ := strings.Cut(first, "\n")
		words, ok := strings.CutPrefix(line, "grl simulate ")
		if !ok {
			t.Fatalf("simulate %v begins with %q", args, line)
		}
		again, _, err := simulateIn(t, t.TempDir(), strings.Fields(words)...)
		if err != nil || again != first {
			t.Errorf("simulate %v printed\n%s\nand its first line, %v:\n%s", args, first, err, again)
		}
	}
}

// TestSimulateDefault holds what the bare command shows: a step of 16.7 times
// the base, that settles in half a second.
func TestSimulateDefault(t *testing.T) {
	stdout, _, err := runSimulate(t, t.Context(), "--json")
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Runs []struct {
			Command, Scenario, Law string
			Seed                   uint64
			Seconds                float64
			Metrics                map[string]float64
			Requests               struct{ Offered, Admitted, Dropped uint64 }
		}
	}
	if err := json.Unmarshal([]byte(stdout), &got); err != nil {
		t.Fatalf("stdout %q: %v", stdout, err)
	}
	if len(got.Runs) != 1 {
		t.Fatalf("%d runs, want 1", len(got.Runs))
	}
	r := got.Runs[0]
	const command = "grl simulate --scenario step --law grl --hosts 200 --zones 4 --limit 44000 --base 22000 --seed 1"
	if r.Command != command || r.Scenario != "step" || r.Law != "grl" || r.Seed != 1 || r.Seconds != 60 {
		t.Errorf("ran %+v, want %s for 60 s", r, command)
	}
	if s := r.Metrics["settle_seconds"]; !(s > 0 && s <= 0.5) {
		t.Errorf("settle_seconds = %v, want above 0 and at most 0.5", s)
	}
	for _, m := range (fleet.Metrics{}).List() {
		if _, ok := r.Metrics[m.Name]; !ok {
			t.Errorf("no %s in %v", m.Name, r.Metrics)
		}
	}
	if n := r.Requests; n.Offered != n.Admitted+n.Dropped || n.Dropped == 0 {
		t.Errorf("requests %+v do not add up", n)
	}
}

func TestSimulateFormatsSayTheSame(t *testing.T) {
	args := []string{"--law", "all", "--limits", "limits", "--hosts", "12", "--seconds", "45"}
	asJSON, _, err := simulateIn(t, t.TempDir(), append(args, "--json")...)
	if err != nil {
		t.Fatal(err)
	}
	asYAML, _, err := simulateIn(t, t.TempDir(), append(args, "-o", "yaml")...)
	if err != nil {
		t.Fatal(err)
	}
	var fromJSON, fromYAML any
	if err := json.Unmarshal([]byte(asJSON), &fromJSON); err != nil {
		t.Fatal(err)
	}
	text, err := yaml.YAMLToJSON([]byte(asYAML))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &fromYAML); err != nil {
		t.Fatal(err)
	}
	a, _ := json.Marshal(fromJSON) // what was unmarshalled can be marshalled
	b, _ := json.Marshal(fromYAML)
	if !bytes.Equal(a, b) {
		t.Errorf("JSON\n%s\nYAML\n%s", a, b)
	}
}

func TestSimulateMarkdown(t *testing.T) {
	stdout, _, err := runSimulate(t, t.Context(), small("--law", "grl,published", "--scenario", "step,ramp", "--markdown")...)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(stdout, "\n"), "\n")
	begins := []string{
		"| scenario | law | `overshoot_seconds` |", "| --- | --- | ---: |",
		"| step | grl | ", "| step | published | ", "| ramp | grl | ", "| ramp | published | ",
	}
	if len(lines) != len(begins) {
		t.Fatalf("%d lines, want %d:\n%s", len(lines), len(begins), stdout)
	}
	for i, line := range lines {
		if !strings.HasPrefix(line, begins[i]) || strings.Count(line, "|") != strings.Count(lines[0], "|") {
			t.Errorf("line %d is %q, want %q and as many columns as above", i+1, line, begins[i])
		}
	}
}

// TestSimulateLimits shows a limits file with all that divides a limit.
func TestSimulateLimits(t *testing.T) {
	stdout, _, err := simulateIn(t, t.TempDir(), "--limits", "limits", "--hosts", "20", "--regions", "2", "--scenario", "retry", "--law", "grl,published")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"\ngrl, requests a second ", "\npublished, requests a second ",
		"\nshop/checkout ", "\n  app ", "\n  web ",
		"\nshop/search ", "\n  people ", "\n  batch ", "\n  people/retry ", "\n  batch/retry ",
		"\nshop/each of caller-1 (shadow) ", "\nshop/near in eu ", "\nLeft out: a bucket that blocks.\n",
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}
	_, buckets, _ := strings.Cut(stdout, "\ngrl, requests a second ")
	first, last := inOverload(t, buckets, "  people "), inOverload(t, buckets, "  batch/retry ")
	if first > 10 || last < 90 {
		t.Errorf("in overload %v %% of the first class were dropped and %v %% of the last, want hardly any and most", first, last)
	}
}

// inOverload returns the percentage at the end of the line that begins with
// prefix.
func inOverload(t *testing.T, text, prefix string) float64 {
	t.Helper()
	_, rest, _ := strings.Cut(text, "\n"+prefix)
	line, _, _ := strings.Cut(rest, "\n")
	words := strings.Fields(strings.TrimSuffix(line, " %"))
	if len(words) == 0 {
		t.Fatalf("no line of %q:\n%s", prefix, text)
	}
	percent, err := strconv.ParseFloat(words[len(words)-1], 64)
	if err != nil {
		t.Fatalf("line %q ends in no percentage", line)
	}
	return percent
}

func TestSimulateTrace(t *testing.T) {
	dir := t.TempDir()
	plain, _, err := simulateIn(t, dir, "--trace", "trace.csv")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(plain, "--scenario trace ") || !strings.Contains(plain, "--limit 0.308 ") {
		t.Errorf("simulate of 4 requests in 13 s printed\n%s", plain)
	}
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	if _, err := w.Write([]byte(shopTrace)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	writeTo(t, filepath.Join(dir, "again.csv.gz"), zipped.String())
	again, _, err := simulateIn(t, dir, "--trace", "again.csv.gz")
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.ReplaceAll(plain, "trace.csv", "again.csv.gz"); again != want {
		t.Errorf("gzipped:\n%s\nplain:\n%s", again, want)
	}
}

func TestSimulateRefusesWrongUse(t *testing.T) {
	const head = "t_seconds,caller,procedure,status\n"
	files := map[string]string{
		"empty.csv": "", "head.csv": "time,caller,procedure,status\n", "none.csv": head,
		"time.csv":   head + "1,a,b,-\nyesterday,a,b,-\n",
		"nan.csv":    head + "NaN,a,b,-\n",
		"short.csv":  head + "1,a,b,-\n2,a,b\n",
		"quote.csv":  head + "1,\"a,b,-\n",
		"no.csv.gz":  head,
		"bad.yaml":   bad,
		"block.yaml": "service: s\nbuckets:\n  - {name: b, block: true, behavior: deny}\n",
	}
	tests := []struct {
		name string
		args []string
		want string // of the error or of stderr
	}{
		{"unknown scenario", []string{"--scenario", "stpe"}, `unknown scenario "stpe"; nearest is "step" of `},
		{"unknown law", []string{"--law", "grl,publish"}, `unknown law "publish"; nearest is "published" of `},
		{"hosts", []string{"--hosts", "0"}, "--hosts 0: want 1 to 1,000,000"},
		{"zones", []string{"--zones", "-1"}, "--zones -1: want 1 to 1,000"},
		{"regions", []string{"--regions", "0"}, "--regions 0: want 1 to 1,000"},
		{"more regions than zones", []string{"--regions", "5"}, "regions: 5 is not between 1 and the 4 zones"},
		{"services", []string{"--services", "0"}, "--services 0: want"},
		{"more services than hosts", []string{"--services", "9", "--hosts", "8"}, "8 hosts are fewer than the 9 services"},
		{"limit of nothing", []string{"--limit", "0"}, "--limit 0: want 0.001 to 1,000,000,000 requests per second"},
		{"limit above all", []string{"--limit", "1e10"}, "--limit 1e+10: want"},
		{"limit that is none", []string{"--limit", "NaN"}, "--limit NaN: want"},
		{"base", []string{"--base", "-5"}, "--base -5: want"},
		{"seconds", []string{"--seconds", "0"}, "--seconds 0: want 1 to 2,678,400"},
		{"delta", []string{"--delta", "1ms"}, "--delta 1ms: want 5ms to 1s"},
		{"guard", []string{"--guard", "0.5"}, "--guard 0.5: want 0, or 1 to 1000"},
		{"link", []string{"--node-link", "0s"}, "--node-link 0s: want"},
		{"jitter", []string{"--jitter", "-1s"}, "--jitter -1s: want"},
		{"loss", []string{"--loss", "1"}, "--loss 1: want 0 to below 1"},
		{"duplication", []string{"--duplication", "NaN"}, "--duplication NaN: want"},
		{"all of them", []string{"--hosts", "0", "--loss", "2"}, "--hosts 0: want 1 to 1,000,000\n--loss 2: want"},
		{"unknown format", []string{"-o", "xml"}, "--output xml: want table, json, yaml, markdown"},
		{"two formats", []string{"-o", "table", "--json"}, "want one of them"},
		{"plot into nowhere", []string{"--plot", "none/plot.svg"}, "--plot none/plot.svg: no such directory"},
		{"no such trace", []string{"--trace", "missing.csv"}, "missing.csv"},
		{"scenario without its trace", []string{"--scenario", "step,trace"}, "the scenario trace needs --trace FILE"},
		{"trace for another scenario", []string{"--trace", "trace.csv", "--scenario", "step"}, "a trace is for the scenario trace, not step"},
		{"empty trace", []string{"--trace", "empty.csv"}, "empty.csv: read trace: line 1: EOF"},
		{"trace with other columns", []string{"--trace", "head.csv"}, `head.csv: read trace: line 1 is ["time"`},
		{"trace without requests", []string{"--trace", "none.csv"}, "none.csv: read trace: no requests"},
		{"trace with a bad time", []string{"--trace", "time.csv"}, `time.csv: read trace: line 3: t_seconds "yesterday"`},
		{"trace at no time", []string{"--trace", "nan.csv"}, `nan.csv: read trace: line 2: t_seconds "NaN"`},
		{"trace with a short line", []string{"--trace", "short.csv"}, "short.csv: read trace: record on line 3"},
		{"trace with an open quote", []string{"--trace", "quote.csv"}, "line 2"},
		{"trace that is not gzipped", []string{"--trace", "no.csv.gz"}, "no.csv.gz: gzip: invalid header"},
		{"no such limits", []string{"--limits", "missing"}, "missing"},
		{"limits that do not hold", []string{"--limits", "bad.yaml"}, "bad.yaml:3:30: buckets[0].limit.rps: "},
		{"limits that only block", []string{"--limits", "block.yaml"}, "block.yaml: no bucket with a limit"},
		{"limits twice", []string{"--limits", "limits", "--limit", "5"}, "leave out --limit, --base and --services"},
	}
	dir := t.TempDir()
	for name, text := range files {
		writeTo(t, filepath.Join(dir, name), text)
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			stdout, stderr, err := simulateIn(t, dir, tt.args...)
			if got := code(t, err); got != command.ExitWrongUse || stdout != "" {
				t.Errorf("simulate %v = code %d, stdout %q, want code %d and nothing", tt.args, got, stdout, command.ExitWrongUse)
			}
			if err != nil && !strings.Contains(err.Error()+stderr, tt.want) {
				t.Errorf("simulate %v says %q, %q, want %q in it", tt.args, err, stderr, tt.want)
			}
		})
	}
}

func TestSimulateEndsWhenInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	stdout, stderr, err := runSimulate(t, ctx, "--hosts", "1000", "--seconds", "10000")
	if err == nil || err.Error() != "interrupted" || stdout != "" || stderr != "" {
		t.Errorf("simulate = %v, stdout %q, stderr %q, want interrupted and nothing", err, stdout, stderr)
	}
}

// TestSimulatePrintsWhatTheDocumentationSays runs the examples of
// docs/simulate.md. Their figures may move with the law, what is around them
// may not.
func TestSimulatePrintsWhatTheDocumentationSays(t *testing.T) {
	const trace = "roles/command/demo/testdata/rpc_shop_2022.csv.gz"
	doc, err := os.ReadFile("../../docs/simulate.md")
	if err != nil {
		t.Fatal(err)
	}
	requests, err := os.ReadFile("../../" + trace)
	if err != nil {
		t.Fatal(err)
	}
	_, limits, _ := strings.Cut(string(doc), "$ cat limits/catalog.yaml\n")
	limits, _, _ = strings.Cut(limits, "$ ")
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{"limits/catalog.yaml": limits, trace: string(requests)} {
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		writeTo(t, name, text)
	}
	examples := regexp.MustCompile("(?s)\\$ grl simulate ([^\\n]*)\\n(.*?)```").FindAllStringSubmatch(string(doc), -1)
	if len(examples) != 3 {
		t.Fatalf("%d examples, want 3", len(examples))
	}
	for _, e := range examples {
		stdout, _, err := runSimulate(t, t.Context(), strings.Fields(e[1])...)
		if err != nil {
			t.Errorf("simulate %s = %v", e[1], err)
		}
		if diff := cmp.Diff(withoutFigures(e[2]), withoutFigures(stdout)); diff != "" {
			t.Errorf("simulate %s (-documented +printed):\n%s", e[1], diff)
		}
	}
}

// withoutFigures returns the words of each line of text that are no figures,
// and whole lines that are commands.
func withoutFigures(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if !strings.HasPrefix(line, "grl simulate ") {
			words = slices.DeleteFunc(words, func(w string) bool {
				return w == "never" || w == "–" || w == "%" || regexp.MustCompile(`^-?[0-9.,]+$`).MatchString(w)
			})
		}
		out = append(out, strings.Join(words, " "))
	}
	return out
}

package limitsfile_test

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grl/limiter"
	"grl/limiter/limitsfile"
)

var update = flag.Bool("update", false, "rewrite the expected errors in testdata/bad")

// TestGood compares each good file with what it says in canonical form.
func TestGood(t *testing.T) {
	for _, name := range glob(t, "testdata/good/*.yaml") {
		t.Run(filepath.Base(name), func(t *testing.T) {
			services := load(t, source(t, name))
			got := string(limitsfile.Normalize(services[0]))
			golden := strings.TrimSuffix(name, ".yaml") + ".golden"
			if *update {
				write(t, golden, got)
			}
			if diff := cmp.Diff(string(read(t, golden)), got); diff != "" {
				t.Errorf("Normalize(%s) (-want +got):\n%s", name, diff)
			}
		})
	}
}

func TestExample(t *testing.T) {
	want := []limiter.Service{{
		Name: "payments", Owner: "team-payments",
		Routes: []string{"GET /v1/charges/{id}"},
		Exempt: []limiter.Match{{Caller: "healthcheck"}},
		Buckets: []limiter.Bucket{
			{Name: "bytes", Match: limiter.Match{Caller: "importer"}, LimitRPS: 1e6, Behavior: limiter.Deny, Cost: limiter.Cost{Header: "x-bytes"}},
			{Name: "checkout-charge", Match: limiter.Match{Caller: "checkout", Procedure: "payments.v1.Charges/Create"}, LimitRPS: 1200, Behavior: limiter.Deny},
			{Name: "each-caller", Match: limiter.Match{Caller: "*"}, PerCaller: true, LimitRPS: 200, Verified: true},
			{Name: "everything", LimitRPS: 20000, CandidateRPS: 15000.5, Behavior: limiter.Deny},
			{Name: "per-region", Match: limiter.Match{Procedure: "payments.v1.Charges/*"}, Scope: limiter.Region, LimitRPS: 1200, Regions: map[string]float64{"eu": 400}, Behavior: limiter.Deny},
			{Name: "retired", Match: limiter.Match{Caller: "old-batch"}, Block: true, Behavior: limiter.Deny},
			{Name: "searches", Match: limiter.Match{Procedure: "GET /v1/charges/*"}, LimitRPS: 0.5, Behavior: limiter.Deny, Cost: limiter.Cost{Fixed: 5}},
		},
	}}
	for i := range want[0].Buckets {
		want[0].Buckets[i].Service = "payments"
	}
	if diff := cmp.Diff(want, load(t, source(t, "testdata/good/full.yaml"))); diff != "" {
		t.Errorf("Load(full.yaml) (-want +got):\n%s", diff)
	}
}

// TestDocumentedExamples checks that the examples of docs/concepts.md hold.
func TestDocumentedExamples(t *testing.T) {
	var buckets []int // of each
	rest := string(read(t, "../../docs/concepts.md"))
	for {
		_, after, found := strings.Cut(rest, "```yaml\n")
		if !found {
			break
		}
		var text string
		text, rest, _ = strings.Cut(after, "```\n")
		buckets = append(buckets, limitsfile.CountBuckets(load(t, limitsfile.Source{Name: "concepts.md", Data: []byte(text)})))
	}
	if want := []int{4, 1, 1, 1, 1, 1, 1, 1}; !slices.Equal(buckets, want) {
		t.Errorf("the examples have %v buckets, want %v", buckets, want)
	}
}

// TestBad compares the errors of each bad file with those in the file of the
// same name beside it, one a line.
func TestBad(t *testing.T) {
	for _, name := range glob(t, "testdata/bad/*.yaml") {
		t.Run(filepath.Base(name), func(t *testing.T) {
			_, err := limitsfile.Parse(filepath.Base(name), read(t, name))
			var errs limitsfile.Errors
			if !errors.As(err, &errs) {
				t.Fatalf("Parse(%s) = %v, want Errors", name, err)
			}
			golden := strings.TrimSuffix(name, ".yaml") + ".errors"
			if *update {
				write(t, golden, errs.Error()+"\n")
			}
			if diff := cmp.Diff(string(read(t, golden)), errs.Error()+"\n"); diff != "" {
				t.Errorf("Parse(%s) (-want +got):\n%s", name, diff)
			}
		})
	}
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	names, err := filepath.Glob(pattern)
	if err != nil || len(names) == 0 {
		t.Fatalf("no files match %s: %v", pattern, err)
	}
	return names
}

func source(t *testing.T, name string) limitsfile.Source {
	t.Helper()
	return limitsfile.Source{Name: name, Data: read(t, name)}
}

func load(t testing.TB, sources ...limitsfile.Source) []limiter.Service {
	t.Helper()
	services, err := limitsfile.Load(sources)
	if err != nil {
		t.Fatal(err)
	}
	return services
}

func read(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

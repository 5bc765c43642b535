package policyfile_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/google/go-cmp/cmp"

	"grl/limiter"
	"grl/policy"
	"grl/policy/policyfile"
)

var update = flag.Bool("update", false, "rewrite testdata/bad.errors")

const week = 7 * 24 * time.Hour

func TestGood(t *testing.T) {
	berlin, newYork := location(t, "Europe/Berlin"), location(t, "America/New_York")
	at := func(text string) time.Time {
		t.Helper()
		parsed, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return parsed
	}
	want := map[string]policy.Spec{
		"peak.yaml": {
			Name: "nightly", Kind: "peak", Mode: policy.Shadow,
			Match:   policy.Match{Service: "payments", Caller: "checkout"},
			History: 8 * week, Cycle: "30 2 * * *", Location: berlin,
			Floor: 10, Ceiling: 40_000, Digits: 3, MaxStep: 0.1, PromoteAfter: 14,
			Events: []policy.Event{
				{Name: "Black Friday", From: at("2026-11-26T23:00:00Z"), To: at("2026-11-30T17:00:00Z"), Factor: 2.5},
				{Name: "Summer sale", From: at("2026-07-01T06:00:00Z"), To: at("2026-07-02T08:00:00Z"), Factor: 1.3},
			},
			Capacity: []policy.Capacity{{From: at("2026-09-30T22:00:00Z"), RPS: 30_000}, {From: at("2026-11-19T23:00:00Z"), RPS: 35_000}},
			Ignore: []policy.Ignore{
				{From: at("2026-05-04T08:00:00Z"), To: at("2026-05-04T10:15:30Z"), Reason: "INC-123: retry storm"},
				{From: at("2026-05-31T22:00:00Z"), To: at("2026-06-01T22:00:00Z"), Reason: "load test", Service: "pay*"},
			},
			Discover:         &policy.Discover{By: policy.ByCaller, MinRPS: 0.5},
			SecondOverMinute: 1.4,
		},
		"quota.yaml": {
			Name: "agreed", Kind: "quota", Mode: policy.Apply, Match: policy.Match{Caller: "batch"},
			Cycle: "0 0 * * *", Location: newYork, MaxStep: 1,
			Quota: []policy.Quota{
				{RPS: 1200, Regions: map[string]float64{"eu": 400, "us": 800.5}, To: at("2027-01-01T05:00:00Z")},
				{RPS: 1500, From: at("2027-01-01T05:00:00Z")},
			},
			Capacity: []policy.Capacity{{From: at("2026-10-01T04:00:00Z"), RPS: 1400}},
		},
		"least.yaml": {
			Name: "least", Kind: "forecast", Match: policy.Match{Service: "*"},
			History: 4 * week, Cycle: "0 * * * *", Location: time.UTC, Digits: 2, MaxStep: 0.2,
		},
		"live.yaml": {
			Name: "live", Kind: "live", Match: policy.Match{Bucket: "all"},
			History: 3 * week, Cycle: "*/5 * * * *", Location: time.UTC, Floor: 5, MaxStep: 1,
			Events: []policy.Event{{Name: "sale", From: at("2026-11-27T00:00:00Z"), To: at("2026-11-28T00:00:00Z"), Factor: 2}},
		},
	}
	for _, name := range glob(t, "testdata/good/*.yaml") {
		t.Run(filepath.Base(name), func(t *testing.T) {
			got, err := policyfile.Parse(name, read(t, name))
			if err != nil {
				t.Fatal(err)
			}
			sameLocation := cmp.Comparer(func(a, b *time.Location) bool { return a.String() == b.String() })
			if diff := cmp.Diff(want[filepath.Base(name)], got, sameLocation); diff != "" {
				t.Errorf("Parse(%s) (-want +got):\n%s", name, diff)
			}
		})
	}
}

// TestBad compares the errors of all files of testdata/bad with those in
// testdata/bad.errors.
func TestBad(t *testing.T) {
	var all strings.Builder
	names := glob(t, "testdata/bad/*.yaml")
	if len(names) < 60 {
		t.Errorf("%d poison files, want at least 60", len(names))
	}
	for _, name := range names {
		spec, err := policyfile.Parse(filepath.Base(name), read(t, name))
		checkPlaced(t, name, err)
		if err == nil {
			t.Errorf("Parse(%s) = %+v, want errors", name, spec)
			continue
		}
		fmt.Fprintln(&all, err)
	}
	const golden = "testdata/bad.errors"
	if *update {
		if err := os.WriteFile(golden, []byte(all.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(string(read(t, golden)), all.String()); diff != "" {
		t.Errorf("errors (-want +got):\n%s", diff)
	}
}

// checkPlaced checks that each error has a place and says something, in a line
// that can be read.
func checkPlaced(t *testing.T, name string, err error) {
	t.Helper()
	var errs policyfile.Errors
	if !errors.As(err, &errs) {
		t.Errorf("%s: %v is no Errors", name, err)
		return
	}
	for _, e := range errs {
		if e.Line < 1 || e.Column < 1 || e.Found == "" && e.Problem == "" || len(e.Error()) > 600 || strings.Contains(e.Error(), "\n") {
			t.Errorf("error %q has no place or is not one line that says something", e)
		}
	}
	if len(errs) > 101 {
		t.Errorf("%s: %d errors", name, len(errs))
	}
}

// TestPoisonIsRefusedQuickly reads files that cost much, if any does.
func TestPoisonIsRefusedQuickly(t *testing.T) {
	const least = "name: a\nkind: peak\nmatch: {service: a}\n"
	for name, text := range map[string]string{
		"too large":      least + strings.Repeat("#", policyfile.MaxFileBytes),
		"letters":        strings.Repeat("a", policyfile.MaxFileBytes),
		"brackets":       "events: " + strings.Repeat("[", 60_000),
		"mappings":       "events: " + strings.Repeat("{a: ", 15_000),
		"dashes":         "events:\n" + strings.Repeat("- ", 30_000),
		"keys":           least + strings.Repeat("a: 1\n", 13_000),
		"items":          least + "events:\n" + strings.Repeat("- 1\n", 16_000),
		"bytes":          strings.Repeat("\xff", policyfile.MaxFileBytes),
		"anchors":        strings.Repeat("a: &a a\n", 8_000),
		"cron list":      least + "cycle: \"" + strings.Repeat("0-59,", 5_000) + "1 * * * *\"\n",
		"digits":         least + "floor: " + strings.Repeat("9", 30_000) + "\n",
		"stars":          "name: a\nkind: peak\nmatch: {service: \"" + strings.Repeat("*", 255) + "\"}\n",
		"item of a list": least + "events:\n  - " + strings.Repeat("a", 40_000) + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			_, err := policyfile.Parse("poison.yaml", []byte(text))
			var errs policyfile.Errors
			if !errors.As(err, &errs) {
				t.Errorf("Parse = %v, want Errors", err)
			}
			if took := time.Since(start); took > 5*time.Second {
				t.Errorf("Parse took %v", took)
			}
		})
	}
}

func TestIs(t *testing.T) {
	for text, want := range map[string]bool{
		"name: a\nkind: peak\n":                  true,
		"kind:\n":                                true,
		"kinds: peak\n":                          false,
		"service: a\nbuckets:\n  - kind: peak\n": false,
		"# kind: peak\n":                         false,
		"":                                       false,
	} {
		if got := policyfile.Is([]byte(text)); got != want {
			t.Errorf("Is(%q) = %v, want %v", text, got, want)
		}
	}
}

func TestLoad(t *testing.T) {
	file := func(name, match string) policyfile.Source {
		return policyfile.Source{Name: name + ".yaml", Data: []byte("name: " + name + "\nkind: peak\nmatch: " + match + "\n")}
	}
	named := func(s policyfile.Source, file string) policyfile.Source { s.Name = file; return s }
	tests := []struct {
		name    string
		sources []policyfile.Source
		want    string // names in order, or the errors
	}{
		{"none", nil, ""},
		{"sorted by name", []policyfile.Source{file("b", "{service: a}"), file("a", "{service: b}")}, "a b"},
		{
			"one name",
			[]policyfile.Source{file("a", "{service: a}"), named(file("a", "{service: b}"), "other.yaml")},
			`other.yaml:1:1: name: the same as that of policy "a" at a.yaml:1:1`,
		},
		{
			"one match",
			[]policyfile.Source{file("a", "{service: a}"), file("b", "{service: a}")},
			`b.yaml:3:1: match: policy "b" selects the same buckets as policy "a" at a.yaml:1:1: each has one policy`,
		},
		{
			"one match in other words",
			[]policyfile.Source{file("a", `{service: "*"}`), file("b", `{bucket: "*"}`)},
			`b.yaml:3:1: match: policy "b" selects the same buckets as policy "a" at a.yaml:1:1: each has one policy`,
		},
		{"any caller is not none", []policyfile.Source{file("a", `{service: a}`), file("b", `{service: a, caller: "*"}`)}, "a b"},
		{
			"errors of all",
			[]policyfile.Source{file("a", "{}"), file("b", "{}")},
			"a.yaml:3:8: match: found an empty mapping, expected service, caller or bucket (all buckets are {service: \"*\"})\n" +
				"b.yaml:3:8: match: found an empty mapping, expected service, caller or bucket (all buckets are {service: \"*\"})",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			specs, err := policyfile.Load(tt.sources)
			var names []string
			for _, s := range specs {
				names = append(names, s.Name)
			}
			got := strings.Join(names, " ")
			if err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("Load = %s\nwant %s", got, tt.want)
			}
		})
	}
	many := make([]policyfile.Source, policyfile.MaxPolicies+1)
	if _, err := policyfile.Load(many); err == nil || !strings.Contains(err.Error(), "found 1001 policies, expected at most 1000") {
		t.Errorf("Load of 1,001 policies = %v", err)
	}
}

func TestChoose(t *testing.T) {
	spec := func(name string, service, caller, bucket limiter.Pattern) policy.Spec {
		return policy.Spec{Name: name, Match: policy.Match{Service: service, Caller: caller, Bucket: bucket}}
	}
	specs := []policy.Spec{
		spec("everything", "*", "", ""),
		spec("service", "payments", "", ""),
		spec("services", "pay*", "", ""),
		spec("caller", "", "checkout", ""),
		spec("callers", "", "check*", ""),
		spec("callers-of-payments", "payments", "check*", ""),
		spec("any-caller", "orders", "*", ""),
		spec("bucket", "", "", "charge"),
		spec("buckets", "", "", "cha*"),
		spec("longer", "", "", "char*"),
	}
	tests := []struct {
		name   string
		bucket limiter.Bucket
		want   string // "": none
	}{
		{"any", limiter.Bucket{Service: "other", Name: "x"}, "everything"},
		{"a service", limiter.Bucket{Service: "payments", Name: "x"}, "service"},
		{"the beginning of a service", limiter.Bucket{Service: "paygate", Name: "x"}, "services"},
		{"a caller before a service", limiter.Bucket{Service: "payments", Name: "x", Match: limiter.Match{Caller: "checkout"}}, "caller"},
		{"an exact caller before a beginning, whatever the service", limiter.Bucket{Service: "payments", Name: "x", Match: limiter.Match{Caller: "checkin"}}, "callers-of-payments"},
		{"a caller that is a beginning", limiter.Bucket{Service: "other", Name: "x", Match: limiter.Match{Caller: "check*"}}, "callers"},
		{"a shorter beginning is not selected by a longer", limiter.Bucket{Service: "other", Name: "x", Match: limiter.Match{Caller: "che*"}}, "everything"},
		{"any caller of a bucket", limiter.Bucket{Service: "orders", Name: "x", Match: limiter.Match{Caller: "*"}}, "any-caller"},
		{"a bucket without a caller has none", limiter.Bucket{Service: "orders", Name: "x"}, "everything"},
		{"a bucket before a caller", limiter.Bucket{Service: "payments", Name: "charge", Match: limiter.Match{Caller: "checkout"}}, "bucket"},
		{"a longer beginning", limiter.Bucket{Service: "payments", Name: "charges"}, "longer"},
		{"a shorter beginning", limiter.Bucket{Service: "payments", Name: "change"}, "buckets"},
		{"one that blocks has no limit", limiter.Bucket{Service: "payments", Name: "x", Block: true}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := ""
			if s := policyfile.Choose(specs, tt.bucket); s != nil {
				got = s.Name
			}
			if got != tt.want {
				t.Errorf("Choose(%+v) = %q, want %q", tt.bucket, got, tt.want)
			}
		})
	}
	equal := []policy.Spec{spec("b", "pay*", "", ""), spec("a", "pay*", "", "")}
	if got := policyfile.Choose(equal, limiter.Bucket{Service: "payments"}); got != &equal[1] {
		t.Errorf("Choose of equal ones = %v, want that of the first name", got)
	}
	if got := policyfile.Choose(nil, limiter.Bucket{Service: "payments"}); got != nil {
		t.Errorf("Choose without policies = %v", got)
	}
}

// FuzzParse checks that any text is refused with places, or read so that what is
// said holds.
func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"testdata/good/*.yaml", "testdata/bad/*.yaml"} {
		names, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, name := range names {
			data, err := os.ReadFile(name)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := policyfile.Parse("fuzz.yaml", data)
		if err != nil {
			if len(data) <= policyfile.MaxFileBytes {
				checkPlaced(t, "fuzz.yaml", err)
			}
			return
		}
		if !policyfile.Is(data) && !strings.Contains(string(data), `"kind"`) && !strings.Contains(string(data), `'kind'`) {
			t.Errorf("a policy that is not taken for one: %q", data)
		}
		if s.Name == "" || s.Location == nil || s.Match == (policy.Match{}) || s.MaxStep <= 0 || s.MaxStep > 1 || s.Floor < 0 || s.Ceiling < 0 {
			t.Errorf("Parse(%q) = %+v", data, s)
		}
		schedule, err := policyfile.ParseSchedule(s.Cycle, s.Location)
		if err != nil {
			t.Fatalf("cycle %q: %v", s.Cycle, err)
		}
		now := time.Date(2026, 10, 25, 0, 30, 0, 0, time.UTC)
		if next := schedule.Jittered(s.Name).Next(now); !next.After(now) {
			t.Errorf("cycle %q: next after %v is %v", s.Cycle, now, next)
		}
	})
}

func location(t testing.TB, name string) *time.Location {
	t.Helper()
	l, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	names, err := filepath.Glob(pattern)
	if err != nil || len(names) == 0 {
		t.Fatalf("no files match %s: %v", pattern, err)
	}
	return names
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

package limitsfile_test

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"grl/limiter/limitsfile"
)

// poison returns files that must be refused, whatever they cost to read, by
// name.
func poison() map[string]string {
	cases := map[string]string{
		"empty":                 "",
		"blank":                 "\n\n  \n",
		"only a comment":        "# service: a\n",
		"only a marker":         "---\n",
		"scalar at top":         "hello\n",
		"list at top":           "- service: a\n",
		"flow mapping at top":   "{service: a}\n",
		"flow list at top":      "[service, a]\n",
		"null service":          "service:\n",
		"tilde service":         "service: ~\n",
		"number service":        "service: 5\n",
		"boolean service":       "service: true\n",
		"list service":          "service: [a]\n",
		"empty service":         "service: \"\"\n",
		"unicode service":       "service: pаyments\n", // a Cyrillic а
		"escaped newline":       "service: \"a\\nb\"\n",
		"escaped nul":           "service: \"a\\0b\"\n",
		"long name":             "service: " + strings.Repeat("a", 257) + "\n",
		"tab after key":         "service:\ta\n",
		"tab as indentation":    "service: a\nbuckets:\n\t- name: b\n",
		"byte order mark":       "\ufeffservice: a\n",
		"utf-16":                "\xff\xfes\x00e\x00r\x00",
		"invalid utf-8":         "service: a\xff\n",
		"overlong utf-8":        "service: a\xc0\x80\n",
		"nul byte":              "service: a\x00\n",
		"escape character":      "service: a\x1b[31m\n",
		"lone return":           "service: a\rbuckets: []\r",
		"line separator":        "service: a\u2028owner: b\n",
		"two documents":         "service: a\n---\nservice: b\n",
		"document end":          "service: a\n...\n",
		"directive":             "%YAML 1.1\n---\nservice: a\n",
		"duplicate service":     "service: a\nservice: a\n",
		"merge key":             "service: a\n<<: {owner: b}\n",
		"tag":                   "service: !!binary YQ==\n",
		"python tag":            "service: !!python/object/apply:os.system [ls]\n",
		"anchor":                "service: &a a\n",
		"alias":                 "service: *a\n",
		"alias to itself":       "service: a\nroutes: &r [*r]\n",
		"alias bomb":            aliasBomb(),
		"complex key":           "? service\n: a\n",
		"block scalar":          "service: |\n  a\n",
		"folded scalar":         "service: >-\n  a\n",
		"unclosed quote":        "service: \"a\n",
		"unclosed brace":        "service: a\nbuckets: [{name: b\n",
		"closing first":         "service: a\nroutes: ]]]]\n",
		"indented top":          "  service: a\n",
		"dedented item":         "service: a\nbuckets:\n    - name: b\n  - name: c\n",
		"mapping of buckets":    "service: a\nbuckets:\n  b: {limit: {rps: 1}, behavior: deny}\n",
		"scalar buckets":        "service: a\nbuckets: all\n",
		"null buckets":          "service: a\nbuckets:\n",
		"null bucket":           "service: a\nbuckets:\n  -\n",
		"duplicate bucket":      bucket("limit: {rps: 1}") + "  - {name: b, limit: {rps: 1}, behavior: deny}\n",
		"same selection":        bucket("limit: {rps: 1}") + "  - {name: c, limit: {rps: 2}, behavior: allow}\n",
		"no limit":              bucket("match: {caller: a}"),
		"block false":           bucket("block: false"),
		"block yes":             bucket("block: yes"),
		"block and limit":       bucket("block: true, limit: {rps: 1}"),
		"share":                 bucket("limit: {rps: 1}, share: fair"),
		"tiers of tiers":        bucket("limit: {rps: 1}, tiers: [{name: a, callers: [b]}, {name: c, tiers: [d, e]}]"),
		"many tiers":            bucket("limit: {rps: 1}, tiers: [" + strings.Repeat("{name: a}, ", 1000) + "]"),
		"many weights":          bucket("limit: {rps: 1}, share: max-min, weights: {" + strings.Repeat("a: 1, ", 1001) + "}"),
		"many tier callers":     bucket("limit: {rps: 1}, tiers: [{name: a, callers: [" + strings.Repeat("b, ", 3000) + "]}, {name: c}]"),
		"many hours":            bucket("limit: {rps: 1, hourly: [" + strings.Repeat("1, ", 4000) + "]}"),
		"hours of many regions": bucket("limit: {rps: 1, regions: {" + manyRegions("1") + "}, hourly_regions: {" + manyRegions("["+strings.Repeat("1,", 24)+"]") + "}}, scope: region"),
		"hours of blocks":       bucket("block: true, hourly: [1]"),
		"time zone of a path":   bucket("limit: {rps: 1, hourly: [" + strings.Repeat("1, ", 24) + "], time_zone: ../Europe/Berlin}"),
		"time zone of nul":      bucket("limit: {rps: 1, hourly: [" + strings.Repeat("1, ", 24) + "], time_zone: \"Europe/Berlin\\0\"}"),
		"regex":                 bucket("limit: {rps: 1}, match: {caller: \"(a+)+$\"}"),
		"stars":                 bucket("limit: {rps: 1}, match: {caller: \"" + strings.Repeat("*", 200) + "\"}"),
		"deep flow":             "service: a\nbuckets: " + strings.Repeat("[", 10_000) + "\n",
		"deep mapping":          "service: a\nbuckets: " + strings.Repeat("{a: ", 10_000) + "\n",
		"deep dashes":           "service: a\nbuckets:\n" + strings.Repeat("- ", 10_000) + "\n",
		"deep indentation":      deepIndentation(250),
		"17 levels":             "service: a\nbuckets: " + strings.Repeat("[", 17) + strings.Repeat("]", 17) + "\n",
		"line of 1 MB":          "service: " + strings.Repeat("a", 1<<20) + "\n",
		"comment, then junk":    "#" + strings.Repeat("a", 1<<20) + "\njunk\n",
		"many keys":             "service: a\n" + strings.Repeat("a: 1\n", 1<<20),
		"many items":            "service: a\nexempt:\n" + strings.Repeat("- {caller: a}\n", 1<<20),
		"many empty buckets":    "service: a\nbuckets:\n" + strings.Repeat("- {}\n", 3<<20),
		"many routes":           "service: a\nroutes:\n" + strings.Repeat("- GET /{a}/{b}/{c}\n", 9000),
		"one long flow list":    "service: a\nroutes: [" + strings.Repeat("a,", 1<<20) + "]\n",
		"wide bucket":           "service: a\nbuckets:\n- name: b\n" + strings.Repeat("  a: 1\n", 1<<20),
		"16 MB of letters":      strings.Repeat("a", 16<<20),
		"16 MB of brackets":     strings.Repeat("[", 16<<20),
		"16 MB of dashes":       strings.Repeat("- ", 8<<20),
		"16 MB of lines":        strings.Repeat("\n", 16<<20),
		"16 MB of quotes":       strings.Repeat("\"", 16<<20),
		"16 MB of bad bytes":    strings.Repeat("\xff", 16<<20),
		"16 MB of anchors":      strings.Repeat("a: &a a\n", 2<<20),
		"over 16 MB":            "service: a\n" + strings.Repeat("#\n", 8<<20),
	}
	for _, rps := range []string{
		"0", "-0", "0.0", "-1", "0.0009", "1e9999", "1e308", "1000000001", "9223372036854775808", "18446744073709551616",
		"NaN", ".nan", ".NaN", "inf", ".inf", "-.inf", "Infinity", "null", "~", "true", "\"5\"", "'5'", "100/s", "1k", "5rps",
		"1_000", "1,000", "0x10", "0o7", "0b1", "010", "+5", ".5", "5.", "1e", "5 000", "[5]", "{a: 5}", "1:30", "٣",
	} {
		cases["rps "+rps] = bucket("limit: {rps: " + rps + "}")
	}
	return cases
}

// bucket returns a file with one bucket that has these keys beside its name.
func bucket(keys string) string {
	return "service: a\nbuckets:\n  - {name: b, behavior: deny, " + keys + "}\n"
}

// manyRegions returns pairs of 200 regions and the same value.
func manyRegions(value string) string {
	var b strings.Builder
	for i := range limitsfile.MaxRegions {
		fmt.Fprintf(&b, "r%d: %s, ", i, value)
	}
	return b.String()
}

// aliasBomb would be ten to the ninth names if aliases were followed.
func aliasBomb() string {
	var b strings.Builder
	b.WriteString("service: a\na0: &a0 [lol]\n")
	for i := range 9 {
		fmt.Fprintf(&b, "a%d: &a%d [%s*a%d]\n", i+1, i+1, strings.Repeat(fmt.Sprintf("*a%d, ", i), 9), i)
	}
	return b.String()
}

func deepIndentation(levels int) string {
	var b strings.Builder
	b.WriteString("service: a\nbuckets:\n")
	for i := range levels {
		b.WriteString(strings.Repeat(" ", i+1) + "a:\n")
	}
	return b.String()
}

// Published bounds: a second and 64 MiB each. The time has the slack of
// fivefold that a loaded machine needs.
func TestPoisonIsRefusedQuickly(t *testing.T) {
	const timeBound, memoryBound = 5 * time.Second, 64 << 20
	defer debug.SetGCPercent(debug.SetGCPercent(50))
	cases := poison()
	if len(cases) < 60 {
		t.Fatalf("%d poison files, want at least 60", len(cases))
	}
	for name, text := range cases {
		t.Run(name, func(t *testing.T) {
			data := []byte(text)
			heap := watchHeap()
			start := time.Now()
			_, err := limitsfile.Parse("poison.yaml", data)
			took, grew := time.Since(start), heap()
			checkPlaced(t, err)
			if took > timeBound {
				t.Errorf("Parse took %v, want at most %v", took, timeBound)
			}
			if grew > memoryBound {
				t.Errorf("Parse needed %d MiB, want at most %d", grew>>20, memoryBound>>20)
			}
		})
	}
}

// checkPlaced checks that err is a list of errors of which each has a place,
// and that it is short enough to be read.
func checkPlaced(t *testing.T, err error) {
	t.Helper()
	var errs limitsfile.Errors
	if !errors.As(err, &errs) || len(errs) == 0 {
		t.Fatalf("Parse = %v, want Errors", err)
	}
	for _, e := range errs {
		tooBig := e.Expected == "at most 16 MiB" // the file as a whole
		if (e.Line < 1 || e.Column < 1) && !tooBig || e.Found == "" && e.Problem == "" {
			t.Errorf("error %q has no place or says nothing", e)
		}
		if len(e.Error()) > 600 {
			t.Errorf("error of %d bytes: %.100s…", len(e.Error()), e)
		}
	}
	if len(errs) > 3*limitsfile.MaxErrors {
		t.Errorf("%d errors", len(errs))
	}
}

// watchHeap returns a function that returns by how much the heap grew at most
// between the two calls, as far as a sample every so often can tell.
func watchHeap() func() uint64 {
	runtime.GC()
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	done, most := make(chan struct{}), make(chan uint64)
	go func() {
		var peak uint64
		for {
			var now runtime.MemStats
			runtime.ReadMemStats(&now)
			peak = max(peak, now.HeapAlloc)
			select {
			case <-done:
				most <- peak
				return
			case <-time.After(2 * time.Millisecond):
			}
		}
	}()
	return func() uint64 {
		close(done)
		return max(<-most, before.HeapAlloc) - before.HeapAlloc
	}
}

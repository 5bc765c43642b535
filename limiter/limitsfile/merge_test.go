package limitsfile_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grl/limiter"
	"grl/limiter/limitsfile"
)

// texts returns sources 1.yaml, 2.yaml … of these texts.
func texts(files ...string) []limitsfile.Source {
	var sources []limitsfile.Source
	for i, text := range files {
		sources = append(sources, limitsfile.Source{Name: fmt.Sprintf("%d.yaml", i+1), Data: []byte(text)})
	}
	return sources
}

func TestLoadJoinsTheFilesOfAService(t *testing.T) {
	one := "service: shop\nowner: team\nroutes:\n- GET /a\n- GET /b\nexempt:\n- {caller: probe}\n"
	two := "service: shop\nenforce: outbound\nroutes:\n- GET /a\nexempt:\n- {caller: probe}\nbuckets:\n- {name: all, limit: {rps: 5}, behavior: deny, cost: {fixed: 1}}\n"
	other := "service: orders\n"
	want := []limiter.Service{
		{Name: "orders"},
		{
			Name: "shop", Owner: "team", Enforce: limiter.Outbound,
			Routes:  []string{"GET /a", "GET /b"},
			Exempt:  []limiter.Match{{Caller: "probe"}},
			Buckets: []limiter.Bucket{{Service: "shop", Name: "all", LimitRPS: 5, Behavior: limiter.Deny}},
		},
	}
	for _, sources := range [][]limitsfile.Source{texts(one, two, other), texts(other, two, one)} {
		if diff := cmp.Diff(want, load(t, sources...)); diff != "" {
			t.Errorf("Load (-want +got):\n%s", diff)
		}
	}
}

func TestLoadRefusesFilesThatDisagree(t *testing.T) {
	tests := []struct {
		name  string
		files []string
		want  string
	}{
		{
			"owner",
			[]string{"service: a\nowner: x\n", "service: a\n", "service: a\nowner: y\n"},
			`3.yaml:2:8: owner: files of service a disagree: found "y", expected "x" as at 1.yaml:2:8`,
		},
		{
			"enforce",
			[]string{"service: a\nenforce: inbound\n", "service: a\nenforce: outbound\n"},
			`2.yaml:2:10: enforce: files of service a disagree: found "outbound", expected "inbound" as at 1.yaml:2:10`,
		},
		{
			"bucket name",
			[]string{bucket("limit: {rps: 1}"), bucket("limit: {rps: 1}, per: caller")},
			`2.yaml:3:5: buckets[0]: "b" has the name of bucket "b" at 1.yaml:3:5`,
		},
		{
			"selection",
			[]string{bucket("limit: {rps: 1}, scope: zone"), "service: a\nbuckets:\n- {name: c, scope: zone, behavior: allow, block: true}\n"},
			`2.yaml:3:3: buckets[0]: "c" has the same match, per and scope as bucket "b" at 1.yaml:3:5`,
		},
		{
			"cost",
			[]string{bucket("limit: {rps: 1}, cost: {header: X-A}"), "service: a\nbuckets:\n- {name: c, scope: zone, behavior: allow, block: true, cost: {header: x-b}}\n"},
			`2.yaml:3:3: buckets[0]: "c" takes its cost from "x-b", but bucket "b" at 1.yaml:3:5 from "X-A": a request has one cost`,
		},
		{
			"routes",
			[]string{"service: a\nroutes: [GET /x, \"GET /{a}/b\"]\n", "service: a\nroutes: [GET /x, \"GET /a/{b}\"]\n"},
			`2.yaml:2:18: routes[1]: "GET /a/{b}" conflicts with "GET /{a}/b" at 1.yaml:2:18: both match some requests, and neither is the more specific one`,
		},
		{
			"all errors of all files",
			[]string{"service: a\nowner: x\ncolor: red\n", "service: a\nowner: y\n", "service: b\nowner: 5\n"},
			`1.yaml:3:1: unknown key: found "color", expected one of buckets, enforce, exempt, owner, routes, service
2.yaml:2:8: owner: files of service a disagree: found "y", expected "x" as at 1.yaml:2:8
3.yaml:2:8: owner: found 5, expected a name (if it is a name, put it in quotes: "5")`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := limitsfile.Load(texts(tt.files...))
			if err == nil {
				t.Fatal("Load = nil, want an error")
			}
			if diff := cmp.Diff(tt.want, err.Error()); diff != "" {
				t.Errorf("Load (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLoadTakesWhatDiffersInScopeOrPer(t *testing.T) {
	services := load(t, texts(`service: a
buckets:
- {name: global, limit: {rps: 1}, behavior: deny}
- {name: zone, scope: zone, limit: {rps: 1}, behavior: deny}
- {name: each, per: caller, limit: {rps: 1}, behavior: deny}
- {name: one, match: {caller: b}, limit: {rps: 1}, behavior: deny, cost: {header: X-Cost}}
- {name: two, match: {caller: c}, limit: {rps: 1}, behavior: deny, cost: {metadata: x-cost}}
`)...)
	if got := limitsfile.CountBuckets(services); got != 5 {
		t.Errorf("CountBuckets = %d, want 5", got)
	}
}

func TestMergeBoundsBuckets(t *testing.T) {
	var text strings.Builder
	text.WriteString("service: a\nbuckets:\n")
	for i := range limitsfile.MaxBuckets / 2 {
		fmt.Fprintf(&text, "- {name: b%d, match: {caller: c%d}, limit: {rps: 1}, behavior: deny}\n", i, i)
	}
	half, one := parse(t, "half.yaml", text.String()), parse(t, "one.yaml", bucket("block: true"))
	// A file given twice repeats its names, which is another error.
	const beyond = "one.yaml:1:10: found more than 100000 buckets in all files up to this one, expected at most 100000"
	if _, err := limitsfile.Merge([]*limitsfile.File{half, half}); err == nil || strings.Contains(err.Error(), "100000") {
		t.Errorf("Merge of %d buckets = %v, want other errors", limitsfile.MaxBuckets, err)
	}
	if _, err := limitsfile.Merge([]*limitsfile.File{half, half, one}); err == nil || err.Error() != beyond {
		t.Errorf("Merge of one bucket more = %v, want %s", err, beyond)
	}
}

func parse(t *testing.T, name, text string) *limitsfile.File {
	t.Helper()
	f, err := limitsfile.Parse(name, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// A bucket that no request can match is a slip, and enforces nothing without a
// word.
func TestProceduresThatNoRequestHas(t *testing.T) {
	const file = `service: payments
routes: ["GET /v1/charges/{id}", /v1/refunds]
buckets:
  - {name: %s, match: {procedure: %q}, limit: {rps: 1}, behavior: deny}
`
	for procedure, ok := range map[string]bool{
		"/v1/charges/*":              false,
		"GET /v1/charges":            false,
		"POST /v1/charges/{id}":      false,
		"GET /v1/charges/{id}":       true,
		"GET /v1/*":                  true,
		"PUT /v1/refunds":            true,
		"GET /{other}":               true,
		"GET *":                      true,
		"payments.v1.Charges/Create": true,
		"payments.v1.Charges/*":      true,
	} {
		_, err := limitsfile.Parse("payments.yaml", fmt.Appendf(nil, file, "b", procedure))
		if (err == nil) != ok {
			t.Errorf("procedure %q: %v, want an error: %v", procedure, err, !ok)
		}
	}
	// Without routes, a middleware may take them from its ServeMux.
	if _, err := limitsfile.Parse("payments.yaml", []byte(strings.Replace(fmt.Sprintf(file, "b", "GET /v1/other"), "routes: [\"GET /v1/charges/{id}\", /v1/refunds]\n", "", 1))); err != nil {
		t.Errorf("without routes: %v", err)
	}
}

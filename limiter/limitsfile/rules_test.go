package limitsfile_test

import (
	"encoding/csv"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"grl/limiter"
	"grl/limiter/limitsfile"
)

// rule is a row of testdata/rules.csv: published limits of proxies and APIs,
// read from where testdata/rules-sources.csv says.
type rule struct{ set, scope, caller, procedure, limit, perS, behavior string }

// key names the rule as docs/concepts.md does.
func (r rule) key() string {
	limit := r.limit
	if r.perS != "" {
		limit += "/" + r.perS + " s"
	}
	return strings.Join([]string{r.set, r.scope, r.caller, r.procedure, limit}, ", ")
}

func publishedRules(t *testing.T) []rule {
	t.Helper()
	f, err := os.Open("testdata/rules.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var rules []rule
	for _, row := range rows[1:] {
		rules = append(rules, rule{row[0], row[1], row[2], row[3], row[4], row[5], row[7]})
	}
	return rules
}

// callers gives the words of the published rules for who sends as patterns. A
// caller is what the identity header says, so it can be an account or an
// address; a prefix tells its kind.
var callers = map[string]limiter.Pattern{
	"*": "", "each hostname": "", // the host called is the service
	"one listed address": "192.0.2.1", "one user": "user-7", "source_cluster=proxy": "proxy",
	"users": "users", "default": "default", "ldap": "ldap", "azure": "azure", "user-a": "user-a", "user-b": "user-b",
	"each remote_address": "*", "each subject_id": "*", "each user_id": "*", "each account": "*", "each app and workspace": "*", "each project": "*",
	"each caller": "*", "each address": "address:*", "each user": "user:*", "each installation": "enterprise-installation:*", "each app": "app:*",
}

// repositories tells two rules apart that have the same words.
var repositories = map[string]limiter.Pattern{"actions token": "repository:*", "actions token, enterprise": "enterprise-repository:*"}

// procedures gives the words of the published rules for what is called. Where
// each procedure has a bucket of its own, two stand for all.
var procedures = map[string][]limiter.Pattern{
	"*": {""}, "each service": {""}, "destination_cluster=mock": {""}, // the callee is the service
	"key_1=value_1": {"key_1/value_1"}, "value*": {"value*"}, "files/*": {"files/*"},
	"/api/*/action": {"GET /api/{a}/action"}, "/api/*/resource/*/action": {"GET /api/{a}/resource/{b}/action"},
	"each route & each http_method": {"GET /orders/{id}", "POST /orders"},
	"/":                             {"GET /{$}"},
	"POST *":                        {"POST *"}, "GET /json": {"GET /json"},
	"each REST endpoint": {"GET /user", "POST /repos/{owner}/{repo}/labels"}, "GraphQL": {"POST /graphql"},
	"OAuth token request": {"POST /login/oauth/access_token"},
	"each endpoint":       {"GET /v1/charges/{id}", "POST /v1/charges"},
	"Files read":          {"GET /v1/files*"}, "Files write": {"POST /v1/files*"},
	"each tier-1 method": {"POST /api/tier1.a", "POST /api/tier1.b"}, "each tier-2 method": {"POST /api/tier2.a", "POST /api/tier2.b"},
	"each tier-3 method": {"POST /api/tier3.a", "POST /api/tier3.b"}, "each tier-4 method": {"POST /api/tier4.a", "POST /api/tier4.b"},
	"access": {"google.cloud.secretmanager.v1.SecretManagerService/AccessSecretVersion"},
}

// points are procedures whose requests count for different amounts.
var points = []string{"each REST endpoint", "GraphQL"}

// TestPublishedRules turns each published rule into buckets of a limits file
// and reads it, all rules of a service together, or finds it in the table of
// docs/concepts.md that says why it has no such form.
func TestPublishedRules(t *testing.T) {
	rules, cannot := publishedRules(t), cannotSay(t)
	if len(rules) != 61 {
		t.Fatalf("%d rules, want the 61 published ones", len(rules))
	}
	files := map[string]*strings.Builder{} // by service
	want := map[string]limiter.Bucket{}    // by full name
	for i, r := range rules {
		if reason, listed := cannot[r.key()]; listed {
			if len(reason) < 10 {
				t.Errorf("docs/concepts.md gives no reason for %s", r.key())
			}
			delete(cannot, r.key())
			continue
		}
		service := serviceOf(r)
		if files[service] == nil {
			files[service] = new(strings.Builder)
			fmt.Fprintf(files[service], "service: %s\nowner: %s\n%s", service, r.set, routesOf(rules, service))
		}
		for _, b := range bucketsOf(t, i, r) {
			b.Service = service
			want[b.FullName()] = b
		}
	}
	for key := range cannot {
		t.Errorf("docs/concepts.md lists %q, which is no published rule", key)
	}
	checkServices(t, files, want)
}

// serviceOf names the service a rule is about.
func serviceOf(r rule) string {
	name := r.set + "-" + r.scope
	if r.set == "github_rest" {
		name = r.set // its scopes are kinds of callers
	}
	return strings.Trim(regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(name, "-"), "-")
}

// routesOf returns the routes of a service that the rules name.
func routesOf(rules []rule, service string) string {
	text := "routes:\n"
	for _, r := range rules {
		if serviceOf(r) != service || r.limit == "concurrency" {
			continue
		}
		for _, p := range procedures[r.procedure] {
			if route := fmt.Sprintf("  - %q\n", strings.TrimSuffix(string(p), "*")); strings.Contains(string(p), " /") && !strings.Contains(text, route) {
				text += route
			}
		}
	}
	if text == "routes:\n" {
		return ""
	}
	return text
}

// bucketsOf says a rule in the limiter's words; none is an exempt caller.
func bucketsOf(t *testing.T, index int, r rule) []limiter.Bucket {
	t.Helper()
	caller, ok := callers[r.caller]
	if kind, two := repositories[r.scope]; two {
		caller, ok = kind, true
	}
	list, known := procedures[r.procedure]
	if !ok || !known {
		t.Errorf("no words for rule %s", r.key())
		return nil
	}
	if r.limit == "unlimited" {
		return nil
	}
	limit, err := strconv.ParseFloat(r.limit, 64)
	per, err2 := strconv.ParseFloat(r.perS, 64)
	if err != nil || err2 != nil {
		t.Fatalf("rule %s has no rate", r.key())
	}
	var buckets []limiter.Bucket
	for i, procedure := range list {
		b := limiter.Bucket{
			Name: fmt.Sprintf("rule-%d-%d", index+1, i), Match: limiter.Match{Caller: caller, Procedure: procedure},
			PerCaller: strings.HasPrefix(r.caller, "each ") && caller != "", LimitRPS: limit / per, Block: limit == 0,
		}
		if r.behavior == "deny" {
			b.Behavior = limiter.Deny
		}
		if slices.Contains(points, r.procedure) {
			b.Cost.Header = "X-Points"
		}
		buckets = append(buckets, b)
	}
	return buckets
}

// checkServices writes the buckets as a person would, reads them and compares.
func checkServices(t *testing.T, files map[string]*strings.Builder, want map[string]limiter.Bucket) {
	t.Helper()
	files["envoy-examples-internal"].WriteString("exempt:\n  - {caller: ldap}\n")
	for _, f := range files {
		f.WriteString("buckets:\n")
	}
	for _, b := range want {
		fmt.Fprintf(files[b.Service], "  - name: %s\n    behavior: %v\n", b.Name, b.Behavior)
		f := files[b.Service]
		var match []string
		if b.Match.Caller != "" {
			match = append(match, fmt.Sprintf("caller: %q", b.Match.Caller))
		}
		if b.Match.Procedure != "" {
			match = append(match, fmt.Sprintf("procedure: %q", b.Match.Procedure))
		}
		if match != nil {
			fmt.Fprintf(f, "    match: {%s}\n", strings.Join(match, ", "))
		}
		if b.PerCaller {
			f.WriteString("    per: caller\n")
		}
		if b.Cost.Header != "" {
			fmt.Fprintf(f, "    cost: {header: %s}\n", b.Cost.Header)
		}
		if b.Block {
			f.WriteString("    block: true\n")
		} else {
			fmt.Fprintf(f, "    limit: {rps: %v}\n", b.LimitRPS)
		}
	}
	var sources []limitsfile.Source
	for service, f := range files {
		sources = append(sources, limitsfile.Source{Name: service + ".yaml", Data: []byte(f.String())})
	}
	services := load(t, sources...)
	got := 0
	for _, s := range services {
		for _, b := range s.Buckets {
			w := want[b.FullName()]
			if got++; fmt.Sprintf("%+v", b) != fmt.Sprintf("%+v", w) {
				t.Errorf("bucket %s = %+v, want %+v", b.FullName(), b, w)
			}
		}
	}
	if got != len(want) {
		t.Errorf("%d buckets, want %d", got, len(want))
	}
	if err := limiter.New(limiter.Options{}).Install(limiter.Configuration{Epoch: 1, Revision: 1, Services: services}); err != nil {
		t.Errorf("Install of the published rules = %v", err)
	}
}

// cannotSay returns the table of docs/concepts.md: the reason by rule.
func cannotSay(t *testing.T) map[string]string {
	t.Helper()
	text := string(read(t, "../../docs/concepts.md"))
	_, section, ok := strings.Cut(text, "## What a limits file cannot say\n")
	if !ok {
		t.Fatal("docs/concepts.md has no section \"What a limits file cannot say\"")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	reasons := map[string]string{}
	for line := range strings.Lines(section) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		if !strings.HasPrefix(line, "| ") || len(cells) != 6 || strings.HasPrefix(line, "| set |") || strings.HasPrefix(line, "| --- |") {
			continue
		}
		for i := range cells {
			cells[i] = strings.Trim(strings.TrimSpace(cells[i]), "`")
		}
		reasons[strings.Join(cells[:5], ", ")] = cells[5]
	}
	return reasons
}

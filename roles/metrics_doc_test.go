package roles

import (
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"grl/proto/access"
	"grl/proto/tlsfiles"
)

const metricsFile = "../docs/metrics.md"

// metric is a row of a table of docs/metrics.md.
type metric struct{ Type, Labels, Help string }

// TestDocumentedMetrics compares docs/metrics.md with what the roles register,
// both ways.
func TestDocumentedMetrics(t *testing.T) {
	documented := documentedMetrics(t)
	registry := registryOfAllRoles(t)
	registered := describe(t, registry)
	if len(registered) == 0 {
		t.Fatal("the roles register no metric")
	}
	want := map[string]metric{}
	for name, m := range registered {
		m.Type = documented[name].Type // checked below
		want[name] = m
	}
	if diff := cmp.Diff(want, documented); diff != "" {
		t.Errorf("docs/metrics.md differs from the registered metrics (-code +docs):\n%s", diff)
	}
	checkTypes(t, registry, documented)
}

// TestMetricNames holds the rules that all metrics of ours follow.
func TestMetricNames(t *testing.T) {
	name := regexp.MustCompile(`^grl_(client|aggregator|controller|configurator|access|tls)_[a-z]+(_[a-z]+)*$`)
	for n, m := range describe(t, registryOfAllRoles(t)) {
		if !name.MatchString(n) {
			t.Errorf("%s is not of the form grl_role_noun, grl_access_noun or grl_tls_noun", n)
		}
		if !strings.HasSuffix(m.Help, ".") {
			t.Errorf("%s: help %q does not end with a period", n, m.Help)
		}
		for label := range strings.SplitSeq(m.Labels, ", ") {
			switch label {
			case "procedure", "host", "node", "err", "error":
				t.Errorf("%s: label %q is not from a closed set", n, label)
			}
		}
	}
}

// registryOfAllRoles returns the registry of a process with all roles and both
// proxies, built as for serve, behind gates and with TLS; nothing runs.
func registryOfAllRoles(t *testing.T) *prometheus.Registry {
	t.Helper()
	c := Default()
	c.Controller.DB = filepath.Join(t.TempDir(), "db")
	c.Client.Service, c.Client.Upstream, c.Client.Caller = "shop", "http://127.0.0.1:1", "web"
	c.TLS = newTestCA(t, testDomain).issue(region)
	registry := prometheus.NewRegistry()
	if _, err := tlsfiles.Open(tlsfiles.Options{Config: c.TLS, Registry: registry}); err != nil {
		t.Fatal(err)
	}
	for _, r := range table {
		if r.build == nil {
			continue
		}
		n, err := r.build(t.Context(), c, parts{log: slog.New(slog.DiscardHandler), registry: registry, version: "test"})
		if err != nil {
			t.Fatalf("build %s: %v", r.name, err)
		}
		access.NewGate(access.Options{Role: r.name, Registry: registry})
		if n.close != nil {
			t.Cleanup(func() {
				if err := n.close(); err != nil {
					t.Errorf("close %s: %v", r.name, err)
				}
			})
		}
	}
	return registry
}

// description is how a Desc prints: it has no other way out.
var description = regexp.MustCompile(`^Desc\{fqName: "([^"]*)", help: "((?:[^"\\]|\\.)*)", unit: "[^"]*", constLabels: \{([^}]*)\}, variableLabels: \{([^}]*)\}`)

// describe returns what is registered, those without a value yet too.
func describe(t *testing.T, registry *prometheus.Registry) map[string]metric {
	t.Helper()
	descs := make(chan *prometheus.Desc, 1000) // more than there are
	registry.Describe(descs)
	close(descs)
	all := map[string]metric{}
	for d := range descs {
		m := description.FindStringSubmatch(d.String())
		if m == nil {
			t.Fatalf("cannot read %v", d)
		}
		var labels []string
		for l := range strings.SplitSeq(m[3], ",") {
			if name, _, ok := strings.Cut(l, "="); ok {
				labels = append(labels, name)
			}
		}
		if m[4] != "" {
			labels = append(labels, strings.Split(m[4], ",")...)
		}
		all[m[1]] = metric{Labels: strings.Join(labels, ", "), Help: m[2]}
	}
	return all
}

// checkTypes compares the documented types with those of the metrics that have
// a value without traffic, and with the names of all.
func checkTypes(t *testing.T, registry *prometheus.Registry, documented map[string]metric) {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	words := map[dto.MetricType]string{
		dto.MetricType_COUNTER:   "counter",
		dto.MetricType_GAUGE:     "gauge",
		dto.MetricType_HISTOGRAM: "histogram",
	}
	for _, f := range families {
		if got, want := documented[f.GetName()].Type, words[f.GetType()]; got != want {
			t.Errorf("%s is documented as a %q, and is a %q", f.GetName(), got, want)
		}
	}
	for name, m := range documented {
		if counts := strings.HasSuffix(name, "_total"); counts != (m.Type == "counter") {
			t.Errorf("%s: a counter, and nothing else, ends with _total", name)
		}
	}
}

// documentedMetrics reads the tables of docs/metrics.md. Each metric stands
// there once.
func documentedMetrics(t *testing.T) map[string]metric {
	t.Helper()
	text, err := os.ReadFile(metricsFile)
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile("(?m)^\\| `(grl_[a-z_]+)` \\| ([a-z]+) \\| ([^|]*)\\| ([^|]+) \\|$")
	all := map[string]metric{}
	for _, m := range row.FindAllStringSubmatch(string(text), -1) {
		if _, again := all[m[1]]; again {
			t.Errorf("%s stands in docs/metrics.md twice", m[1])
		}
		all[m[1]] = metric{Type: m[2], Labels: strings.TrimSpace(strings.ReplaceAll(m[3], "`", "")), Help: m[4]}
	}
	return all
}

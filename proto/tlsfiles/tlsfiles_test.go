package tlsfiles

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"grl/proto/access"
	"grl/roles/pki"
)

var node = access.Node{Role: access.Aggregator, Zone: "eu1"}

// rig is a CA and the files of one node.
type rig struct {
	t       *testing.T
	ca, dir string
	files   *Files

	mu  sync.Mutex // guards log
	log bytes.Buffer
}

// Write takes in what is logged.
func (r *rig) Write(line []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.log.Write(line)
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, ca: t.TempDir(), dir: t.TempDir()}
	if err := pki.Init(r.ca, DefaultDomain, time.Now()); err != nil {
		t.Fatal(err)
	}
	r.issue(node, 3*time.Hour)
	return r
}

func (r *rig) issue(n access.Node, life time.Duration) {
	r.t.Helper()
	ca, err := pki.Open(r.ca)
	if err != nil {
		r.t.Fatal(err)
	}
	if err := ca.Issue(r.dir, pki.Request{Node: n, Life: life}, true, time.Now()); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) config() Config {
	return Config{
		Cert: filepath.Join(r.dir, "cert.pem"), Key: filepath.Join(r.dir, "key.pem"), CA: filepath.Join(r.dir, "ca.pem"),
		Domain: DefaultDomain,
	}
}

func (r *rig) open(registry *prometheus.Registry) {
	r.t.Helper()
	var err error
	r.files, err = Open(Options{Config: r.config(), Log: slog.New(slog.NewTextHandler(r, nil)), Registry: registry})
	if err != nil {
		r.t.Fatal(err)
	}
}

// logged returns how often the log has a text, and forgets the log.
func (r *rig) logged(text string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := strings.Count(r.log.String(), text)
	r.log.Reset()
	return n
}

func (r *rig) put(name string, text []byte) (before []byte) {
	r.t.Helper()
	file := filepath.Join(r.dir, name)
	before, err := os.ReadFile(file)
	if err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		r.t.Fatal(err)
	}
	return before
}

func TestReload(t *testing.T) {
	r := newRig(t)
	r.open(prometheus.NewRegistry())
	first := r.files.held.Load()
	r.files.Reload(t.Context())
	if r.files.held.Load() != first || r.logged("") > 1 {
		t.Error("files that are the same were taken up again")
	}
	r.issue(access.Node{Role: access.Aggregator, Zone: "eu2"}, 5*time.Hour)
	r.files.Reload(t.Context())
	if n := r.files.Node(); n.Zone != "eu2" {
		t.Errorf("is %v after a reload, want that of zone eu2", n)
	}
	if r.logged("the new certificate is of another node") != 1 {
		t.Error("does not say that the node is another one")
	}
}

// TestBadFileKeepsTheOldOne replaces one file at a time with something that does
// not fit.
func TestBadFileKeepsTheOldOne(t *testing.T) {
	r := newRig(t)
	r.open(prometheus.NewRegistry())
	held := r.files.held.Load()
	other := newRig(t)
	text := func(name string) []byte {
		text, err := os.ReadFile(filepath.Join(other.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	for _, bad := range []struct {
		name string
		text []byte
	}{
		{"cert.pem", text("cert.pem")},
		{"key.pem", text("key.pem")},
		{"ca.pem", text("ca.pem")},
		{"cert.pem", nil},
		{"key.pem", []byte("no key")},
		{"ca.pem", []byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")},
		{"ca.pem", bytes.Repeat([]byte("a"), maxFile+1)},
	} {
		before := r.put(bad.name, bad.text)
		r.files.Reload(t.Context())
		if r.logged("not reloaded") != 0 {
			t.Errorf("%s: complains at once, though it may be in the middle of being written", bad.name)
		}
		r.files.Reload(t.Context())
		r.files.Reload(t.Context())
		if r.files.held.Load() != held {
			t.Fatalf("%s of %d bytes was taken up", bad.name, len(bad.text))
		}
		if r.logged("not reloaded") != 1 {
			t.Errorf("%s of %d bytes: does not complain once", bad.name, len(bad.text))
		}
		r.put(bad.name, before)
		r.files.Reload(t.Context())
	}
}

func TestOpenRefuses(t *testing.T) {
	r := newRig(t)
	c := r.config()
	c.Domain = "grl.other"
	if _, err := Open(Options{Config: c, Registry: prometheus.NewRegistry()}); err == nil || !strings.Contains(err.Error(), "trust domain") {
		t.Errorf("%v, want an error of the trust domain", err)
	}
	c = r.config()
	c.Key = "/nowhere"
	if _, err := Open(Options{Config: c, Registry: prometheus.NewRegistry()}); err == nil || !strings.Contains(err.Error(), "/nowhere") {
		t.Errorf("%v, want an error of the file", err)
	}
}

// TestAlarm turns the clock: a third of the life before the end, the end, and a
// new certificate.
func TestAlarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		registry := prometheus.NewRegistry()
		r.open(registry)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- r.files.Run(ctx) }()

		wait := func(d time.Duration) { time.Sleep(d); synctest.Wait() }
		wait(118 * time.Minute)
		if n := r.logged("expires soon"); n != 0 {
			t.Errorf("%d warnings with more than a third of 3h left", n)
		}
		wait(29 * time.Minute)
		if n := r.logged("level=WARN msg=\"own certificate expires soon\""); n != 3 {
			t.Errorf("%d warnings in 27 minutes, want 3", n)
		}
		wait(37 * time.Minute)
		if n := r.logged("level=ERROR msg=\"own certificate has expired"); n != 1 {
			t.Errorf("%d errors within 5 minutes after the end, want 1", n)
		}
		if got, want := expiry(t, registry, "own"), float64(r.files.held.Load().ends.Unix()); got != want {
			t.Errorf("metric says %v, want %v", got, want)
		}
		r.issue(node, 3*time.Hour)
		wait(2 * time.Second)
		if n := r.logged("reloaded certificate"); n != 1 {
			t.Errorf("reloaded %d times, want 1", n)
		}
		wait(time.Hour)
		if n := r.logged("certificate"); n != 0 {
			t.Error("complains about a new certificate")
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// expiry returns what the metric says of a certificate.
func expiry(t *testing.T, registry *prometheus.Registry, name string) float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == "grl_tls_certificate_expiry_timestamp_seconds" && m.GetLabel()[0].GetValue() == name {
				return m.GetGauge().GetValue()
			}
		}
	}
	t.Fatal("no metric of the expiry")
	return 0
}

func TestConfig(t *testing.T) {
	for name, c := range map[string]Config{
		"default":   Default(),
		"all three": {Cert: "c", Key: "k", CA: "a", Domain: "d"},
	} {
		if err := c.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for want, c := range map[string]Config{
		"tls.key: empty":                 {Cert: "c", CA: "a", Domain: "d"},
		"tls.ca: empty":                  {Cert: "c", Key: "k", Domain: "d"},
		"tls.cert: empty":                {Key: "k", CA: "a", Domain: "d"},
		"tls.domain: trust domain \"D\"": {Cert: "c", Key: "k", CA: "a", Domain: "D"},
	} {
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error with %q", err, want)
		}
	}
}

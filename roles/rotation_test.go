package roles

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"grl/proto/access"
	"grl/roles/pki"
)

// events is a log that counts the messages of one text and says when there is
// one.
type events struct {
	text  string
	count atomic.Int64
	first chan struct{}
}

func newEvents(text string) *events { return &events{text: text, first: make(chan struct{}, 1000)} }

func (e *events) Enabled(context.Context, slog.Level) bool { return true }

func (e *events) Handle(_ context.Context, r slog.Record) error {
	if r.Message == e.text {
		e.count.Add(1)
		e.first <- struct{}{}
	}
	return nil
}

func (e *events) WithAttrs([]slog.Attr) slog.Handler { return e }
func (e *events) WithGroup(string) slog.Handler      { return e }

// node is a directory with a certificate that is rotated.
func (ca testCA) node(n access.Node) string {
	ca.t.Helper()
	dir := filepath.Join(ca.t.TempDir(), "node")
	ca.open(func(a *pki.Authority) error {
		return a.Issue(dir, pki.Request{Node: n, Hosts: []string{"127.0.0.1"}, Life: time.Hour}, false, time.Now())
	})
	return dir
}

func (ca testCA) open(do func(*pki.Authority) error) {
	ca.t.Helper()
	a, err := pki.Open(ca.dir)
	if err == nil {
		err = do(a)
	}
	if err != nil {
		ca.t.Fatal(err)
	}
}

// rotate does the next step of a change of the CA, and renews what is in dirs.
func (ca testCA) rotate(dirs ...string) {
	ca.t.Helper()
	ca.open(func(a *pki.Authority) error {
		_, err := a.Rotate(dirs, true, time.Now())
		return err
	})
}

// TestRotationUnderLoad changes leafs and CA of a sidecar and its aggregator
// while requests go through the sidecar: none fails, the stream lives on, and
// who joins later is let in with either certificate.
func TestRotationUnderLoad(t *testing.T) {
	ca := newTestCA(t, testDomain)
	above, beside := ca.node(zone), ca.node(payments)
	joined := newEvents("host joined")
	aggregator := run(t, tlsConfig(filesIn(above, testDomain)), joined, access.Aggregator)
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }))
	t.Cleanup(upstream.Close)

	c := tlsConfig(filesIn(beside, testDomain))
	c.Client.Aggregators = []string{"https://" + aggregator.at(t, "aggregator.listen")}
	c.Client.Upstream = upstream.URL
	sidecar := run(t, c, slog.DiscardHandler, access.Client)

	requests := startLoad(t, "http://"+sidecar.at(t, "client.listen"))
	<-joined.first
	late := func(dir string) error {
		return join(t, ca.with(0, 0, load(t, filesIn(dir, testDomain))), aggregator.at(t, "aggregator.listen"), helloOf(payments))
	}
	old := ca.node(payments) // never renewed
	reload := func() {
		aggregator.tls.Reload(t.Context())
		sidecar.tls.Reload(t.Context())
	}
	for step := range 2 { // trust the new CA; sign by it
		ca.rotate(above, beside)
		reload()
		requests.more(200)
		for _, dir := range []string{old, beside} {
			if err := late(dir); err != nil {
				t.Errorf("step %d: certificate in %s is refused: %v", step, dir, err)
			}
		}
	}
	if first, second := aggregator.tls.Node(), sidecar.tls.Node(); first != zone || second != payments {
		t.Errorf("nodes are %v and %v", first, second)
	}
	if failed := requests.stop(); failed != nil {
		t.Errorf("a request failed: %v", failed)
	}
	n := joined.count.Load() - 4 // four are those of this test
	t.Logf("%d requests, the sidecar joined %d times", requests.answered, n)
	if n > 2 {
		t.Errorf("the sidecar joined %d times, want once and at most one reconnect", n)
	}
}

// TestExpiredCertificate starts a sidecar whose certificate is dead: requests
// pass.
func TestExpiredCertificate(t *testing.T) {
	ca := newTestCA(t, testDomain)
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }))
	t.Cleanup(upstream.Close)
	c := tlsConfig(ca.issueAt(payments, time.Now().Add(-time.Hour), time.Minute))
	c.Client.Upstream = upstream.URL
	sidecar := run(t, c, slog.DiscardHandler, access.Client)
	requests := startLoad(t, "http://"+sidecar.at(t, "client.listen"))
	requests.more(100)
	if failed := requests.stop(); failed != nil {
		t.Errorf("a request failed: %v", failed)
	}
}

// traffic is a load of one request after the other.
type traffic struct {
	done   chan struct{} // a request was answered
	cancel context.CancelFunc
	wg     sync.WaitGroup
	failed error // the first failure; read after wg

	answered int // read after wg
}

func startLoad(t *testing.T, url string) *traffic {
	ctx, cancel := context.WithCancel(t.Context())
	l := &traffic{done: make(chan struct{}), cancel: cancel}
	l.wg.Go(func() {
		for ctx.Err() == nil {
			if err := get(url); err != nil && l.failed == nil {
				l.failed = err
			}
			l.answered++
			select {
			case l.done <- struct{}{}:
			case <-ctx.Done():
			}
		}
	})
	t.Cleanup(func() { _ = l.stop() })
	return l
}

func get(url string) error {
	resp, err := http.Get(url)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != http.StatusOK || string(body) != "ok" {
		return fmt.Errorf("%d %q, %v", resp.StatusCode, body, err)
	}
	return nil
}

// more waits for n further answers.
func (l *traffic) more(n int) {
	for range n {
		<-l.done
	}
}

// stop ends the load and returns the first failure.
func (l *traffic) stop() error {
	l.cancel()
	l.wg.Wait()
	return l.failed
}

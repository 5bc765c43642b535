package notify_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"grl/policy/alert"
	"grl/roles/controller/notify"
	"grl/roles/rolestest"
)

const secret = "0123456789abcdef"

// receiver is a webhook that understands the Alertmanager.
type receiver struct {
	mu     sync.Mutex // guards all below
	status int        // that it answers with
	wait   time.Duration
	calls  int
	heard  []string        // "firing over_limit a/b", in order
	firing map[string]bool // fingerprints
	got    []map[string]any
	bodies [][]byte
	header http.Header
}

func newReceiver() *receiver { return &receiver{status: http.StatusOK, firing: make(map[string]bool)} }

func (r *receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, _ := io.ReadAll(q.Body)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls++
	if r.wait > 0 {
		time.Sleep(r.wait)
	}
	if r.status >= 300 && r.status < 400 {
		w.Header().Set("Location", "http://elsewhere/steal")
	}
	w.WriteHeader(r.status)
	if r.status != http.StatusOK {
		return
	}
	var m struct {
		Version, Status string
		Alerts          []struct {
			Status, Fingerprint string
			Labels              map[string]string
		}
	}
	if err := json.Unmarshal(body, &m); err != nil || m.Version != "4" || len(m.Alerts) == 0 || len(m.Alerts) > 100 {
		r.heard = append(r.heard, fmt.Sprintf("broken: %v %s", err, body))
		return
	}
	var whole map[string]any
	_ = json.Unmarshal(body, &whole)
	r.got, r.bodies, r.header = append(r.got, whole), append(r.bodies, body), q.Header
	for _, a := range m.Alerts {
		r.heard = append(r.heard, a.Status+" "+a.Labels["rule"]+" "+a.Labels["subject"])
		r.firing[a.Fingerprint] = a.Status == "firing"
	}
}

func (r *receiver) answer(status int, wait time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status, r.wait = status, wait
}

// take returns what was heard since the last time.
func (r *receiver) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	heard := r.heard
	r.heard = nil
	return heard
}

func (r *receiver) fires() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, on := range r.firing {
		if on {
			n++
		}
	}
	return n
}

func over(subject string) notify.Alert {
	return notify.Alert{
		Key: alert.Key{Rule: alert.OverLimit, Subject: subject}, Text: subject + " drops 15.3% for 5 min",
		Since: time.Date(2026, 3, 13, 21, 34, 5, 0, time.UTC), Path: "/bucket?name=" + subject,
	}
}

// rig is a sender and its receiver in virtual time.
type rig struct {
	*notify.Sender
	receiver *receiver
	network  *rolestest.Network
	log      bytes.Buffer
}

// newRig starts both; call it inside synctest.Test.
func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{receiver: newReceiver(), network: &rolestest.Network{}}
	r.network.Serve(t, "receiver", r.receiver)
	r.network.Serve(t, "elsewhere", http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a redirect was followed") }))
	r.Sender = notify.New(notify.Options{
		URL: "http://receiver/hook/secret-path?key=secret-key", PublicURL: "https://grl.example.com/", HTTP: r.network.Client(t),
		Log: slog.New(slog.NewTextHandler(&r.log, nil)),
	})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = r.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	return r
}

// set says what fires, and lets a second pass.
func (r *rig) set(alerts ...notify.Alert) {
	r.Set(time.Now(), true, alerts)
	time.Sleep(time.Second)
	synctest.Wait()
}

func (r *rig) want(t *testing.T, lines ...string) {
	t.Helper()
	if got := r.receiver.take(); !slices.Equal(got, lines) {
		t.Errorf("the receiver heard %q, want %q", got, lines)
	}
}

// TestTells: each alert is told once when it fires, and once when it has ended, a
// message for each rule.
func TestTells(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.set()
		r.want(t)
		lost := notify.Alert{Key: alert.Key{Rule: alert.HostLost, Subject: "eu-2"}, Text: "28 hosts of eu-2 are silent", Path: "/fleet"}
		r.set(over("a/b"), lost)
		r.want(t, "firing over_limit a/b", "firing host_lost eu-2")
		if r.receiver.calls != 2 {
			t.Errorf("%d messages, want one for each rule", r.receiver.calls)
		}
		worse := over("a/b")
		worse.Text = "a/b drops 90% for 6 min"
		r.set(worse, lost)
		r.want(t)
		r.set(worse, over("a/c"))
		r.want(t, "firing over_limit a/c", "resolved host_lost eu-2")
		r.set()
		r.want(t, "resolved over_limit a/b", "resolved over_limit a/c")
		r.set(over("a/b"))
		r.want(t, "firing over_limit a/b")
	})
}

// TestMessage: the whole message is that of the Alertmanager.
func TestMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.set(over("payments/writes"))
		r.set()
		golden := `{"version":"4","groupKey":"grl/over_limit","truncatedAlerts":0,"status":"firing","receiver":"grl",` +
			`"groupLabels":{"alertname":"GrlOverLimit"},"commonLabels":{"alertname":"GrlOverLimit","rule":"over_limit","severity":"warning"},` +
			`"commonAnnotations":{},"externalURL":"https://grl.example.com/","alerts":[{"status":"firing",` +
			`"labels":{"alertname":"GrlOverLimit","rule":"over_limit","severity":"warning","subject":"payments/writes"},` +
			`"annotations":{"summary":"payments/writes drops 15.3% for 5 min"},"startsAt":"2026-03-13T21:34:05Z","endsAt":"0001-01-01T00:00:00Z",` +
			`"generatorURL":"https://grl.example.com/bucket?name=payments/writes","fingerprint":"` + r.receiver.fingerprint() + `"}]}`
		if got := string(r.receiver.bodies[0]); got != golden {
			t.Errorf("message\n%s\nwant\n%s", got, golden)
		}
		ended := r.receiver.got[1]["alerts"].([]any)[0].(map[string]any)
		if got, want := ended["endsAt"], time.Now().Add(-time.Second).UTC().Format(time.RFC3339); got != want {
			t.Errorf("ended at %v, want %v", got, want)
		}
		if r.receiver.got[1]["status"] != "resolved" || ended["startsAt"] != "2026-03-13T21:34:05Z" || len(r.receiver.firing) != 1 {
			t.Errorf("end: %v", r.receiver.got[1])
		}
		if got := r.receiver.header.Get("Content-Type"); got != "application/json" {
			t.Errorf("content type %q", got)
		}
	})
}

func (r *receiver) fingerprint() string {
	for f := range r.firing {
		return f
	}
	return ""
}

// TestReceiverAway: a receiver that is down, slow, fails or redirects is told again
// and again, ever more rarely, and then what is so by then; meanwhile nothing else
// waits.
func TestReceiverAway(t *testing.T) {
	tests := []struct {
		name    string
		fault   func(*rig)
		problem string
		mend    func(*testing.T, *rig)
	}{
		{"fails", func(r *rig) { r.receiver.answer(500, 0) }, "answered 500", nil},
		{"is full", func(r *rig) { r.receiver.answer(429, 0) }, "answered 429", nil},
		{"redirects", func(r *rig) { r.receiver.answer(307, 0) }, "answered 307: redirects are not followed", nil},
		{"is slow", func(r *rig) { r.receiver.answer(200, 11*time.Second) }, "no answer within 10s", nil},
		{"is down", func(r *rig) { r.network.Cut("receiver") }, "", func(t *testing.T, r *rig) { r.network.Serve(t, "receiver", r.receiver) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				tt.fault(r)
				r.set(over("a/b"), over("a/c"))
				time.Sleep(20 * time.Second)
				before := time.Now()
				r.Set(time.Now(), true, []notify.Alert{over("a/c"), over("a/d")})
				if time.Since(before) != 0 {
					t.Error("to say what fires waits for the receiver")
				}
				if problem := r.Problem(); problem == "" || tt.problem != "" && problem != tt.problem {
					t.Errorf("problem %q, want %q", problem, tt.problem)
				} else if strings.Contains(problem, "secret") {
					t.Errorf("the problem tells what is secret: %q", problem)
				}
				time.Sleep(time.Hour)
				synctest.Wait()
				calls := r.receiver.calls
				if tt.name == "fails" && (calls < 15 || calls > 40) {
					t.Errorf("%d tries in an hour, want ever fewer, up to one in 5 minutes", calls)
				}
				r.receiver.answer(200, 0)
				r.receiver.take()
				if tt.mend != nil {
					tt.mend(t, r)
				}
				time.Sleep(5 * time.Minute)
				synctest.Wait()
				if r.Problem() != "" || r.receiver.fires() != 2 {
					t.Errorf("problem %q; the receiver knows of %d that fire, want 2", r.Problem(), r.receiver.fires())
				}
				r.want(t, "firing over_limit a/c", "firing over_limit a/d", "resolved over_limit a/b") // which it may have heard of
				if n := strings.Count(r.log.String(), "does not take messages"); n != 1 {
					t.Errorf("logged %d times, want once:\n%s", n, r.log.String())
				}
				if strings.Contains(r.log.String(), "secret-") {
					t.Errorf("the log tells what is secret:\n%s", r.log.String())
				}
			})
		})
	}
}

// TestLead: who does not lead says nothing, and who begins to lead tells all.
func TestLead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		set := func(leads bool, alerts ...notify.Alert) {
			r.Set(time.Now(), leads, alerts)
			time.Sleep(time.Second)
			synctest.Wait()
		}
		set(false, over("a/b"))
		r.want(t)
		set(true, over("a/b"))
		r.want(t, "firing over_limit a/b")
		set(false, over("a/b"))
		set(false)
		r.want(t)
		set(true, over("a/b"))
		r.want(t, "firing over_limit a/b")
	})
}

// TestMany: of very many alerts a message has 100.
func TestMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		var all []notify.Alert
		for i := range alert.MaxSubjects {
			all = append(all, over(fmt.Sprintf("a/%04d", i)))
		}
		r.set(all...)
		if got := r.receiver.take(); len(got) != alert.MaxSubjects || r.receiver.calls != alert.MaxSubjects/100 {
			t.Errorf("%d alerts in %d messages, want %d in %d", len(got), r.receiver.calls, alert.MaxSubjects, alert.MaxSubjects/100)
		}
	})
}

// TestAgrees: whatever fires and however the receiver answers, in the end it knows
// what fires.
func TestAgrees(t *testing.T) {
	rapid.Check(t, func(t2 *rapid.T) {
		steps := rapid.SliceOfN(rapid.Uint64Range(0, 255), 1, 20).Draw(t2, "what fires")
		faults := rapid.SliceOfN(rapid.SampledFrom([]int{200, 200, 500, 307}), len(steps), len(steps)).Draw(t2, "answers")
		var knows, want int
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			for i, bits := range steps {
				r.receiver.answer(faults[i], 0)
				var all []notify.Alert
				want = 0
				for b := range 8 {
					if bits&(1<<b) != 0 {
						all = append(all, over(fmt.Sprint("a/", b)))
						want++
					}
				}
				r.set(all...)
			}
			r.receiver.answer(200, 0)
			time.Sleep(10 * time.Minute)
			synctest.Wait()
			knows = r.receiver.fires()
		})
		if knows != want {
			t2.Fatalf("the receiver knows of %d that fire, want %d", knows, want)
		}
	})
}

// TestSigned: over a real socket, the signature holds for the secret that is in the
// file by then, and without a good secret nothing is sent.
func TestSigned(t *testing.T) {
	r := newReceiver()
	bodies := make(chan http.Header, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r.ServeHTTP(w, q)
		bodies <- q.Header
	}))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "secret")
	keep := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	keep(secret + "\n")
	s := notify.New(notify.Options{URL: server.URL + "/hook", SecretFile: file, Log: slog.New(slog.DiscardHandler)})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = s.Run(ctx) })
	defer running.Wait()
	defer cancel()
	check := func(key string) {
		t.Helper()
		header := <-bodies
		r.mu.Lock()
		body := r.bodies[len(r.bodies)-1]
		r.mu.Unlock()
		mac := hmac.New(sha256.New, []byte(key))
		mac.Write(body)
		if got, want := header.Get(notify.Signature), "sha256="+hex.EncodeToString(mac.Sum(nil)); got != want {
			t.Errorf("signature %q, want %q", got, want)
		}
	}
	s.Set(time.Now(), true, []notify.Alert{over("a/b")})
	check(secret)
	keep("  another secret of some length\r\n")
	s.Set(time.Now(), true, []notify.Alert{over("a/b"), over("a/c")})
	check("another secret of some length")
	if got := s.Where(); got != server.URL || strings.Contains(got, "hook") {
		t.Errorf("goes to %q, want %q", got, server.URL)
	}
}

// TestNoSecret: without a good secret nothing is sent, and the page says why but
// not where the file is.
func TestNoSecret(t *testing.T) {
	for _, text := range []string{"", "short\n", strings.Repeat("x", 5000), "-"} {
		synctest.Test(t, func(t *testing.T) {
			var network rolestest.Network
			r := newReceiver()
			network.Serve(t, "receiver", r)
			file := filepath.Join(t.TempDir(), "the-secret-file")
			if text != "-" {
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			s := notify.New(notify.Options{URL: "http://receiver/", SecretFile: file, HTTP: network.Client(t), Log: slog.New(slog.DiscardHandler)})
			ctx, cancel := context.WithCancel(t.Context())
			var running sync.WaitGroup
			running.Go(func() { _ = s.Run(ctx) })
			s.Set(time.Now(), true, []notify.Alert{over("a/b")})
			time.Sleep(time.Minute)
			synctest.Wait()
			if problem := s.Problem(); r.calls != 0 || !strings.Contains(problem, "alert_webhook_secret_file") || strings.Contains(problem, "the-secret-file") {
				t.Errorf("%d calls, problem %q", r.calls, problem)
			}
			cancel()
			running.Wait()
		})
	}
}

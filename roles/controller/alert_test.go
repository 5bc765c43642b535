package controller

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"grl/limiter"
	"grl/policy/alert"
	"grl/proto/access"
	grlv1 "grl/proto/grl/v1"
	"grl/store"
	"grl/store/ledger"
	"grl/web/page"
)

// judged is a controller that does not run: it is told when to judge.
func judged(t *testing.T, edit func(*Config)) *Controller {
	t.Helper()
	s, err := store.Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	config := Default()
	if edit != nil {
		edit(&config)
	}
	c, err := New(t.Context(), Options{Config: config, Log: slog.New(slog.DiscardHandler), Registry: prometheus.NewRegistry(), Store: s})
	if err != nil {
		t.Fatal(err)
	}
	c.node.leads = true
	return c
}

// capped has a cap that ends in so long.
func (c *Controller) capped(left time.Duration) {
	c.state.Incident.Caps = []ledger.Cap{{ID: "7", Service: "payments", Caller: "promo-batch", EndsAt: time.Now().Add(left)}}
}

// TestAlertsReachTheWebhook: over a real socket, one alert from the figures of the
// controller to the receiver and back to the list, muted or not.
func TestAlertsReachTheWebhook(t *testing.T) {
	messages := make(chan string, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Header.Get("X-Hub-Signature-256") == "" {
			t.Error("a message without a signature")
		}
		var m struct {
			Alerts []struct {
				Status, GeneratorURL string
				Labels, Annotations  map[string]string
			}
		}
		_ = json.Unmarshal(body, &m)
		for _, a := range m.Alerts {
			messages <- a.Status + " " + a.Labels["alertname"] + " " + a.Labels["subject"] + ": " + a.Annotations["summary"] + " " + a.GeneratorURL
		}
	}))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte("0123456789abcdef"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := judged(t, func(c *Config) {
		c.AlertWebhook, c.AlertWebhookSecretFile, c.PublicURL = server.URL+"/hook", file, "https://grl.example.com"
	})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = c.alerts.sender.Run(ctx) })
	defer running.Wait()
	defer cancel()

	now := time.Now()
	c.capped(9*time.Minute + 30*time.Second)
	c.judge(ctx, now)
	if got, want := <-messages, "firing GrlCapEnding 7: promo-batch → payments ends in 9 min https://grl.example.com/caps"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	admin := access.With(ctx, access.Identity{Person: &access.Person{Name: "ann", Level: access.Admin}})
	mute := &grlv1.MuteAlertRequest{Rule: grlv1.AlertRule_ALERT_RULE_CAP_ENDING, Subject: "7", DurationMs: 3_600_000, Reason: "known"}
	if _, err := (alertService{c}).MuteAlert(admin, mute); err != nil {
		t.Fatal(err)
	}
	// It was told of before, so its end is too.
	c.state.Incident.Caps = nil
	c.judge(ctx, now.Add(alert.Kept))
	if got := <-messages; !strings.HasPrefix(got, "resolved GrlCapEnding 7") {
		t.Errorf("%q", got)
	}
	c.capped(5 * time.Minute)
	c.judge(ctx, now.Add(2*alert.Kept))
	list, err := alertService{c}.ListAlerts(admin, &grlv1.ListAlertsRequest{})
	if err != nil || list.GetWebhook() != server.URL || list.GetWebhookProblem() != "" {
		t.Errorf("list %v, %v", list, err)
	}
	if a := list.GetAlerts()[0]; a.GetState() != grlv1.AlertState_ALERT_STATE_FIRING || a.GetMutedBy() != "ann" {
		t.Errorf("alert %v", a)
	}
	mute.DurationMs = 0
	if _, err := (alertService{c}).MuteAlert(admin, mute); err != nil {
		t.Fatal(err)
	}
	c.judge(ctx, now.Add(2*alert.Kept+judgeEvery))
	if got := <-messages; !strings.HasPrefix(got, "firing GrlCapEnding 7") { // not while it was muted
		t.Errorf("%q", got)
	}
	select {
	case more := <-messages:
		t.Errorf("one more message: %q", more)
	default:
	}
}

// TestNobodyAsks: without a person there is no list and no mute.
func TestNobodyAsks(t *testing.T) {
	c := judged(t, nil)
	if _, err := (alertService{c}).ListAlerts(t.Context(), &grlv1.ListAlertsRequest{}); err == nil {
		t.Error("a list for nobody")
	}
	if _, err := (alertService{c}).MuteAlert(t.Context(), &grlv1.MuteAlertRequest{}); err == nil {
		t.Error("a mute by nobody")
	}
}

// TestCountFiring: what is muted, and caps about to end, are not counted; the gauge
// has them.
func TestCountFiring(t *testing.T) {
	c := judged(t, nil)
	c.capped(5 * time.Minute)
	c.alerts.lost = "the store does not answer"
	c.judge(t.Context(), time.Now())
	if got := c.countFiring(); got != 1 {
		t.Errorf("%d fire, want the audit alone", got)
	}
	gauge := func() map[string]float64 {
		families, err := c.opts.Registry.(*prometheus.Registry).Gather()
		if err != nil {
			t.Fatal(err)
		}
		found := make(map[string]float64)
		for _, f := range families {
			for _, m := range f.GetMetric() {
				if f.GetName() == "grl_controller_alert_firing" {
					found[m.GetLabel()[0].GetValue()] = m.GetGauge().GetValue()
				}
			}
		}
		return found
	}
	if g := gauge(); len(g) != len(alert.Rules()) || g["audit_broken"] != 1 || g["cap_ending"] != 1 || g["over_limit"] != 0 {
		t.Errorf("gauge %v", g)
	}
	act := ledger.Act{Actor: "ann", Reason: "known", At: time.Now()}
	if err := c.ledger.Mute(t.Context(), act, "audit_broken", "", time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	c.judge(t.Context(), time.Now())
	if got := c.countFiring(); got != 0 {
		t.Errorf("%d fire with the audit muted, want 0", got)
	}
	if g := gauge(); g["audit_broken"] != 1 {
		t.Errorf("gauge with the audit muted %v", g)
	}
}

// TestAuditIsGoneThrough: at the start, with what the ledger says of it.
func TestAuditIsGoneThrough(t *testing.T) {
	c := judged(t, nil)
	for range 3 {
		if err := c.ledger.Note(t.Context(), ledger.Act{Actor: "ann", At: time.Now()}, "note", []string{"x"}, "", ""); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.checkAudit(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := c.audited()
	want, err := c.ledger.VerifyAudit(t.Context())
	if err != nil || got.Entries != 3 || string(got.Hash) != string(want.Hash) || got.Broken != 0 || got.At.IsZero() {
		t.Errorf("found %+v, the ledger says %+v, %v", got, want, err)
	}
	// An entry that was changed is found, and alerted of.
	records, err := c.opts.Store.Get(t.Context(), "audit/00000000000000000002")
	if err != nil {
		t.Fatal(err)
	}
	forged := strings.Replace(string(records[0].Value), "ann", "bob", 1)
	if err := c.opts.Store.Commit(t.Context(), nil, []store.Write{{Key: records[0].Key, Value: []byte(forged)}}); err != nil {
		t.Fatal(err)
	}
	if err := c.checkAudit(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.judge(t.Context(), time.Now())
	if a := c.alerts.memory.Firing(); len(a) != 1 || a[0].Rule != alert.AuditBroken || a[0].Text != "entry 2: it does not hash to its hash" {
		t.Errorf("after entry 2 was forged: %+v", a)
	}
	// Nor does one that cannot be read go unseen.
	c.opts.Store.Close()
	if err := c.checkAudit(t.Context()); err == nil {
		t.Error("went through a store that is closed")
	}
	if c.alerts.lost == "" {
		t.Error("the audit cannot be read, and nothing says so")
	}
}

// TestDroppingBuckets: over all cells of a bucket, and of those alone that are
// judged.
func TestDroppingBuckets(t *testing.T) {
	cells := []page.Cell{
		{Service: "a", Name: "x", Instance: "eu", Behavior: limiter.Deny, OfferedRPS: 100, DroppedRPS: 10},
		{Service: "a", Name: "x", Instance: "us", Behavior: limiter.Deny, OfferedRPS: 300},
		{Service: "a", Name: "y", Behavior: limiter.Deny, OfferedRPS: 100},
		{Service: "a", Name: "block", Behavior: limiter.Deny, Block: true, OfferedRPS: 100, DroppedRPS: 100},
		{Service: "a", Name: "cap 1", Cap: "1", Behavior: limiter.Deny, OfferedRPS: 100, DroppedRPS: 100},
		{Service: "a", Name: "shadow", Behavior: limiter.Allow, OfferedRPS: 100, DroppedRPS: 1},
	}
	got := droppingBuckets(cells)
	if len(got) != 1 || got[0] != (alert.Bucket{Name: "a/x", Offered: 400, Dropped: 10}) {
		t.Errorf("%+v, want a/x alone, with 10 of 400", got)
	}
}

// TestLastRun is the last that is over, and no dry one.
func TestLastRun(t *testing.T) {
	c := judged(t, nil)
	if got := c.lastRun(t.Context()); got != nil {
		t.Errorf("no run: %+v", got)
	}
	run := func(dry bool, update func(*ledger.Run)) {
		t.Helper()
		act := ledger.Act{Actor: "configurator", At: time.Now()}
		begun, err := c.ledger.BeginRun(t.Context(), act, ledger.Run{Configurator: "c", Trigger: "request", DryRun: dry})
		if err == nil && update != nil {
			_, err = c.ledger.FinishRun(t.Context(), act, begun.ID, update)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	outcomes := make([]uint32, 9)
	outcomes[grlv1.RunOutcome_RUN_OUTCOME_REFUSED], outcomes[grlv1.RunOutcome_RUN_OUTCOME_FAILED] = 3, 2
	run(false, func(r *ledger.Run) { r.State, r.Outcomes = ledger.RunDone, outcomes })
	run(true, func(r *ledger.Run) { r.State, r.Error = ledger.RunFailed, "dry" })
	run(false, nil) // still runs
	if got := c.lastRun(t.Context()); got == nil || *got != (alert.Run{ID: 1, Refused: 3, Broken: 2}) {
		t.Errorf("%+v, want run 1 with 3 refused and 2 failed", got)
	}
	run(false, func(r *ledger.Run) { r.State, r.Error = ledger.RunFailed, strings.Repeat("x", 500) })
	if got := c.lastRun(t.Context()); got == nil || got.ID != 4 || len(got.Failed) > 250 {
		t.Errorf("%+v, want run 4, with why in short", got)
	}
}

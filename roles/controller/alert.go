package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode"

	"connectrpc.com/connect"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"grl/policy/alert"
	"grl/proto/access"
	grlv1 "grl/proto/grl/v1"
	"grl/roles/controller/notify"
	"grl/store/ledger"
	"grl/web/page"
)

// alerts is what the controller knows of what needs a person. The zero value
// knows nothing.
type alerts struct {
	sender *notify.Sender // set once, before all is used

	mu     sync.Mutex // guards all below
	memory alert.Memory
	mutes  []ledger.Mute // that have not ended when they were read
	audit  page.AuditCheck
	lost   string // why the audit could not be gone through; "": it could
}

// muted returns the mute of an alert that ends last, false if there is none.
func (a *alerts) muted(now time.Time, key alert.Key) (last ledger.Mute, muted bool) {
	for _, m := range a.mutes {
		if m.Rule == key.Rule.String() && (m.Subject == "" || m.Subject == key.Subject) && m.Until.After(now) && m.Until.After(last.Until) {
			last, muted = m, true
		}
	}
	return last, muted
}

// newAlerts has the controller judge what needs a person, once it runs.
func (c *Controller) newAlerts() {
	config := c.opts.Config
	c.alerts.sender = notify.New(notify.Options{
		URL: config.AlertWebhook, SecretFile: config.AlertWebhookSecretFile, PublicURL: config.PublicURL, Log: c.opts.Log,
	})
	c.opts.Registry.MustRegister(alertGauge{c})
}

// watchOver judges and sends until ctx ends.
func (c *Controller) watchOver(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return c.judgeAlerts(ctx) })
	g.Go(func() error { return c.watchAudit(ctx) })
	g.Go(func() error { return c.alerts.sender.Run(ctx) })
	return g.Wait()
}

// alertGauge counts what fires, muted or not.
type alertGauge struct{ c *Controller }

var firingGauge = prometheus.NewDesc("grl_controller_alert_firing",
	"Subjects of which an alert fires, muted or not, by rule.", []string{"rule"}, nil)

// Describe implements prometheus.Collector.
func (g alertGauge) Describe(out chan<- *prometheus.Desc) { out <- firingGauge }

// Collect implements prometheus.Collector.
func (g alertGauge) Collect(out chan<- prometheus.Metric) {
	g.c.alerts.mu.Lock()
	defer g.c.alerts.mu.Unlock()
	count := make(map[alert.Rule]int)
	for _, a := range g.c.alerts.memory.Firing() {
		count[a.Rule]++
	}
	for _, r := range alert.Rules() {
		out <- prometheus.MustNewConstMetric(firingGauge, prometheus.GaugeValue, float64(count[r]), r.String())
	}
}

// countFiring counts the alerts that fire and are not muted. A cap that is about to end
// is told of, but is no fault.
func (c *Controller) countFiring() int {
	c.alerts.mu.Lock()
	defer c.alerts.mu.Unlock()
	now, n := time.Now(), 0
	for _, a := range c.alerts.memory.Firing() {
		if _, muted := c.alerts.muted(now, a.Key); !muted && a.Rule != alert.CapEnding {
			n++
		}
	}
	return n
}

// audited returns what was found when the audit was last gone through.
func (c *Controller) audited() page.AuditCheck {
	c.alerts.mu.Lock()
	defer c.alerts.mu.Unlock()
	return c.alerts.audit
}

// alertService serves grlv1connect.AlertServiceHandler.
type alertService struct{ *Controller }

// ruleNumbers are the rules as the API numbers them.
var ruleNumbers = map[alert.Rule]grlv1.AlertRule{
	alert.OverLimit:       grlv1.AlertRule_ALERT_RULE_OVER_LIMIT,
	alert.HostLost:        grlv1.AlertRule_ALERT_RULE_HOST_LOST,
	alert.DirectiveStale:  grlv1.AlertRule_ALERT_RULE_DIRECTIVE_STALE,
	alert.CapEnding:       grlv1.AlertRule_ALERT_RULE_CAP_ENDING,
	alert.ShadowWouldHurt: grlv1.AlertRule_ALERT_RULE_SHADOW_WOULD_HURT,
	alert.RLCRefused:      grlv1.AlertRule_ALERT_RULE_RLC_REFUSED,
	alert.AuditBroken:     grlv1.AlertRule_ALERT_RULE_AUDIT_BROKEN,
}

var alertStates = map[alert.State]grlv1.AlertState{
	alert.Quiet:   grlv1.AlertState_ALERT_STATE_QUIET,
	alert.Pending: grlv1.AlertState_ALERT_STATE_PENDING,
	alert.Firing:  grlv1.AlertState_ALERT_STATE_FIRING,
}

// ListAlerts returns the rules with what they say now.
func (s alertService) ListAlerts(ctx context.Context, _ *grlv1.ListAlertsRequest) (*grlv1.ListAlertsResponse, error) {
	if access.From(ctx).Person == nil {
		return nil, errNobody
	}
	out := &grlv1.ListAlertsResponse{Webhook: s.alerts.sender.Where(), WebhookProblem: s.alerts.sender.Problem()}
	s.alerts.mu.Lock()
	defer s.alerts.mu.Unlock()
	now := time.Now()
	for _, a := range s.alerts.memory.List() {
		m := &grlv1.Alert{Rule: ruleNumbers[a.Rule], Subject: a.Subject, State: alertStates[a.State], Text: a.Text, Path: alertPath(a.Key)}
		if !a.Since.IsZero() {
			m.SinceMs = a.Since.UnixMilli()
		}
		if a.State == alert.Quiet {
			m.Text = quietText(a)
		}
		if mute, muted := s.alerts.muted(now, a.Key); muted {
			m.MutedUntilMs, m.MutedBy = mute.Until.UnixMilli(), mute.By
		}
		out.Alerts = append(out.Alerts, m)
	}
	return out, nil
}

var errNobody = connect.NewError(connect.CodeUnauthenticated, errors.New("sign in, or give an API token"))

// quietText says when a rule last fired, "since the start" of this controller.
func quietText(a alert.Alert) string {
	if a.Since.IsZero() {
		return "has not fired since the start"
	}
	return "fired last on " + a.Since.UTC().Format("Mon 2 Jan 15:04 UTC")
}

// alertPath returns the page that shows what an alert is about.
func alertPath(k alert.Key) string {
	switch {
	case k.Subject != "" && (k.Rule == alert.OverLimit || k.Rule == alert.ShadowWouldHurt):
		return page.BucketPath(k.Subject, "", "")
	case k.Rule == alert.ShadowWouldHurt:
		return "/shadow"
	case k.Rule == alert.OverLimit:
		return "/buckets?state=over"
	case k.Rule == alert.CapEnding:
		return "/caps"
	case k.Rule == alert.RLCRefused:
		return "/rlc"
	case k.Rule == alert.AuditBroken:
		return "/changes"
	}
	return "/fleet"
}

// Bounds on a mute.
const (
	leastMute      = time.Minute
	mostMuteReason = 1 << 10 // bytes
)

// MuteAlert keeps an alert from being sent, and from being counted, for a while.
func (s alertService) MuteAlert(ctx context.Context, r *grlv1.MuteAlertRequest) (*grlv1.MuteAlertResponse, error) {
	id := access.From(ctx)
	if id.Person == nil {
		return nil, errNobody
	}
	rule, problems := checkMute(r)
	if len(problems) > 0 {
		return nil, invalidMute(problems)
	}
	now := time.Now()
	act := ledger.Act{Actor: id.Person.Name, From: id.From, RequestID: id.RequestID, Reason: r.GetReason(), At: now}
	until := now.Add(time.Duration(r.GetDurationMs()) * time.Millisecond)
	switch err := s.ledger.Mute(ctx, act, rule.String(), r.GetSubject(), until); {
	case errors.Is(err, ledger.ErrNotFound):
		return nil, rpcError(connect.CodeNotFound, errors.New("it is not muted"))
	case errors.Is(err, ledger.ErrTooMany):
		return nil, rpcError(connect.CodeResourceExhausted, fmt.Errorf("at most %d alerts are muted at once: end one first", ledger.MaxMutes))
	case err != nil:
		s.opts.Log.ErrorContext(ctx, "cannot mute an alert", "err", err)
		return nil, rpcError(connect.CodeUnavailable, errors.New("the store cannot be reached: before it is tried again look whether it is muted"))
	}
	s.readMutes(ctx, now)
	return &grlv1.MuteAlertResponse{}, nil
}

// checkMute returns the rule of a request, and all that is wrong with it.
func checkMute(r *grlv1.MuteAlertRequest) (rule alert.Rule, problems []*grlv1.Problem) {
	refuse := func(where, format string, args ...any) {
		problems = append(problems, &grlv1.Problem{Where: where, Text: fmt.Sprintf(format, args...)})
	}
	known := false
	for a, number := range ruleNumbers {
		if number == r.GetRule() {
			rule, known = a, true
		}
	}
	if !known {
		refuse("rule", "%d is none", r.GetRule())
	}
	if len(r.GetSubject()) > 600 || strings.ContainsFunc(r.GetSubject(), unicode.IsControl) {
		refuse("subject", "is no name of at most 600 bytes")
	}
	if d := r.GetDurationMs(); d != 0 && (d < leastMute.Milliseconds() || d > ledger.MaxMuteLife.Milliseconds()) {
		refuse("duration", "%d ms is neither 0 nor from 1 minute to 24 h", d)
	}
	switch reason := r.GetReason(); {
	case strings.TrimSpace(reason) == "":
		refuse("reason", "is empty")
	case len(reason) > mostMuteReason:
		refuse("reason", "has %d bytes, at most %d", len(reason), mostMuteReason)
	case strings.ContainsFunc(reason, unicode.IsControl):
		refuse("reason", "is more than one line, or has characters that cannot be seen")
	}
	return rule, problems
}

func invalidMute(problems []*grlv1.Problem) error {
	var texts []string
	for _, p := range problems {
		texts = append(texts, p.GetWhere()+": "+p.GetText())
	}
	out := connect.NewError(connect.CodeInvalidArgument, errors.New(strings.Join(texts, "; ")))
	if detail, err := connect.NewErrorDetail(&grlv1.Refusal{Problems: problems}); err == nil {
		out.AddDetail(detail)
	}
	return out
}

// readMutes reads what is muted. The store may not answer: then what was muted
// stays so until its time.
func (c *Controller) readMutes(ctx context.Context, now time.Time) {
	mutes, err := c.ledger.Mutes(ctx, now)
	if err != nil {
		if ctx.Err() == nil {
			c.opts.Log.DebugContext(ctx, "cannot read what is muted", "err", err)
		}
		return
	}
	c.alerts.mu.Lock()
	defer c.alerts.mu.Unlock()
	c.alerts.mutes = mutes
}

// capName is what a cap is on, for people: "promo-batch → payments".
func capName(k ledger.Cap) string {
	name := cmp.Or(k.Caller, "*") + " → " + k.Service
	if k.Procedure != "" {
		name += ", " + k.Procedure
	}
	return name
}

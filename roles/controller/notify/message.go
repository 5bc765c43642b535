package notify

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"grl/policy/alert"
)

const (
	// mostAlerts is how many alerts a message has at most.
	mostAlerts = 100
	// Of a file with a secret, in bytes.
	minSecret = 16
	maxSecret = 4096
	// maxAnswer is how much of an answer is read, in bytes.
	maxAnswer = 64 << 10
)

// Signature is the header with the HMAC-SHA256 of the body, as GitHub sends it:
// "sha256=" and hexadecimal digits.
const Signature = "X-Hub-Signature-256"

// message is what the Alertmanager sends to a webhook, version 4.
type message struct {
	Version           string            `json:"version"`
	GroupKey          string            `json:"groupKey"`
	TruncatedAlerts   int               `json:"truncatedAlerts"`
	Status            string            `json:"status"` // "firing" if any of the alerts does
	Receiver          string            `json:"receiver"`
	GroupLabels       map[string]string `json:"groupLabels"`
	CommonLabels      map[string]string `json:"commonLabels"`
	CommonAnnotations map[string]string `json:"commonAnnotations"`
	ExternalURL       string            `json:"externalURL"`
	Alerts            []entry           `json:"alerts"`
}

// entry is one alert of a message.
type entry struct {
	Status       string            `json:"status"` // "firing" or "resolved"
	Labels       map[string]string `json:"labels"`
	Annotations  map[string]string `json:"annotations"`
	StartsAt     time.Time         `json:"startsAt"`
	EndsAt       time.Time         `json:"endsAt"` // zero: it fires
	GeneratorURL string            `json:"generatorURL"`
	Fingerprint  string            `json:"fingerprint"`
}

// names are those of the alerts in the rules for Prometheus that grl ships, and
// how bad they are.
var names = map[alert.Rule]struct{ name, severity string }{
	alert.OverLimit:       {"GrlOverLimit", "warning"},
	alert.HostLost:        {"GrlHostLost", "warning"},
	alert.DirectiveStale:  {"GrlDirectiveStale", "critical"},
	alert.CapEnding:       {"GrlCapEnding", "info"},
	alert.ShadowWouldHurt: {"GrlShadowWouldHurt", "info"},
	alert.RLCRefused:      {"GrlRLCRefused", "warning"},
	alert.AuditBroken:     {"GrlAuditBroken", "critical"},
}

// newMessage returns the message of alerts of one rule, at least one.
func newMessage(alerts []Alert, publicURL string) message {
	rule := alerts[0].Rule
	named := names[rule]
	m := message{
		Version: "4", GroupKey: "grl/" + rule.String(), Status: "resolved", Receiver: "grl",
		GroupLabels:       map[string]string{"alertname": named.name},
		CommonLabels:      map[string]string{"alertname": named.name, "rule": rule.String(), "severity": named.severity},
		CommonAnnotations: map[string]string{},
		ExternalURL:       publicURL,
	}
	for _, a := range alerts {
		e := entry{
			Status:      "resolved",
			Labels:      map[string]string{"alertname": named.name, "rule": rule.String(), "severity": named.severity, "subject": a.Subject},
			Annotations: map[string]string{"summary": a.Text},
			StartsAt:    a.Since.UTC(), EndsAt: a.ended.UTC(),
			Fingerprint: fingerprint(a.Key),
		}
		if a.ended.IsZero() {
			e.Status, m.Status = "firing", "firing"
		}
		if publicURL != "" {
			e.GeneratorURL = strings.TrimSuffix(publicURL, "/") + a.Path
		}
		m.Alerts = append(m.Alerts, e)
	}
	return m
}

// fingerprint names an alert for receivers that match its end with its beginning.
func fingerprint(k alert.Key) string {
	hash := sha256.Sum256([]byte(k.Rule.String() + "\x00" + k.Subject))
	return hex.EncodeToString(hash[:8])
}

// compare orders what fires before what has ended, then by subject.
func compare(a, b Alert) int {
	if a.ended.IsZero() != b.ended.IsZero() {
		if a.ended.IsZero() {
			return -1
		}
		return 1
	}
	return cmp.Compare(a.Subject, b.Subject)
}

// send posts a message, and returns an error unless it was taken.
func (s *Sender) send(ctx context.Context, alerts []Alert) error {
	body, err := json.Marshal(newMessage(alerts, s.opts.PublicURL))
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.opts.URL, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "grl")
	if s.opts.SecretFile != "" {
		secret, err := readSecret(s.opts.SecretFile)
		if err != nil {
			return err
		}
		mac := hmac.New(sha256.New, secret)
		mac.Write(body)
		r.Header.Set(Signature, "sha256="+hex.EncodeToString(mac.Sum(nil)))
	}
	answer, err := s.http.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, maxAnswer)) // so that the connection may be used again
	switch code := answer.StatusCode; {
	case code >= 200 && code < 300:
		return nil
	case code >= 300 && code < 400:
		return fmt.Errorf("answered %d: redirects are not followed", code)
	default:
		return fmt.Errorf("answered %d", code)
	}
}

// readSecret reads the secret. A pipe would have each message wait for a writer,
// and what is wrong with the file is shown to people who need not know its name.
func readSecret(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxSecret {
		return nil, fmt.Errorf("controller.alert_webhook_secret_file is no file of at most %d bytes that can be read", maxSecret)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, errors.New("controller.alert_webhook_secret_file cannot be read")
	}
	secret := strings.TrimSpace(string(text))
	if len(secret) < minSecret {
		return nil, fmt.Errorf("controller.alert_webhook_secret_file: the secret has %d bytes, and at least %d are needed", len(secret), minSecret)
	}
	return []byte(secret), nil
}

package alerts_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"grl/policy/alert"
	"grl/web/alerts"
	"grl/web/pagetest"
)

// promtool runs promtool, which comes with Prometheus.
func promtool(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "promtool", args...).CombinedOutput(); err != nil {
		t.Fatalf("promtool %s (Debian: prometheus): %v\n%s", strings.Join(args, " "), err, out)
	}
}

// download writes the rules as they are handed out.
func download(t *testing.T) (dir, name string) {
	t.Helper()
	r, body := pagetest.Get(t, pagetest.Handler(alerts.Routes(pagetest.Site(pagetest.Memory{}))), pagetest.Admin, "/alerts/rules", false)
	if r.StatusCode != 200 || !strings.Contains(r.Header.Get("Content-Disposition"), "grl-rules.yml") {
		t.Fatalf("status %d, header %v", r.StatusCode, r.Header)
	}
	dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "grl-rules.yml"), []byte(body), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir, filepath.Join(dir, "grl-rules.yml")
}

// TestPrometheusRules: a real Prometheus takes the rules, there is one for each
// rule of grl, and each fires when it should, and not before.
func TestPrometheusRules(t *testing.T) {
	dir, rules := download(t)
	promtool(t, "check", "rules", rules)
	text, err := os.ReadFile(rules)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range alert.Rules() {
		if n := strings.Count(string(text), "rule: "+r.String()+"\n"); n != 1 {
			t.Errorf("%d rules for %v, want 1", n, r)
		}
	}
	// What they say to do is not compared.
	bare := regexp.MustCompile(`(?m)^ +description: .*\n`).ReplaceAll(text, nil)
	if err := os.WriteFile(rules, bare, 0o600); err != nil {
		t.Fatal(err)
	}
	unit := filepath.Join(dir, "unit.yml")
	if err := os.WriteFile(unit, []byte(unitTests), 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, "test", "rules", unit)
	// A test that cannot fail proves nothing.
	wrong := strings.Replace(unitTests, "pay/writes drops 10%", "pay/writes drops 11%", 1)
	if err := os.WriteFile(unit, []byte(wrong), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "promtool", "test", "rules", unit).CombinedOutput(); err == nil {
		t.Errorf("another share is taken too:\n%s", out)
	}
}

// unitTests are two hours of a fleet. pay/writes drops 10 % from 10 minutes on,
// pay/block and a cap drop all by design, pay/shadow would have dropped 5 %; 3 of 12
// hosts leave at 30 minutes; an aggregator is cut off from 40 minutes on.
var unitTests = fmt.Sprintf(`rule_files: [grl-rules.yml]
evaluation_interval: 15s
tests:
  - interval: 15s
    input_series:
      - {series: 'grl_client_requests_total{bucket="pay/writes", decision="admitted", instance="h1"}', values: '0+900x480'}
      - {series: 'grl_client_requests_total{bucket="pay/writes", decision="dropped", instance="h1"}', values: '0x40 0+100x440'}
      - {series: 'grl_client_requests_total{bucket="pay/block", decision="dropped", instance="h1"}', values: '0+100x480'}
      - {series: 'grl_client_requests_total{bucket="pay/_cap", decision="dropped", instance="h1"}', values: '0+100x480'}
      - {series: 'grl_client_requests_total{bucket="pay/shadow", decision="admitted", instance="h1"}', values: '0+95x480'}
      - {series: 'grl_client_requests_total{bucket="pay/shadow", decision="shadow_dropped", instance="h1"}', values: '0+5x480'}
      - {series: 'grl_controller_drop_ratio{bucket="pay/writes"}', values: '0.1x480'}
      - {series: 'grl_controller_limit_requests_per_second{bucket="pay/writes"}', values: '60x480'}
      - {series: 'grl_controller_drop_ratio{bucket="pay/block"}', values: '1x480'}
      - {series: 'grl_aggregator_hosts{instance="a1"}', values: '6x480'}
      - {series: 'grl_aggregator_hosts{instance="a2"}', values: '6x119 3x360'}
      - {series: 'grl_aggregator_directive_age_seconds{instance="a1"}', values: '0.3x480'}
      - {series: 'grl_aggregator_directive_age_seconds{instance="a2"}', values: '0.3x159 12x320'}
      - {series: 'grl_controller_alert_firing{rule="cap_ending"}', values: '0x239 2x240'}
      - {series: 'grl_controller_alert_firing{rule="rlc_refused"}', values: '0x239 1x240'}
      - {series: 'grl_controller_alert_firing{rule="audit_broken"}', values: '0x239 1x240'}
    alert_rule_test:
%s`, strings.Join([]string{
	fires("14m", "GrlOverLimit", "", ""),
	fires("17m", "GrlOverLimit", "bucket: pay/writes, severity: warning, rule: over_limit", "pay/writes drops 10%"),
	fires("29m", "GrlHostLost", "", ""),
	fires("31m", "GrlHostLost", "severity: warning, rule: host_lost", "3 hosts are silent"),
	fires("45m", "GrlHostLost", "", ""),
	fires("39m", "GrlDirectiveStale", "", ""),
	fires("41m", "GrlDirectiveStale", "instance: a2, severity: critical, rule: directive_stale", "a2 took its last directive 12s ago"),
	fires("41m", "GrlShadowWouldHurt", "bucket: pay/shadow, severity: info, rule: shadow_would_hurt", "pay/shadow would have dropped 5% of the last day"),
	fires("59m", "GrlCapEnding", "", ""),
	fires("61m", "GrlCapEnding", "severity: info, rule: cap_ending", "2 caps end within 10 minutes"),
	fires("61m", "GrlRLCRefused", "severity: warning, rule: rlc_refused", "The last RLC run failed, or could not judge a bucket"),
	fires("61m", "GrlAuditBroken", "severity: critical, rule: audit_broken", "The chain of the audit does not hold, or cannot be read"),
}, ""))

// fires is a test that at a time an alert fires with labels and a summary; none:
// that it does not.
func fires(at, name, labels, summary string) string {
	test := fmt.Sprintf("      - eval_time: %s\n        alertname: %s\n", at, name)
	if labels != "" {
		test += fmt.Sprintf("        exp_alerts:\n          - exp_labels: {%s}\n            exp_annotations:\n              summary: '%s'\n", labels, summary)
	}
	return test
}

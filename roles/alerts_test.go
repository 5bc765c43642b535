package roles_test

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"

	grlv1 "grl/proto/grl/v1"
	"grl/proto/grl/v1/grlv1connect"
)

func (f *fleet) alertService() grlv1connect.AlertServiceClient {
	return grlv1connect.NewAlertServiceClient(f.Network.Client(f.t), "http://controller")
}

// alerts returns what is not quiet: "firing over_limit shop/all: text".
func (f *fleet) alerts() []*grlv1.Alert {
	f.t.Helper()
	answer, err := f.alertService().ListAlerts(f.t.Context(), &grlv1.ListAlertsRequest{})
	if err != nil {
		f.t.Fatal(err)
	}
	return answer.GetAlerts()
}

// loud lists the alerts that are not quiet, one a line: "FIRING OVER_LIMIT
// shop/all".
func (f *fleet) loud() string {
	f.t.Helper()
	var lines []string
	for _, a := range f.alerts() {
		if a.GetState() != grlv1.AlertState_ALERT_STATE_QUIET {
			lines = append(lines, strings.TrimPrefix(a.GetState().String(), "ALERT_STATE_")+" "+strings.TrimPrefix(a.GetRule().String(), "ALERT_RULE_")+" "+a.GetSubject())
		}
	}
	return strings.Join(lines, "\n")
}

func (f *fleet) wantLoud(when, want string) {
	f.t.Helper()
	if got := f.loud(); got != want {
		f.t.Errorf("%s:\n%s\nwant:\n%s", when, got, want)
	}
}

func (f *fleet) alert(rule grlv1.AlertRule) *grlv1.Alert {
	f.t.Helper()
	for _, a := range f.alerts() {
		if a.GetRule() == rule {
			return a
		}
	}
	f.t.Fatalf("%v is not listed", rule)
	return nil
}

// A bucket that drops more than 1 % fires after 5 minutes, with the share that the
// API says it drops, and ends a minute after it does not any more.
func TestAlertOverLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, limits(deny1000), []string{"z1", "z2"}, 600, 600)
		f.offer(6 * time.Second)
		f.wantLoud("at first", "PENDING OVER_LIMIT shop/all")
		began := time.Now()
		f.offer(4*time.Minute + 30*time.Second)
		f.wantLoud("after 4.5 minutes", "PENDING OVER_LIMIT shop/all")
		f.offer(40 * time.Second)
		f.wantLoud("after 5 minutes", "FIRING OVER_LIMIT shop/all")

		a := f.alert(grlv1.AlertRule_ALERT_RULE_OVER_LIMIT)
		offered, dropped := 0.0, 0.0
		for _, b := range f.Buckets() {
			offered, dropped = offered+b.GetOfferedRps(), dropped+b.GetDroppedRps()
		}
		text := regexp.MustCompile(`^shop/all drops ([0-9.]+)% for 5 min$`).FindStringSubmatch(a.GetText())
		if text == nil {
			t.Fatalf("text %q", a.GetText())
		}
		said, _ := strconv.ParseFloat(text[1], 64)
		if want := dropped / offered * 100; math.Abs(said-want) > 2 || want < 15 || want > 18 {
			t.Errorf("says that %v %% are dropped; the API has %.2f %%, and a sixth is due", said, want)
		}
		if since := time.UnixMilli(a.GetSinceMs()); since.After(began) || began.Sub(since) > 6*time.Second {
			t.Errorf("since %v, want %v or up to 6s before", since, began)
		}
		if a.GetPath() != "/bucket?name=shop%2Fall" {
			t.Errorf("path %q", a.GetPath())
		}

		for _, h := range f.hosts {
			h.load(100)
		}
		f.offer(50 * time.Second)
		f.wantLoud("less than a minute after the load fell", "FIRING OVER_LIMIT shop/all")
		f.offer(30 * time.Second)
		f.wantLoud("more than a minute after", "")
		if a := f.alert(grlv1.AlertRule_ALERT_RULE_OVER_LIMIT); a.GetSinceMs() == 0 || !strings.HasPrefix(a.GetText(), "fired last on ") {
			t.Errorf("quiet: %v", a)
		}
	})
}

// A bucket in shadow, one that blocks and a cap drop on purpose, or nothing: none
// is over its limit.
func TestAlertNotOfBlocks(t *testing.T) {
	for _, bucket := range []string{"limit: {rps: 100}; behavior: allow", "block: true; behavior: deny"} {
		t.Run(bucket, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t, limits(bucket), []string{"z1"}, 300)
				f.cap(10, 2*time.Hour)
				f.offer(7 * time.Minute)
				f.wantLoud("after 7 minutes", "")
			})
		})
	}
}

// A cap is told of from 10 minutes before its end on, until it has ended.
func TestAlertCapEnding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, limits("limit: {rps: 100000}; behavior: deny"), []string{"z1"}, 50)
		f.offer(settling)
		id := f.cap(10, 12*time.Minute)
		f.offer(110 * time.Second)
		f.wantLoud("more than 10 minutes before", "")
		f.offer(20 * time.Second)
		f.wantLoud("less than 10 minutes before", "FIRING CAP_ENDING "+id)
		if got, want := f.alert(grlv1.AlertRule_ALERT_RULE_CAP_ENDING).GetText(), "web → shop ends in 9 min"; got != want {
			t.Errorf("text %q, want %q", got, want)
		}
		f.offer(9*time.Minute + 30*time.Second)
		f.wantLoud("before the end", "FIRING CAP_ENDING "+id)
		f.offer(100 * time.Second)
		f.wantLoud("a minute after the end", "")
	})
}

// Hosts that go, and zones that fall silent, are told of within 20 s, and no more
// a minute after they are back.
func TestAlertHostsAndZones(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, limits(deny1000), []string{"z1", "z2"}, 100, 100, 100, 100)
		f.offer(time.Minute)
		f.wantLoud("at first", "")
		f.Stop("host-2")
		f.offer(20 * time.Second)
		f.wantLoud("without a host", "FIRING HOST_LOST z1")
		if got, want := f.alert(grlv1.AlertRule_ALERT_RULE_HOST_LOST).GetText(), "1 host of z1 is silent"; got != want {
			t.Errorf("text %q, want %q", got, want)
		}
		f.Host("host-2b", "z1", "r1", "shop", "aggregator-z1")
		f.offer(80 * time.Second)
		f.wantLoud("with another one in its place", "")

		f.Stop("aggregator-z2")
		f.offer(20 * time.Second)
		f.wantLoud("without an aggregator", "FIRING HOST_LOST z2\nFIRING DIRECTIVE_STALE z2")
		if got := f.alert(grlv1.AlertRule_ALERT_RULE_HOST_LOST).GetText(); got != "2 hosts of z2 are silent" {
			t.Errorf("text %q", got)
		}
		if got := f.alert(grlv1.AlertRule_ALERT_RULE_DIRECTIVE_STALE).GetText(); !regexp.MustCompile(`^zone z2, (1[5-9]|2[0-2]) s old$`).MatchString(got) {
			t.Errorf("text %q", got)
		}
		f.Aggregator("aggregator-z2", "z2", "r1")
		f.offer(80 * time.Second)
		f.wantLoud("with the aggregator again", "")
	})
}

// The only host of a zone is missed too when it goes.
func TestAlertLastHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, limits(deny1000), []string{"z1", "z2"}, 100, 100)
		f.offer(time.Minute)
		f.wantLoud("at first", "")
		f.Stop("host-1")
		f.offer(20 * time.Second)
		f.wantLoud("without the only host", "FIRING HOST_LOST z2")
	})
}

// An alert that is muted stays in the list and says until when and by whom; the
// audit has the mute with its reason.
func TestAlertMuted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, limits("limit: {rps: 100000}; behavior: deny"), []string{"z1"}, 50)
		f.offer(settling)
		id := f.cap(10, 5*time.Minute)
		f.offer(10 * time.Second)
		mute := func(d time.Duration) error {
			_, err := f.alertService().MuteAlert(t.Context(), &grlv1.MuteAlertRequest{
				Rule: grlv1.AlertRule_ALERT_RULE_CAP_ENDING, Subject: id, DurationMs: d.Milliseconds(), Reason: "known",
			})
			return err
		}
		if err := mute(0); connect.CodeOf(err) != connect.CodeNotFound {
			t.Errorf("end of no mute: %v", err)
		}
		if err := mute(time.Hour); err != nil {
			t.Fatal(err)
		}
		a := f.alert(grlv1.AlertRule_ALERT_RULE_CAP_ENDING)
		if want := time.Now().Add(time.Hour).UnixMilli(); a.GetMutedUntilMs() != want || a.GetMutedBy() == "" || a.GetState() != grlv1.AlertState_ALERT_STATE_FIRING {
			t.Errorf("muted: %v, want until %d", a, want)
		}
		audit := grlv1connect.NewAuditServiceClient(f.Network.Client(t), "http://controller")
		entries, err := audit.ListAudit(t.Context(), &grlv1.ListAuditRequest{Action: "alert.mute"})
		if err != nil || len(entries.GetEntries()) != 1 {
			t.Fatalf("audit: %v, %v", entries, err)
		}
		if e := entries.GetEntries()[0]; e.GetReason() != "known" || e.GetSubjects()[0] != "alert cap_ending "+id {
			t.Errorf("audit entry %v", e)
		}
		if err := mute(0); err != nil {
			t.Fatal(err)
		}
		if a := f.alert(grlv1.AlertRule_ALERT_RULE_CAP_ENDING); a.GetMutedUntilMs() != 0 {
			t.Errorf("still muted: %v", a)
		}
	})
}

// Mutes that do not hold are refused, all faults at once.
func TestAlertMuteRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, limits(deny1000), nil)
		good := func() *grlv1.MuteAlertRequest {
			return &grlv1.MuteAlertRequest{Rule: grlv1.AlertRule_ALERT_RULE_OVER_LIMIT, Subject: "a/b", DurationMs: 3_600_000, Reason: "known"}
		}
		tests := []struct {
			name string
			edit func(*grlv1.MuteAlertRequest)
			want string
		}{
			{"no rule", func(r *grlv1.MuteAlertRequest) { r.Rule = 0 }, "rule: 0 is none"},
			{"another rule", func(r *grlv1.MuteAlertRequest) { r.Rule = 99 }, "rule: 99 is none"},
			{"too short", func(r *grlv1.MuteAlertRequest) { r.DurationMs = 59_999 }, "duration: 59999 ms is neither 0 nor from 1 minute to 24 h"},
			{"too long", func(r *grlv1.MuteAlertRequest) { r.DurationMs = 86_400_001 }, "duration: 86400001 ms is neither 0 nor from 1 minute to 24 h"},
			{"negative", func(r *grlv1.MuteAlertRequest) { r.DurationMs = math.MinInt64 }, fmt.Sprintf("duration: %d ms is neither 0 nor from 1 minute to 24 h", math.MinInt64)},
			{"no reason", func(r *grlv1.MuteAlertRequest) { r.Reason = "  " }, "reason: is empty"},
			{"a long reason", func(r *grlv1.MuteAlertRequest) { r.Reason = strings.Repeat("x", 1025) }, "reason: has 1025 bytes, at most 1024"},
			{"a reason of two lines", func(r *grlv1.MuteAlertRequest) { r.Reason = "a\nb" }, "reason: is more than one line, or has characters that cannot be seen"},
			{"a subject that is none", func(r *grlv1.MuteAlertRequest) { r.Subject = "a\x00b" }, "subject: is no name of at most 600 bytes"},
			{"all at once", func(r *grlv1.MuteAlertRequest) { r.Rule, r.DurationMs, r.Reason = 0, 1, "" }, "rule: 0 is none; duration: 1 ms is neither 0 nor from 1 minute to 24 h; reason: is empty"},
		}
		for _, tt := range tests {
			r := good()
			tt.edit(r)
			_, err := f.alertService().MuteAlert(t.Context(), r)
			if connect.CodeOf(err) != connect.CodeInvalidArgument || !strings.HasSuffix(err.Error(), tt.want) {
				t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
			}
		}
		if _, err := f.alertService().MuteAlert(t.Context(), good()); err != nil {
			t.Error(err)
		}
	})
}

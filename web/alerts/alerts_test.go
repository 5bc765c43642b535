package alerts_test

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"grl/proto/access"
	grlv1 "grl/proto/grl/v1"
	"grl/proto/grl/v1/grlv1connect"
	"grl/roles/rolestest"
	"grl/web/pagetest"
)

const limits = `service: payments
owner: team-payments
buckets:
  - name: writes
    match: {procedure: charges.v1.Charges/*}
    limit: {rps: 100}
    behavior: deny
`

var (
	viewer = access.Person{Name: "vi", Level: access.Viewer, By: "session", Session: "2"}
	editor = access.Person{Name: "ed", Level: access.Editor, By: "session", Session: "3"}
	tags   = regexp.MustCompile(`<[^>]*>`)
)

func plain(body string) string {
	return strings.Join(strings.Fields(html.UnescapeString(tags.ReplaceAllString(body, " "))), " ")
}

// shop is a fleet with a bucket that drops half of what it is offered.
type shop struct {
	*rolestest.Plane
	t testing.TB
}

func open(t testing.TB) *shop {
	p := rolestest.NewPlane(t, limits)
	p.Controller()
	p.Aggregator("a", "z1", "r1")
	host := p.Host("h", "z1", "r1", "payments", "a")
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Second / 200):
				host.Service("payments").Decide("checkout", "charges.v1.Charges/Create")
			}
		}
	}()
	t.Cleanup(func() { close(stop); <-ended })
	return &shop{p, t}
}

func (s *shop) get(who access.Person, target string, fragment bool) (status int, body, text string) {
	s.t.Helper()
	r, body := pagetest.Get(s.t, s.Pages(), who, target, fragment)
	return r.StatusCode, body, plain(body)
}

func (s *shop) mute(who access.Person, form url.Values) (*http.Response, string) {
	s.t.Helper()
	r, body := pagetest.Post(s.t, s.Pages(), who, "/alerts/mute", form)
	return r, plain(body)
}

func (s *shop) list() []*grlv1.Alert {
	s.t.Helper()
	answer, err := grlv1connect.NewAlertServiceClient(s.Network.Client(s.t), "http://controller").ListAlerts(s.t.Context(), &grlv1.ListAlertsRequest{})
	if err != nil {
		s.t.Fatal(err)
	}
	return answer.GetAlerts()
}

// TestPage: the page says of each rule what the API says, and what fires first.
func TestPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t)
		time.Sleep(10 * time.Second)
		status, body, text := s.get(pagetest.Admin, "/alerts", false)
		if status != http.StatusOK || len(body) > 300<<10 {
			t.Fatalf("status %d, %d bytes", status, len(body))
		}
		for _, want := range []string{
			"Pending Over limit payments/writes drops ", "> 1% for 5 min", "Quiet Host lost not since the start", "Quiet Directive stale", "Quiet Cap about to end",
			"Quiet Shadow would hurt", "Quiet RLC refused", "Quiet Audit broken", "Alerts are sent nowhere.",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("the page does not say %q", want)
			}
		}
		time.Sleep(6 * time.Minute)
		synctest.Wait()
		_, body, text = s.get(pagetest.Admin, "/alerts", true)
		if strings.Contains(body, "<html") || !strings.HasPrefix(strings.TrimSpace(body), "<span hidden data-title=\"1 alert firing · grl\"") {
			t.Errorf("to htmx: %.200s", body)
		}
		for _, a := range s.list() {
			if a.GetState() == grlv1.AlertState_ALERT_STATE_FIRING && !strings.Contains(text, "Firing Over limit "+a.GetText()) {
				t.Errorf("the page does not say %q: %s", a.GetText(), text)
			}
		}
		if !strings.Contains(body, `href="/bucket?name=payments%2Fwrites"`) || !strings.Contains(text, "Mute 1 h") {
			t.Errorf("no link to the bucket, or to mute: %s", body)
		}
	})
}

// TestMute: the form asks for a reason, is answered with 303, and the page it leads
// to reads back until when it is muted.
func TestMute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t)
		time.Sleep(6 * time.Minute)
		synctest.Wait()
		_, body, text := s.get(editor, "/alerts?rule=over_limit&subject=payments%2Fwrites", false)
		if !strings.Contains(body, `action="/alerts/mute"`) || !strings.Contains(text, "Mute Over limit payments/writes drops") {
			t.Errorf("no form: %s", text)
		}
		form := url.Values{"rule": {"over_limit"}, "subject": {"payments/writes"}, "duration": {"60"}, "reason": {""}}
		if r, text := s.mute(editor, form); r.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(text, "Not muted") || !strings.Contains(text, "Is empty.") {
			t.Errorf("without a reason: %d %s", r.StatusCode, text)
		}
		form.Set("reason", "<b>known</b>")
		for _, duration := range []string{"0", "-5", "x", "1441", "99999999999999999999"} {
			form.Set("duration", duration)
			r, text := s.mute(editor, form)
			if r.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(text, "Choose one of these.") {
				t.Errorf("for %q: %d %s", duration, r.StatusCode, text)
			}
		}
		form.Set("duration", "60")
		r, _ := s.mute(editor, form)
		if r.StatusCode != http.StatusSeeOther {
			t.Fatalf("status %d", r.StatusCode)
		}
		until := time.Now().Add(time.Hour).UTC().Format("2006-01-02 15:04 UTC")
		_, body, text = s.get(editor, r.Header.Get("Location"), false)
		for _, want := range []string{"Muted: Over limit of payments/writes It is not sent, and not counted, until " + until, "Muted Over limit", "by ed", "Unmute"} {
			if !strings.Contains(text, want) {
				t.Errorf("after: no %q in %s", want, text)
			}
		}
		if !strings.Contains(body, "<title>Alerts · grl</title>") {
			t.Error("the title counts what is muted")
		}
		// The way back.
		form = url.Values{"rule": {"over_limit"}, "subject": {"payments/writes"}, "end": {"yes"}, "reason": {"fixed"}}
		r, _ = s.mute(editor, form)
		if _, _, text = s.get(editor, r.Header.Get("Location"), false); !strings.Contains(text, "Not muted: Over limit of payments/writes") || !strings.Contains(text, "Firing Over limit") {
			t.Errorf("unmuted: %s", text)
		}
		if r, text := s.mute(editor, form); r.StatusCode != http.StatusNotFound || !strings.Contains(text, "it is not muted") {
			t.Errorf("unmuted again: %d %s", r.StatusCode, text)
		}
		form.Set("rule", "nonsense")
		if r, _ := s.mute(editor, form); r.StatusCode != http.StatusUnprocessableEntity {
			t.Errorf("another rule: %d", r.StatusCode)
		}
	})
}

// TestViewer: who may not mute sees no form and no button, and cannot mute.
func TestViewer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t)
		time.Sleep(6 * time.Minute)
		synctest.Wait()
		_, body, text := s.get(viewer, "/alerts?rule=over_limit&subject=payments%2Fwrites", false)
		if strings.Contains(body, "/alerts/mute") || strings.Contains(text, "Mute 1 h") || !strings.Contains(text, "you can look, not mute") || !strings.Contains(text, "Firing") {
			t.Errorf("a viewer sees %s", text)
		}
		form := url.Values{"rule": {"over_limit"}, "subject": {"payments/writes"}, "duration": {"60"}, "reason": {"x"}}
		if r, _ := s.mute(viewer, form); r.StatusCode != http.StatusForbidden {
			t.Errorf("a viewer mutes: %d", r.StatusCode)
		}
		if status, _, _ := s.get(viewer, "/alerts/rules", false); status != http.StatusOK {
			t.Errorf("rules for a viewer: %d", status)
		}
	})
}

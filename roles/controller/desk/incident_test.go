package desk_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"grl/limiter/limitsfile"
	"grl/roles/controller/desk"
	"grl/store/ledger"
)

func TestCaps(t *testing.T) {
	r := newRig(t)
	r.apply(file("payments", "web=100"), file("search", "web=1"))
	r.town.now["payments checkout "] = 1240
	request := desk.CapRequest{By: editor, Service: "payments", Caller: "checkout", LimitRPS: 781.2, For: 30 * time.Minute, Reason: "incident 7"}

	dry := request
	dry.DryRun = true
	placed, effect, err := r.PlaceCap(t.Context(), dry)
	if err != nil || placed.ID != "" || effect.Text != "would drop 37 % of checkout's 1,240 rps now" || math.Abs(effect.DropShare-0.37) > 1e-9 {
		t.Fatalf("dry run: %+v, %+v, %v", placed, effect, err)
	}
	placed, _, err = r.PlaceCap(t.Context(), request)
	if err != nil || placed.ID == "" || placed.Author != "ed" || placed.EndsAt.Sub(placed.PlacedAt) != 30*time.Minute {
		t.Fatalf("placed: %+v, %v", placed, err)
	}
	caps, err := r.Caps(t.Context(), "payments")
	if err != nil || len(caps) != 1 || caps[0].ID != placed.ID {
		t.Errorf("caps: %+v, %v", caps, err)
	}
	if caps, err := r.Caps(t.Context(), "search"); err != nil || len(caps) != 0 {
		t.Errorf("caps of another service: %+v, %v", caps, err)
	}
	request.Procedure = "nobody/Calls"
	if _, effect, err := r.PlaceCap(t.Context(), request); err != nil || effect.Text != "cannot tell what it would drop: no bucket counts just these requests" || effect.Known {
		t.Errorf("cap on nothing: %+v, %v", effect, err)
	}
	request.Service = "other"
	_, _, err = r.PlaceCap(t.Context(), request)
	want[*desk.DeniedError](t, err)
	request.Force, request.Service = true, "payments"
	_, _, err = r.PlaceCap(t.Context(), request)
	want[*desk.DeniedError](t, err)

	if _, err := r.LiftCap(t.Context(), viewer, placed.ID, ""); !errors.As(err, new(*desk.DeniedError)) {
		t.Errorf("lift by a viewer: %v", err)
	}
	if lifted, err := r.LiftCap(t.Context(), editor, placed.ID, "over"); err != nil || lifted.ID != placed.ID {
		t.Errorf("lift: %+v, %v", lifted, err)
	}
	if _, err := r.LiftCap(t.Context(), admin, placed.ID, ""); !errors.Is(err, desk.ErrNotFound) {
		t.Errorf("lift again: %v, want not found", err)
	}
}

func TestExtendCap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.apply(file("payments", "web=100"))
		placed, _, err := r.PlaceCap(t.Context(), desk.CapRequest{By: editor, Service: "payments", Caller: "app", LimitRPS: 1, For: time.Hour, Reason: "x"})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		for _, tt := range []struct {
			name   string
			by     desk.By
			id     string
			span   time.Duration
			reason string
			want   string // of the error
		}{
			{"below a second", editor, placed.ID, 999 * time.Millisecond, "", "duration: 999ms is not from 1s to 24h0m0s"},
			{"25 h", editor, placed.ID, 25 * time.Hour, "", "duration: 25h0m0s is not from 1s to 24h0m0s"},
			{"earlier than it ends", editor, placed.ID, 50 * time.Minute, "", "duration: cap 1 holds until 2000-01-01 01:00:00 UTC already, which is later: lift it to end it"},
			{"a reason that misleads", editor, placed.ID, time.Hour, "a\u202eb", "reason: has a control character"},
			{"not there", editor, "7", time.Hour, "", `cap "7": not found`},
			{"a viewer", viewer, placed.ID, time.Hour, "", "vi may not act on payments"},
		} {
			if _, err := r.ExtendCap(t.Context(), tt.by, tt.id, tt.span, tt.reason); err == nil || err.Error() != tt.want {
				t.Errorf("%s: %v, want %s", tt.name, err, tt.want)
			}
		}
		longer, err := r.ExtendCap(t.Context(), editor, placed.ID, 24*time.Hour, "not over yet")
		moved := placed
		moved.EndsAt = time.Now().Add(24 * time.Hour)
		if err != nil || !longer.EndsAt.Equal(moved.EndsAt) || longer.Reason != "x" || longer.PlacedAt != placed.PlacedAt {
			t.Errorf("ExtendCap = %+v, %v, want %+v", longer, err, moved)
		}
		entries, err := r.ledger.Audit(t.Context(), 0, 1, ledger.Filter{})
		if err != nil || len(entries) != 1 || entries[0].Action != "cap.extend" || entries[0].Reason != "not over yet" {
			t.Errorf("audit = %+v, %v", entries, err)
		}
		time.Sleep(24*time.Hour + time.Second)
		_, err = r.ExtendCap(t.Context(), editor, placed.ID, time.Hour, "")
		if want[*desk.InvalidError](t, err); !strings.Contains(err.Error(), "ended at 2000-01-02 00:10:00 UTC and ramps out: place a new one") {
			t.Errorf("error = %v", err)
		}
	})
}

// Who reads a reason must read what was written.
func TestReasonsThatMislead(t *testing.T) {
	r := newRig(t)
	for _, reason := range []string{"a\x1b[2J", "a\nb", "a\u202egnp.exe", "a\u2066b", "a\u200fb", "a\u2028b", "a\xffb"} {
		_, _, err := r.PlaceCap(t.Context(), desk.CapRequest{By: admin, Service: "payments", Caller: "app", LimitRPS: 1, For: time.Minute, Reason: reason})
		want[*desk.InvalidError](t, err)
	}
	if _, _, err := r.PlaceCap(t.Context(), desk.CapRequest{By: admin, Service: "payments", Caller: "app", LimitRPS: 1, For: time.Minute, Reason: "30 % über dem Ziel – ללא סיבה 👩‍🔧"}); err != nil {
		t.Error(err)
	}
}

func TestCapOverEverythingNeedsForce(t *testing.T) {
	r := newRig(t)
	r.town.now["payments  "] = 100
	for _, p := range []string{"", "*"} {
		request := desk.CapRequest{By: admin, Service: "payments", Caller: p, Procedure: p, Block: true, For: time.Minute, Reason: "x"}
		_, _, err := r.PlaceCap(t.Context(), request)
		want[*desk.GuardError](t, err)
		request.Force = true
		if _, _, err := r.PlaceCap(t.Context(), request); err != nil {
			t.Error(err)
		}
	}
	entries, err := r.ledger.Audit(t.Context(), 0, 9, ledger.Filter{Action: "cap.place"})
	if err != nil || len(entries) != 2 || !entries[0].Forced {
		t.Errorf("audit = %+v, %v", entries, err)
	}
}

func TestDisable(t *testing.T) {
	r := newRig(t)
	r.apply(file("payments", "web=100"), file("other", "web=1"))
	_, err := r.Disable(t.Context(), desk.SwitchRequest{By: editor, All: true, Reason: "x"})
	want[*desk.DeniedError](t, err)
	_, err = r.Disable(t.Context(), desk.SwitchRequest{By: editor, Service: "other", Reason: "x"})
	want[*desk.DeniedError](t, err)
	for _, bad := range []desk.SwitchRequest{{Reason: "x"}, {Service: "payments", All: true, Reason: "x"}, {Service: "payments"}} {
		bad.By = admin
		_, err = r.Disable(t.Context(), bad)
		want[*desk.InvalidError](t, err)
	}
	if _, err := r.Disable(t.Context(), desk.SwitchRequest{By: admin, Service: "paymnets", Reason: "x"}); !errors.Is(err, desk.ErrNotFound) {
		t.Errorf("disable a service that is not there: %v", err)
	}
	incident, err := r.Disable(t.Context(), desk.SwitchRequest{By: editor, Service: "payments", Reason: "wrong limit"})
	if err != nil || len(incident.Disabled) != 1 || incident.AllDisabled {
		t.Errorf("disable: %+v, %v", incident, err)
	}
	if incident, err = r.Disable(t.Context(), desk.SwitchRequest{By: admin, All: true, Reason: "x"}); err != nil || !incident.AllDisabled {
		t.Errorf("disable all: %+v, %v", incident, err)
	}
	if incident, err = r.Enable(t.Context(), desk.SwitchRequest{By: admin, All: true}); err != nil || incident.AllDisabled || len(incident.Disabled) != 1 {
		t.Errorf("enable all: %+v, %v", incident, err)
	}
	if incident, err = r.Enable(t.Context(), desk.SwitchRequest{By: editor, Service: "payments"}); err != nil || len(incident.Disabled) != 0 {
		t.Errorf("enable: %+v, %v", incident, err)
	}
}

// What is committed and not active is told apart from what is not done.
func TestSavedButNotActive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.town.stuck = true
		began := time.Now()
		_, err := r.Apply(t.Context(), desk.ApplyRequest{By: admin, Files: []limitsfile.Source{file("payments", "web=1")}})
		if e := want[*desk.PendingError](t, err); e.Revision != 1 || !strings.Contains(err.Error(), "saved as r1") {
			t.Errorf("error = %v", err)
		}
		if took := time.Since(began); took != 20*time.Second {
			t.Errorf("waited for %v", took)
		}
		r.wantLimits("payments/web=1")
	})
}

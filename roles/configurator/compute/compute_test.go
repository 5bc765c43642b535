package compute_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"grl/limiter"
	"grl/policy"
	"grl/policy/policyfile"
	grlv1 "grl/proto/grl/v1"
	"grl/roles/configurator/compute"
	"grl/roles/configurator/history"
)

var monday = time.Date(2026, 11, 30, 2, 0, 0, 0, time.UTC)

// spec reads a policy file.
func spec(t testing.TB, text string) *policy.Spec {
	t.Helper()
	s, err := policyfile.Parse("p.yaml", []byte("name: p\nmatch: {service: shop}\n"+text))
	if err != nil {
		t.Fatal(err)
	}
	return &s
}

// minutes is a series of whole days up to now, of what is offered at each minute.
func minutes(now time.Time, days int, offered func(at time.Time) float64) policy.Series {
	s := policy.Series{Start: now.Add(-time.Duration(days) * 24 * time.Hour), Step: time.Minute}
	for at := s.Start; at.Before(now); at = at.Add(s.Step) {
		s.RPS = append(s.RPS, offered(at))
	}
	return s
}

// wave is a day's curve between 200 and 1,000 rps, highest at 13:00.
func wave(at time.Time) float64 {
	hour := float64(at.Hour()) + float64(at.Minute())/60
	return 600 + 400*math.Cos(2*math.Pi*(hour-13)/24)
}

func bucket(limit float64) *limiter.Bucket {
	return &limiter.Bucket{Service: "shop", Name: "all", LimitRPS: limit, Behavior: limiter.Deny}
}

func nightly(now time.Time) compute.Cycle {
	return compute.Cycle{Now: now, Period: func(s *policy.Spec) time.Duration {
		if s.Kind == "forecast" {
			return time.Hour
		}
		return 24 * time.Hour
	}}
}

func of(s policy.Series) history.Bucket {
	return history.Bucket{Name: "shop/all", Units: []history.Unit{{Series: s}}}
}

func TestCompute(t *testing.T) {
	steady := minutes(monday, 28, wave)
	allow := bucket(2000)
	allow.Behavior = limiter.Allow
	shadowed := bucket(1300)
	shadowed.CandidateRPS = 1110
	tests := []struct {
		name    string
		bucket  *limiter.Bucket
		policy  string
		history history.Bucket
		want    grlv1.RunOutcome
		rps     float64 // of the limit after
		reason  string
	}{
		{"lowered, within a fifth", bucket(2000), "kind: peak\nmode: apply\n", of(steady), grlv1.RunOutcome_RUN_OUTCOME_APPLIED, 1600, "2,000 → 1,600 rps: the peak of the last 4 weeks, 997 rps"},
		{"raised", bucket(900), "kind: peak\nmode: apply\n", of(steady), grlv1.RunOutcome_RUN_OUTCOME_APPLIED, 1100, "buffer 1.10"},
		{"right as it is", bucket(1100), "kind: peak\nmode: apply\n", of(steady), grlv1.RunOutcome_RUN_OUTCOME_UNCHANGED, 1100, "1,100 rps stays"},
		{"proposed", bucket(900), "kind: peak\n", of(steady), grlv1.RunOutcome_RUN_OUTCOME_PROPOSED, 1100, "it would have dropped nothing of the history, the present one"},
		{"candidate", bucket(1300), "kind: peak\nmode: shadow\n", of(steady), grlv1.RunOutcome_RUN_OUTCOME_SHADOWED, 1300, "1,300 → 1,100 rps"},
		{"candidate that hardly moves", shadowed, "kind: peak\nmode: shadow\n", of(steady), grlv1.RunOutcome_RUN_OUTCOME_UNCHANGED, 1300, ""},
		{"bucket in shadow", allow, "kind: peak\nmode: shadow\n", of(steady), grlv1.RunOutcome_RUN_OUTCOME_SHADOWED, 1100, "2,000 → 1,100 rps"},
		{"young history", bucket(900), "kind: peak\nmode: apply\n", of(minutes(monday, 9, wave)), grlv1.RunOutcome_RUN_OUTCOME_PROPOSED, 1100, "proposed only, since there are 9 days of history and not 21"},
		{"broken history", bucket(900), "kind: peak\nmode: apply\n", history.Bucket{Name: "shop/all", Units: []history.Unit{{Refused: "coverage"}}}, grlv1.RunOutcome_RUN_OUTCOME_REFUSED, 0, "less than 80 %"},
		{"not to be lowered", bucket(2000), "kind: peak\nmode: apply\n", history.Bucket{Name: "shop/all", Units: []history.Unit{{Series: steady, NoLower: "own_drops"}}}, grlv1.RunOutcome_RUN_OUTCOME_UNCHANGED, 2000, "not lowered, since grl itself dropped"},
		{"never recorded", bucket(900), "kind: peak\nmode: apply\n", history.Bucket{Name: "shop/all"}, grlv1.RunOutcome_RUN_OUTCOME_REFUSED, 0, "nothing was ever recorded"},
		{"agreed", bucket(900), "kind: quota\nmode: apply\nquota: [{rps: 1234}]\n", of(steady), grlv1.RunOutcome_RUN_OUTCOME_APPLIED, 1234, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := compute.Work{Bucket: tt.bucket, Spec: spec(t, tt.policy)}
			r, m := nightly(monday).Compute(w, tt.history, compute.Memory{})
			if r.GetOutcome() != tt.want || r.GetAfter().GetRps() != tt.rps || !strings.Contains(r.GetReason(), tt.reason) {
				t.Errorf("%v, %v rps: %s\nwant %v, %v: …%s…", r.GetOutcome(), r.GetAfter().GetRps(), r.GetReason(), tt.want, tt.rps, tt.reason)
			}
			if m.ComputedAt != monday || m.Stale(w) {
				t.Errorf("memory = %+v, want that of this cycle", m)
			}
		})
	}
}

// However often a night's cycle runs, it takes one step down.
func TestOneStepDownANight(t *testing.T) {
	steady := minutes(monday.Add(72*time.Hour), 31, wave)
	b, m := bucket(4000), compute.Memory{}
	s := spec(t, "kind: peak\nmode: apply\n")
	for _, step := range []struct {
		after time.Duration
		want  float64 // rps
	}{
		{0, 3200},
		{time.Minute, 3200},
		{10 * time.Hour, 3200},
		{24 * time.Hour, 2560},
		{25 * time.Hour, 2560},
		{48 * time.Hour, 2048},
	} {
		now := monday.Add(step.after)
		var r *grlv1.RunResult
		r, m = nightly(now).Compute(compute.Work{Bucket: b, Spec: s}, of(steady.Between(now.Add(-28*24*time.Hour), now)), m)
		stored, err := m.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		if m, err = compute.ParseMemory(stored); err != nil {
			t.Fatal(err)
		}
		b = bucket(r.GetAfter().GetRps())
		if math.Abs(b.LimitRPS-step.want) > 0.02*step.want {
			t.Errorf("after %v: %v rps, want about %v: %s", step.after, b.LimitRPS, step.want, r.GetReason())
		}
	}
}

// A limit that people lowered by more than a step is not raised to where the step
// of the night would have ended.
func TestLoweredByPeople(t *testing.T) {
	steady := minutes(monday.Add(time.Hour), 28, wave)
	s := spec(t, "kind: peak\nmode: apply\nceiling: 1100\n")
	_, m := nightly(monday).Compute(compute.Work{Bucket: bucket(4000), Spec: s}, of(steady), compute.Memory{})
	r, _ := nightly(monday.Add(time.Hour)).Compute(compute.Work{Bucket: bucket(1200), Spec: s}, of(steady), m)
	if got := r.GetAfter().GetRps(); got > 1200 {
		t.Errorf("raised from 1,200 to %v: %s", got, r.GetReason())
	}
}

package compute_test

import (
	"testing"
	"time"

	grlv1 "grl/proto/grl/v1"
	"grl/roles/configurator/compute"
	"grl/roles/configurator/history"
)

func TestPromotion(t *testing.T) {
	const day = 24 * time.Hour
	tests := []struct {
		name      string
		candidate float64       // requests per second
		was       float64       // the candidate that memory has seen
		since     time.Duration // before now
		dropped   float64       // share that the candidate's own counts say
		noLower   string
		want      grlv1.RunOutcome
		rps       float64
	}{
		{"after two clean weeks", 1100, 1100, 16 * day, 0, "", grlv1.RunOutcome_RUN_OUTCOME_PROMOTED, 1100},
		{"one day too early", 1100, 1100, 14 * day, 0, "", grlv1.RunOutcome_RUN_OUTCOME_UNCHANGED, 1300},
		{"it would have dropped", 1100, 1100, 16 * day, 0.002, "", grlv1.RunOutcome_RUN_OUTCOME_UNCHANGED, 1300},
		{"the history says that it would have dropped", 800, 800, 16 * day, 0, "", grlv1.RunOutcome_RUN_OUTCOME_SHADOWED, 1300},
		{"it was lowered tonight", 1100, 1200, 16 * day, 0, "", grlv1.RunOutcome_RUN_OUTCOME_UNCHANGED, 1300},
		{"on history that may lower nothing", 1100, 1100, 16 * day, 0, "partial", grlv1.RunOutcome_RUN_OUTCOME_PROMOTED, 1300},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := bucket(1300)
			b.CandidateRPS = tt.candidate
			u := history.Unit{Series: minutes(monday, 28, wave), NoLower: tt.noLower}
			for at := monday.Truncate(day).Add(-28 * day); at.Before(monday); at = at.Add(day) {
				u.Days = append(u.Days, history.Day{Start: at, Offered: 1e6, CandidateDropped: tt.dropped * 1e6, Coverage: 1})
			}
			w := compute.Work{Bucket: b, Spec: spec(t, "kind: peak\nmode: shadow\npromote_after: 14d\n")}
			// What the first cycle remembers of the bucket, as of a while ago.
			_, m := nightly(monday.Add(-day)).Compute(w, of(u.Series), compute.Memory{})
			m.CandidateSince, m.CandidateRPS = monday.Add(-tt.since), tt.was
			r, _ := nightly(monday).Compute(w, history.Bucket{Name: "shop/all", Units: []history.Unit{u}}, m)
			if r.GetOutcome() != tt.want || r.GetAfter().GetRps() != tt.rps {
				t.Errorf("%v, %v rps: %s\nwant %v, %v", r.GetOutcome(), r.GetAfter().GetRps(), r.GetReason(), tt.want, tt.rps)
			}
		})
	}
}

// What a clock wrote that was ahead puts nothing off.
func TestMemoryOfTheFuture(t *testing.T) {
	ahead := compute.Memory{ComputedAt: monday.Add(365 * 24 * time.Hour), CandidateSince: monday.Add(time.Hour)}
	if m := ahead.At(monday); !m.ComputedAt.IsZero() || !m.CandidateSince.IsZero() {
		t.Errorf("%+v, want neither", m)
	}
	if m := (compute.Memory{ComputedAt: monday.Add(time.Minute)}).At(monday); m.ComputedAt.IsZero() {
		t.Error("clocks that differ by a minute count as wrong")
	}
}

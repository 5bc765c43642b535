package desk_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"grl/limiter/limitsfile"
	"grl/policy/guard"
	"grl/roles/controller/desk"
	"grl/store/ledger"
)

func needed(findings []guard.Finding) []guard.Rail {
	var rails []guard.Rail
	for _, f := range findings {
		if f.NeedsForce {
			rails = append(rails, f.Rail)
		}
	}
	return rails
}

func TestRailsNeedForce(t *testing.T) {
	r := newRig(t)
	r.apply(file("payments", "web=1000", "app=50"))
	r.town.history["payments/web"] = flat(600, 900)
	files := []limitsfile.Source{file("payments", "web=400", "app=50")}

	_, err := r.Apply(t.Context(), desk.ApplyRequest{By: admin, Files: files})
	findings := want[*desk.GuardError](t, err).Findings
	if got := needed(findings); !slices.Equal(got, []guard.Rail{guard.BelowPeak, guard.PredictedDrops}) {
		t.Errorf("rails = %v of %+v", got, findings)
	}
	if !strings.Contains(err.Error(), "payments/web: limit of 400 rps is below half of the highest minute of the last 7 days, 900 rps") {
		t.Errorf("error = %q", err)
	}
	r.wantLimits("payments/app=50 payments/web=1,000")
	if out := r.must(r.Apply(t.Context(), desk.ApplyRequest{By: admin, Files: files, DryRun: true})); len(needed(out.Findings)) != 2 {
		t.Errorf("dry run: findings %+v", out.Findings)
	}
	_, err = r.Apply(t.Context(), desk.ApplyRequest{By: admin, Files: files, Force: true})
	want[*desk.InvalidError](t, err) // no reason
	_, err = r.Apply(t.Context(), desk.ApplyRequest{By: editor, Files: files, Force: true, Reason: "I know"})
	want[*desk.DeniedError](t, err)
	out := r.must(r.Apply(t.Context(), desk.ApplyRequest{By: admin, Files: files, Force: true, Reason: "half of it moved"}))
	if share := out.Findings[1].DropShare; math.Abs(share-1./3) > 0.001 {
		t.Errorf("predicted share = %v, want a third", share)
	}
	entries, err := r.ledger.Audit(t.Context(), 0, 1, ledger.Filter{Action: "apply"})
	if err != nil || !entries[0].Forced || entries[0].Reason != "half of it moved" {
		t.Errorf("audit = %+v, %v; want the force and the reason", entries, err)
	}
}

func TestPromote(t *testing.T) {
	r := newRig(t)
	r.apply(file("payments", "web=~1000", "app=~50"))
	r.town.history["payments/web"] = flat(600)
	r.town.history["payments/app"] = flat(60)
	out := r.must(r.Promote(t.Context(), desk.PromoteRequest{By: editor, Bucket: "payments/web"}))
	if len(out.Changes) != 1 || len(out.Findings) != 1 || out.Findings[0].NeedsForce || !strings.Contains(out.Findings[0].Text, "would have dropped 0 % of what was offered") {
		t.Errorf("outcome = %+v", out)
	}
	_, err := r.Promote(t.Context(), desk.PromoteRequest{By: editor, Bucket: "payments/app"})
	if f := want[*desk.GuardError](t, err).Findings; len(f) != 1 || f[0].Rail != guard.PredictedDrops {
		t.Errorf("findings = %+v, want the predicted drops", f)
	}
	r.wantLimits("payments/app=~50 payments/web=1,000")
	_, err = r.Promote(t.Context(), desk.PromoteRequest{By: editor, Bucket: "payments/web"})
	want[*desk.InvalidError](t, err)
	for _, name := range []string{"payments/none", "none/web"} {
		if _, err := r.Promote(t.Context(), desk.PromoteRequest{By: admin, Bucket: name}); err == nil || !strings.Contains(err.Error(), "not found") {
			t.Errorf("promote %s: %v, want not found", name, err)
		}
	}
}

// Who promotes looked at a revision: a bucket that was changed since is a
// conflict, one whose neighbours were is none.
func TestPromoteSinceBase(t *testing.T) {
	r := newRig(t)
	base := r.apply(file("payments", "web=~1000", "app=~50")).Revision.Number
	r.town.history["payments/web"] = flat(600)
	r.apply(file("payments", "web=~1000", "app=~60"))
	later := base + 5
	_, err := r.Promote(t.Context(), desk.PromoteRequest{By: admin, Bucket: "payments/web", Base: &later})
	want[*desk.InvalidError](t, err)
	_, err = r.Promote(t.Context(), desk.PromoteRequest{By: editor, Bucket: "payments/app", Base: &base})
	c := want[*desk.ConflictError](t, err).Conflicts
	if len(c) != 1 || c[0].Bucket != "payments/app" || c[0].Revision.Number != base+1 ||
		!strings.Contains(c[0].BaseText, "rps: 50") || !strings.Contains(c[0].TheirText, "rps: 60") || !strings.Contains(c[0].OurText, "behavior: deny") {
		t.Errorf("conflicts = %+v", c)
	}
	r.must(r.Promote(t.Context(), desk.PromoteRequest{By: editor, Bucket: "payments/web", Base: &base}))
	r.wantLimits("payments/app=~60 payments/web=1,000")
	r.apply(file("payments", "web=1000"))
	_, err = r.Promote(t.Context(), desk.PromoteRequest{By: editor, Bucket: "payments/app", Base: &base})
	if c := want[*desk.ConflictError](t, err).Conflicts; c[0].TheirText != "" {
		t.Errorf("a bucket that is gone: %+v", c)
	}
}

func TestPromoteCandidate(t *testing.T) {
	r := newRig(t)
	r.apply(limitsfile.Source{Name: "p", Data: []byte("service: payments\nbuckets:\n  - {name: web, limit: {rps: 1000}, candidate: {rps: 700}, behavior: deny}\n")})
	r.town.history["payments/web"] = flat(600)
	out := r.must(r.Promote(t.Context(), desk.PromoteRequest{By: admin, Bucket: "payments/web"}))
	if after := out.Changes[0].After; !strings.Contains(after, "limit: {rps: 700}") || strings.Contains(after, "candidate") {
		t.Errorf("promoted to %q", after)
	}
}

// A candidate takes the place of the limits of all hours.
func TestPromoteCandidateOfHours(t *testing.T) {
	r := newRig(t)
	hours := strings.Repeat("1000, ", 23) + "1000"
	r.apply(limitsfile.Source{Name: "p", Data: []byte("service: payments\nbuckets:\n  - {name: web, limit: {rps: 1000, hourly: [" + hours + "], time_zone: Europe/Berlin}, candidate: {rps: 700}, behavior: deny}\n")})
	r.town.history["payments/web"] = flat(600)
	out := r.must(r.Promote(t.Context(), desk.PromoteRequest{By: admin, Bucket: "payments/web"}))
	if after := out.Changes[0].After; !strings.Contains(after, "limit: {rps: 700}\n") {
		t.Errorf("promoted to %q", after)
	}
}

func TestRightsOfEditors(t *testing.T) {
	r := newRig(t)
	r.apply(file("payments", "web=100"), file("search", "web=10"), file("other", "web=1"))
	apply := func(by desk.By, files ...limitsfile.Source) error {
		_, err := r.Apply(t.Context(), desk.ApplyRequest{By: by, Files: files})
		return err
	}
	if err := apply(editor, file("payments", "web=110"), file("search", "web=11"), file("other", "web=1")); err != nil {
		t.Errorf("own services, and one that does not change: %v", err)
	}
	want[*desk.DeniedError](t, apply(editor, file("payments", "web=120"), file("other", "web=2")))
	want[*desk.DeniedError](t, apply(viewer, file("payments", "web=120")))
	// Nobody takes a service over by writing another owner into its file.
	taken := file("other", "web=2")
	taken.Data = []byte(strings.Replace(string(taken.Data), "team-other", "team-search", 1))
	want[*desk.DeniedError](t, apply(editor, taken))
	given := file("search", "web=2")
	given.Data = []byte(strings.Replace(string(given.Data), "team-search", "team-other", 1))
	want[*desk.DeniedError](t, apply(editor, given))
	_, err := r.Apply(t.Context(), desk.ApplyRequest{By: editor, Files: []limitsfile.Source{file("payments", "web=110")}, Prune: true})
	want[*desk.DeniedError](t, err)
	_, err = r.Rollback(t.Context(), desk.RollbackRequest{By: editor, Revision: 0, Reason: "x"})
	want[*desk.DeniedError](t, err)
	r.wantLimits("other/web=1 payments/web=110 search/web=11")

	entries, err := r.ledger.Audit(t.Context(), 0, 20, ledger.Filter{Actor: "ed", Action: "refused.apply"})
	if err != nil || len(entries) != 1 || !slices.Equal(entries[0].Subjects, []string{"other"}) {
		t.Errorf("audit of denials: %+v, %v; want the first of a minute", entries, err)
	}
}

// Files that change nothing do not say, for those of others, that later edits
// were seen.
func TestForeignBaseStays(t *testing.T) {
	for _, prune := range []bool{false, true} {
		r := newRig(t)
		r.apply(file("payments", "web=100"), file("other", "web=1", "app=~50"))
		r.must(r.Promote(t.Context(), desk.PromoteRequest{By: admin, Bucket: "other/app"}))
		r.must(r.Apply(t.Context(), desk.ApplyRequest{
			By: editor, Files: []limitsfile.Source{file("payments", "web=110"), file("other", "web=1", "app=50")}, Prune: prune,
		}))
		out := r.apply(file("other", "web=1", "app=~50"))
		if out.Changed || len(out.Kept) != 1 {
			t.Errorf("prune %v: files of before the edit: %+v, want the edit kept", prune, out)
		}
		r.wantLimits("other/app=50 other/web=1 payments/web=110")
	}
}

// many returns buckets b0=rps to bN-1=rps.
func many(n int, rps string) []string {
	var buckets []string
	for i := range n {
		buckets = append(buckets, fmt.Sprintf("b%d=%s", i, rps))
	}
	return buckets
}

func TestLargeChangesGoZoneByZone(t *testing.T) {
	r := newRig(t)
	r.town.zones = []string{"a", "b", "c"}
	if out := r.apply(file("search", "web=1")); out.Rollout != nil {
		t.Errorf("the first configuration: %+v, want at once", out.Rollout)
	}
	first := r.apply(file("payments", many(200, "100")...))
	if first.Rollout == nil || !slices.Equal(first.Rollout.Reached, []string{"a"}) || !slices.Equal(first.Waiting, []string{"b", "c"}) || first.Rollout.From != 1 {
		t.Fatalf("rollout = %+v, waiting %v", first.Rollout, first.Waiting)
	}
	_, err := r.Apply(t.Context(), desk.ApplyRequest{By: admin, Files: []limitsfile.Source{file("search", "web=2")}})
	if text := want[*desk.RolloutError](t, err).Error(); !strings.Contains(text, "rollout of r2 is under way and has reached a") {
		t.Errorf("error = %q", text)
	}
	_, err = r.FinishRollout(t.Context(), desk.FinishRequest{By: editor, Reason: "x"})
	want[*desk.DeniedError](t, err)
	done, err := r.FinishRollout(t.Context(), desk.FinishRequest{By: admin, Reason: "looks well"})
	if err != nil || done.State != ledger.RolloutDone || !slices.Equal(done.Reached, []string{"a", "b", "c"}) {
		t.Fatalf("finished: %+v, %v", done, err)
	}
	if _, err := r.FinishRollout(t.Context(), desk.FinishRequest{By: admin, Reason: "again"}); err == nil {
		t.Error("finished a rollout that was done")
	}
	small := append(many(10, "110"), many(200, "100")[10:]...)
	if out := r.apply(file("payments", small...)); out.Rollout != nil {
		t.Errorf("10 buckets: %+v, want at once", out.Rollout)
	}
	large := append(many(11, "120"), many(200, "100")[11:]...)
	if out := r.must(r.Apply(t.Context(), desk.ApplyRequest{By: admin, Files: []limitsfile.Source{file("payments", large...)}, Now: true, Force: true, Reason: "now"})); out.Rollout != nil {
		t.Errorf("now: %+v, want at once", out.Rollout)
	}
	larger := append(many(11, "130"), many(200, "100")[11:]...)
	if out := r.apply(file("payments", larger...)); out.Rollout == nil || out.Rollout.From != 4 {
		t.Errorf("11 buckets: %+v, want zone by zone from r4", out.Rollout)
	}
	// The way back is free of rails, and ends the rollout.
	r.town.history["payments/b0"] = flat(1000)
	out := r.must(r.Rollback(t.Context(), desk.RollbackRequest{By: admin, Revision: 4, Reason: "drops"}))
	if out.Rollout != nil || out.Revision.Number != 6 {
		t.Errorf("rollback: %+v", out)
	}
	state, err := r.ledger.State(t.Context())
	if err != nil || state.Rollout.State != "" {
		t.Errorf("rollout after the rollback: %+v, %v; want none", state.Rollout, err)
	}
}

func TestForcedChangesGoZoneByZone(t *testing.T) {
	r := newRig(t)
	r.town.zones = []string{"a", "b"}
	r.apply(file("payments", "web=100"))
	out := r.must(r.Apply(t.Context(), desk.ApplyRequest{By: admin, Files: []limitsfile.Source{file("payments", "web=1000")}, Force: true, Reason: "grown"}))
	if out.Rollout == nil {
		t.Error("a forced change went everywhere at once")
	}
}

// A rollout that stopped by itself was taken back: nothing waits for it.
func TestStoppedRolloutKeepsNobodyOut(t *testing.T) {
	r := newRig(t)
	r.town.zones = []string{"a", "b"}
	r.apply(file("payments", "web=100"))
	out := r.must(r.Apply(t.Context(), desk.ApplyRequest{By: admin, Files: []limitsfile.Source{file("payments", "web=1000")}, Force: true, Reason: "grown"}))
	stopped := *out.Rollout
	stopped.State, stopped.Reason = ledger.RolloutStopped, "dropped 9 %"
	documents, err := r.ledger.Documents(t.Context(), stopped.From)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.ledger.Apply(t.Context(), stopped.Revision, ledger.Change{
		Act:    ledger.Act{Actor: "rollout", At: out.Rollout.StartedAt},
		Action: "rollout.stopped", Documents: documents, Rollout: &stopped,
	}); err != nil {
		t.Fatal(err)
	}
	r.wantLimits("payments/web=100")
	_, err = r.FinishRollout(t.Context(), desk.FinishRequest{By: admin, Reason: "x"})
	if !errors.Is(err, desk.ErrNotFound) {
		t.Errorf("finishing it: %v, want not found", err)
	}
	// Who applies again says that they have seen it.
	again := desk.ApplyRequest{By: admin, Files: []limitsfile.Source{file("payments", "web=110")}}
	_, err = r.Apply(t.Context(), again)
	want[*desk.ConflictError](t, err)
	seen := uint64(3)
	again.Base = &seen
	if out := r.must(r.Apply(t.Context(), again)); out.Rollout != nil {
		t.Errorf("a small change: %+v, want at once", out.Rollout)
	}
}

func TestRollback(t *testing.T) {
	r := newRig(t)
	r.apply(file("payments", "web=100"))
	r.apply(file("payments", "web=200"))
	_, err := r.Rollback(t.Context(), desk.RollbackRequest{By: admin, Revision: 1})
	want[*desk.InvalidError](t, err)
	if _, err := r.Rollback(t.Context(), desk.RollbackRequest{By: admin, Revision: 9, Reason: "x"}); err == nil {
		t.Error("rolled back to a revision that is not there")
	}
	out := r.must(r.Rollback(t.Context(), desk.RollbackRequest{By: admin, Revision: 1, Reason: "too much"}))
	if out.Revision.Number != 3 || len(out.Changes) != 1 || out.Revision.Reason != "too much" {
		t.Errorf("rollback: %+v", out)
	}
	r.wantLimits("payments/web=100")
	if out := r.must(r.Rollback(t.Context(), desk.RollbackRequest{By: admin, Revision: 1, Reason: "again"})); out.Changed {
		t.Errorf("rollback to the same: %+v", out)
	}
	r.apply(file("payments", "web=200")) // the files say what they said: the rollback stays
	r.wantLimits("payments/web=100")
}

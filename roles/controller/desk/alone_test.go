package desk_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"grl/limiter/limitsfile"
	"grl/roles/controller/desk"
	"grl/store/ledger"
)

// undo undoes a revision alone, as admin.
func (r *rig) undo(revision uint64) (desk.Outcome, error) {
	return r.Rollback(r.Context(), desk.RollbackRequest{By: admin, Revision: revision, Alone: true, Force: true, Reason: "wrong"})
}

// TestUndoesOneRevision: what was changed since elsewhere stays; what one revision
// added goes.
func TestUndoesOneRevision(t *testing.T) {
	r := newRig(t)
	r.apply(file("payments", "web=100", "app=100"))
	r.apply(file("payments", "web=200", "app=100"))                        // r2
	r.apply(file("payments", "web=200", "app=120"), file("search", "q=5")) // r3
	dry, err := r.Rollback(t.Context(), desk.RollbackRequest{By: admin, Revision: 2, Alone: true, Reason: "x", DryRun: true})
	if r.must(dry, err); !dry.Changed || dry.Revision.Number != 3 || len(dry.Changes) != 1 || dry.Changes[0].Bucket != "payments/web" {
		t.Errorf("dry run: %+v", dry)
	}
	r.wantLimits("payments/app=120 payments/web=200 search/q=5")
	if out := r.must(r.undo(2)); out.Revision.Number != 4 || out.Revision.Reason != "wrong" {
		t.Errorf("undone: %+v", out)
	}
	r.wantLimits("payments/app=120 payments/web=100 search/q=5")
	if out := r.must(r.undo(2)); out.Changed {
		t.Errorf("undone again: %+v", out)
	}
	r.must(r.undo(3))
	r.wantLimits("payments/app=100 payments/web=100")
	r.must(r.undo(5)) // the last one: what it took away is back
	r.wantLimits("payments/app=120 payments/web=100 search/q=5")
}

// TestUndoConflicts: a bucket that was changed since is not changed over the head of
// whoever did.
func TestUndoConflicts(t *testing.T) {
	r := newRig(t)
	r.apply(file("payments", "web=100", "app=100"))
	r.apply(file("payments", "web=110", "app=110"))
	r.apply(file("payments", "web=120", "app=110"))
	_, err := r.undo(2)
	c := want[*desk.ConflictError](t, err).Conflicts
	if len(c) != 1 || c[0].Bucket != "payments/web" || c[0].Base != 2 || c[0].Revision.Number != 3 || c[0].OurText == c[0].TheirText || c[0].BaseText == c[0].OurText {
		t.Errorf("conflicts %+v", c)
	}
	r.wantLimits("payments/app=110 payments/web=120")
	if _, err := r.undo(0); err == nil {
		t.Error("undid revision 0")
	}
	if _, err := r.undo(9); err == nil {
		t.Error("undid a revision that is not there")
	}
	_, err = r.Rollback(t.Context(), desk.RollbackRequest{By: viewer, Revision: 3, Alone: true, Reason: "x"})
	want[*desk.DeniedError](t, err)
	_, err = r.Rollback(t.Context(), desk.RollbackRequest{By: admin, Revision: 3, Alone: true})
	want[*desk.InvalidError](t, err)
}

// TestUndoAndRollouts: one goes on in peace unless it is its own revision that is
// undone.
func TestUndoAndRollouts(t *testing.T) {
	r := newRig(t)
	r.town.zones = []string{"a", "b"}
	r.apply(file("payments", "web=100"), file("search", "q=5"))
	r.apply(file("payments", "web=100"), file("search", "q=6"))
	out := r.must(r.Apply(t.Context(), desk.ApplyRequest{By: admin, Files: []limitsfile.Source{file("payments", "web=1000")}, Force: true, Reason: "grown"}))
	if out.Rollout == nil {
		t.Fatal("no rollout")
	}
	_, err := r.undo(2)
	want[*desk.RolloutError](t, err)
	r.must(r.undo(3))
	state, err := r.ledger.State(t.Context())
	if err != nil || state.Rollout.State != "" {
		t.Errorf("rollout %+v, %v; want none", state.Rollout, err)
	}
	r.wantLimits("payments/web=100 search/q=6")
}

// TestUndoOfTheLast is a roll back to the one before, whatever that was.
func TestUndoOfTheLast(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	r := newRig(t)
	names := []string{"a", "b", "c", "d"}
	for range 30 {
		before := r.limits()
		var buckets []string
		for _, name := range names {
			if random.IntN(4) > 0 {
				buckets = append(buckets, fmt.Sprintf("%s=%d", name, 100+random.IntN(20)))
			}
		}
		base := r.head()
		out := r.must(r.Apply(t.Context(), desk.ApplyRequest{By: admin, Files: []limitsfile.Source{file("payments", buckets...)}, Base: &base, Force: true, Reason: "x", Now: true}))
		after := r.limits()
		if !out.Changed {
			continue
		}
		if random.IntN(2) > 0 {
			continue // goes on from here
		}
		r.must(r.undo(out.Revision.Number)) // of many buckets, so by force
		if got := r.limits(); got != before {
			t.Fatalf("%q, undone %q, is %q", before, after, got)
		}
	}
}

func (r *rig) head() uint64 {
	r.Helper()
	head, err := r.ledger.Head(r.Context())
	if err != nil {
		r.Fatal(err)
	}
	return head.Number
}

// TestRefusalsAreInTheAudit: what a guard rail refused is there with what it would
// have changed and why not, once a minute at most; a dry run is not.
func TestRefusalsAreInTheAudit(t *testing.T) {
	r := newRig(t)
	r.apply(file("payments", "web=1000"))
	r.town.history["payments/web"] = flat(1000)
	refuse := func(dry bool) {
		t.Helper()
		_, err := r.Apply(t.Context(), desk.ApplyRequest{By: editor, Files: []limitsfile.Source{file("payments", "web=100")}, DryRun: dry, Reason: "less"})
		if !dry {
			want[*desk.GuardError](t, err)
		}
	}
	refuse(true)
	refuse(false)
	refuse(false)
	entries, err := r.ledger.Audit(t.Context(), 0, 10, ledger.Filter{Action: "refused.apply"})
	if err != nil || len(entries) != 1 {
		t.Fatalf("%d entries, %v; want 1", len(entries), err)
	}
	e := entries[0]
	if e.Actor != "ed" || e.Reason != "less" || len(e.Subjects) != 1 || e.Subjects[0] != "payments/web" || e.Revision != 0 || e.Forced {
		t.Errorf("entry %+v", e)
	}
	if !strings.Contains(e.Before, "rps: 1000") || !strings.HasPrefix(e.After, "# refused: payments/web ") || !strings.Contains(e.After, "\n# payments/web\n") || !strings.Contains(e.After, "rps: 100}") {
		t.Errorf("before %q, after %q", e.Before, e.After)
	}
	r.wantLimits("payments/web=1,000")
}

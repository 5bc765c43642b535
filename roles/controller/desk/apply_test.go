package desk_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"grl/limiter/limitsfile"
	"grl/roles/controller/desk"
	"grl/store/ledger"
)

func TestApply(t *testing.T) {
	r := newRig(t)
	out := r.apply(file("payments", "web=100", "app=50"), file("search", "web=10"))
	if !out.Changed || out.Revision.Number != 1 || len(out.Changes) != 5 || len(out.Findings) != 0 {
		t.Errorf("first apply: %+v, want revision 1 with 5 items and no findings", out)
	}
	if c := out.Changes[1]; c.Kind != desk.Added || c.Bucket != "payments/app" || c.After != "name: app\nmatch: {caller: app}\nlimit: {rps: 50}\nbehavior: deny\n" {
		t.Errorf("change = %+v", c)
	}
	if out := r.apply(file("payments", "web=100", "app=50"), file("search", "web=10")); out.Changed || out.Revision.Number != 1 {
		t.Errorf("the same files again: %+v, want nothing changed", out)
	}
	out = r.apply(file("payments", "web=120", "app=50"))
	if len(out.Changes) != 1 || out.Changes[0].Kind != desk.Changed || !strings.Contains(out.Changes[0].Before, "rps: 100") {
		t.Errorf("change of one bucket: %+v", out.Changes)
	}
	r.wantLimits("payments/app=50 payments/web=120 search/web=10")

	entries, err := r.ledger.Audit(t.Context(), 0, 10, ledger.Filter{})
	if err != nil || len(entries) != 2 {
		t.Fatalf("audit has %d entries, %v; want one for each change", len(entries), err)
	}
	e := entries[0]
	if e.Actor != "ada" || e.Action != "apply" || !slices.Equal(e.Subjects, []string{"payments/web"}) || e.From != "127.0.0.1" || e.RequestID != "q1" ||
		!strings.Contains(e.Before, "rps: 100") || !strings.Contains(e.After, "rps: 120") || e.Revision != 2 {
		t.Errorf("entry = %+v", e)
	}
}

func TestDryRunChangesNothing(t *testing.T) {
	r := newRig(t)
	out := r.must(r.Apply(t.Context(), desk.ApplyRequest{By: admin, Files: []limitsfile.Source{file("payments", "web=1")}, DryRun: true}))
	if !out.Changed || out.Revision.Number != 0 || len(out.Changes) != 2 {
		t.Errorf("dry run: %+v, want what it would change", out)
	}
	r.wantLimits("")
}

func TestPrune(t *testing.T) {
	r := newRig(t)
	r.apply(file("payments", "web=100"), file("search", "web=10"))
	r.apply(file("payments", "web=110"))
	r.wantLimits("payments/web=110 search/web=10")
	out := r.must(r.Apply(t.Context(), desk.ApplyRequest{By: admin, Files: []limitsfile.Source{file("payments", "web=110")}, Prune: true}))
	if len(out.Changes) != 2 || out.Changes[0].Kind != desk.Removed {
		t.Errorf("prune: %+v, want the service and its bucket removed", out.Changes)
	}
	r.wantLimits("payments/web=110")
}

// Later edits in other buckets stay, whether the files change or not.
func TestLaterEditsStay(t *testing.T) {
	r := newRig(t)
	r.apply(file("payments", "web=100", "app=~50"))
	r.must(r.Promote(t.Context(), desk.PromoteRequest{By: admin, Bucket: "payments/app"}))
	r.wantLimits("payments/app=50 payments/web=100")

	out := r.apply(file("payments", "web=100", "app=~50"))
	if out.Changed || len(out.Kept) != 1 || out.Kept[0].Bucket != "payments/app" || out.Kept[0].Revision.Number != 2 {
		t.Errorf("unchanged files: %+v, want the later edit kept and named", out)
	}
	for _, web := range []string{"110", "120", "130"} {
		r.apply(file("payments", "web="+web, "app=~50"))
		r.wantLimits("payments/app=50 payments/web=" + web)
	}
	_, err := r.Apply(t.Context(), desk.ApplyRequest{By: admin, Files: []limitsfile.Source{file("payments", "web=130", "app=~60")}})
	conflicts := want[*desk.ConflictError](t, err).Conflicts
	if len(conflicts) != 1 || conflicts[0].Bucket != "payments/app" || conflicts[0].Revision.Number != 2 || !strings.Contains(conflicts[0].OurText, "60") {
		t.Errorf("conflicts = %+v", conflicts)
	}
	head := uint64(5)
	r.must(r.Apply(t.Context(), desk.ApplyRequest{By: admin, Files: []limitsfile.Source{file("payments", "web=130", "app=~60")}, Base: &head}))
	r.wantLimits("payments/app=~60 payments/web=130")
	r.apply(file("payments", "web=140", "app=~70")) // nothing is owed any more
	r.wantLimits("payments/app=~70 payments/web=140")
}

// An edit of one bucket, as the dashboard makes it, is not what anybody's files
// say: files that are older do not undo it.
func TestEditIsNotTheBaseOfFiles(t *testing.T) {
	r := newRig(t)
	r.apply(file("payments", "web=100", "app=50"))
	head := uint64(1)
	edit := desk.ApplyRequest{By: admin, Edit: true, Base: &head, Files: []limitsfile.Source{file("payments", "web=110", "app=50", "new=5")}}
	r.must(r.Apply(t.Context(), edit))
	r.wantLimits("payments/app=50 payments/new=5 payments/web=110")

	out := r.apply(file("payments", "web=100", "app=60"))
	r.wantLimits("payments/app=60 payments/new=5 payments/web=110")
	if len(out.Kept) != 2 || out.Kept[1].Bucket != "payments/web" || out.Kept[1].Revision.Number != 2 {
		t.Errorf("older files: %+v, want the edits kept and named", out.Kept)
	}
	_, err := r.Apply(t.Context(), desk.ApplyRequest{By: admin, Files: []limitsfile.Source{file("payments", "web=90", "app=60")}})
	if conflicts := want[*desk.ConflictError](t, err).Conflicts; len(conflicts) != 1 || conflicts[0].Bucket != "payments/web" {
		t.Errorf("conflicts = %+v, want the edited bucket", conflicts)
	}
	edit.Base = nil
	_, err = r.Apply(t.Context(), edit)
	want[*desk.InvalidError](t, err)
}

func TestConflictNamesBothChanges(t *testing.T) {
	r := newRig(t)
	r.apply(file("payments", "web=100", "app=50", "old=5"))
	base := uint64(1)
	other := admin
	other.Person.Name = "bob"
	r.must(r.Apply(t.Context(), desk.ApplyRequest{By: other, Reason: "black friday", Files: []limitsfile.Source{file("payments", "web=120", "app=50")}}))
	r.apply(file("search", "web=1"))

	_, err := r.Apply(t.Context(), desk.ApplyRequest{By: admin, Base: &base, Files: []limitsfile.Source{file("payments", "web=90", "app=60", "old=6")}})
	conflicts := want[*desk.ConflictError](t, err).Conflicts
	if len(conflicts) != 2 || conflicts[0].Bucket != "payments/old" || conflicts[1].Bucket != "payments/web" {
		t.Fatalf("conflicts = %+v, want payments/old and payments/web", conflicts)
	}
	c := conflicts[1]
	if c.Base != 1 || c.Revision.Number != 2 || c.Revision.Author != "bob" || c.Revision.Reason != "black friday" || c.Revision.At.IsZero() ||
		!strings.Contains(c.BaseText, "100") || !strings.Contains(c.TheirText, "120") || !strings.Contains(c.OurText, "90") {
		t.Errorf("conflict = %+v", c)
	}
	if !strings.Contains(err.Error(), "in r2 at ") || !strings.Contains(err.Error(), "by bob (black friday)") {
		t.Errorf("error = %q, want it to name who, when and why", err)
	}
	if c := conflicts[0]; c.TheirText != "" || !strings.Contains(c.BaseText, "rps: 5") {
		t.Errorf("conflict with a removal = %+v", c)
	}
	r.wantLimits("payments/app=50 payments/web=120 search/web=1")
	// What both changed alike, and what only one changed, is merged.
	r.must(r.Apply(t.Context(), desk.ApplyRequest{By: admin, Base: &base, Files: []limitsfile.Source{file("payments", "web=120", "app=60", "old=5")}}))
	r.wantLimits("payments/app=60 payments/web=120 search/web=1")
}

// Two changes that hold by themselves need not hold together.
func TestMergeIsCheckedAnew(t *testing.T) {
	r := newRig(t)
	r.apply(file("payments", "web=100"))
	base := uint64(1)
	r.apply(file("payments", "web=100", "app=50"))
	twin := limitsfile.Source{Name: "twin.yaml", Data: []byte("service: payments\nowner: team-payments\nbuckets:\n" +
		"  - {name: web, match: {caller: web}, limit: {rps: 100}, behavior: deny}\n  - {name: twin, match: {caller: app}, limit: {rps: 9}, behavior: deny}\n")}
	_, err := r.Apply(t.Context(), desk.ApplyRequest{By: admin, Base: &base, Files: []limitsfile.Source{twin}})
	if text := want[*desk.InvalidError](t, err).Error(); !strings.Contains(text, "same match") || !strings.Contains(text, "merged") {
		t.Errorf("error = %q, want both buckets with the same match", text)
	}
	// One removes the service, another one adds to it.
	r.apply(file("search", "web=1"))
	removed := uint64(3)
	r.must(r.Apply(t.Context(), desk.ApplyRequest{By: admin, Prune: true, Files: []limitsfile.Source{file("payments", "web=100", "app=50")}}))
	_, err = r.Apply(t.Context(), desk.ApplyRequest{By: admin, Base: &removed, Files: []limitsfile.Source{file("search", "web=1", "app=2")}})
	if c := want[*desk.ConflictError](t, err).Conflicts; c[0].Bucket != "search" {
		t.Errorf("conflict = %+v, want the service", c)
	}
}

const directory = "limits directory"

func TestDirectory(t *testing.T) {
	r := newRig(t)
	watched := desk.By{Person: admin.Person, From: "/etc/grl/limits"}
	load := func(files ...limitsfile.Source) (desk.Outcome, error) {
		return r.Apply(t.Context(), desk.ApplyRequest{By: watched, Files: files, Source: directory, Prune: true, Reason: "files changed"})
	}
	r.must(load(file("payments", "web=100", "app=50")))
	r.apply(file("payments", "web=100", "app=60"))
	if out := r.must(load(file("payments", "web=100", "app=50"))); out.Changed || out.Revision.Number != 2 {
		t.Errorf("unchanged files: %+v, want nothing changed", out)
	}
	r.must(load(file("payments", "web=110", "app=50"), file("search", "web=1")))
	r.wantLimits("payments/app=60 payments/web=110 search/web=1")
	r.must(load(file("payments", "web=110", "app=50")))
	r.wantLimits("payments/app=60 payments/web=110")
	_, err := load(file("payments", "web=110", "app=55"))
	if c := want[*desk.ConflictError](t, err).Conflicts; len(c) != 1 || c[0].Bucket != "payments/app" {
		t.Errorf("conflicts = %+v", c)
	}
	want[*desk.InvalidError](t, second(load())) // an empty directory is more likely a mount that went away
	r.wantLimits("payments/app=60 payments/web=110")
}

func second(_ desk.Outcome, err error) error { return err }

// A place that has nothing is fine as long as there is nothing.
func TestEmptyDirectory(t *testing.T) {
	r := newRig(t)
	if out, err := r.Apply(t.Context(), desk.ApplyRequest{By: admin, Source: directory, Prune: true}); err != nil || out.Changed {
		t.Errorf("empty directory, empty store: %+v, %v", out, err)
	}
}

// Who watches a directory asks every other second: what was refused is not
// judged anew each time, but when the head moves, or after a while.
func TestRefusedDirectory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		load := func(files ...limitsfile.Source) error {
			return second(r.Apply(t.Context(), desk.ApplyRequest{By: admin, Files: files, Source: directory, Prune: true}))
		}
		if err := load(file("payments", "web=100")); err != nil {
			t.Fatal(err)
		}
		raised := file("payments", "web=301")
		want[*desk.GuardError](t, load(raised))
		want[*desk.GuardError](t, load(raised))
		r.apply(file("payments", "web=110"))
		want[*desk.ConflictError](t, load(raised))
		r.must(r.Rollback(t.Context(), desk.RollbackRequest{By: admin, Revision: 1, Reason: "x"}))
		want[*desk.GuardError](t, load(raised))
		time.Sleep(time.Minute)
		want[*desk.GuardError](t, load(raised))
		head := uint64(3)
		r.must(r.Apply(t.Context(), desk.ApplyRequest{By: admin, Files: []limitsfile.Source{raised}, Base: &head, Force: true, Reason: "grown"}))
		if err := load(raised); err != nil {
			t.Errorf("what was forced through by hand: %v", err)
		}
		r.wantLimits("payments/web=301")
	})
}

// A directory that was never loaded does not overwrite what is there.
func TestNewDirectoryOfAFilledStore(t *testing.T) {
	r := newRig(t)
	r.apply(file("payments", "web=100"), file("search", "web=1"))
	_, err := r.Apply(t.Context(), desk.ApplyRequest{By: admin, Files: []limitsfile.Source{file("payments", "web=90", "app=1")}, Source: directory, Prune: true})
	if c := want[*desk.ConflictError](t, err).Conflicts; len(c) != 1 || c[0].Bucket != "payments/web" {
		t.Errorf("conflicts = %+v", c)
	}
	r.must(r.Apply(t.Context(), desk.ApplyRequest{By: admin, Files: []limitsfile.Source{file("payments", "web=100", "app=1")}, Source: directory, Prune: true}))
	r.wantLimits("payments/app=1 payments/web=100 search/web=1")
}

func TestTwoControllersAtOnce(t *testing.T) {
	r := newRig(t)
	r.apply(file("a"), file("b"), file("c"), file("d"))
	desks := []*desk.Desk{r.Desk, r.another(), r.another(), r.another()}
	errs := make(chan error)
	for i, d := range desks {
		go func() {
			_, err := d.Apply(t.Context(), desk.ApplyRequest{By: admin, Files: []limitsfile.Source{file(string(rune('a'+i)), "web=1")}})
			errs <- err
		}()
	}
	for range desks {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	r.wantLimits("a/web=1 b/web=1 c/web=1 d/web=1")
	if head, err := r.ledger.Head(t.Context()); err != nil || head.Number != 5 {
		t.Errorf("head = %+v, %v; want revision 5", head, err)
	}
}

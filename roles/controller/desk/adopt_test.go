package desk_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grl/limiter"
	"grl/limiter/limitsfile"
	"grl/policy/guard"
	"grl/roles/controller/desk"
	"grl/store/ledger"
)

var machine = desk.Machine("10.0.0.5", "q9")

// edit returns one of the limit of a bucket.
func edit(bucket string, before, after float64) desk.Edit {
	return desk.Edit{Bucket: bucket, Before: desk.Limit{RPS: before}, After: desk.Limit{RPS: after}}
}

// adopt has the configurator make edits.
func (r *rig) adopt(edits ...desk.Edit) desk.Adoption {
	r.Helper()
	out, err := r.Adopt(r.Context(), desk.AdoptRequest{By: machine, Machine: true, Action: "rlc.adopt", Reason: "run 1", Edits: edits})
	if err != nil {
		r.Fatal(err)
	}
	return out
}

func TestAdopt(t *testing.T) {
	r := newRig(t)
	r.apply(file("payments", "web=100", "app=50", "old=7"), file("search", "web=10"))
	r.town.history["payments/app"] = flat(40)
	fresh := limiter.Bucket{Service: "search", Name: "found", Match: limiter.Match{Caller: "app"}, LimitRPS: 5}
	enforced := limiter.Bucket{Service: "search", Name: "harsh", Match: limiter.Match{Caller: "ads"}, LimitRPS: 5, Behavior: limiter.Deny}
	first := limiter.Bucket{Service: "mail", Name: "all", LimitRPS: 5}
	edits := []desk.Edit{
		edit("payments/web", 100, 120),
		edit("payments/app", 50, 15), // below half of the peak
		edit("payments/old", 8, 9),   // changed meanwhile
		edit("payments/gone", 8, 9),
		edit("search/web", 9, 10), // is so already
		{Bucket: "search/found", New: &fresh},
		{Bucket: "search/harsh", New: &enforced},
		{Bucket: "mail/all", New: &first, Owner: "team-mail"},
	}
	dry, err := r.Adopt(t.Context(), desk.AdoptRequest{By: machine, Machine: true, DryRun: true, Edits: edits})
	if err != nil || !dry.Changed || dry.Revision.Number != 1 {
		t.Fatalf("dry run: %+v, %v", dry, err)
	}
	r.wantLimits("payments/app=50 payments/old=7 payments/web=100 search/web=10")

	out := r.adopt(edits...)
	if diff := cmp.Diff([]string{"search/web", "mail/all", "payments/web", "search/found"}, out.Taken); diff != "" {
		t.Errorf("taken (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(dry.Taken, out.Taken); diff != "" {
		t.Errorf("the dry run said otherwise (-dry +real):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"payments/old", "payments/gone"}, out.Superseded); diff != "" {
		t.Errorf("superseded (-want +got):\n%s", diff)
	}
	if len(out.Refused) != 2 || out.Refused[0].Bucket != "search/harsh" || !strings.Contains(out.Refused[0].Findings[0].Text, "shadow") ||
		out.Refused[1].Bucket != "payments/app" || out.Refused[1].Findings[0].Rail != guard.BelowPeak {
		t.Errorf("refused: %+v", out.Refused)
	}
	r.wantLimits("mail/all=~5 payments/app=50 payments/old=7 payments/web=120 search/found=~5 search/web=10")
	if len(out.Documents) != 3 || !strings.Contains(string(out.Documents["mail"]), "owner: team-mail") {
		t.Errorf("documents: %q", out.Documents)
	}
	head, err := r.ledger.Head(t.Context())
	if err != nil || head.Source != desk.MachineSource || head.Author != "limit configurator" || head.Reason != "run 1" {
		t.Errorf("head %+v, %v", head, err)
	}
	entries, err := r.ledger.Audit(t.Context(), 0, 1, ledger.Filter{})
	if err != nil || entries[0].Action != "rlc.adopt" || entries[0].Forced || entries[0].Revision != 2 || !strings.Contains(entries[0].After, "rps: 120") {
		t.Errorf("audit: %+v, %v", entries, err)
	}

	// An answer that was lost is asked for again.
	again := r.adopt(edits...)
	if again.Changed || len(again.Taken) != 4 || again.Revision.Number != 2 {
		t.Errorf("again: %+v", again)
	}
}

// TestAdoptOfPerson has people approve what the rails refuse the machine.
func TestAdoptOfPerson(t *testing.T) {
	r := newRig(t)
	r.apply(file("payments", "web=100"), file("search", "web=10"), file("mail", "web=10"))
	r.town.history["payments/web"] = flat(90)
	adopt := func(by desk.By, force bool, edits ...desk.Edit) (desk.Adoption, error) {
		return r.Adopt(t.Context(), desk.AdoptRequest{By: by, Action: "rlc.approve", Reason: "run 3, policy nightly", Force: force, Edits: edits})
	}
	_, err := adopt(admin, false, edit("payments/web", 100, 40))
	if found := want[*desk.GuardError](t, err).Findings; found[0].Rail != guard.BelowPeak {
		t.Errorf("findings = %+v", found)
	}
	_, err = adopt(editor, true, edit("payments/web", 100, 40))
	want[*desk.DeniedError](t, err)
	_, err = adopt(editor, false, edit("mail/web", 10, 11))
	want[*desk.DeniedError](t, err)
	_, err = adopt(viewer, false, edit("search/web", 10, 11))
	want[*desk.DeniedError](t, err)
	_, err = adopt(admin, false, edit("payments/web", 100, -1))
	want[*desk.InvalidError](t, err)
	_, err = adopt(admin, false, edit("payments/web", 100, 110), edit("payments/web", 100, 120))
	want[*desk.InvalidError](t, err)
	out, err := adopt(editor, false, edit("payments/web", 100, 110), edit("search/web", 11, 12))
	if err != nil || len(out.Taken) != 1 || len(out.Superseded) != 1 {
		t.Errorf("approved: %+v, %v", out, err)
	}
	if _, err = adopt(admin, true, edit("payments/web", 110, 40)); err != nil {
		t.Error(err)
	}
	r.wantLimits("mail/web=10 payments/web=40 search/web=10")
	if head, err := r.ledger.Head(t.Context()); err != nil || head.Source != "" || head.Author != "ada" {
		t.Errorf("head %+v, %v", head, err)
	}
}

// A limit that only rises is judged without history. What is lowered is left out
// if that cannot be read, and is judged once for the dry run and what follows it.
func TestAdoptReadsHistory(t *testing.T) {
	r := newRig(t)
	r.apply(file("payments", "web=100", "app=50"))
	r.town.broken = true
	edits := []desk.Edit{edit("payments/web", 100, 110), edit("payments/app", 50, 49)}
	out, err := r.Adopt(t.Context(), desk.AdoptRequest{By: machine, Machine: true, DryRun: true, Edits: edits})
	if err != nil || len(out.Taken) != 1 || len(out.Refused) != 1 || !strings.Contains(out.Refused[0].Findings[0].Text, "could not be read") {
		t.Errorf("without history: %+v, %v", out, err)
	}
	r.town.broken, r.town.reads = false, 0
	if out, err = r.Adopt(t.Context(), desk.AdoptRequest{By: machine, Machine: true, DryRun: true, Edits: edits}); err != nil || len(out.Taken) != 2 {
		t.Errorf("dry: %+v, %v", out, err)
	}
	if out = r.adopt(edits...); len(out.Taken) != 2 || r.town.reads != 1 {
		t.Errorf("%d histories read, want that of what is lowered once; %+v", r.town.reads, out)
	}
}

// TestAdoptMany adopts more than a person might change at once, region by region.
func TestAdoptMany(t *testing.T) {
	r := newRig(t)
	const buckets = 2000
	names, edits := make([]string, buckets), make([]desk.Edit, buckets)
	for i := range names {
		names[i] = fmt.Sprintf("b%d=100", i)
		edits[i] = edit(fmt.Sprintf("payments/b%d", i), 100, 110)
	}
	r.apply(file("payments", names...))
	r.town.zones, r.town.regions = []string{"a", "b", "c"}, [][]string{{"a", "c"}, {"b"}}
	out := r.adopt(edits...)
	if len(out.Taken) != buckets || len(out.Refused) != 0 {
		t.Errorf("%d taken, %d refused", len(out.Taken), len(out.Refused))
	}
	s := out.Rollout
	if s == nil || !s.ByRegion || s.Forced || cmp.Diff(s.Reached, []string{"a", "c"}) != "" || cmp.Diff(out.Waiting, []string{"b"}) != "" {
		t.Errorf("rollout %+v, waiting %v", s, out.Waiting)
	}
	_, err := r.Adopt(t.Context(), desk.AdoptRequest{By: machine, Machine: true, Edits: []desk.Edit{edit("payments/b1", 110, 120)}})
	want[*desk.RolloutError](t, err)
}

// What a small revision of the configurator changes goes region by region too;
// in one region it goes everywhere at once.
func TestAdoptFew(t *testing.T) {
	r := newRig(t)
	r.apply(file("payments", "web=100"))
	r.town.zones = []string{"a", "b"}
	if out := r.adopt(edit("payments/web", 100, 110)); out.Rollout != nil {
		t.Errorf("rollout %+v in one region", out.Rollout)
	}
	r.town.regions = [][]string{{"a"}, {"b"}}
	if out := r.adopt(edit("payments/web", 110, 120)); out.Rollout == nil || !out.Rollout.ByRegion {
		t.Errorf("rollout %+v in two regions", out.Rollout)
	}
}

// TestPeopleOutrankTheMachine merges files with what the configurator changed in
// the same bucket since, and with what it and people did.
func TestPeopleOutrankTheMachine(t *testing.T) {
	tests := []struct {
		name  string
		since func(*rig)
		files string // limit of payments/web in them
		want  string // "": they clash
	}{
		{"the machine alone", func(r *rig) { r.adopt(edit("payments/web", 100, 110)) }, "90", "payments/web=90"},
		{"the machine twice", func(r *rig) { r.adopt(edit("payments/web", 100, 110)); r.adopt(edit("payments/web", 110, 120)) }, "90", "payments/web=90"},
		{"files that did not change", func(r *rig) { r.adopt(edit("payments/web", 100, 110)) }, "100", "payments/web=110"},
		{"a person after the machine", func(r *rig) {
			r.adopt(edit("payments/web", 100, 110))
			r.must(r.approve(edit("payments/web", 110, 115)))
		}, "90", ""},
		{"a person before the machine", func(r *rig) {
			r.must(r.approve(edit("payments/web", 100, 105)))
			r.adopt(edit("payments/web", 105, 110))
		}, "90", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			place := func(rps string) error {
				_, err := r.Apply(t.Context(), desk.ApplyRequest{By: admin, Source: "limits repository", Prune: true, Files: []limitsfile.Source{file("payments", "web="+rps)}})
				return err
			}
			if err := place("100"); err != nil {
				t.Fatal(err)
			}
			tt.since(r)
			err := place(tt.files)
			if tt.want == "" {
				want[*desk.ConflictError](t, err)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			r.wantLimits(tt.want)
		})
	}
}

// approve has a person make an edit.
func (r *rig) approve(e desk.Edit) (desk.Outcome, error) {
	out, err := r.Adopt(r.Context(), desk.AdoptRequest{By: admin, Action: "rlc.approve", Reason: "run 3", Edits: []desk.Edit{e}})
	return out.Outcome, err
}

// Files that were applied while a later change was kept are merged with what they
// said then, however long ago the change was.
func TestPeopleOutrankTheMachineOwed(t *testing.T) {
	r := newRig(t)
	place := func(web, app string) error {
		_, err := r.Apply(t.Context(), desk.ApplyRequest{By: admin, Source: "limits repository", Prune: true, Files: []limitsfile.Source{file("payments", "web="+web, "app="+app)}})
		return err
	}
	for _, step := range []func() error{
		func() error { return place("100", "50") },
		func() error { r.adopt(edit("payments/web", 100, 110)); return nil },
		func() error { return place("100", "51") }, // keeps 110, and owes 100
		func() error { r.adopt(edit("payments/web", 110, 120)); return nil },
		func() error { return place("90", "51") },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	r.wantLimits("payments/app=51 payments/web=90")
}

// TestAdoptAll edits all that a limit has.
func TestAdoptAll(t *testing.T) {
	r := newRig(t)
	hours := make([]float64, 24)
	for i := range hours {
		hours[i] = float64(36 + i)
	}
	r.apply(limitsfile.Source{Name: "payments.yaml", Data: []byte("service: payments\nbuckets:\n  - {name: web, scope: region, limit: {rps: 100, regions: {eu: 50}}, behavior: deny}\n")})
	before := desk.Limit{RPS: 100, Regions: map[string]float64{"eu": 50}}
	after := desk.Limit{
		RPS: 90, Regions: map[string]float64{"eu": 60, "us": 40}, Hourly: hours, RegionHourly: map[string][]float64{"eu": hours},
		TimeZone: "Europe/Berlin", CandidateRPS: 80,
	}
	out := r.adopt(desk.Edit{Bucket: "payments/web", Before: before, After: after})
	services, err := limitsfile.Load([]limitsfile.Source{{Name: "payments", Data: out.Documents["payments"]}})
	if err != nil || !desk.LimitOf(&services[0].Buckets[0]).Equal(after) {
		t.Errorf("limits are %+v, %v", services, err)
	}
	back := r.adopt(desk.Edit{Bucket: "payments/web", Before: after, After: before})
	if len(back.Taken) != 1 || strings.Contains(string(back.Documents["payments"]), "hourly") {
		t.Errorf("back: %+v", back)
	}
	// What does not hold is left out by itself.
	bad := after
	bad.Hourly = []float64{1, 2, 3}
	if got := r.adopt(desk.Edit{Bucket: "payments/web", Before: before, After: bad}); len(got.Refused) != 1 || got.Changed {
		t.Errorf("three hours of a day: %+v", got)
	}
}

package desk_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"grl/limiter/limitsfile"
	"grl/roles/controller/desk"
	"grl/roles/controller/desk/desktest"
)

const repository = "limits repository"

// place applies files as the limits repository does.
func (r *rig) place(files []limitsfile.Source) (desk.Outcome, error) {
	return r.Apply(r.Context(), desk.ApplyRequest{By: admin, Source: repository, Prune: true, Files: files})
}

// raised returns files of Crowd with another limit of all buckets.
func raised(files []limitsfile.Source, rps string) []limitsfile.Source {
	var out []limitsfile.Source
	for _, f := range files {
		out = append(out, limitsfile.Source{Name: f.Name, Data: bytes.ReplaceAll(f.Data, []byte("rps: 1}"), []byte("rps: "+rps+"}"))})
	}
	return out
}

// Later edits that the files do not have stay while these change elsewhere,
// however many they are; 10,000 are those of the hours of a large fleet.
func TestManyLaterEditsStay(t *testing.T) {
	for _, edits := range []int{1, 10, 2_000, 10_000} {
		t.Run(fmt.Sprint(edits), func(t *testing.T) {
			r := newRig(t)
			files := desktest.Crowd(edits)
			r.must(r.place(files))
			later := raised(files, "1.2")
			r.must(r.Apply(t.Context(), desk.ApplyRequest{By: admin, Source: "a page", Base: new(uint64(1)), Files: later, Force: true, Now: true, Reason: "traffic grew"}))
			limits := r.limits()
			for i := range 3 {
				more := append([]limitsfile.Source{file("other", fmt.Sprint("web=", 10+i))}, files...)
				if out := r.must(r.place(more)); len(out.Changes) > 2 {
					t.Fatalf("apply %d: %d changes, want only those of the files", i, len(out.Changes))
				}
				r.wantLimits(fmt.Sprintf("other/web=%d %s", 10+i, limits))
			}
			_, err := r.place(raised(files, "1.1"))
			if conflicts := want[*desk.ConflictError](t, err).Conflicts; len(conflicts) != min(edits, 1_000) {
				t.Errorf("%d conflicts, want %d, at most 1,000: the files changed what a person did", len(conflicts), edits)
			}
		})
	}
}

func TestMoreLaterEditsThanAreRemembered(t *testing.T) {
	r := newRig(t)
	files := desktest.Crowd(20_000)
	r.must(r.place(files))
	r.must(r.Apply(t.Context(), desk.ApplyRequest{By: admin, Source: "a page", Base: new(uint64(1)), Files: raised(files, "1.2"), Force: true, Now: true, Reason: "traffic grew"}))
	_, err := r.place(append([]limitsfile.Source{file("other", "web=1")}, files...))
	if text := want[*desk.InvalidError](t, err).Error(); !strings.Contains(text, "20000 later edits are not in the files") || !strings.Contains(text, "export the configuration") {
		t.Errorf("error = %q", text)
	}
}

// What the configurator changed stays while the files are as they were, and
// yields once they change.
func TestHourlyEditsStay(t *testing.T) {
	r := newRig(t)
	r.must(r.place([]limitsfile.Source{file("payments", "web=100", "app=50")}))
	for hour := range 5 {
		r.adopt(edit("payments/web", float64(100+hour), float64(101+hour)))
		r.must(r.place([]limitsfile.Source{file("payments", "web=100", fmt.Sprint("app=", 51+hour))}))
		r.wantLimits(fmt.Sprintf("payments/app=%d payments/web=%d", 51+hour, 101+hour))
	}
	r.must(r.place([]limitsfile.Source{file("payments", "web=90", "app=55")}))
	r.wantLimits("payments/app=55 payments/web=90")
}

func TestServicesAppliedOneByOne(t *testing.T) {
	r := newRig(t)
	one := func(i int, rps string) limitsfile.Source {
		return file(fmt.Sprintf("service-%d", i), "app=~5", "web="+rps)
	}
	const services = 200
	for i := range services {
		r.apply(one(i, "10"))
	}
	// Each is still merged with what the files said of it.
	r.must(r.Promote(t.Context(), desk.PromoteRequest{By: admin, Bucket: "service-7/app"}))
	out := r.apply(one(7, "11"))
	if len(out.Changes) != 1 || len(out.Kept) != 1 || out.Kept[0].Base != 8 {
		t.Errorf("files of one service again: %d changes, kept %+v, want one of each, from r8", len(out.Changes), out.Kept)
	}
}

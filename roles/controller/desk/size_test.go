package desk_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"grl/limiter/limitsfile"
	"grl/roles/controller/desk"
	"grl/roles/controller/desk/desktest"
)

func TestMoreThanMayBe(t *testing.T) {
	r := newRig(t)
	_, err := r.Apply(t.Context(), desk.ApplyRequest{By: admin, Files: desktest.Crowd(limitsfile.MaxBuckets + 1)})
	if text := want[*desk.InvalidError](t, err).Error(); !strings.Contains(text, "at most 100000") {
		t.Errorf("error = %q", text)
	}
}

// edited returns one of the files with other limits.
func edited(files []limitsfile.Source, rps string) []limitsfile.Source {
	f := files[7]
	f.Data = bytes.ReplaceAll(f.Data, []byte("c7000}, limit: {rps: 1}"), []byte("c7000}, limit: {rps: "+rps+"}"))
	return []limitsfile.Source{f}
}

// Bounds of the issue: 10 s to apply 100,000 buckets, 1 s until an edit of one
// of them is active.
func BenchmarkApply100000Buckets(b *testing.B) {
	files := desktest.Crowd(limitsfile.MaxBuckets)
	for b.Loop() {
		newRig(b).apply(files...)
	}
}

func BenchmarkEditOneOf100000Buckets(b *testing.B) {
	r := newRig(b)
	files := desktest.Crowd(limitsfile.MaxBuckets)
	r.apply(files...)
	limits := []string{"2", "3", "1.5"}
	for b.Loop() {
		if out := r.apply(edited(files, limits[0])...); len(out.Changes) != 1 {
			b.Fatalf("%d changes", len(out.Changes))
		}
		limits = slices.Concat(limits[1:], limits[:1])
	}
}

func BenchmarkDirectoryUnchanged100000Buckets(b *testing.B) {
	r := newRig(b)
	load := desk.ApplyRequest{By: admin, Files: desktest.Crowd(limitsfile.MaxBuckets), Source: directory, Prune: true}
	r.must(r.Apply(b.Context(), load))
	for b.Loop() {
		r.must(r.Apply(b.Context(), load))
	}
}

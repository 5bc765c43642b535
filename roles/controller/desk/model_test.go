package desk_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"grl/limiter/limitsfile"
	"grl/roles/controller/desk"
	"pgregory.net/rapid"
)

// book is a dumb desk: what each bucket is, and what the files said of it last.
type book struct{ head, files map[string]string } // name → rps, "" for none

// apply takes what the files changed since they were last applied; false: a
// bucket was changed otherwise on both sides.
func (b *book) apply(files map[string]string) bool {
	next := maps.Clone(b.head)
	for name, ours := range files {
		switch theirs, last := b.head[name], b.files[name]; {
		case ours == theirs || ours == last:
		case theirs == last:
			next[name] = ours
		default:
			return false
		}
	}
	b.head, b.files = next, maps.Clone(files)
	return true
}

var bucketNames = []string{"app", "bat", "cron", "web"}

func fileOf(limits map[string]string) limitsfile.Source {
	var buckets []string
	for _, name := range bucketNames {
		if limits[name] != "" {
			buckets = append(buckets, name+"="+limits[name])
		}
	}
	return file("payments", buckets...)
}

// Whatever people and files change in turn, each bucket is what a desk would
// make of it that only knows single buckets.
func TestMergeEqualsAModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := newRig(t)
		none := map[string]string{"app": "", "bat": "", "cron": "", "web": ""}
		model := book{head: maps.Clone(none), files: maps.Clone(none)}
		limit := rapid.SampledFrom([]string{"", "100", "110", "120"})
		first := map[string]string{"app": "100", "bat": "100", "cron": "100", "web": "100"}
		r.apply(fileOf(first))
		model.apply(first)
		revision := uint64(1)
		for range rapid.IntRange(1, 6).Draw(rt, "steps") {
			limits := maps.Clone(model.head)
			fromFiles := rapid.Bool().Draw(rt, "from files")
			if fromFiles {
				limits = maps.Clone(model.files)
			}
			for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(bucketNames), 0, 3, rapid.ID[string]).Draw(rt, "changed") {
				limits[name] = limit.Draw(rt, name)
			}
			request := desk.ApplyRequest{By: admin, Files: []limitsfile.Source{fileOf(limits)}}
			applied := true
			if fromFiles {
				applied = model.apply(limits)
			} else {
				request.Source, request.Base = "a page", &revision
				model.head = limits
			}
			out, err := r.Apply(t.Context(), request)
			if applied != (err == nil) || err != nil && !errors.As(err, new(*desk.ConflictError)) {
				rt.Fatalf("files %v: error %v, want one: %v", limits, err, !applied)
			}
			if err == nil {
				revision = out.Revision.Number
			}
			if got, want := r.limits(), model.text(); got != want {
				rt.Fatalf("limits are %q, want %q", got, want)
			}
		}
	})
}

func (b *book) text() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(b.head)) {
		if b.head[name] != "" {
			parts = append(parts, fmt.Sprintf("payments/%s=%s", name, b.head[name]))
		}
	}
	return strings.Join(parts, " ")
}

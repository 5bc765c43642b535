package ledger

import (
	"fmt"
	"testing"
	"time"

	"grl/store"
)

// TestDocumentEqualsManifest reads single services of revisions with one page, and
// with several.
func TestDocumentEqualsManifest(t *testing.T) {
	s, err := store.Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	l := New(s)
	for i, services := range []int{0, 3, 700, 100, 300, 2000} {
		documents := make(map[string][]byte)
		for j := range services {
			documents[fmt.Sprint("s", j)] = fmt.Appendf(nil, "service: s%d\n# r%d\n", j, (i+j)%3)
		}
		head, err := l.Head(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.Apply(t.Context(), head.Number, Change{Act: Act{Actor: "ada", At: time.Now()}, Action: "apply", Documents: documents}); err != nil {
			t.Fatal(err)
		}
	}
	revisions, err := l.Revisions(t.Context(), 0, 10)
	if err != nil || len(revisions) != 5 { // the first one changed nothing
		t.Fatalf("%d revisions, %v", len(revisions), err)
	}
	for _, r := range append(revisions, Revision{}) {
		manifest, err := l.Manifest(t.Context(), r.Number)
		if err != nil {
			t.Fatal(err)
		}
		for j := 0; j < 2010; j += 7 {
			service := fmt.Sprint("s", j)
			want, has := manifest[service]
			if got, ok, err := l.Document(t.Context(), r, service); err != nil || ok != has || got != want {
				t.Fatalf("%q at r%d: %+v, %v, %v, want %+v", service, r.Number, got, ok, err, want)
			}
		}
	}
}

func TestChangedByPoliciesAndRuns(t *testing.T) {
	s, err := store.Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	l, act := New(s), Act{Actor: "ada", At: time.Now()}
	policies, runs := l.PoliciesChanged(t.Context()), l.RunsChanged(t.Context())
	<-policies
	<-runs
	if _, err := l.ApplyPolicies(t.Context(), 0, act, "apply", nil, "", "", map[string][]byte{"a": []byte("name: a\n")}); err != nil {
		t.Fatal(err)
	}
	<-policies
	if len(runs) > 0 {
		t.Error("a policy counts as a run")
	}
	if _, err := l.BeginRun(t.Context(), act, Run{Trigger: "schedule"}); err != nil {
		t.Fatal(err)
	}
	<-runs
	if len(policies) > 0 {
		t.Error("a run counts as a policy")
	}
}

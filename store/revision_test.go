package store

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// noon is when test changes are made; milliseconds are what the store keeps.
var noon = time.Date(2026, 3, 4, 12, 0, 0, 7e6, time.UTC)

// change makes a change of pairs of service and document.
func change(pairs ...string) Change {
	documents := make(map[string][]byte)
	for i := 0; i < len(pairs); i += 2 {
		documents[pairs[i]] = []byte(pairs[i+1])
	}
	return Change{Documents: documents, Author: "ann", At: noon}
}

func mustApply(t testing.TB, s *Store, base uint64, c Change) Revision {
	t.Helper()
	r, err := s.Apply(t.Context(), base, c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func mustHead(t testing.TB, s *Store) Revision {
	t.Helper()
	head, err := s.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return head
}

// wantDocuments compares the documents of a revision with those of c.
func wantDocuments(t testing.TB, s *Store, revision uint64, c Change) {
	t.Helper()
	got, err := s.Documents(t.Context(), revision)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(asText(c.Documents), asText(got)); diff != "" {
		t.Errorf("documents of r%d (-want +got):\n%s", revision, diff)
	}
}

func asText(documents map[string][]byte) map[string]string {
	text := make(map[string]string)
	for service, body := range documents {
		text[service] = string(body)
	}
	return text
}

func TestApplyMakesRevisions(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	if head := mustHead(t, s); head.Number != 0 {
		t.Errorf("head of a new store is r%d, want r0", head.Number)
	}
	wantDocuments(t, s, 0, change())

	first := change("payments", "limit: 1", "search", "limit: 2", "empty", "")
	first.Reason, first.Source, first.SourceHash = "start", "limits directory", "abc"
	second := change("payments", "limit: 3", "search", "limit: 2")
	mustApply(t, s, 0, first)
	if r := mustApply(t, s, 1, second); r.Number != 2 || !r.Changed {
		t.Errorf("second Apply made r%d, changed %v, want r2, changed", r.Number, r.Changed)
	}
	closeStore(t, s)

	s = openStore(t, dir)
	wantDocuments(t, s, 1, first)
	wantDocuments(t, s, 2, second)
	revisions, err := s.Revisions(t.Context(), 10)
	if err != nil || len(revisions) != 2 {
		t.Fatalf("Revisions = %v, %v, want 2", revisions, err)
	}
	if r := revisions[0]; r.Number != 2 {
		t.Errorf("newest revision is r%d, want r2", r.Number)
	}
	r := revisions[1]
	if r.Author != "ann" || r.Reason != "start" || r.Source != "limits directory" || r.SourceHash != "abc" || !r.At.Equal(noon) || r.Changed {
		t.Errorf("first revision is %+v, want what was applied", r)
	}
	if revisions, err := s.Revisions(t.Context(), 1); err != nil || len(revisions) != 1 {
		t.Errorf("Revisions(1) = %v, %v, want one", revisions, err)
	}
	if _, err := s.Documents(t.Context(), 3); !errors.Is(err, ErrNotFound) {
		t.Errorf("Documents(3): %v, want ErrNotFound", err)
	}
}

func TestApplyRefusesAnOldBase(t *testing.T) {
	s := openStore(t, t.TempDir())
	winner := change("a", "1")
	mustApply(t, s, 0, winner)
	for _, base := range []uint64{0, 2} {
		head, err := s.Apply(t.Context(), base, change("a", "2"))
		if !errors.Is(err, ErrConflict) || head.Number != 1 {
			t.Errorf("Apply on r%d = r%d, %v, want the head r1 and ErrConflict", base, head.Number, err)
		}
	}
	wantDocuments(t, s, mustHead(t, s).Number, winner)
}

func TestApplyOfTheSameMakesNoRevision(t *testing.T) {
	s := openStore(t, t.TempDir())
	if r := mustApply(t, s, 0, change()); r.Number != 0 || r.Changed {
		t.Errorf("Apply of nothing to an empty store made r%d", r.Number)
	}
	mustApply(t, s, 0, change("a", "1"))
	mustApply(t, s, 1, change("a", "2"))
	for _, base := range []uint64{2, 1} { // 1: the answer to the change was lost
		if r := mustApply(t, s, base, change("a", "2")); r.Number != 2 || r.Changed {
			t.Errorf("Apply of the head on r%d made r%d, changed %v, want r2, unchanged", base, r.Number, r.Changed)
		}
	}
	if r := mustApply(t, s, 2, change("a", "1")); r.Number != 3 || !r.Changed {
		t.Errorf("going back to r1 made r%d, changed %v, want r3", r.Number, r.Changed)
	}
	if r := mustApply(t, s, 3, change()); r.Number != 4 || !r.Changed {
		t.Errorf("removing all made r%d, changed %v, want r4", r.Number, r.Changed)
	}
	wantDocuments(t, s, 4, change())
}

func TestApplyRefusesIncompleteChanges(t *testing.T) {
	s := openStore(t, t.TempDir())
	for name, c := range map[string]Change{
		"author":  {At: noon, Documents: map[string][]byte{"a": nil}},
		"time":    {Author: "ann", Documents: map[string][]byte{"a": nil}},
		"service": {Author: "ann", At: noon, Documents: map[string][]byte{"": nil}},
	} {
		if _, err := s.Apply(t.Context(), 0, c); err == nil {
			t.Errorf("Apply without %s: no error", name)
		}
	}
	if head := mustHead(t, s); head.Number != 0 {
		t.Errorf("head is r%d, want r0", head.Number)
	}
}

func TestLastSource(t *testing.T) {
	s := openStore(t, t.TempDir())
	load := func(base uint64, hash string, c Change) {
		t.Helper()
		c.Source, c.SourceHash = "limits directory", hash
		mustApply(t, s, base, c)
	}
	want := func(hash string, revision uint64) {
		t.Helper()
		gotHash, gotRevision, err := s.LastSource(t.Context(), "limits directory")
		if err != nil || gotHash != hash || gotRevision != revision {
			t.Errorf("LastSource = %q, r%d, %v, want %q, r%d", gotHash, gotRevision, err, hash, revision)
		}
	}
	want("", 0)
	load(0, "h1", change("a", "1"))
	want("h1", 1)
	mustApply(t, s, 1, change("a", "2")) // a person's edit
	want("h1", 1)
	c := change("a", "3")
	c.Source, c.SourceHash = "limits directory", "h2"
	if _, err := s.Apply(t.Context(), 1, c); !errors.Is(err, ErrConflict) {
		t.Errorf("load on an old base: %v, want ErrConflict", err)
	}
	want("h1", 1)
	load(1, "h3", change("a", "2")) // the files caught up with the edit
	want("h3", 2)
}

func TestOneOfManyWritersWins(t *testing.T) {
	s := openStore(t, t.TempDir())
	const writers = 8
	var wg sync.WaitGroup
	errs := make([]error, writers)
	for i := range writers {
		wg.Go(func() { _, errs[i] = s.Apply(t.Context(), 0, change("a", fmt.Sprint(i))) })
	}
	wg.Wait()
	won := -1
	for i, err := range errs {
		switch {
		case err == nil && won < 0:
			won = i
		case !errors.Is(err, ErrConflict):
			t.Errorf("writer %d: %v, want ErrConflict (writer %d won)", i, err, won)
		}
	}
	if won < 0 {
		t.Fatal("no writer won")
	}
	wantDocuments(t, s, 1, change("a", fmt.Sprint(won)))
	if head := mustHead(t, s); head.Number != 1 {
		t.Errorf("head is r%d, want r1", head.Number)
	}
}

package ledger_test

import (
	"os"
	"path/filepath"
	"testing"

	"grl/store"
	"grl/store/ledger"
)

// TestVersion1 reads what version 1 of the store wrote, before there were
// ledgers.
func TestVersion1(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"grl.db", "history.db"} {
		content, err := os.ReadFile(filepath.Join("../testdata/v1", name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), content, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	s, err := store.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	l := ledger.New(s)
	head, err := l.Head(t.Context())
	if err != nil || head.Number != 1 || head.Author != "ann" || head.Source != "limits directory" || head.At.IsZero() {
		t.Errorf("head = %+v, %v, want r1 by ann", head, err)
	}
	documents, err := l.Documents(t.Context(), 1)
	if err != nil || len(documents) != 2 || string(documents["payments"]) != "service: payments\n" || string(documents["search"]) != "service: search\n" {
		t.Errorf("documents = %q, %v", documents, err)
	}
	if hash, revision, err := l.LastSource(t.Context(), "limits directory"); err != nil || hash != "abc" || revision != 1 {
		t.Errorf("LastSource = %q, r%d, %v, want abc, r1", hash, revision, err)
	}
	if epoch, err := l.NextEpoch(t.Context(), 0); err != nil || epoch != 8 {
		t.Errorf("NextEpoch = %d, %v, want 8", epoch, err)
	}
	act := ledger.Act{Actor: "bob", At: head.At}
	same := ledger.Change{Act: act, Action: "apply", Documents: documents}
	if r, err := l.Apply(t.Context(), 1, same); err != nil || r.Changed {
		t.Errorf("Apply of the same = r%d, changed %v, %v", r.Number, r.Changed, err)
	}
	delete(documents, "search")
	if r, err := l.Apply(t.Context(), 1, same); err != nil || r.Number != 2 {
		t.Errorf("Apply = r%d, %v, want r2", r.Number, err)
	}
}

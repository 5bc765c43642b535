package ledger_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"grl/store"
	"grl/store/ledger"
)

// Bytes are flipped in the file itself.
func TestDamagedRunsCostNoConfiguration(t *testing.T) {
	act := ledger.Act{Actor: "ann", At: time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)}
	tests := []struct {
		name  string
		text  string // that a byte of is flipped
		aside bool
	}{
		{"memory", "remembered", false},
		{"first run", "trigger-one", false},
		{"last run", "trigger-two", false},
		{"lease", "holder-of-it", false},
		{"revision", "where-it-came-from", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			s := openIn(t, dir)
			l := ledger.New(s)
			must(t, l.PutMemory(t.Context(), map[string][]byte{"payments/web": []byte("remembered")}))
			for _, trigger := range []string{"trigger-one", "trigger-two"} {
				_, err := l.BeginRun(t.Context(), act, ledger.Run{Trigger: trigger})
				must(t, err)
			}
			_, err := l.TakeLease(t.Context(), "holder-of-it", time.Minute, act.At, nil)
			must(t, err)
			_, err = l.Apply(t.Context(), 0, ledger.Change{Act: act, Action: "apply", Documents: map[string][]byte{"payments": nil}, Sources: []ledger.Source{{Name: "where-it-came-from"}}})
			must(t, err)
			must(t, s.Close())
			flip(t, filepath.Join(dir, "grl.db"), tt.text)

			s = openIn(t, dir)
			defer func() { must(t, s.Close()) }()
			if w := s.Warnings(); len(w) != 1 || strings.Contains(w[0], "set aside") != tt.aside {
				t.Errorf("warnings = %q, want one, of a file set aside: %v", w, tt.aside)
			}
			l = ledger.New(s)
			head, err := l.Head(t.Context())
			if err != nil || (head.Number == 0) != tt.aside {
				t.Errorf("head is r%d, %v", head.Number, err)
			}
			if _, err := l.BeginRun(t.Context(), act, ledger.Run{Trigger: "next"}); err != nil {
				t.Errorf("next run: %v", err)
			}
			if _, err := l.TakeLease(t.Context(), "other", time.Minute, act.At.Add(time.Hour), nil); err != nil {
				t.Errorf("next lease: %v", err)
			}
		})
	}
}

// Without the number of the last run, the next one must not take the place of an
// old one.
func TestRunsGoOnWithoutTheirHead(t *testing.T) {
	act := ledger.Act{Actor: "ann", At: time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)}
	e := open(t)
	l := ledger.New(e)
	for range 3 {
		_, err := l.BeginRun(t.Context(), act, ledger.Run{})
		must(t, err)
	}
	must(t, e.Commit(t.Context(), nil, []store.Write{{Key: "rlc-run-head", Delete: true}}))
	r, err := l.BeginRun(t.Context(), act, ledger.Run{})
	if err != nil || r.ID != 4 {
		t.Errorf("next run = %d, %v, want 4", r.ID, err)
	}
	if old, err := l.Run(t.Context(), 3); err != nil || old.State != ledger.RunFailed {
		t.Errorf("run 3 = %+v, %v, want it failed", old, err)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func openIn(t testing.TB, dir string) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), dir)
	must(t, err)
	return s
}

// flip flips a bit in each place of a file that has a text.
func flip(t testing.TB, path, text string) {
	t.Helper()
	content, err := os.ReadFile(path)
	must(t, err)
	if !bytes.Contains(content, []byte(text)) {
		t.Fatalf("%q is not in the file", text)
	}
	flipped := "\x00" + text[1:]
	must(t, os.WriteFile(path, bytes.ReplaceAll(content, []byte(text), []byte(flipped)), 0o600))
}

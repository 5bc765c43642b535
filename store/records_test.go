package store

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func record(key, value string) Write { return Write{Key: key, Value: []byte(value)} }

func mustCommit(t testing.TB, s *Store, writes ...Write) {
	t.Helper()
	if err := s.Commit(t.Context(), nil, writes); err != nil {
		t.Fatal(err)
	}
}

// wantValue checks the value of a key; "" for none.
func wantValue(t testing.TB, s *Store, key, want string) {
	t.Helper()
	records, err := s.Get(t.Context(), key)
	if err != nil || string(records[0].Value) != want {
		t.Errorf("Get(%s) = %.100q, %v, want %.100q", key, records[0].Value, err, want)
	}
}

// TestDamagedRecordIsNotServed changes rows behind the store's back.
func TestDamagedRecordIsNotServed(t *testing.T) {
	tests := []struct {
		statement string
		list      bool // it shows in a list of all, too
	}{
		{"UPDATE records SET value = x'32' WHERE key = 'a'", true},
		{"UPDATE records SET version = version + 1 WHERE key = 'a'", true},
		{"UPDATE records SET key = 'b' WHERE key = 'other'; UPDATE records SET key = 'other' WHERE key = 'a'; UPDATE records SET key = 'a' WHERE key = 'b'", true},
		{"UPDATE tally SET records = 7", false},
		{"DELETE FROM records WHERE key = 'other'", false},
		{"DELETE FROM tally", false},
	}
	for _, tt := range tests {
		dir := t.TempDir()
		s := openStore(t, dir)
		mustCommit(t, s, record("a", "1"), record("other", "1"))
		mustExec(t, s.config.write, tt.statement)
		if tt.list {
			if records, err := s.Get(t.Context(), "a"); !errors.Is(err, ErrDamaged) || !errors.Is(err, ErrUnavailable) {
				t.Errorf("%s: Get = %v, %v, want ErrDamaged", tt.statement, records, err)
			}
			if records, err := s.List(t.Context(), "", "", 0); !errors.Is(err, ErrDamaged) {
				t.Errorf("%s: List = %v, %v, want ErrDamaged", tt.statement, records, err)
			}
		}
		closeStore(t, s)
		s = openStore(t, dir)
		if w := s.Warnings(); len(w) != 1 || !strings.Contains(w[0], "grl.db was damaged") {
			t.Errorf("%s: warnings after Open %q, want one that it is set aside", tt.statement, w)
		}
		wantValue(t, s, "a", "")
		mustCommit(t, s, record("a", "2"))
	}
}

func TestDamagedTallyTakesNoCommits(t *testing.T) {
	s := openStore(t, t.TempDir())
	mustCommit(t, s, record("a", "1"))
	mustExec(t, s.config.write, "UPDATE tally SET version = 1000")
	if err := s.Commit(t.Context(), nil, []Write{record("a", "2")}); !errors.Is(err, ErrDamaged) {
		t.Errorf("Commit on a damaged tally: %v, want ErrDamaged", err)
	}
	wantValue(t, s, "a", "1")
}

// TestCommittedIsOnDisk copies the files after each commit, as a power cut would
// leave them, and opens the copy.
func TestCommittedIsOnDisk(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	for i := range 20 {
		writes := []Write{record("last", fmt.Sprint(i)), record(fmt.Sprint("key-", i), strings.Repeat("x", i*1000))}
		if i > 0 {
			writes = append(writes, Write{Key: fmt.Sprint("key-", i-1), Delete: true})
		}
		mustCommit(t, s, writes...)
		cut := t.TempDir()
		copyStore(t, dir, cut)
		copied := openStore(t, cut)
		if w := copied.Warnings(); len(w) > 0 {
			t.Errorf("warnings of a copy: %q", w)
		}
		wantValue(t, copied, "last", fmt.Sprint(i))
		if records, err := copied.List(t.Context(), "key-", "", 0); err != nil || len(records) != 1 || len(records[0].Value) != i*1000 {
			t.Errorf("copy has %d records, %v, want the one committed", len(records), err)
		}
		closeStore(t, copied)
	}
}

package store

import (
	"fmt"
	"strings"
	"testing"
)

// Damage to what can be made anew costs that alone; damage elsewhere costs the
// file its place.
func TestDamagedRenewableRecordIsLeftOut(t *testing.T) {
	const value, sum = "UPDATE records SET value = x'00' WHERE key = '%s'", "UPDATE records SET sum = sum + 1 WHERE key = '%s'"
	const version = "UPDATE records SET version = version + 1 WHERE key = '%s'"
	tests := []struct {
		name       string
		statements []string
		keys       []string
		aside      bool
	}{
		{"memory", []string{value}, []string{"rlc-memory/1"}, false},
		{"run", []string{value}, []string{"rlc-run/1"}, false},
		{"number of the last run", []string{version}, []string{"rlc-run-head"}, false},
		{"results", []string{value}, []string{"rlc-result/1/1"}, false},
		{"requests", []string{value}, []string{"rlc-requests"}, false},
		{"lease", []string{value}, []string{"rlc-lease"}, false},
		{"a sum", []string{sum}, []string{"rlc-lease"}, false},
		{"several, one of them in its sum", []string{value, sum, version}, []string{"rlc-lease", "rlc-memory/1", "rlc-run/1"}, false},
		{"two sums", []string{sum, sum}, []string{"rlc-lease", "rlc-memory/1"}, true},
		{"decision", []string{value}, []string{"rlc-decision/1/1"}, true},
		{"head", []string{value}, []string{"state/head"}, true},
		{"lease and head", []string{value, value}, []string{"rlc-lease", "state/head"}, true},
		{"lease, and another is missing", []string{value, "DELETE FROM records WHERE key = '%s'"}, []string{"rlc-lease", "state/head"}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			s := openStore(t, dir)
			all := []string{"rlc-decision/1/1", "rlc-lease", "rlc-memory/1", "rlc-memory/2", "rlc-requests", "rlc-result/1/1", "rlc-run-head", "rlc-run/1", "state/head"}
			for _, key := range all {
				mustCommit(t, s, record(key, "v "+key))
			}
			for i, statement := range tt.statements {
				mustExec(t, s.config.write, fmt.Sprintf(statement, tt.keys[i]))
			}
			closeStore(t, s)

			s = openStore(t, dir)
			want := "left out"
			if tt.aside {
				want = "set aside"
			}
			if w := s.Warnings(); len(w) != 1 || !strings.Contains(w[0], want) {
				t.Errorf("warnings = %q, want one with %q", w, want)
			}
			if aside := len(s.SetAside()) > 0; aside != tt.aside {
				t.Errorf("set aside: %v, want %v", aside, tt.aside)
			}
			for _, key := range all {
				want := "v " + key
				if tt.aside || strings.Contains(strings.Join(tt.keys, " "), key) {
					want = ""
				}
				wantValue(t, s, key, want)
			}
			mustCommit(t, s, record("rlc-lease", "new"))
			closeStore(t, s)
			s = openStore(t, dir)
			if w := s.Warnings(); len(w) > 0 {
				t.Errorf("warnings at the next start: %q", w)
			}
			wantValue(t, s, "rlc-lease", "new")
		})
	}
}

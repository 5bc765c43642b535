package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"grl/limiter"
)

func TestMain(m *testing.M) {
	if role := os.Getenv("GRL_STORE_TEST_CHILD"); role != "" {
		os.Exit(runChild(role))
	}
	goleak.VerifyTestMain(m)
}

// openStore opens dir until the test ends.
func openStore(t testing.TB, dir string) *Store {
	t.Helper()
	s, err := Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeStore(t, s) })
	return s
}

// closeStore closes s, and again does nothing.
func closeStore(t testing.TB, s *Store) {
	t.Helper()
	if err := s.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		t.Errorf("Close: %v", err)
	}
}

func TestOpenKeepsOthersOut(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a?b #1%20", "data")
	openStore(t, dir)
	want := map[string]os.FileMode{".": 0o700, "grl.db": 0o600, "grl.db-wal": 0o600, "history.db": 0o600, "grl.lock": 0o600}
	for name, mode := range want {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Error(err)
			continue
		}
		if got := info.Mode().Perm(); got != mode {
			t.Errorf("%s has mode %o, want %o", name, got, mode)
		}
	}
}

func TestOpenRefusesASecondController(t *testing.T) {
	dir := t.TempDir()
	first := openStore(t, dir)
	_, err := Open(t.Context(), dir)
	if !errors.Is(err, ErrInUse) {
		t.Fatalf("second Open: %v, want ErrInUse", err)
	}
	if pid := fmt.Sprintf("process %d", os.Getpid()); !strings.Contains(err.Error(), pid) {
		t.Errorf("second Open: %q does not name %s", err, pid)
	}
	closeStore(t, first)
	openStore(t, dir)
}

func TestPragmas(t *testing.T) {
	s := openStore(t, t.TempDir())
	tests := []struct {
		file   *file
		pragma string
		want   string
	}{
		{s.config, "journal_mode", "wal"},
		{s.config, "synchronous", "2"}, // FULL
		{s.history, "journal_mode", "wal"},
		{s.history, "synchronous", "1"},    // NORMAL
		{s.history, "auto_vacuum", "2"},    // INCREMENTAL
		{s.config, "busy_timeout", "5000"}, // ms
		{s.config, "foreign_keys", "1"},
	}
	for _, tt := range tests {
		var got string
		if err := tt.file.write.QueryRowContext(t.Context(), "PRAGMA "+tt.pragma).Scan(&got); err != nil || got != tt.want {
			t.Errorf("PRAGMA %s = %q, %v, want %q", tt.pragma, got, err, tt.want)
		}
	}
	if _, err := s.config.read.ExecContext(t.Context(), "DELETE FROM records"); err == nil {
		t.Error("a connection of the read pool writes")
	}
}

func TestWorksInVirtualTime(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s, err := Open(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		mustCommit(t, s, record("payments", "v1"))
		start := time.Now()
		for range 3 {
			time.Sleep(time.Minute)
			mustAppend(t, s, time.Now(), Sample{Cell: limiter.CellID{Bucket: "payments/all"}, Zone: "z", Offered: 5, Admitted: 5})
		}
		minutes, err := s.Minutes(t.Context(), limiter.CellID{Bucket: "payments/all"}, start, time.Now().Add(time.Minute))
		if err != nil || len(minutes) != 3 {
			t.Errorf("Minutes = %v, %v, want 3 minutes", minutes, err)
		}
		if err := s.Close(); err != nil { // ends the goroutines of the pools, or the bubble fails
			t.Error(err)
		}
	})
}

func TestZonesAreRemembered(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	if zones, err := s.Zones(t.Context()); err != nil || len(zones) != 0 {
		t.Errorf("Zones of a new store = %v, %v, want none", zones, err)
	}
	at := time.UnixMilli(1_790_000_000_123)
	see := func(at time.Time, zones ...Zone) {
		t.Helper()
		if err := s.SawZones(t.Context(), zones, at); err != nil {
			t.Fatal(err)
		}
	}
	see(at, Zone{Name: "z1", Region: "eu"}, Zone{Name: "z2", Region: "eu"})
	see(at.Add(time.Hour), Zone{Name: "z2", Region: "us"})
	closeStore(t, s)
	s = openStore(t, dir)
	zones, err := s.Zones(t.Context())
	want := []Zone{{"z1", "eu", at}, {"z2", "us", at.Add(time.Hour)}}
	if err != nil || fmt.Sprint(zones) != fmt.Sprint(want) {
		t.Errorf("Zones = %v, %v, want %v", zones, err, want)
	}
}

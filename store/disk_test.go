package store

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// smallDisk returns a directory on a file system of that many bytes, and false
// if this process may not mount one.
func smallDisk(t *testing.T, options string) (dir string, ok bool) {
	t.Helper()
	dir = t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, options); err != nil {
		t.Logf("no small disk (%v): limiting the pages of the databases instead", err)
		return dir, false
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	return dir, true
}

// fillDisk takes all space and returns what gives it back.
func fillDisk(t *testing.T, dir string) (free func()) {
	t.Helper()
	path := filepath.Join(dir, "ballast")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	for block := make([]byte, 4096); err == nil; {
		_, err = f.Write(block)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

// limitPages lets no database grow, and returns what lets them again.
func limitPages(t *testing.T, s *Store) (free func()) {
	t.Helper()
	for _, f := range []*file{s.config, s.history} {
		mustExec(t, f.write, "PRAGMA max_page_count = 1") // of 1: as many as there are
	}
	return func() {
		for _, f := range []*file{s.config, s.history} {
			mustExec(t, f.write, "PRAGMA max_page_count = 1000000")
		}
	}
}

func TestFullDiskRefusesAndRecovers(t *testing.T) {
	dir, small := smallDisk(t, "size=3m")
	s := openStore(t, dir)
	mustCommit(t, s, record("a", "1"))
	mustAppend(t, s, at(0), Sample{Cell: reads, Zone: "z", Offered: 1})
	var free func()
	if small {
		free = fillDisk(t, dir)
	} else {
		free = limitPages(t, s)
	}

	large := record("a", randomText(400_000))
	samples := load(3000, newRand(9))
	for range 2 {
		if err := s.Commit(t.Context(), nil, []Write{large}); !errors.Is(err, ErrFull) || !errors.Is(err, ErrUnavailable) {
			t.Errorf("Commit on a full disk: %v, want ErrFull", err)
		}
		if err := s.AppendMinute(t.Context(), at(0), samples); !errors.Is(err, ErrFull) {
			t.Errorf("AppendMinute on a full disk: %v, want ErrFull", err)
		}
	}
	wantValue(t, s, "a", "1")
	if got := mustMinutes(t, s, reads, at(0), at(1)); len(got) != 1 || got[0].Offered != 1 {
		t.Errorf("Minutes on a full disk = %v, want the one that was acknowledged", got)
	}

	free()
	mustCommit(t, s, large)
	mustAppend(t, s, at(0), samples...)
	wantValue(t, s, "a", string(large.Value))
	if got := mustMinutes(t, s, samples[7].Cell, at(0), at(1)); len(got) != 1 || got[0].Offered != samples[7].Offered {
		t.Errorf("Minutes = %v, want %d offered once", got, samples[7].Offered)
	}
}

func TestOpenOfAReadOnlyDiskHarmsNothing(t *testing.T) {
	dir, small := smallDisk(t, "size=3m")
	if !small {
		t.Skip("needs root: mounts a file system read-only")
	}
	s := openStore(t, dir)
	fillFixture(t, s)
	closeStore(t, s)
	remount := func(flags uintptr) {
		t.Helper()
		if err := syscall.Mount("", dir, "", syscall.MS_REMOUNT|flags, ""); err != nil {
			t.Fatal(err)
		}
	}
	remount(syscall.MS_RDONLY)
	if s, err := Open(t.Context(), dir); err == nil {
		t.Error("Open on a read-only disk: no error", s.Close())
	}
	remount(0)
	wantFixture(t, openStore(t, dir))
}

func randomText(n int) string {
	raw := make([]byte, n/2)
	_, _ = rand.Read(raw) // never fails
	return hex.EncodeToString(raw)
}

// TestLockedByAnotherProcess holds the write lock through a second connection,
// as a person with the sqlite3 shell would.
func TestLockedByAnotherProcess(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s, err := Open(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		mustCommit(t, s, record("a", "1"))
		other, err := sql.Open("sqlite", dsn(filepath.Join(dir, "grl.db")))
		if err != nil {
			t.Fatal(err)
		}
		other.SetMaxOpenConns(1)
		mustExec(t, other, "BEGIN EXCLUSIVE")

		start := time.Now()
		err = s.Commit(t.Context(), nil, []Write{record("a", "2")})
		if waited := time.Since(start); waited < 4*time.Second || waited > 6*time.Second {
			t.Errorf("Commit waited %v for the lock, want 5s", waited)
		}
		if !errors.Is(err, ErrUnavailable) || errors.Is(err, ErrFull) {
			t.Errorf("Commit while another process writes: %v, want ErrUnavailable", err)
		}
		wantValue(t, s, "a", "1") // readers do not wait
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if err := s.Commit(ctx, nil, []Write{record("a", "2")}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Commit with a deadline while another process writes: %v, want DeadlineExceeded", err)
		}

		mustExec(t, other, "ROLLBACK")
		mustCommit(t, s, record("a", "2"))
		if err := errors.Join(other.Close(), s.Close()); err != nil {
			t.Error(err)
		}
	})
}

func mustExec(t testing.TB, db *sql.DB, statement string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}

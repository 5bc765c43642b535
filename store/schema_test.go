package store

import (
	"bytes"
	"context"
	"database/sql"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write testdata/v2 anew; only as long as version 2 is unreleased")

// fillFixture writes what wantFixture finds, beside what version 1 had.
func fillFixture(t testing.TB, s *Store) {
	t.Helper()
	mustCommit(t, s, record("epoch", "7"), record("state/head", `{"number":1}`))
	mustAppend(t, s, at(1), Sample{reads, "z1", 100, 90, 10, 4, 9, 0}, Sample{writes, "z2", 7, 7, 0, 0, 2, 0})
	if err := s.SawZones(t.Context(), []Zone{{Name: "z1", Region: "eu"}}, at(2)); err != nil {
		t.Fatal(err)
	}
}

func wantFixture(t testing.TB, s *Store) {
	t.Helper()
	if warnings := s.Warnings(); len(warnings) > 0 {
		t.Fatalf("warnings: %q", warnings)
	}
	wantValue(t, s, "epoch", "7")
	records, err := s.Get(t.Context(), "state/head")
	if err != nil || !bytes.HasPrefix(records[0].Value, []byte(`{"number":1`)) {
		t.Errorf("head = %s, %v, want that of r1", records[0].Value, err)
	}
	if got := mustMinutes(t, s, reads, at(0), at(60)); len(got) != 1 || got[0] != (Minute{at(1), 100, 90, 10, 4, 9, 0}) {
		t.Errorf("Minutes = %v, want the one written", got)
	}
	if zones, err := s.Zones(t.Context()); err != nil || len(zones) != 1 || zones[0].Name != "z1" {
		t.Errorf("Zones = %v, %v, want z1", zones, err)
	}
}

const (
	version1 = "testdata/v1"
	version2 = "testdata/v2"
)

// TestOpensOlderVersions opens files as versions wrote them, whatever the
// present one. What a ledger makes of version 1 is tested there.
func TestOpensOlderVersions(t *testing.T) {
	if *update {
		if err := os.RemoveAll(version2); err != nil {
			t.Fatal(err)
		}
		s := openStore(t, version2)
		fillFixture(t, s)
		closeStore(t, s)
		if err := os.Remove(filepath.Join(version2, "grl.lock")); err != nil {
			t.Fatal(err)
		}
	}
	for _, fixture := range []string{version1, version2} {
		dir := t.TempDir()
		copyStore(t, fixture, dir)
		wantFixture(t, openStore(t, dir))
	}
}

// TestDamagedVersion1IsSetAside changes rows of version 1 before they are moved.
func TestDamagedVersion1IsSetAside(t *testing.T) {
	for _, statement := range []string{
		"UPDATE documents SET body = x'00'",
		"UPDATE revisions SET author = 'eve'",
		"DELETE FROM manifests WHERE service = 'search'",
		"UPDATE head SET revision = 2",
		"DELETE FROM head",
		"UPDATE sources SET hash = 'x'",
		"UPDATE counters SET value = 3",
	} {
		dir := t.TempDir()
		copyStore(t, version1, dir)
		db, err := sql.Open("sqlite", filepath.Join(dir, "grl.db"))
		if err != nil {
			t.Fatal(err)
		}
		mustExec(t, db, statement)
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		s := openStore(t, dir)
		if w := s.Warnings(); len(w) != 1 || !strings.Contains(w[0], "set aside") {
			t.Errorf("%s: warnings %q, want one that it is set aside", statement, w)
		}
		wantValue(t, s, "epoch", "")
	}
}

// copyStore copies the databases with their logs, as a power cut would leave
// them.
func copyStore(t testing.TB, from, to string) {
	t.Helper()
	for _, name := range []string{"grl.db", "grl.db-wal", "history.db", "history.db-wal"} {
		content, err := os.ReadFile(filepath.Join(from, name))
		if os.IsNotExist(err) {
			continue
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(to, name), content, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// configSchemaWith is the schema of a later grl with one migration more.
func configSchemaWith(migration string) *schema {
	sc := configSchema()
	sc.migrations = append(sc.migrations, statements(migration))
	return sc
}

func TestMigrationKeepsWhatIsThere(t *testing.T) {
	dir := t.TempDir()
	copyStore(t, version1, dir)
	next := configSchemaWith("ALTER TABLE records ADD COLUMN note TEXT; CREATE INDEX by_version ON records (version)")
	for range 2 { // migrated, then as it is
		f, warning, err := openFile(t.Context(), filepath.Join(dir, "grl.db"), next)
		if err != nil || warning != "" {
			t.Fatalf("openFile: %q, %v", warning, err)
		}
		if version, err := userVersion(t.Context(), f.read); err != nil || version != 3 {
			t.Errorf("version %d, %v, want 3", version, err)
		}
		var value string
		if err := f.read.QueryRowContext(t.Context(), "SELECT value FROM records WHERE key = 'epoch'").Scan(&value); err != nil || value != "7" {
			t.Errorf("epoch = %q, %v, want 7", value, err)
		}
		if err := f.close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFailedMigrationChangesNothing(t *testing.T) {
	dir := t.TempDir()
	copyStore(t, version1, dir)
	bad := configSchemaWith("DELETE FROM records; ALTER TABLE nothing ADD COLUMN note TEXT")
	f, warning, err := openFile(t.Context(), filepath.Join(dir, "grl.db"), bad)
	if err == nil {
		t.Error("openFile with a wrong migration: no error", f.close())
	}
	if warning != "" {
		t.Errorf("a wrong migration counts as damage: %s", warning)
	}
	wantFixture(t, openStore(t, dir))
}

func TestOpenRefusesNewerVersions(t *testing.T) {
	for _, live := range []bool{false, true} { // true: the version is in the log only
		dir := t.TempDir()
		writeNewer(t, dir, live)
		before := readAll(t, dir)
		s, err := Open(t.Context(), dir)
		if err == nil {
			t.Fatal("Open of a newer file: no error", s.Close())
		}
		for _, want := range []string{"grl.db", "version 3", "version 2"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("Open of a newer file: %q does not name %s", err, want)
			}
		}
		for name, content := range before {
			if now := readAll(t, dir)[name]; now != content {
				t.Errorf("%s has changed", name)
			}
		}
	}
}

// writeNewer makes files of which grl.db is of version 3; live leaves it as a
// killed process would.
func writeNewer(t *testing.T, dir string, live bool) {
	t.Helper()
	origin := t.TempDir()
	copyStore(t, version1, origin)
	f, _, err := openFile(t.Context(), filepath.Join(origin, "grl.db"), configSchemaWith("CREATE TABLE more (a INTEGER) STRICT"))
	if err != nil {
		t.Fatal(err)
	}
	if live {
		copyStore(t, origin, dir)
	}
	if err := f.close(); err != nil {
		t.Fatal(err)
	}
	if !live {
		copyStore(t, origin, dir)
	}
}

// readAll returns databases and logs by name.
func readAll(t testing.TB, dir string) map[string]string {
	t.Helper()
	files := make(map[string]string)
	for _, name := range []string{"grl.db", "grl.db-wal", "history.db", "history.db-wal"} {
		if content, err := os.ReadFile(filepath.Join(dir, name)); err == nil {
			files[name] = string(content)
		}
	}
	return files
}

func TestFreshEqualsModel(t *testing.T) {
	s := openStore(t, t.TempDir())
	for sc, f := range map[*schema]*file{configSchema(): s.config, historySchema(): s.history} {
		if err := sc.checkObjects(t.Context(), f); err != nil {
			t.Error(err)
		}
		mustExec(t, f.write, "CREATE INDEX somebody_added ON "+map[string]string{"grl.db": "records (version)", "history.db": "cells (bucket)"}[sc.name])
		if err := sc.checkObjects(t.Context(), f); err != nil {
			t.Errorf("with an index that somebody added: %v", err)
		}
	}
}

func TestOpenObeysItsContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), -time.Second)
	defer cancel()
	dir := t.TempDir()
	copyStore(t, version1, dir)
	if s, err := Open(ctx, dir); err == nil {
		t.Error("Open with a context that ended: no error", s.Close())
	}
	wantFixture(t, openStore(t, dir))
}

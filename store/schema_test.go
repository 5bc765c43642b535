package store

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write testdata/v1 anew; only as long as version 1 is unreleased")

// fillFixture writes what wantFixture finds.
func fillFixture(t testing.TB, s *Store) {
	t.Helper()
	c := change("payments", "service: payments\n", "search", "service: search\n")
	c.Source, c.SourceHash = "limits directory", "abc"
	mustApply(t, s, 0, c)
	if _, err := s.NextEpoch(t.Context(), 6); err != nil {
		t.Fatal(err)
	}
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
	wantDocuments(t, s, mustHead(t, s).Number, change("payments", "service: payments\n", "search", "service: search\n"))
	if hash, revision, err := s.LastSource(t.Context(), "limits directory"); err != nil || hash != "abc" || revision != 1 {
		t.Errorf("LastSource = %q, r%d, %v, want abc, r1", hash, revision, err)
	}
	if got := mustMinutes(t, s, reads, at(0), at(60)); len(got) != 1 || got[0] != (Minute{at(1), 100, 90, 10, 4, 9, 0}) {
		t.Errorf("Minutes = %v, want the one written", got)
	}
	if zones, err := s.Zones(t.Context()); err != nil || len(zones) != 1 || zones[0].Name != "z1" {
		t.Errorf("Zones = %v, %v, want z1", zones, err)
	}
	if epoch, err := s.NextEpoch(t.Context(), 0); err != nil || epoch != 8 {
		t.Errorf("NextEpoch = %d, %v, want 8", epoch, err)
	}
}

// TestOpensVersion1 opens files that version 1 wrote, whatever the present one.
func TestOpensVersion1(t *testing.T) {
	const fixture = "testdata/v1"
	if *update {
		if err := os.RemoveAll(fixture); err != nil {
			t.Fatal(err)
		}
		s := openStore(t, fixture)
		fillFixture(t, s)
		closeStore(t, s)
		if err := os.Remove(filepath.Join(fixture, "grl.lock")); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	copyStore(t, fixture, dir)
	wantFixture(t, openStore(t, dir))
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
	copyStore(t, "testdata/v1", dir)
	next := configSchemaWith("ALTER TABLE revisions ADD COLUMN note TEXT; CREATE INDEX by_author ON revisions (author)")
	for range 2 { // migrated, then as it is
		f, warning, err := openFile(t.Context(), filepath.Join(dir, "grl.db"), next)
		if err != nil || warning != "" {
			t.Fatalf("openFile: %q, %v", warning, err)
		}
		if version, err := userVersion(t.Context(), f.read); err != nil || version != 3 {
			t.Errorf("version %d, %v, want 3", version, err)
		}
		head, err := readHead(t.Context(), f.read)
		if err != nil || head.Number != 1 || head.Author != "ann" {
			t.Errorf("head = %+v, %v, want r1 by ann", head, err)
		}
		if err := f.close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFailedMigrationChangesNothing(t *testing.T) {
	dir := t.TempDir()
	copyStore(t, "testdata/v1", dir)
	bad := configSchemaWith("DELETE FROM head; ALTER TABLE nothing ADD COLUMN note TEXT")
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
	copyStore(t, "testdata/v1", origin)
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
		mustExec(t, f.write, "CREATE INDEX somebody_added ON "+map[string]string{"grl.db": "revisions (author)", "history.db": "cells (bucket)"}[sc.name])
		if err := sc.checkObjects(t.Context(), f); err != nil {
			t.Errorf("with an index that somebody added: %v", err)
		}
	}
}

func TestOpenObeysItsContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), -time.Second)
	defer cancel()
	dir := t.TempDir()
	copyStore(t, "testdata/v1", dir)
	if s, err := Open(ctx, dir); err == nil {
		t.Error("Open with a context that ended: no error", s.Close())
	}
	wantFixture(t, openStore(t, dir))
}

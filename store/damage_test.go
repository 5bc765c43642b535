package store

import (
	"bytes"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"grl/limiter"
)

// damageCases is how many damaged stores a run opens, half of them new ones.
const damageCases = 120

// TestDamageNeverServesGarbage flips a byte in, truncates or removes a file,
// opens the store, and compares all it says with what was written: it may be
// missing, with a word about it, but never different.
func TestDamageNeverServesGarbage(t *testing.T) {
	origin := t.TempDir()
	s := openStore(t, origin)
	fillDamaged(t, s)
	live, closed := t.TempDir(), t.TempDir()
	copyStore(t, origin, live)
	closeStore(t, s)
	copyStore(t, origin, closed)

	fresh := uint64(time.Now().UnixNano())
	for i := range uint64(damageCases) {
		seed := i
		if i%2 == 1 {
			seed += fresh
		}
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 0))
			from := closed
			if r.IntN(3) == 0 {
				from = live
			}
			dir := t.TempDir()
			copyStore(t, from, dir)
			what := damage(t, r, dir)
			defer func() {
				if t.Failed() {
					t.Log(what)
				}
			}()
			checkDamaged(t, dir, from == live)
		})
	}
}

// A flipped top bit makes the version of a file negative.
func TestNegativeVersionIsDamage(t *testing.T) {
	for _, name := range []string{"grl.db", "history.db"} {
		dir := t.TempDir()
		closeStore(t, openStore(t, dir))
		db, err := sql.Open("sqlite", filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.Exec("PRAGMA user_version = -5"); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		s := openStore(t, dir)
		if w := s.Warnings(); len(w) != 1 || !strings.Contains(w[0], "set aside") {
			t.Errorf("%s: warnings %q, want one that it is set aside", name, w)
		}
		closeStore(t, s)
	}
}

const (
	damageRevisions = 12
	damageHours     = 4
	damageCells     = 60
)

func damageChange(revision uint64) Change {
	c := change("common", strings.Repeat("limit: 5\n", 700)) // on overflow pages
	for i := range 10 {
		c.Documents[fmt.Sprintf("service-%d", i)] = fmt.Appendf(nil, "revision: %d\n", revision/uint64(i+1))
	}
	c.Author, c.Reason = "bob", fmt.Sprint("reason ", revision)
	c.Source, c.SourceHash = "limits directory", fmt.Sprint("hash ", revision)
	return c
}

func damageCell(i int) limiter.CellID {
	return limiter.CellID{Bucket: fmt.Sprintf("service-%d/all", i)}
}

func damageSample(cell, hour int, zone string) Sample {
	n := uint64(1000 + 37*cell + hour + len(zone))
	return Sample{Cell: damageCell(cell), Zone: zone, Offered: n, Admitted: n - 5, Dropped: 5, ShadowDropped: 2, HighestSecond: n / 10}
}

func fillDamaged(t testing.TB, s *Store) {
	t.Helper()
	for r := range uint64(damageRevisions) {
		mustApply(t, s, r, damageChange(r+1))
	}
	if _, err := s.NextEpoch(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	for h := range damageHours {
		for m := range 10 {
			var samples []Sample
			for i := range damageCells {
				samples = append(samples, damageSample(i, h, "z1"), damageSample(i, h, "zone2"))
			}
			mustAppend(t, s, at(60*h+m), samples...)
		}
	}
	if err := s.SawZones(t.Context(), []Zone{{Name: "z1", Region: "eu"}, {Name: "zone2", Region: "eu"}}, at(0)); err != nil {
		t.Fatal(err)
	}
}

// damage changes one file and says how.
func damage(t testing.TB, r *rand.Rand, dir string) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.db*"))
	if err != nil {
		t.Fatal(err)
	}
	path := names[r.IntN(len(names))]
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	base, offset := filepath.Base(path), r.IntN(len(content))
	var what string
	switch r.IntN(8) {
	case 0:
		what, content = fmt.Sprintf("%s cut at %d", base, offset), content[:offset]
	case 1:
		n := min(512, len(content)-offset)
		what = fmt.Sprintf("%s zero from %d", base, offset)
		copy(content[offset:], make([]byte, n))
	case 2:
		offset %= headerSize
		fallthrough
	default:
		flip := byte(1 << r.IntN(8))
		what = fmt.Sprintf("%s byte %d xor %#x", base, offset, flip)
		content[offset] ^= flip
	}
	if strings.HasSuffix(base, "-wal") && r.IntN(8) == 0 {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		return base + " removed"
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return what
}

// checkDamaged compares what the store in dir says with what was written. live:
// it lay in logs, so a damaged log may take the newest of it.
func checkDamaged(t *testing.T, dir string, live bool) {
	t.Helper()
	before := readAll(t, dir)
	s, err := Open(t.Context(), dir)
	if err != nil {
		// The one thing that cannot be told from damage: a newer version.
		if !strings.Contains(err.Error(), "this grl knows up to version") {
			t.Errorf("Open: %v", err)
		}
		return
	}
	t.Cleanup(func() { closeStore(t, s) })
	for _, warning := range s.Warnings() {
		wantAside(t, dir, warning, before)
	}
	checkDamagedConfig(t, s, live)
	checkDamagedHistory(t, s)
	// Whatever happened, it works again.
	mustApply(t, s, mustHead(t, s).Number, change("a", "new"))
	mustAppend(t, s, at(600), Sample{Cell: reads, Zone: "z9", Offered: 1})
	if got := mustMinutes(t, s, reads, at(600), at(601)); len(got) != 1 || got[0].Offered != 1 {
		t.Errorf("Minutes after damage = %v, want the one written since", got)
	}
}

// wantAside checks that the file a warning names holds what was found.
func wantAside(t testing.TB, dir, warning string, before map[string]string) {
	t.Helper()
	name, _, damaged := strings.Cut(warning, " was damaged")
	if !damaged {
		return // a row
	}
	_, aside, _ := strings.Cut(warning, "set aside as ")
	aside, _, _ = strings.Cut(aside, ",")
	content, err := os.ReadFile(filepath.Join(dir, aside))
	if err != nil {
		t.Errorf("%s: %v", warning, err)
	}
	if before[name+"-wal"] == "" && !bytes.Equal(content, []byte(before[name])) {
		t.Errorf("%s: it is not the file that was found", warning)
	}
}

func checkDamagedConfig(t testing.TB, s *Store, live bool) {
	t.Helper()
	aside := strings.Contains(strings.Join(s.Warnings(), ""), "grl.db was damaged")
	head := mustHead(t, s)
	if head.Number != damageRevisions && !aside && !live {
		t.Errorf("head is r%d without a word, want r%d", head.Number, damageRevisions)
	}
	for number := uint64(1); number <= head.Number; number++ {
		if documents, err := s.Documents(t.Context(), number); err == nil {
			want := damageChange(number)
			if fmt.Sprint(asText(documents)) != fmt.Sprint(asText(want.Documents)) {
				t.Errorf("documents of r%d = %v", number, asText(documents))
			}
		}
	}
	revisions, err := s.Revisions(t.Context(), 100)
	if err == nil && len(revisions) != int(head.Number) {
		t.Errorf("%d revisions, want %d", len(revisions), head.Number)
	}
	for _, r := range revisions {
		if want := damageChange(r.Number); r.Author != want.Author || r.Reason != want.Reason || r.SourceHash != want.SourceHash || !r.At.Equal(want.At) {
			t.Errorf("r%d = %+v, want %+v", r.Number, r, want)
		}
	}
	hash, revision, err := s.LastSource(t.Context(), "limits directory")
	if err != nil || revision != head.Number || revision != 0 && hash != damageChange(revision).SourceHash {
		t.Errorf("LastSource = %q, r%d, %v, want that of r%d", hash, revision, err, head.Number)
	}
	epoch, err := s.NextEpoch(t.Context(), 0)
	if err != nil || epoch != 2 && !aside && !live || epoch > 2 {
		t.Errorf("NextEpoch = %d, %v, want 2", epoch, err)
	}
}

func checkDamagedHistory(t testing.TB, s *Store) {
	t.Helper()
	missing := 0
	for i := range damageCells {
		zones, err := s.MinutesByZone(t.Context(), damageCell(i), at(0), at(60*damageHours))
		if err != nil {
			t.Errorf("MinutesByZone: %v", err)
		}
		missing += 2*10*damageHours - len(zones["z1"]) - len(zones["zone2"])
		for zone, minutes := range zones {
			for _, m := range minutes {
				sample := damageSample(i, int(m.Start.Sub(at(0))/time.Hour), zone)
				if want := newMinute(m.Start, sample.counts()); m != want {
					t.Errorf("cell %d in %s: %+v, want %+v", i, zone, m, want)
				}
			}
		}
	}
	if missing > 0 {
		t.Logf("%d minutes missing, warnings %q", missing, s.Warnings())
	}
}

func TestDamagedHourIsLeftOutOfSums(t *testing.T) {
	s := openStore(t, t.TempDir())
	for _, minute := range []int{0, 60} {
		mustAppend(t, s, at(minute), Sample{Cell: reads, Zone: "z1", Offered: 5}, Sample{Cell: reads, Zone: "z2", Offered: 7})
	}
	mustExec(t, s.history.write, fmt.Sprintf("UPDATE hours SET max_second = 3 WHERE zone = 1 AND hour = %d", at(0).UnixMilli()))
	if got := mustMinutes(t, s, reads, at(0), at(120)); len(got) != 1 || got[0].Offered != 12 || !got[0].Start.Equal(at(60)) {
		t.Errorf("Minutes = %v, want only those of the second hour", got)
	}
	if warnings := s.Warnings(); len(warnings) != 1 || warnings[0] != damagedHour {
		t.Errorf("warnings = %q, want %q", warnings, damagedHour)
	}
}

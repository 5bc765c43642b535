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

	"github.com/google/go-cmp/cmp"

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
	damageCommits = 12
	damageHours   = 4
	damageCells   = 60
)

// damageWrites is the content of a commit: some records that stay, one that each
// writes anew and one that the next deletes.
func damageWrites(commit int) []Write {
	writes := []Write{
		record("head", fmt.Sprint("head ", commit)),
		record(fmt.Sprintf("large/%d", commit), strings.Repeat(fmt.Sprintf("limit: %d\n", commit), 700)), // on overflow pages
		record(fmt.Sprintf("short/%d", commit), fmt.Sprint("short ", commit)),
	}
	for i := range 10 {
		writes = append(writes, record(fmt.Sprintf("small/%d/%d", commit, i), fmt.Sprint("small ", commit/(i+1))))
	}
	if commit > 1 {
		writes = append(writes, Write{Key: fmt.Sprintf("short/%d", commit-1), Delete: true})
	}
	return writes
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
	for commit := range damageCommits {
		mustCommit(t, s, damageWrites(commit+1)...)
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
	checkDamagedRecords(t, s, live)
	checkDamagedHistory(t, s)
	// Whatever happened, it works again.
	mustCommit(t, s, record("a", "new"))
	wantValue(t, s, "a", "new")
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

// checkDamagedRecords compares the records with those after some commit, which
// is the last unless there is a word, or lay in a log that was damaged.
func checkDamagedRecords(t testing.TB, s *Store, live bool) {
	t.Helper()
	aside := strings.Contains(strings.Join(s.Warnings(), ""), "grl.db was damaged")
	records, err := s.List(t.Context(), "", "", 0)
	if err != nil {
		t.Fatal(err) // what Open did not notice
	}
	have := make(map[string]string)
	last := 0
	for _, r := range records {
		have[r.Key] = string(r.Value)
		if r.Key == "head" {
			if _, err := fmt.Sscanf(string(r.Value), "head %d", &last); err != nil {
				t.Errorf("head = %q", r.Value)
			}
		}
	}
	if last != damageCommits && !aside && !live {
		t.Errorf("records of commit %d without a word, want %d", last, damageCommits)
	}
	want := make(map[string]string)
	for commit := range last {
		for _, w := range damageWrites(commit + 1) {
			want[w.Key] = string(w.Value)
			if w.Delete {
				delete(want, w.Key)
			}
		}
	}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("records after commit %d (-want +got):\n%.2000s", last, diff)
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

package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"grl/store"
	"grl/store/ledger"
)

// RunLedger tests a ledger on an engine. open returns a new and empty one, which
// it closes when the test ends.
func RunLedger(t *testing.T, open func(testing.TB) store.Engine) {
	tests := []struct {
		name string
		run  func(*testing.T, *book)
	}{
		{"apply makes revisions", testApply},
		{"apply refuses an old base", testOldBase},
		{"apply of the same makes no revision", testSame},
		{"apply refuses what cannot be kept", testInvalidChange},
		{"sources", testSources},
		{"large sources", testLargeSources},
		{"one of many writers wins", testOneWins},
		{"manifest and bodies", testBodies},
		{"large documents", testLargeDocuments},
		{"rollout", testRollout},
		{"state changes are told", testStateChanged},
		{"epochs", testEpochs},
		{"caps", testCaps},
		{"caps by request", testCapRequests},
		{"a cap is extended", testExtendCap},
		{"bounds of caps", testCapBounds},
		{"mutes", testMutes},
		{"disable and enable", testDisable},
		{"hours", testHour},
		{"policies", testPolicies},
		{"bounds of policies", testPolicyBounds},
		{"memory of buckets", testMemory},
		{"runs", testRuns},
		{"old runs go", testOldRuns},
		{"a run that ends while the next one begins", testRunsRace},
		{"results", testResults},
		{"writers of one run", testRunWriters},
		{"decisions", testDecisions},
		{"many decisions", testManyDecisions},
		{"lease", testLease},
		{"one of many has the lease", testOneLease},
		{"requests", testRequests},
		{"audit", testAudit},
		{"long entries are cut", testLongEntries},
		{"audit without gaps", testAuditWriters},
		{"a broken audit shows", testBrokenAudit},
		{"accounts", testAccounts},
		{"tokens", testTokens},
		{"sessions", testSessions},
		{"no secrets in the audit", testNoSecrets},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := open(t)
			tt.run(t, &book{ledger.New(e), e})
		})
	}
}

// book is a ledger with its engine.
type book struct {
	*ledger.Ledger
	engine store.Engine
}

// noon is when test changes are made; milliseconds are what is kept.
var noon = time.Date(2026, 3, 4, 12, 0, 0, 7e6, time.UTC)

func by(actor string) ledger.Act {
	return ledger.Act{Actor: actor, From: "127.0.0.1", Reason: "test", RequestID: "1", At: noon}
}

// change makes a change of pairs of service and document.
func change(pairs ...string) ledger.Change {
	c := ledger.Change{Act: by("ann"), Action: "apply", Documents: make(map[string][]byte)}
	for i := 0; i < len(pairs); i += 2 {
		c.Documents[pairs[i]] = []byte(pairs[i+1])
		c.Subjects = append(c.Subjects, pairs[i]+"/all")
	}
	return c
}

func (b *book) mustApply(t testing.TB, base uint64, c ledger.Change) ledger.Revision {
	t.Helper()
	r, err := b.Apply(t.Context(), base, c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (b *book) mustState(t testing.TB) ledger.State {
	t.Helper()
	state, err := b.State(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return state
}

// wantDocuments compares the documents of a revision with those of c.
func (b *book) wantDocuments(t testing.TB, revision uint64, c ledger.Change) {
	t.Helper()
	got, err := b.Documents(t.Context(), revision)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(asText(c.Documents), asText(got)); diff != "" {
		t.Errorf("documents of r%d (-want +got):\n%.2000s", revision, diff)
	}
}

func asText(documents map[string][]byte) map[string]string {
	text := make(map[string]string)
	for service, body := range documents {
		text[service] = string(body)
	}
	return text
}

func (b *book) wantSound(t testing.TB, entries uint64) {
	t.Helper()
	v, err := b.VerifyAudit(t.Context())
	if err != nil || v.Broken != 0 || v.Entries != entries {
		t.Errorf("VerifyAudit = %+v, %v, want %d sound entries", v, err, entries)
	}
}

func testApply(t *testing.T, b *book) {
	if head, err := b.Head(t.Context()); err != nil || head.Number != 0 {
		t.Errorf("head of a new ledger is r%d, %v, want r0", head.Number, err)
	}
	b.wantDocuments(t, 0, change())

	first := change("payments", "limit: 1", "search", "limit: 2", "empty", "", "Größe & <b>", "x")
	first.Reason, first.Sources = "start", []ledger.Source{{Name: "limits directory", Hash: "abc"}}
	second := change("payments", "limit: 3", "search", "limit: 2")
	b.mustApply(t, 0, first)
	if r := b.mustApply(t, 1, second); r.Number != 2 || !r.Changed {
		t.Errorf("second Apply made r%d, changed %v, want r2, changed", r.Number, r.Changed)
	}
	b.wantDocuments(t, 1, first)
	b.wantDocuments(t, 2, second)
	revisions, err := b.Revisions(t.Context(), 0, 10)
	if err != nil || len(revisions) != 2 || revisions[0].Number != 2 {
		t.Fatalf("Revisions = %v, %v, want r2 and r1", revisions, err)
	}
	r := revisions[1]
	if r.Author != "ann" || r.Reason != "start" || r.Source != "limits directory" || r.SourceHash != "abc" || !r.At.Equal(noon) || r.Changed {
		t.Errorf("first revision is %+v, want what was applied", r)
	}
	if revisions, err := b.Revisions(t.Context(), 2, 10); err != nil || len(revisions) != 1 || revisions[0].Number != 1 {
		t.Errorf("Revisions before r2 = %v, %v, want r1", revisions, err)
	}
	if revisions, err := b.Revisions(t.Context(), 0, 1); err != nil || len(revisions) != 1 || revisions[0].Number != 2 {
		t.Errorf("Revisions, one = %v, %v, want r2", revisions, err)
	}
	if revisions, err := b.Revisions(t.Context(), 0, 0); err != nil || len(revisions) != 0 {
		t.Errorf("Revisions, none = %v, %v", revisions, err)
	}
	if _, err := b.Documents(t.Context(), 3); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("Documents(3): %v, want ErrNotFound", err)
	}
	if r, err := b.Revision(t.Context(), 1); err != nil || r.Number != 1 {
		t.Errorf("Revision(1) = r%d, %v", r.Number, err)
	}
	if _, err := b.Revision(t.Context(), 3); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("Revision(3): %v, want ErrNotFound", err)
	}
}

func testOldBase(t *testing.T, b *book) {
	winner := change("a", "1")
	b.mustApply(t, 0, winner)
	for _, base := range []uint64{0, 2} {
		head, err := b.Apply(t.Context(), base, change("a", "2"))
		if !errors.Is(err, ledger.ErrConflict) || head.Number != 1 || head.Changed {
			t.Errorf("Apply on r%d = r%d, %v, want the head r1 and ErrConflict", base, head.Number, err)
		}
	}
	b.wantDocuments(t, b.mustState(t).Head.Number, winner)
	b.wantSound(t, 1)
}

func testSame(t *testing.T, b *book) {
	if r := b.mustApply(t, 0, change()); r.Number != 0 || r.Changed {
		t.Errorf("Apply of nothing to an empty ledger made r%d", r.Number)
	}
	b.mustApply(t, 0, change("a", "1"))
	staged := change("a", "2")
	staged.Rollout = &ledger.Rollout{From: 1, State: ledger.RolloutRunning, StartedAt: noon, StepAt: noon}
	b.mustApply(t, 1, staged)
	for _, base := range []uint64{2, 1} { // 1: the answer to the change was lost
		if r := b.mustApply(t, base, change("a", "2")); r.Number != 2 || r.Changed {
			t.Errorf("Apply of the head on r%d made r%d, changed %v, want r2, unchanged", base, r.Number, r.Changed)
		}
	}
	if r := b.mustState(t).Rollout; r.Revision != 2 || r.State != ledger.RolloutRunning {
		t.Errorf("rollout = %+v, want the one of r2 to go on", r)
	}
	if r := b.mustApply(t, 2, change("a", "1")); r.Number != 3 || !r.Changed {
		t.Errorf("going back to r1 made r%d, changed %v, want r3", r.Number, r.Changed)
	}
	if r := b.mustApply(t, 3, change()); r.Number != 4 || !r.Changed {
		t.Errorf("removing all made r%d, changed %v, want r4", r.Number, r.Changed)
	}
	b.wantDocuments(t, 4, change())
	b.wantSound(t, 4)
}

func testInvalidChange(t *testing.T, b *book) {
	tests := map[string]func(*ledger.Change){
		"actor missing":   func(c *ledger.Change) { c.Actor = "" },
		"time missing":    func(c *ledger.Change) { c.At = time.Time{} },
		"in the year":     func(c *ledger.Change) { c.At = time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC) },
		"action missing":  func(c *ledger.Change) { c.Action = "" },
		`service ""`:      func(c *ledger.Change) { c.Documents[""] = nil },
		`service "\xff"`:  func(c *ledger.Change) { c.Documents["\xff"] = nil },
		"no name of 1 to": func(c *ledger.Change) { c.Documents[strings.Repeat("s", 257)] = nil },
		"at most 20":      func(c *ledger.Change) { c.Sources = make([]ledger.Source, 21) },
		"text of 257":     func(c *ledger.Change) { c.Sources = []ledger.Source{{Name: "s", Hash: strings.Repeat("h", 257)}} },
		"on one line":     func(c *ledger.Change) { c.Sources = []ledger.Source{{Name: "s", Hash: "a\nb"}} },
		"at most 393216": func(c *ledger.Change) {
			c.Sources = []ledger.Source{{Name: "s", Hash: "h"}, {Name: "s base", Hash: strings.Repeat("h", ledger.MaxSourceText)}}
		},
		"name of 0 bytes": func(c *ledger.Change) { c.Sources = []ledger.Source{{}} },
		"unknown state":   func(c *ledger.Change) { c.Rollout = &ledger.Rollout{} },
	}
	for want, spoil := range tests {
		c := change("a", "1")
		spoil(&c)
		if _, err := b.Apply(t.Context(), 0, c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Apply: %v, want %q", err, want)
		}
	}
	if head := b.mustState(t).Head; head.Number != 0 {
		t.Errorf("head is r%d, want r0", head.Number)
	}
}

func testSources(t *testing.T, b *book) {
	load := func(base uint64, hash string, c ledger.Change) {
		t.Helper()
		c.Sources = []ledger.Source{{Name: "limits directory", Hash: hash}, {Name: "git/main ü", Hash: "g" + hash}}
		b.mustApply(t, base, c)
	}
	want := func(hash string, revision uint64) {
		t.Helper()
		gotHash, gotRevision, err := b.LastSource(t.Context(), "limits directory")
		if err != nil || gotHash != hash || gotRevision != revision {
			t.Errorf("LastSource = %q, r%d, %v, want %q, r%d", gotHash, gotRevision, err, hash, revision)
		}
		gotHash, gotRevision, err = b.LastSource(t.Context(), "git/main ü")
		if err != nil || strings.TrimPrefix(gotHash, "g") != hash || gotRevision != revision {
			t.Errorf("LastSource of the other = %q, r%d, %v, want %q, r%d", gotHash, gotRevision, err, hash, revision)
		}
	}
	want("", 0)
	load(0, "h0", change())
	want("h0", 0)
	load(0, "h1", change("a", "1"))
	want("h1", 1)
	b.mustApply(t, 1, change("a", "2")) // a person's edit
	want("h1", 1)
	c := change("a", "3")
	c.Sources = []ledger.Source{{Name: "limits directory", Hash: "h2"}}
	if _, err := b.Apply(t.Context(), 1, c); !errors.Is(err, ledger.ErrConflict) {
		t.Errorf("load on an old base: %v, want ErrConflict", err)
	}
	want("h1", 1)
	load(1, "h3", change("a", "2")) // the files caught up with the edit
	want("h3", 2)
	b.wantSound(t, 2) // what changed nothing has no entry
}

// The worst is a text of which JSON escapes all, beside the longest entry.
func testLargeSources(t *testing.T, b *book) {
	long := strings.Repeat("\x01", 2*ledger.MaxText)
	for i, size := range []int{1, 929, 64 << 10, ledger.MaxSourceText - 1} {
		c := change("a", fmt.Sprint(i))
		text := strings.Repeat(`"`, size)
		c.Sources = []ledger.Source{{Name: "apply", Hash: "h"}, {Name: "apply base", Hash: text}}
		c.Reason, c.Before, c.After, c.Subjects = long, long, long, slices.Repeat([]string{long}, 1000)
		c.Rollout = &ledger.Rollout{Revision: uint64(i + 1), From: uint64(i), State: ledger.RolloutRunning, StartedAt: noon, StepAt: noon}
		r := b.mustApply(t, uint64(i), c)
		if r.SourceHash != "h" {
			t.Errorf("r%d has a source hash of %d bytes, want that of the first source", r.Number, len(r.SourceHash))
		}
		if got, revision, err := b.LastSource(t.Context(), "apply base"); err != nil || got != text || revision != r.Number {
			t.Errorf("LastSource = %d bytes, r%d, %v, want %d, r%d", len(got), revision, err, size, r.Number)
		}
	}
}

func testOneWins(t *testing.T, b *book) {
	var wg sync.WaitGroup
	errs := make([]error, writers)
	for i := range writers {
		wg.Go(func() { _, errs[i] = b.Apply(t.Context(), 0, change("a", fmt.Sprint(i))) })
	}
	wg.Wait()
	won := -1
	for i, err := range errs {
		switch {
		case err == nil && won < 0:
			won = i
		case !errors.Is(err, ledger.ErrConflict):
			t.Errorf("writer %d: %v, want ErrConflict (writer %d won)", i, err, won)
		}
	}
	if won < 0 {
		t.Fatal("no writer won")
	}
	b.wantDocuments(t, 1, change("a", fmt.Sprint(won)))
	b.wantSound(t, 1)
}

func testBodies(t *testing.T, b *book) {
	const services = 700 // on several pages
	c := change()
	for i := range services {
		c.Documents[fmt.Sprintf("service-%d", i)] = fmt.Appendf(nil, "limit: %d", i%500)
	}
	b.mustApply(t, 0, c)
	before, err := b.Manifest(t.Context(), 1)
	if err != nil || len(before) != services {
		t.Fatalf("manifest of %d services, %v, want %d", len(before), err, services)
	}
	if before["service-3"].Hash != before["service-503"].Hash || before["service-3"].Hash == before["service-4"].Hash {
		t.Error("equal documents have unequal hashes, or others equal ones")
	}
	c.Documents["service-3"] = []byte("limit: 7000")
	delete(c.Documents, "service-4")
	b.mustApply(t, 1, c)
	after, err := b.Manifest(t.Context(), 2)
	if err != nil {
		t.Fatal(err)
	}
	for service, d := range after {
		if service != "service-3" && before[service] != d {
			t.Errorf("%s: document changed", service)
		}
	}
	if _, ok := after["service-4"]; ok || len(after) != services-1 {
		t.Errorf("manifest of %d services, with service-4: %v", len(after), ok)
	}
	bodies, err := b.Bodies(t.Context(), after["service-3"], before["service-3"])
	if err != nil || string(bodies[after["service-3"].Hash]) != "limit: 7000" || string(bodies[before["service-3"].Hash]) != "limit: 3" {
		t.Errorf("Bodies = %q, %v", bodies, err)
	}
	if _, err := b.Bodies(t.Context(), ledger.Document{Hash: ledger.Hash{1}}); !errors.Is(err, store.ErrDamaged) {
		t.Errorf("Bodies of what there is not: %v, want ErrDamaged", err)
	}
	b.wantDocuments(t, 2, c)
}

func testLargeDocuments(t *testing.T, b *book) {
	const part = 512 << 10
	c := change()
	for _, n := range []int{0, 1, part - 1, part, part + 1, 2 * part, 3*part + 7} {
		c.Documents[fmt.Sprint("of-", n)] = []byte(strings.Repeat("0123456789abcdef-", n/17+1)[:n])
	}
	b.mustApply(t, 0, c)
	b.wantDocuments(t, 1, c)
	// A part that is missing, or of another document, is noticed.
	m, err := b.Manifest(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	hash := m[fmt.Sprint("of-", 3*part+7)].Hash
	key := fmt.Sprintf("doc/%s/0002", hash)
	for _, w := range []store.Write{remove(key), set(key, strings.Repeat("x", part))} {
		mustCommit(t, b.engine, w)
		if _, err := b.Documents(t.Context(), 1); !errors.Is(err, store.ErrDamaged) {
			t.Errorf("Documents with a part that was changed: %v, want ErrDamaged", err)
		}
	}
}

func testRollout(t *testing.T, b *book) {
	start := ledger.Rollout{From: 0, State: ledger.RolloutRunning, Reached: []string{"zone-a"}, StartedAt: noon, StepAt: noon, ByRegion: true}
	c := change("a", "1")
	c.Rollout = &start
	b.mustApply(t, 0, c)
	was := b.mustState(t).Rollout
	if was.Revision != 1 || was.State != ledger.RolloutRunning || len(was.Reached) != 1 {
		t.Fatalf("rollout = %+v, want that of r1", was)
	}
	next := was
	next.Reached, next.StepAt = []string{"zone-a", "zone-b"}, noon.Add(time.Minute)
	if err := b.SetRollout(t.Context(), by("controller"), "rollout.step", was, next); err != nil {
		t.Fatal(err)
	}
	if err := b.SetRollout(t.Context(), by("controller"), "rollout.step", was, next); !errors.Is(err, ledger.ErrConflict) {
		t.Errorf("SetRollout on what was: %v, want ErrConflict", err)
	}
	byZone := next
	byZone.ByRegion = false
	if err := b.SetRollout(t.Context(), by("controller"), "rollout.step", byZone, next); !errors.Is(err, ledger.ErrConflict) {
		t.Errorf("SetRollout on one by zone: %v, want ErrConflict", err)
	}
	if diff := cmp.Diff(next, b.mustState(t).Rollout); diff != "" {
		t.Errorf("rollout (-want +got):\n%s", diff)
	}
	bad := next
	bad.State = "half"
	if err := b.SetRollout(t.Context(), by("controller"), "rollout.step", next, bad); err == nil {
		t.Error("SetRollout to an unknown state: no error")
	}
	b.mustApply(t, 1, change("a", "2"))
	if r := b.mustState(t).Rollout; r.Revision != 0 {
		t.Errorf("rollout after a revision without one = %+v, want none", r)
	}
	if err := b.SetRollout(t.Context(), by("controller"), "rollout.start", ledger.Rollout{}, next); err != nil {
		t.Errorf("SetRollout of none: %v", err)
	}
	if err := b.SetRollout(t.Context(), by("controller"), "rollout.end", next, ledger.Rollout{}); err != nil {
		t.Errorf("SetRollout to none: %v", err)
	}
	b.wantSound(t, 5)
}

func testStateChanged(t *testing.T, b *book) {
	changed := b.Changed(t.Context())
	wait(t, changed)
	b.mustApply(t, 0, change("a", "1"))
	wait(t, changed)
	if _, err := b.Disable(t.Context(), by("ann"), ""); err != nil {
		t.Fatal(err)
	}
	wait(t, changed)
	if s := b.mustState(t); s.Head.Number != 1 || !s.Incident.AllDisabled {
		t.Errorf("state = %+v, want r1, all disabled", s)
	}
}

func testEpochs(t *testing.T, b *book) {
	var last uint64
	for _, heard := range []uint64{0, 0, 1, 40, 3, 0} {
		epoch, err := b.NextEpoch(t.Context(), heard)
		if want := max(last, heard) + 1; err != nil || epoch != want {
			t.Errorf("NextEpoch(%d) after %d = %d, %v, want %d", heard, last, epoch, err, want)
		}
		last = epoch
	}
	// What cannot have been heard is not believed, so nobody can use epochs up.
	for _, heard := range []uint64{1 << 40, 1<<64 - 1} {
		epoch, err := b.NextEpoch(t.Context(), heard)
		if want := last + 1<<20 + 1; err != nil || epoch != want {
			t.Errorf("NextEpoch(%d) after %d = %d, %v, want %d", heard, last, epoch, err, want)
		}
		last = epoch
	}
	var mu sync.Mutex
	taken := make(map[uint64]bool)
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			epoch, err := b.NextEpoch(t.Context(), 0)
			mu.Lock()
			defer mu.Unlock()
			if err != nil || taken[epoch] || epoch <= last {
				t.Errorf("NextEpoch = %d, %v, want one of its own above %d", epoch, err, last)
			}
			taken[epoch] = true
		})
	}
	wg.Wait()
}

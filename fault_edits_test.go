package main

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	_ "modernc.org/sqlite" // the driver

	grlv1 "grl/proto/grl/v1"
	"grl/roles/command/remote"
)

// kills is how often TestFaultKeepsEdits kills the controller.
var kills = flag.Int("kills", 200, "how often the test of edits kills the controller")

// TestFaultKeepsEdits kills the controller at random points while several
// writers edit. What was acknowledged is there afterwards, once and in order.
func TestFaultKeepsEdits(t *testing.T) {
	f := emptyFleet(t)
	f.addController("--controller.db", f.db)
	f.start()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))

	writers := []*writer{{name: "ann"}, {name: "bob"}, {name: "cap", caps: map[string]bool{}}}
	for i := range *kills {
		if i > 0 {
			f.controller.restart()
		}
		var editing sync.WaitGroup
		for _, w := range writers {
			w.conn = f.controller.connect()
			w.check(t)
			editing.Go(func() { w.edit(t) })
		}
		pause(time.Duration(random.Int64N(int64(200 * time.Millisecond))))
		f.controller.kill()
		editing.Wait()
		if t.Failed() {
			t.Fatalf("after %d kills", i+1)
		}
	}
	checkIntegrity(t, filepath.Join(f.db, "grl.db"))
	checkIntegrity(t, filepath.Join(f.db, "history.db"))

	f.controller.restart()
	if e := f.controller.ask("audit", "verify"); e.code != 0 {
		t.Errorf("grl audit verify ended with %d, want 0:\n%s%s", e.code, e.stdout, e.stderr)
	}
	revisions, entries := history(t, f.controller.connect())
	edits := 0
	for _, w := range writers {
		w.check(t)
		w.checkHistory(t, revisions, entries)
		edits += len(w.acknowledged)
	}
	report(t, "edits acknowledged over all kills", float64(edits), 0, "edits")
	if edits < *kills {
		t.Errorf("%d edits were acknowledged in %d lives of the controller, want more", edits, *kills)
	}
}

// A writer edits in one place after the other and takes down what was
// acknowledged. One with caps places and lifts them, the others apply the limits
// of a service of their own.
type writer struct {
	name         string
	conn         *remote.Conn
	last         int             // number of the last edit, acknowledged or not
	acknowledged []acknowledged  // in order
	caps         map[string]bool // id → acknowledged as placed and, so far, never asked to be lifted
}

// An acknowledged is an edit that the controller said it made.
type acknowledged struct {
	number   int
	revision uint64 // 0: of a cap
}

// reason names an edit in revisions and in the audit.
func (w *writer) reason(number int) string { return fmt.Sprintf("%s edit %d", w.name, number) }

// edit edits until the controller is gone.
func (w *writer) edit(t *testing.T) {
	for {
		w.last++
		var revision uint64
		var err error
		if w.caps != nil {
			err = w.turnCap(t.Context())
		} else {
			revision, err = w.apply(t.Context())
		}
		if err != nil {
			if answered(err) {
				t.Errorf("%s: %v", w.reason(w.last), err)
			}
			return // may have been made or not
		}
		w.acknowledged = append(w.acknowledged, acknowledged{w.last, revision})
	}
}

// answered reports whether an error is one that the controller sent.
func answered(err error) bool {
	var e *connect.Error
	return errors.As(err, &e) && connect.IsWireError(e)
}

// limitOf is what the edit of a number makes the limit of a service.
func limitOf(number int) float64 { return 1000 + float64(number) }

func (w *writer) apply(ctx context.Context) (uint64, error) {
	answer, err := w.conn.Config.Apply(ctx, &grlv1.ApplyRequest{
		Files:  []*grlv1.LimitsFile{{Name: w.name + ".yaml", Data: []byte(strings.ReplaceAll(shopLimit(limitOf(w.last)), "shop", w.name))}},
		Reason: w.reason(w.last),
	})
	return answer.GetOutcome().GetRevision().GetNumber(), err
}

// turnCap lifts a cap if there is one, or else places one.
func (w *writer) turnCap(ctx context.Context) error {
	for id := range w.caps {
		delete(w.caps, id) // may be lifted
		_, err := w.conn.Incident.LiftCap(ctx, &grlv1.LiftCapRequest{Id: id, Reason: w.reason(w.last)})
		return err
	}
	answer, err := w.conn.Incident.PlaceCap(ctx, &grlv1.PlaceCapRequest{
		Service: "shop", Caller: "web", Gate: &grlv1.PlaceCapRequest_Rps{Rps: 10},
		DurationMs: time.Hour.Milliseconds(), Reason: w.reason(w.last),
	})
	if err == nil {
		w.caps[answer.GetCap().GetCap().GetId()] = true
	}
	return err
}

// check compares what holds with the last edit acknowledged. Only the one after
// it, which was under way at the kill, may hold as well.
func (w *writer) check(t *testing.T) {
	t.Helper()
	if w.caps != nil {
		w.checkCaps(t)
		return
	}
	answer, err := w.conn.Config.GetConfiguration(t.Context(), &grlv1.GetConfigurationRequest{Service: w.name})
	if len(w.acknowledged) == 0 && remote.Code(err) == connect.CodeNotFound {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	least := 0
	if n := len(w.acknowledged); n > 0 {
		least = w.acknowledged[n-1].number
	}
	var text string
	for _, f := range answer.GetFiles() {
		text += string(f.GetData())
	}
	for number := least; number <= w.last; number++ {
		if strings.Contains(text, fmt.Sprintf("rps: %g}", limitOf(number))) || number == 0 && text == "" {
			return
		}
	}
	t.Errorf("%s: edits %d to %d may hold, but what does is:\n%s", w.name, least, w.last, text)
}

// checkCaps checks that all caps hold that were placed and not lifted, and lifts
// what else holds: a kill has taken its acknowledgement.
func (w *writer) checkCaps(t *testing.T) {
	t.Helper()
	list, err := w.conn.Incident.ListCaps(t.Context(), &grlv1.ListCapsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	for _, c := range list.GetCaps() {
		id := c.GetCap().GetId()
		there[id] = true
		if !w.caps[id] {
			if _, err := w.conn.Incident.LiftCap(t.Context(), &grlv1.LiftCapRequest{Id: id, Reason: "left over"}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for id := range w.caps {
		if !there[id] {
			t.Errorf("cap %s was placed and is gone", id)
		}
	}
}

// history returns all revisions and all entries of the audit, the oldest first
// and without gaps.
func history(t *testing.T, conn *remote.Conn) (revisions []*grlv1.Revision, entries []*grlv1.AuditEntry) {
	t.Helper()
	for before := uint64(0); before != 1; {
		page, err := conn.Config.ListRevisions(t.Context(), &grlv1.ListRevisionsRequest{Before: before, PageSize: 1000})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range page.GetRevisions() {
			if before != 0 && r.GetNumber() != before-1 {
				t.Fatalf("r%d comes before r%d", r.GetNumber(), before)
			}
			before = r.GetNumber()
			revisions = append(revisions, r)
		}
	}
	for before := uint64(0); before != 1; {
		page, err := conn.Audit.ListAudit(t.Context(), &grlv1.ListAuditRequest{Before: before, PageSize: 1000})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page.GetEntries() {
			if before != 0 && e.GetNumber() != before-1 {
				t.Fatalf("audit entry %d comes before entry %d", e.GetNumber(), before)
			}
			before = e.GetNumber()
			entries = append(entries, e)
		}
	}
	slices.Reverse(revisions)
	slices.Reverse(entries)
	return revisions, entries
}

// checkHistory checks that each acknowledged edit is in the audit, and in the
// revisions if it made one, once and in order. Others, whose acknowledgement a
// kill has taken, may be there once.
func (w *writer) checkHistory(t *testing.T, revisions []*grlv1.Revision, entries []*grlv1.AuditEntry) {
	t.Helper()
	made := map[string]uint64{} // reason → revision
	last := 0
	for _, r := range revisions {
		if strings.HasPrefix(r.GetReason(), w.name+" ") {
			last = w.follows(t, "revisions", r.GetReason(), last)
			made[r.GetReason()] = r.GetNumber()
		}
	}
	audited := map[string]uint64{}
	last = 0
	for _, e := range entries {
		if strings.HasPrefix(e.GetReason(), w.name+" ") {
			last = w.follows(t, "audit", e.GetReason(), last)
			audited[e.GetReason()] = e.GetRevision()
		}
	}
	for _, a := range w.acknowledged {
		revision, ok := audited[w.reason(a.number)]
		if !ok || revision != a.revision || made[w.reason(a.number)] != a.revision {
			t.Errorf("%s was acknowledged as r%d; the audit has it (%t) with r%d, the revisions as r%d",
				w.reason(a.number), a.revision, ok, revision, made[w.reason(a.number)])
		}
	}
	for reason, revision := range made {
		if audited[reason] != revision {
			t.Errorf("%s made r%d; the audit has it with r%d", reason, revision, audited[reason])
		}
	}
}

// follows returns the number of the edit with that reason, which must be above
// the last.
func (w *writer) follows(t *testing.T, where, reason string, last int) int {
	t.Helper()
	var number int
	if _, err := fmt.Sscanf(reason, w.name+" edit %d", &number); err != nil {
		t.Fatalf("%s: reason %q: %v", where, reason, err)
	}
	if number <= last {
		t.Errorf("%s: %s comes after edit %d", where, reason, last)
	}
	return number
}

// checkIntegrity has SQLite look at a database of a process that is dead.
func checkIntegrity(t *testing.T, file string) {
	t.Helper()
	db, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var result string
	if err := db.QueryRowContext(t.Context(), "PRAGMA integrity_check").Scan(&result); err != nil {
		t.Fatal(err)
	}
	if result != "ok" {
		t.Errorf("integrity of %s: %s", filepath.Base(file), result)
	}
}

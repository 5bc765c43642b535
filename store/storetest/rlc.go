package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"grl/store/ledger"
)

func (b *book) mustBegin(t testing.TB, r ledger.Run) ledger.Run {
	t.Helper()
	begun, err := b.BeginRun(t.Context(), by("configurator-1"), r)
	if err != nil {
		t.Fatal(err)
	}
	return begun
}

func (b *book) mustRun(t testing.TB, id uint64) ledger.Run {
	t.Helper()
	r, err := b.Run(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func testRuns(t *testing.T, b *book) {
	if runs, err := b.Runs(t.Context(), 0, 10); err != nil || len(runs) != 0 {
		t.Errorf("Runs of a new ledger = %v, %v", runs, err)
	}
	whole := ledger.Run{
		Trigger: "request", RequestID: "q1", Author: "ann", Configurator: "c1", DryRun: true,
		StartedAt: noon, Source: "history", PolicyRevision: 3, BaseRevision: 7, Buckets: 5000, Outcomes: []uint32{0, 4, 1},
	}
	begun := b.mustBegin(t, whole)
	whole.ID, whole.State = 1, ledger.RunRunning
	if diff := cmp.Diff(whole, begun); diff != "" {
		t.Errorf("BeginRun (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(whole, b.mustRun(t, 1)); diff != "" {
		t.Errorf("Run (-want +got):\n%s", diff)
	}
	second := b.mustBegin(t, ledger.Run{Configurator: "c2"})
	if second.ID != 2 || !second.StartedAt.Equal(noon) {
		t.Errorf("second run = %+v, want id 2, begun at the time of the act", second)
	}
	if r := b.mustRun(t, 1); r.State != ledger.RunFailed || r.Error != "configurator went away" || !r.FinishedAt.Equal(noon) || r.Source != "history" {
		t.Errorf("the run that was open = %+v, want failed", r)
	}
	r, err := b.UpdateRun(t.Context(), 2, func(r *ledger.Run) { r.ID, r.Done, r.Error = 99, 17, strings.Repeat("e", 5000) })
	if err != nil || r.ID != 2 || r.Done != 17 || len(r.Error) > 1<<10 {
		t.Errorf("UpdateRun = %+v, %v, want run 2 with 17 done and a short error", r, err)
	}
	finish := func(state string, revision uint64) error {
		_, err := b.FinishRun(t.Context(), by("c2"), 2, func(r *ledger.Run) { r.State, r.Revision, r.FinishedAt = state, revision, noon })
		return err
	}
	if err := finish(ledger.RunRunning, 0); err == nil {
		t.Error("a run is finished and still runs")
	}
	if err := finish("odd", 0); err == nil {
		t.Error("a run is finished in an unknown state")
	}
	if err := finish(ledger.RunDone, 0); err != nil {
		t.Error(err)
	}
	b.wantSound(t, 0) // it changed nothing
	if err := finish(ledger.RunDone, 8); err != nil {
		t.Error(err)
	}
	entries, err := b.Audit(t.Context(), 0, 10, ledger.Filter{Action: "rlc.run", Subject: "run 2"})
	if err != nil || len(entries) != 1 || entries[0].Revision != 8 || entries[0].Actor != "c2" {
		t.Errorf("audit = %+v, %v, want the run that made r8", entries, err)
	}
	if _, err := b.UpdateRun(t.Context(), 2, func(r *ledger.Run) { r.State = ledger.RunRunning }); err == nil {
		t.Error("a run that was over runs again")
	}
	for _, id := range []uint64{0, 3} {
		if _, err := b.Run(t.Context(), id); !errors.Is(err, ledger.ErrNotFound) {
			t.Errorf("Run(%d): %v, want ErrNotFound", id, err)
		}
		if _, err := b.UpdateRun(t.Context(), id, func(*ledger.Run) {}); !errors.Is(err, ledger.ErrNotFound) {
			t.Errorf("UpdateRun(%d): %v, want ErrNotFound", id, err)
		}
	}
}

func testOldRuns(t *testing.T, b *book) {
	const more = 3
	for i := range ledger.MaxRuns + more {
		r := b.mustBegin(t, ledger.Run{})
		if i < 2*more { // some that go, some that stay
			b.mustAdd(t, r.ID, ledger.Result{Bucket: "a", Data: []byte("1")})
			b.mustDecide(t, r.ID, ledger.Approved, "a")
		}
	}
	for _, tt := range []struct {
		before       uint64
		limit        int
		count        int
		newest, last uint64
	}{
		{0, 1000, ledger.MaxRuns, ledger.MaxRuns + more, more + 1},
		{0, 2, 2, ledger.MaxRuns + more, ledger.MaxRuns + more - 1},
		{more + 3, 10, 2, more + 2, more + 1},
	} {
		runs, err := b.Runs(t.Context(), tt.before, tt.limit)
		if err != nil || len(runs) != tt.count || runs[0].ID != tt.newest || runs[len(runs)-1].ID != tt.last {
			t.Errorf("Runs(%d, %d) = %d runs, %v, want %d from %d to %d", tt.before, tt.limit, len(runs), err, tt.count, tt.newest, tt.last)
		}
	}
	if runs, err := b.Runs(t.Context(), more, 10); err != nil || len(runs) != 0 {
		t.Errorf("Runs of those that are gone = %v, %v", runs, err)
	}
	if err := b.Results(t.Context(), 1, nil); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("Results of a run that is gone: %v, want ErrNotFound", err)
	}
	for _, prefix := range []string{"rlc-result/", "rlc-decision/"} {
		records, err := b.engine.List(t.Context(), prefix, "", 0)
		if err != nil || len(records) != more {
			t.Errorf("%d records below %q, %v, want %d", len(records), prefix, err, more)
		}
	}
}

// testRunsRace lets runs be done just as the next one begins: whoever was told so
// may rely on it.
func testRunsRace(t *testing.T, b *book) {
	id := b.mustBegin(t, ledger.Run{}).ID
	for range 40 {
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := b.UpdateRun(t.Context(), id, func(r *ledger.Run) { r.State, r.Error = ledger.RunDone, "" }); err != nil {
				t.Error(err)
			}
		})
		next := b.mustBegin(t, ledger.Run{}).ID
		wg.Wait()
		if r := b.mustRun(t, id); r.State != ledger.RunDone {
			t.Fatalf("run %d is %s after it was done", id, r.State)
		}
		id = next
	}
}

func (b *book) mustAdd(t testing.TB, id uint64, results ...ledger.Result) {
	t.Helper()
	if err := b.AddResults(t.Context(), id, results); err != nil {
		t.Fatal(err)
	}
}

func (b *book) wantResults(t testing.TB, id uint64, want []ledger.Result) {
	t.Helper()
	var got []ledger.Result
	err := b.Results(t.Context(), id, func(r ledger.Result) error {
		got = append(got, r)
		return nil
	})
	equal := slices.EqualFunc(want, got, func(a, b ledger.Result) bool { return a.Bucket == b.Bucket && bytes.Equal(a.Data, b.Data) })
	if err != nil || !equal {
		t.Errorf("%d results of run %d, %v, want %d, or others", len(got), id, err, len(want))
	}
}

func testResults(t *testing.T, b *book) {
	id := b.mustBegin(t, ledger.Run{}).ID
	b.wantResults(t, id, nil)
	b.mustAdd(t, id)
	r := rand.New(rand.NewPCG(2, 0))
	var want []ledger.Result
	for i := range 10 { // parts of one commit each, and of several
		var more []ledger.Result
		for range 1 + i*i*5 {
			data := make([]byte, r.IntN(9000))
			for j := range data {
				data[j] = byte(r.Uint32())
			}
			more = append(more, ledger.Result{Bucket: fmt.Sprintf("service/%d", r.IntN(1000)), Data: data})
		}
		b.mustAdd(t, id, more...)
		want = append(want, more...)
	}
	largest := ledger.Result{Bucket: "b", Data: make([]byte, ledger.MaxResult-1)}
	b.mustAdd(t, id, largest, ledger.Result{}, largest)
	want = append(want, largest, ledger.Result{}, largest)
	b.wantResults(t, id, want)
	if err := b.AddResults(t.Context(), id, []ledger.Result{{Bucket: "bb", Data: largest.Data}}); err == nil {
		t.Error("a result longer than MaxResult is taken")
	}
	odd := errors.New("odd")
	if err := b.Results(t.Context(), id, func(ledger.Result) error { return odd }); !errors.Is(err, odd) {
		t.Errorf("Results: %v, want the error of the function", err)
	}
	other := b.mustBegin(t, ledger.Run{}).ID // the first one failed
	if err := b.AddResults(t.Context(), id, want[:1]); !errors.Is(err, ledger.ErrNotRunning) {
		t.Errorf("AddResults to a run that is over: %v, want ErrNotRunning", err)
	}
	if err := b.AddResults(t.Context(), 99, want[:1]); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("AddResults to no run: %v, want ErrNotFound", err)
	}
	b.wantResults(t, other, nil)
	b.wantResults(t, id, want)
	key := fmt.Sprintf("rlc-result/%020d/0001", id)
	packed := mustGet(t, b.engine, key)[0].Value
	mustCommit(t, b.engine, set(key, string(packed[:len(packed)-9])))
	if err := b.Results(t.Context(), id, func(ledger.Result) error { return nil }); err == nil {
		t.Error("Results of a record that was cut: no error")
	}
}

// testRunWriters lets progress and results of one run come at once.
func testRunWriters(t *testing.T, b *book) {
	id := b.mustBegin(t, ledger.Run{}).ID
	const each = 10
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range each {
				var err error
				if w%2 == 0 {
					err = b.AddResults(t.Context(), id, []ledger.Result{{Bucket: fmt.Sprintf("%d/%d", w, i)}})
				} else {
					_, err = b.UpdateRun(t.Context(), id, func(r *ledger.Run) { r.Done++ })
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if r := b.mustRun(t, id); r.Done != 2*each {
		t.Errorf("%d done, want %d", r.Done, 2*each)
	}
	next := map[string]int{}
	err := b.Results(t.Context(), id, func(r ledger.Result) error {
		writer, number, _ := strings.Cut(r.Bucket, "/")
		if number != fmt.Sprint(next[writer]) {
			t.Errorf("result %s, want number %d of the writer", r.Bucket, next[writer])
		}
		next[writer]++
		return nil
	})
	if err != nil || next["0"] != each || next["2"] != each {
		t.Errorf("results by writer %v, %v, want %d each", next, err, each)
	}
}

func decisions(state string, buckets ...string) []ledger.Decision {
	var list []ledger.Decision
	for _, bucket := range buckets {
		list = append(list, ledger.Decision{Bucket: bucket, State: state})
	}
	return list
}

func (b *book) mustDecide(t testing.TB, id uint64, state string, buckets ...string) {
	t.Helper()
	if err := b.Decide(t.Context(), by("ann"), id, decisions(state, buckets...)); err != nil {
		t.Fatal(err)
	}
}

func testDecisions(t *testing.T, b *book) {
	id := b.mustBegin(t, ledger.Run{}).ID
	b.mustDecide(t, id, ledger.Approved)
	b.mustDecide(t, id, ledger.Approved, "a/1", "a/2")
	b.mustDecide(t, id, ledger.Rejected, "b/1")
	taken := ledger.Decision{Bucket: "b/2", State: ledger.Approved, By: "bob", At: noon.Add(time.Second), Revision: 9, Outcome: "applied"}
	if err := b.Decide(t.Context(), by("ann"), id, []ledger.Decision{taken}); err != nil {
		t.Fatal(err)
	}
	for _, list := range [][]ledger.Decision{
		decisions(ledger.Rejected, "a/1"),
		decisions(ledger.Approved, "a/3", "a/1"), // and none of both
	} {
		if err := b.Decide(t.Context(), by("bob"), id, list); !errors.Is(err, ledger.ErrConflict) {
			t.Errorf("Decide of what is decided: %v, want ErrConflict", err)
		}
	}
	for name, list := range map[string][]ledger.Decision{
		"unknown state": decisions("odd", "c"),
		"no bucket":     decisions(ledger.Approved, ""),
		"twice":         decisions(ledger.Approved, "c", "c"),
		"two states":    append(decisions(ledger.Approved, "c"), decisions(ledger.Rejected, "d")...),
	} {
		if err := b.Decide(t.Context(), by("ann"), id, list); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if err := b.Decide(t.Context(), by("ann"), 99, decisions(ledger.Approved, "c")); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("Decide of no run: %v, want ErrNotFound", err)
	}
	got, err := b.Decisions(t.Context(), id)
	want := map[string]ledger.Decision{
		"a/1": {Bucket: "a/1", State: ledger.Approved, By: "ann", At: noon},
		"a/2": {Bucket: "a/2", State: ledger.Approved, By: "ann", At: noon},
		"b/1": {Bucket: "b/1", State: ledger.Rejected, By: "ann", At: noon},
		"b/2": taken,
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("Decisions: %v (-want +got):\n%s", err, diff)
	}
	entries, err := b.Audit(t.Context(), 0, 10, ledger.Filter{Subject: fmt.Sprint("run ", id)})
	if err != nil || len(entries) != 3 || entries[0].Revision != 9 || entries[1].Action != "rlc.reject" || entries[2].Action != "rlc.approve" {
		t.Errorf("audit = %+v, %v, want both approvals and the rejection", entries, err)
	}
	b.wantSound(t, 3)
}

func testManyDecisions(t *testing.T, b *book) {
	id := b.mustBegin(t, ledger.Run{}).ID
	var buckets []string
	for i := range 25_000 {
		buckets = append(buckets, fmt.Sprintf("service-%d/bucket-%d", i/10, i))
	}
	b.mustDecide(t, id, ledger.Approved, buckets...)
	if got, err := b.Decisions(t.Context(), id); err != nil || len(got) != len(buckets) {
		t.Errorf("%d decisions, %v, want %d", len(got), err, len(buckets))
	}
	if err := b.Decide(t.Context(), by("ann"), id, decisions(ledger.Approved, strings.Repeat("x", 5<<20))); !errors.Is(err, ledger.ErrTooMany) {
		t.Errorf("a decision of 5 MiB: %v, want ErrTooMany", err)
	}
	// Of those who decide the same at once, one does.
	won := make(chan bool, 8)
	var wg sync.WaitGroup
	for range cap(won) {
		wg.Go(func() {
			err := b.Decide(t.Context(), by("ann"), id, decisions(ledger.Rejected, "one", "two"))
			if won <- err == nil; err != nil && !errors.Is(err, ledger.ErrConflict) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	close(won)
	winners := 0
	for ok := range won {
		if ok {
			winners++
		}
	}
	if winners != 1 {
		t.Errorf("%d decided the same, want 1", winners)
	}
}

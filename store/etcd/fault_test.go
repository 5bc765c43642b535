package etcd_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"grl/store"
	"grl/store/etcd"
	"grl/store/ledger"
	"grl/store/storetest"
)

// patience bounds waiting for what must come.
const patience = 30 * time.Second

func set(key, value string) []store.Write { return []store.Write{{Key: key, Value: []byte(value)}} }

// writer commits one record after another and remembers which were
// acknowledged. Others may be there or not.
type writer struct {
	name  string
	acked []string
}

func (w *writer) run(t *testing.T, e store.Engine, stop <-chan struct{}, done *atomic.Int64) {
	for i := 0; ; i++ {
		select {
		case <-stop:
			return
		default:
		}
		key := fmt.Sprintf("%s/%06d", w.name, i)
		err := e.Commit(t.Context(), nil, set(key, key))
		if err == nil {
			w.acked = append(w.acked, key)
			done.Add(1)
		} else if !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("commit: %v, want nil or ErrUnavailable", err)
		}
	}
}

// await waits until a count has grown by n.
func await(t *testing.T, count *atomic.Int64, n int64) {
	t.Helper()
	want := count.Load() + n
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); count.Load() < want; <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("only %d of %d commits in %v", count.Load()+n-want, n, patience)
		}
	}
}

// TestLeaderOfEtcdIsKilled kills the leader of three nodes during writes.
func TestLeaderOfEtcdIsKilled(t *testing.T) {
	cluster := storetest.StartEtcd(t, 3)
	e := openPart(t, cluster, "")
	l := ledger.New(e)
	changed := e.Changed(t.Context(), "last")
	<-changed // at the start

	var done, noted atomic.Int64
	stop := make(chan struct{})
	writers := make([]writer, 4)
	var wg sync.WaitGroup
	for i := range writers {
		writers[i].name = fmt.Sprint("writer-", i)
		wg.Go(func() { writers[i].run(t, e, stop, &done) })
	}
	var reasons []string
	wg.Go(func() { reasons = takeNotes(t, l, stop, &noted) })
	await(t, &done, 50)
	await(t, &noted, 10)
	leader := cluster.Leader(t)
	cluster.Kill(leader)
	killed := time.Now()
	await(t, &done, 50)
	t.Logf("50 commits were acknowledged %v after the leader was killed", time.Since(killed).Round(time.Millisecond))
	await(t, &noted, 10)
	cluster.Start(t, leader)
	cluster.WaitHealthy(t, leader)
	await(t, &done, 50)
	close(stop)
	wg.Wait()

	for _, w := range writers {
		wantAcked(t, e, w)
	}
	wantNotes(t, l, reasons)
	if err := e.Commit(t.Context(), nil, set("last", "1")); err != nil {
		t.Fatal(err)
	}
	awaitRecord(t, e, changed, "last", "1")
}

// takeNotes adds entries to the audit and returns the reasons of those that were
// acknowledged.
func takeNotes(t *testing.T, l *ledger.Ledger, stop <-chan struct{}, done *atomic.Int64) (reasons []string) {
	for i := 0; ; i++ {
		select {
		case <-stop:
			return reasons
		default:
		}
		reason := fmt.Sprint("note ", i)
		err := l.Note(t.Context(), ledger.Act{Actor: "ann", Reason: reason, At: time.Now()}, "note", nil, "", "")
		if err == nil {
			reasons = append(reasons, reason)
			done.Add(1)
		} else if !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("note: %v, want nil or ErrUnavailable", err)
		}
	}
}

func wantAcked(t *testing.T, e store.Engine, w writer) {
	t.Helper()
	records, err := e.List(t.Context(), w.name+"/", "", 0)
	if err != nil {
		t.Fatal(err)
	}
	there := make(map[string]string)
	for _, r := range records {
		there[r.Key] = string(r.Value)
	}
	for _, key := range w.acked {
		if there[key] != key {
			t.Errorf("%s was acknowledged and is lost", key)
		}
	}
}

func wantNotes(t *testing.T, l *ledger.Ledger, reasons []string) {
	t.Helper()
	if v, err := l.VerifyAudit(t.Context()); err != nil || v.Broken != 0 {
		t.Errorf("VerifyAudit = %+v, %v", v, err)
	}
	entries, err := l.Audit(t.Context(), 0, 1_000_000, ledger.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	times := make(map[string]int)
	for _, e := range entries {
		times[e.Reason]++
	}
	for _, reason := range reasons {
		if times[reason] != 1 {
			t.Errorf("%s was acknowledged and is there %d times", reason, times[reason])
		}
	}
}

// awaitRecord waits until word of changes leads to a value.
func awaitRecord(t *testing.T, e store.Engine, changed <-chan struct{}, key, value string) {
	t.Helper()
	for deadline := time.After(patience); ; {
		select {
		case <-changed:
		case <-deadline:
			t.Fatalf("no word of %s = %s", key, value)
		}
		records, err := e.Get(t.Context(), key)
		if err == nil && string(records[0].Value) == value {
			return
		}
	}
}

// TestEtcdIsKilledAndComesBack kills the only node.
func TestEtcdIsKilledAndComesBack(t *testing.T) {
	cluster := storetest.StartEtcd(t, 1)
	e := openPart(t, cluster, "")
	changed := e.Changed(t.Context(), "")
	leads, err := e.Campaign(t.Context(), "decider", "test")
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Commit(t.Context(), nil, set("a", "1")); err != nil {
		t.Fatal(err)
	}
	cluster.Kill(0)
	killed := time.Now()
	select {
	case <-leads.Lost():
	case <-time.After(patience):
		t.Fatal("leadership is not lost while etcd is gone")
	}
	if waited := time.Since(killed); waited > 4*time.Second {
		t.Errorf("leadership was lost after %v, want the 2s of its lease", waited)
	}
	if _, err := e.Get(t.Context(), "a"); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("Get while etcd is gone: %v, want ErrUnavailable", err)
	}
	if err := e.Commit(t.Context(), nil, set("a", "2")); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("Commit while etcd is gone: %v, want ErrUnavailable", err)
	}
	cluster.Start(t, 0)
	cluster.WaitHealthy(t, 0)
	records, err := e.Get(t.Context(), "a")
	if err != nil || string(records[0].Value) != "1" {
		t.Errorf("a = %q, %v after etcd came back, want what was acknowledged", records[0].Value, err)
	}
	if err := e.Commit(t.Context(), nil, set("a", "3")); err != nil {
		t.Error(err)
	}
	awaitRecord(t, e, changed, "a", "3")
	again, err := e.Campaign(t.Context(), "decider", "test")
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Resign(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestFullEtcd(t *testing.T) {
	cluster := storetest.StartEtcd(t, 1, "--quota-backend-bytes", "8388608")
	e := openPart(t, cluster, "")
	var err error
	for i := 0; err == nil && i < 100; i++ {
		err = e.Commit(t.Context(), nil, set(fmt.Sprint("key-", i), strings.Repeat("x", 512<<10)))
	}
	if !errors.Is(err, store.ErrFull) {
		t.Errorf("commits into a full etcd: %v, want ErrFull", err)
	}
	if _, err := e.Get(t.Context(), "key-0"); err != nil {
		t.Errorf("Get from a full etcd: %v", err)
	}
}

func TestNoEtcd(t *testing.T) {
	e, err := etcd.Open(t.Context(), etcd.Options{Endpoints: []string{"http://127.0.0.1:1"}})
	if !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("Open of nothing: %v, want ErrUnavailable", err)
	}
	if e != nil {
		t.Error("Open of nothing returned an engine", e.Close())
	}
	if _, err := etcd.Open(t.Context(), etcd.Options{}); err == nil {
		t.Error("Open without endpoints: no error")
	}
}

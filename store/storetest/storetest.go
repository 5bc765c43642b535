// Package storetest holds what every store.Engine must pass, alone and under a
// ledger, and starts a real etcd for tests.
package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"grl/store"
)

// patience bounds waiting for what should come at once: a test that waits so
// long has failed.
const patience = 30 * time.Second

// Run tests an engine. open returns a new and empty one, which it closes when
// the test ends.
func Run(t *testing.T, open func(testing.TB) store.Engine) {
	tests := []struct {
		name string
		run  func(*testing.T, store.Engine)
	}{
		{"nothing is there at first", testMissing},
		{"what is written is read", testReadsWrites},
		{"versions go up", testVersions},
		{"conditions", testConditions},
		{"all or nothing", testAtomic},
		{"lists", testLists},
		{"bounds", testBounds},
		{"hostile keys", testHostileKeys},
		{"no lost update", testNoLostUpdate},
		{"reads see one moment", testOneMoment},
		{"changes are told", testChanged},
		{"no change is missed", testNoGap},
		{"leads", testLeads},
		{"contexts that ended", testContext},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { tt.run(t, open(t)) })
	}
}

func mustGet(t testing.TB, e store.Engine, keys ...string) []store.Record {
	t.Helper()
	records, err := e.Get(t.Context(), keys...)
	if err != nil {
		t.Fatal(err)
	}
	if len(records) != len(keys) {
		t.Fatalf("Get of %d keys returned %d records", len(keys), len(records))
	}
	return records
}

func mustCommit(t testing.TB, e store.Engine, writes ...store.Write) {
	t.Helper()
	if err := e.Commit(t.Context(), nil, writes); err != nil {
		t.Fatal(err)
	}
}

func set(key, value string) store.Write { return store.Write{Key: key, Value: []byte(value)} }

func remove(key string) store.Write { return store.Write{Key: key, Delete: true} }

// wantRecord checks the value of a key, "-" for none.
func wantRecord(t testing.TB, e store.Engine, key, value string) {
	t.Helper()
	r := mustGet(t, e, key)[0]
	got := string(r.Value)
	if r.Version == 0 {
		got = "-"
	}
	if r.Key != key || got != value {
		t.Errorf("record %q = %q, want %q = %q", r.Key, got, key, value)
	}
}

func testMissing(t *testing.T, e store.Engine) {
	if r := mustGet(t, e, "a")[0]; r.Key != "a" || r.Version != 0 || len(r.Value) != 0 {
		t.Errorf("record of an empty engine = %+v, want none", r)
	}
	if records := mustGet(t, e); len(records) != 0 {
		t.Errorf("Get of no keys = %v", records)
	}
	if records, err := e.List(t.Context(), "", "", 0); err != nil || len(records) != 0 {
		t.Errorf("List of an empty engine = %v, %v", records, err)
	}
	if warnings := e.Warnings(); len(warnings) > 0 {
		t.Errorf("warnings of an empty engine: %q", warnings)
	}
	mustCommit(t, e, remove("a"))
	wantRecord(t, e, "a", "-")
}

func testReadsWrites(t *testing.T, e store.Engine) {
	binary := string([]byte{0, 1, 0xff, '\n', '"'})
	mustCommit(t, e, set("a", "1"), set("b", ""), set("c", binary), store.Write{Key: "d"})
	for key, value := range map[string]string{"a": "1", "b": "", "c": binary, "d": "", "e": "-"} {
		wantRecord(t, e, key, value)
	}
	records := mustGet(t, e, "c", "e", "a")
	if records[0].Key != "c" || records[1].Version != 0 || string(records[2].Value) != "1" {
		t.Errorf("Get = %+v, want the order of the keys", records)
	}
	mustCommit(t, e, set("a", "2"), remove("b"))
	wantRecord(t, e, "a", "2")
	wantRecord(t, e, "b", "-")
}

func testVersions(t *testing.T, e store.Engine) {
	var last uint64
	write := func(w store.Write) {
		t.Helper()
		mustCommit(t, e, w, set("other", w.Key))
		r := mustGet(t, e, "other")[0]
		if r.Version <= last {
			t.Errorf("version %d after %d, want a higher one", r.Version, last)
		}
		last = r.Version
	}
	write(set("a", "1"))
	write(set("a", "1"))
	write(remove("a"))
	write(set("a", "1")) // higher than before it was deleted
	if r := mustGet(t, e, "a")[0]; r.Version != last {
		t.Errorf("version %d, want %d as what was written together", r.Version, last)
	}
}

func testConditions(t *testing.T, e store.Engine) {
	commit := func(key string, version uint64, w store.Write) error {
		return e.Commit(t.Context(), []store.Condition{{Key: key, Version: version}}, []store.Write{w})
	}
	if err := commit("a", 0, set("a", "1")); err != nil {
		t.Fatalf("create: %v", err)
	}
	first := mustGet(t, e, "a")[0].Version
	for _, version := range []uint64{0, first + 1, 1 << 62} {
		if err := commit("a", version, set("a", "2")); !errors.Is(err, store.ErrConflict) {
			t.Errorf("commit on version %d: %v, want ErrConflict", version, err)
		}
	}
	wantRecord(t, e, "a", "1")
	if err := commit("a", first, set("b", "1")); err != nil {
		t.Errorf("commit on the version that is: %v", err)
	}
	if err := commit("a", first, remove("a")); err != nil {
		t.Errorf("delete on the version that is: %v", err)
	}
	if err := commit("a", first, set("a", "2")); !errors.Is(err, store.ErrConflict) {
		t.Errorf("commit on a record that went: %v, want ErrConflict", err)
	}
	if err := e.Commit(t.Context(), []store.Condition{{Key: "b", Version: 0}}, nil); !errors.Is(err, store.ErrConflict) {
		t.Errorf("conditions alone: %v, want ErrConflict", err)
	}
}

func testAtomic(t *testing.T, e store.Engine) {
	mustCommit(t, e, set("a", "1"))
	err := e.Commit(t.Context(), []store.Condition{{Key: "b", Version: 0}, {Key: "a", Version: 0}},
		[]store.Write{set("b", "1"), remove("a"), set("c", "1")})
	if !errors.Is(err, store.ErrConflict) {
		t.Errorf("commit with one condition that does not hold: %v, want ErrConflict", err)
	}
	wantRecord(t, e, "a", "1")
	wantRecord(t, e, "b", "-")
	wantRecord(t, e, "c", "-")
}

func testLists(t *testing.T, e store.Engine) {
	keys := []string{"A", "a", "a/", "a/1", "a/10", "a/2", "a/~", "a0", "b/1"}
	for _, i := range []int{4, 0, 8, 2, 6, 1, 5, 3, 7} {
		mustCommit(t, e, set(keys[i], keys[i]))
	}
	tests := []struct {
		prefix, after string
		limit         int
		want          string
	}{
		{"", "", 0, "A a a/ a/1 a/10 a/2 a/~ a0 b/1"},
		{"a/", "", 0, "a/ a/1 a/10 a/2 a/~"},
		{"a/", "", 2, "a/ a/1"},
		{"a/", "a/1", 2, "a/10 a/2"},
		{"a/", "a/~", 0, ""},
		{"a/", "a/11", 0, "a/2 a/~"},
		{"a/", "A", 1, "a/"},
		{"a/", "b", 0, ""},
		{"c", "", 0, ""},
	}
	for _, tt := range tests {
		records, err := e.List(t.Context(), tt.prefix, tt.after, tt.limit)
		var got []string
		for _, r := range records {
			got = append(got, r.Key)
			if string(r.Value) != r.Key || r.Version == 0 {
				t.Errorf("List(%q, %q, %d) has %+v", tt.prefix, tt.after, tt.limit, r)
			}
		}
		if err != nil || strings.Join(got, " ") != tt.want {
			t.Errorf("List(%q, %q, %d) = %v, %v, want %s", tt.prefix, tt.after, tt.limit, got, err, tt.want)
		}
	}
}

func testBounds(t *testing.T, e store.Engine) {
	largest := bytes.Repeat([]byte("x"), store.MaxValue-1)
	mustCommit(t, e, store.Write{Key: "a", Value: largest})
	if r := mustGet(t, e, "a")[0]; !bytes.Equal(r.Value, largest) {
		t.Errorf("the largest value came back with %d bytes", len(r.Value))
	}
	var many, large []store.Write
	for i := range store.MaxWrites - 1 {
		key := fmt.Sprintf("%s/%03d", strings.Repeat("k", store.MaxKey-4), i)
		many = append(many, set(key, "1"))
		large = append(large, store.Write{Key: key, Value: bytes.Repeat([]byte("y"), store.MaxCommit/store.MaxWrites-store.MaxKey)})
	}
	condition := []store.Condition{{Key: "a", Version: mustGet(t, e, "a")[0].Version}}
	for _, writes := range [][]store.Write{many, large} {
		if err := e.Commit(t.Context(), condition, writes); err != nil {
			t.Fatalf("the largest commit: %v", err)
		}
	}
	tests := []struct {
		name       string
		conditions []store.Condition
		writes     []store.Write
	}{
		{"a value too large", nil, []store.Write{{Key: "b", Value: make([]byte, store.MaxValue+1)}}},
		{"too many bytes", nil, []store.Write{{Key: "b", Value: largest}, {Key: "c", Value: largest}}},
		{"too many writes", nil, append(many, set("b", "1"), set("c", "1"))},
		{"too many of both", append(condition, condition...), many},
		{"a key twice", nil, []store.Write{set("b", "1"), set("b", "2")}},
		{"a key twice, once deleted", nil, []store.Write{set("b", "1"), remove("b")}},
	}
	for _, tt := range tests {
		if err := e.Commit(t.Context(), tt.conditions, tt.writes); err == nil || errors.Is(err, store.ErrUnavailable) {
			t.Errorf("%s: %v, want a refusal", tt.name, err)
		}
		wantRecord(t, e, "b", "-")
	}
}

func testHostileKeys(t *testing.T, e store.Engine) {
	refused := []string{"", " ", "a b", "a\n", "\x00", "a\x00", "\x7f", "é", "\xff", strings.Repeat("k", store.MaxKey+1)}
	for _, key := range refused {
		if err := e.Commit(t.Context(), nil, []store.Write{set(key, "1")}); err == nil {
			t.Errorf("commit of key %q: no error", key)
		}
		if err := e.Commit(t.Context(), []store.Condition{{Key: key}}, nil); err == nil {
			t.Errorf("condition on key %q: no error", key)
		}
		if _, err := e.Get(t.Context(), "a", key); err == nil {
			t.Errorf("get of key %q: no error", key)
		}
	}
	if _, err := e.List(t.Context(), "a\x00", "", 0); err == nil {
		t.Error("list of a hostile prefix: no error")
	}
	taken := []string{"%", "_", "*", "'", `"`, "';DROP/**/TABLE/**/records;--", "../../etc/passwd", "a//b", "/", "~", "a%00b", `\x00`}
	for i, key := range taken {
		mustCommit(t, e, set(key, strconv.Itoa(i)))
	}
	for i, key := range taken {
		wantRecord(t, e, key, strconv.Itoa(i))
		if records, err := e.List(t.Context(), key, "", 1); err != nil || len(records) != 1 || records[0].Key != key {
			t.Errorf("List(%q) = %v, %v", key, records, err)
		}
	}
}

// count reads the number that a record holds.
func count(t testing.TB, r store.Record) int {
	t.Helper()
	if r.Version == 0 {
		return 0
	}
	n, err := strconv.Atoi(string(r.Value))
	if err != nil {
		t.Error(err)
	}
	return n
}

const (
	writers = 8
	rounds  = 25
)

func testNoLostUpdate(t *testing.T, e store.Engine) {
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for done := 0; done < rounds; {
				records, err := e.Get(t.Context(), "n")
				if err != nil {
					t.Error(err)
					return
				}
				err = e.Commit(t.Context(), []store.Condition{{Key: "n", Version: records[0].Version}},
					[]store.Write{set("n", strconv.Itoa(count(t, records[0])+1))})
				if err == nil {
					done++
				} else if !errors.Is(err, store.ErrConflict) {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	wantRecord(t, e, "n", strconv.Itoa(writers*rounds))
}

// testOneMoment reads more records than fit in one request of etcd, of which the
// first and the last are always written together.
func testOneMoment(t *testing.T, e store.Engine) {
	keys := []string{"first"}
	for i := range 250 {
		keys = append(keys, fmt.Sprintf("between/%d", i))
	}
	keys = append(keys, "last")
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			err := e.Commit(ctx, nil, []store.Write{set("first", strconv.Itoa(i)), set("last", strconv.Itoa(i))})
			if err != nil && ctx.Err() == nil {
				t.Error(err)
			}
		}
	})
	for range 30 {
		records := mustGet(t, e, keys...)
		if first, last := records[0], records[len(records)-1]; first.Version != last.Version || !bytes.Equal(first.Value, last.Value) {
			t.Errorf("first is %+v, last is %+v, want the same moment", first, last)
		}
	}
	stop()
	wg.Wait()
}

// wait waits for a change.
func wait(t testing.TB, changed <-chan struct{}) (open bool) {
	t.Helper()
	select {
	case _, open = <-changed:
		return open
	case <-time.After(patience):
		t.Fatalf("no word of a change in %v", patience)
		return false
	}
}

func testChanged(t *testing.T, e store.Engine) {
	ctx, stop := context.WithCancel(t.Context())
	changed := e.Changed(ctx, "a/")
	wait(t, changed) // at the start
	for i, w := range []store.Write{set("a/1", "1"), set("a/1", "1"), set("a/2", "1"), remove("a/1")} {
		mustCommit(t, e, set("other", strconv.Itoa(i)), w)
		// A word may still come of what an earlier one told.
		if !wait(t, changed) {
			t.Fatal("the channel closed before its context ended")
		}
	}
	stop()
	for wait(t, changed) {
	}
}

func testNoGap(t *testing.T, e store.Engine) {
	changed := e.Changed(t.Context(), "n")
	const last = 300
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range last {
			if err := e.Commit(t.Context(), nil, []store.Write{set("n", strconv.Itoa(i+1))}); err != nil {
				t.Error(err)
			}
		}
	})
	for seen := 0; seen < last; {
		wait(t, changed)
		now := count(t, mustGet(t, e, "n")[0])
		if now < seen {
			t.Errorf("saw %d after %d", now, seen)
		}
		seen = now
	}
	wg.Wait()
}

func testLeads(t *testing.T, e store.Engine) {
	for range 2 {
		leadership, err := e.Campaign(t.Context(), "decider", "test")
		if err != nil {
			t.Fatal(err)
		}
		other, err := e.Campaign(t.Context(), "another", "test")
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range []store.Leadership{leadership, other} {
			select {
			case <-l.Lost():
				t.Error("leadership is lost at once")
			default:
			}
			if err := l.Resign(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}
}

func testContext(t *testing.T, e store.Engine) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.Get(ctx, "a"); !errors.Is(err, context.Canceled) {
		t.Errorf("Get: %v, want Canceled", err)
	}
	if _, err := e.List(ctx, "a", "", 0); !errors.Is(err, context.Canceled) {
		t.Errorf("List: %v, want Canceled", err)
	}
	if err := e.Commit(ctx, nil, []store.Write{set("a", "1")}); !errors.Is(err, context.Canceled) {
		t.Errorf("Commit: %v, want Canceled", err)
	}
	if _, err := e.Campaign(ctx, "decider", "test"); !errors.Is(err, context.Canceled) {
		t.Errorf("Campaign: %v, want Canceled", err)
	}
	wantRecord(t, e, "a", "-")
}

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

	"grl/store/ledger"
)

func testLease(t *testing.T, b *book) {
	const ttl = 12 * time.Second
	version := func() uint64 { return mustGet(t, b.engine, "rlc-lease")[0].Version }
	take := func(holder string, after time.Duration, status, wantHolder string, written bool) {
		t.Helper()
		before := version()
		lease, err := b.TakeLease(t.Context(), holder, ttl, noon.Add(after), []byte(status))
		if err != nil || lease.Holder != wantHolder {
			t.Errorf("TakeLease of %s after %v = %+v, %v, want %s", holder, after, lease, err, wantHolder)
		}
		if (version() != before) != written {
			t.Errorf("TakeLease of %s after %v: written %v, want %v", holder, after, version() != before, written)
		}
		if written && (!lease.At.Equal(noon.Add(after)) || !lease.Until.Equal(noon.Add(after+ttl)) || string(lease.Status) != status) {
			t.Errorf("TakeLease of %s after %v = %+v", holder, after, lease)
		}
		if kept, err := b.Lease(t.Context()); err != nil || !cmp.Equal(kept, lease) {
			t.Errorf("Lease = %+v, %v, want %+v", kept, err, lease)
		}
	}
	if lease, err := b.Lease(t.Context()); err != nil || lease.Holder != "" {
		t.Errorf("Lease of a new ledger = %+v, %v", lease, err)
	}
	take("one", 0, "s", "one", true)
	take("one", 2*time.Second, "s", "one", false)
	take("two", 2*time.Second, "", "one", false)
	take("one", 3*time.Second, "other", "one", false) // not yet
	take("one", 4*time.Second, "other", "one", true)
	take("two", 16*time.Second-1, "", "one", false)
	take("two", 16*time.Second, "t", "two", true)
	take("one", 16*time.Second, "s", "two", false)
	take("two", time.Second, "t", "two", true)            // its clock went back
	take("three", -13*time.Second, "t", "three", true)    // the end of "two" is more than twice the time away
	take("three", 200*time.Hour, "t", "three", true)      // a wrong clock
	take("three", -13*time.Second, "t", "three", true)    // right again
	take("three", -13*time.Second+1, "u", "three", false) // at once
	leave := func(holder string) {
		t.Helper()
		if err := b.LeaveLease(t.Context(), holder); err != nil {
			t.Fatal(err)
		}
	}
	leave("one")
	take("one", -12*time.Second, "", "three", false)
	leave("three")
	leave("three")
	take("one", -12*time.Second, "", "one", true)

	long, err := b.TakeLease(t.Context(), "one", time.Minute, noon, []byte("a"))
	if err != nil || !long.Until.Equal(noon.Add(time.Minute)) {
		t.Errorf("TakeLease = %+v, %v", long, err)
	}
	for _, tt := range []struct {
		after time.Duration
		want  string
	}{{9 * time.Second, "a"}, {10 * time.Second, "b"}} {
		lease, err := b.TakeLease(t.Context(), "one", time.Minute, noon.Add(tt.after), []byte("b"))
		if err != nil || string(lease.Status) != tt.want {
			t.Errorf("status after %v = %q, %v, want %q", tt.after, lease.Status, err, tt.want)
		}
	}
	for name, take := range map[string]func() (ledger.Lease, error){
		"no holder":   func() (ledger.Lease, error) { return b.TakeLease(t.Context(), "", ttl, noon, nil) },
		"no time":     func() (ledger.Lease, error) { return b.TakeLease(t.Context(), "x", 0, noon, nil) },
		"no clock":    func() (ledger.Lease, error) { return b.TakeLease(t.Context(), "x", ttl, time.Time{}, nil) },
		"long status": func() (ledger.Lease, error) { return b.TakeLease(t.Context(), "x", ttl, noon, make([]byte, 1<<20)) },
	} {
		if _, err := take(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// testOneLease lets many ask for the lease at once.
func testOneLease(t *testing.T, b *book) {
	var mu sync.Mutex
	holders := make(map[string]bool)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			lease, err := b.TakeLease(t.Context(), fmt.Sprint("holder-", i), time.Minute, noon, nil)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			holders[lease.Holder] = true
		})
	}
	wg.Wait()
	if len(holders) != 1 {
		t.Errorf("holders %v, want one", holders)
	}
}

func testRequests(t *testing.T, b *book) {
	request := func(id string) ledger.Request {
		return ledger.Request{ID: id, Author: "ann", DryRun: true, Policy: "nightly", Service: "payments", At: noon}
	}
	add := func(id string) error { return b.AddRequest(t.Context(), by("ann"), request(id)) }
	waiting := func(want ...string) {
		t.Helper()
		list, err := b.Requests(t.Context())
		var ids []string
		for _, r := range list {
			ids = append(ids, r.ID)
		}
		if err != nil || !slices.Equal(ids, want) {
			t.Errorf("requests %v, %v, want %v", ids, err, want)
		}
	}
	waiting()
	for i := range ledger.MaxRequests {
		if err := add(fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := add("one more"); !errors.Is(err, ledger.ErrTooMany) {
		t.Errorf("a request more than %d: %v, want ErrTooMany", ledger.MaxRequests, err)
	}
	if err := add("3"); err != nil { // the answer was lost
		t.Errorf("the same request: %v", err)
	}
	b.wantSound(t, ledger.MaxRequests)
	for i := range ledger.MaxRequests - 2 {
		if r, err := b.TakeRequest(t.Context(), fmt.Sprint(i)); err != nil || r != request(fmt.Sprint(i)) {
			t.Errorf("TakeRequest = %+v, %v", r, err)
		}
	}
	waiting("18", "19")
	if _, err := b.TakeRequest(t.Context(), "0"); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("TakeRequest again: %v, want ErrNotFound", err)
	}
	for _, id := range []string{"19", "18"} {
		if _, err := b.TakeRequest(t.Context(), id); err != nil {
			t.Error(err)
		}
	}
	waiting()
	for _, id := range []string{"", strings.Repeat("x", 300)} {
		if err := add(id); err == nil {
			t.Errorf("request of the id %.5q: no error", id)
		}
	}
}

package people

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"

	"grl/proto/access"
	"grl/store"
	"grl/store/ledger"
)

// line is the way to a store, which can be cut.
type line struct {
	store.Engine
	cut atomic.Bool
}

func (l *line) Get(ctx context.Context, keys ...string) ([]store.Record, error) {
	if l.cut.Load() {
		<-ctx.Done() // as one that does not answer at all
		return nil, store.ErrUnavailable
	}
	return l.Engine.Get(ctx, keys...)
}

func (l *line) List(ctx context.Context, prefix, after string, limit int) ([]store.Record, error) {
	if l.cut.Load() {
		<-ctx.Done()
		return nil, store.ErrUnavailable
	}
	return l.Engine.List(ctx, prefix, after, limit)
}

// While the store is away, whom it knew last may read and nothing else, for an
// hour; nobody new comes in, and no page waits for it more than once in five seconds.
func TestReadingWhileTheStoreIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := store.Open(t.Context(), t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		way := &line{Engine: s}
		r := &rig{ledger: ledger.New(way), log: &logged{}}
		if r.People, err = New(Options{Ledger: r.ledger, Log: slog.New(slog.DiscardHandler)}); err != nil {
			t.Fatal(err)
		}
		if !r.Open(t.Context()) {
			t.Fatal("not open without an account")
		}
		way.cut.Store(true)
		time.Sleep(2 * cacheFor)
		if !r.Open(t.Context()) {
			t.Error("not open although the store said so last")
		}
		way.cut.Store(false)
		time.Sleep(2 * storeAway)

		r.put(t, ledger.Account{Name: "ada", Role: roleEditor, Services: []string{"pay"}})
		ada, ctx := r.login(t, "ada", adaPassword)
		_, brief, err := r.CreateToken(ctx, ledger.Token{Name: "brief", Account: "ada", Role: roleViewer}, MinTokenLife)
		if err != nil {
			t.Fatal(err)
		}
		if p, err := r.Person(t.Context(), ada, "127.0.0.1"); err != nil || p.Level != access.Editor {
			t.Fatalf("Person = %+v, %v", p, err)
		}
		if _, err := r.Person(t.Context(), brief, "127.0.0.1"); err != nil {
			t.Fatal(err)
		}
		way.cut.Store(true)
		time.Sleep(2 * cacheFor)
		if _, err := r.Person(t.Context(), brief, "127.0.0.1"); err != nil {
			t.Errorf("a token: %v", err)
		}
		began := time.Now()
		for range 100 {
			p, err := r.Person(t.Context(), ada, "127.0.0.1")
			if err != nil || p.Name != "ada" || p.Level != access.Viewer {
				t.Fatalf("Person = %+v, %v; want ada, who may read", p, err)
			}
		}
		if waited := time.Since(began); waited > storeWithin {
			t.Errorf("100 calls waited %v for the store, want %v at most", waited, storeWithin)
		}
		if r.Open(t.Context()) {
			t.Error("open although there are accounts")
		}
		_, err = r.Person(t.Context(), newCredential(true).bearer(), "127.0.0.1")
		wantCode(t, "a session that it never knew", err, connect.CodeUnavailable)
		time.Sleep(MinTokenLife)
		_, err = r.Person(t.Context(), brief, "127.0.0.1")
		wantCode(t, "a token that has expired since", err, connect.CodeUnavailable)
		time.Sleep(outageFor)
		_, err = r.Person(t.Context(), ada, "127.0.0.1")
		wantCode(t, "an hour later", err, connect.CodeUnavailable)
		way.cut.Store(false)
		time.Sleep(2 * storeAway)
		r.wantGone(t, "a session that was idle for an hour", ada)
	})
}

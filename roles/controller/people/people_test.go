package people

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"
	"golang.org/x/crypto/argon2"

	"grl/proto/access"
	"grl/store"
	"grl/store/ledger"
)

const (
	rootPassword = "correct horse battery staple"
	adaPassword  = "a machine for weaving numbers"
)

// rig is People over a store on disk, with what it logged.
type rig struct {
	*People
	ledger *ledger.Ledger
	log    *logged
}

// logged keeps what was logged.
type logged struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func newRig(t *testing.T, provider *OIDC) *rig {
	t.Helper()
	s, err := store.Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	r := &rig{ledger: ledger.New(s), log: &logged{}}
	log := slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	if r.People, err = New(Options{Ledger: r.ledger, Log: log, OIDC: provider}); err != nil {
		t.Fatal(err)
	}
	return r
}

// calling returns the context of a call from an address by a person, nil for
// nobody.
func calling(t *testing.T, from string, p *access.Person) context.Context {
	return access.With(t.Context(), access.Identity{From: from, Person: p, RequestID: "r1"})
}

// open is who everyone is while there is no account.
func open(t *testing.T) context.Context {
	return calling(t, "127.0.0.1", &access.Person{Name: "local", Level: access.Admin, By: "open"})
}

// put writes accounts with adaPassword, and first root with rootPassword. Their
// hashes are cheap ones, since tests sign in often.
func (r *rig) put(t *testing.T, accounts ...ledger.Account) {
	t.Helper()
	for i, a := range append([]ledger.Account{{Name: "root", Role: "admin"}}, accounts...) {
		password := rootPassword
		if i > 0 {
			password = adaPassword
		}
		const salt = "0123456789abcdef"
		key := argon2.IDKey([]byte(password), []byte(salt), 1, 64, 1, hashBytes)
		a.Password = fmt.Sprintf("$argon2id$v=19$m=64,t=1,p=1$%s$%s",
			base64.RawStdEncoding.EncodeToString([]byte(salt)), base64.RawStdEncoding.EncodeToString(key))
		a.CreatedAt = time.Now()
		if err := r.write(t.Context(), act(open(t), ""), a); err != nil {
			t.Fatalf("put account %q: %v", a.Name, err)
		}
	}
}

// login returns the bearer and the context of calls with it.
func (r *rig) login(t *testing.T, account, password string) (string, context.Context) {
	t.Helper()
	bearer, _, err := r.Login(calling(t, "192.0.2.1", nil), account, password)
	if err != nil {
		t.Fatalf("login of %q: %v", account, err)
	}
	return bearer, r.with(t, bearer)
}

// with is the context of a call with a bearer.
func (r *rig) with(t *testing.T, bearer string) context.Context {
	t.Helper()
	p, err := r.Person(t.Context(), bearer, "192.0.2.1")
	if err != nil {
		t.Fatalf("person of a bearer: %v", err)
	}
	return calling(t, "192.0.2.1", &p)
}

// entries returns the audit's entries of an action, the oldest first.
func (r *rig) entries(t *testing.T, action string) []ledger.Entry {
	t.Helper()
	all, err := r.ledger.Audit(t.Context(), 0, 1000, ledger.Filter{Action: action})
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(all)
	return all
}

// wantCode checks that err is a Refusal of a code.
func wantCode(t *testing.T, what string, err error, code connect.Code) {
	t.Helper()
	var r *Refusal
	if !errors.As(err, &r) || r.Code != code {
		t.Errorf("%s: %v, want %v", what, err, code)
	}
}

// wantGone checks that a bearer is none any more.
func (r *rig) wantGone(t *testing.T, what, bearer string) {
	t.Helper()
	if p, err := r.Person(t.Context(), bearer, "192.0.2.1"); !errors.Is(err, access.ErrUnknown) {
		t.Errorf("%s: person %+v, %v, want ErrUnknown", what, p, err)
	}
}

func TestOpenUntilTheFirstAccount(t *testing.T) {
	r := newRig(t, nil)
	for range 2 { // read, then remembered
		if !r.Open(t.Context()) {
			t.Error("not open without accounts")
		}
	}
	_, err := r.PutAccount(open(t), ledger.Account{Name: "ada", Role: "viewer"}, adaPassword)
	wantCode(t, "a viewer as the first account", err, connect.CodeFailedPrecondition)
	if !r.Open(t.Context()) {
		t.Error("not open after a refused account")
	}
	r.put(t)
	if r.Open(t.Context()) {
		t.Error("open at once after the first account")
	}
}

func TestNotOpenWhenTheStoreDoesNotAnswer(t *testing.T) {
	s, err := store.Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p, err := New(Options{Ledger: ledger.New(s)})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if p.Open(t.Context()) {
		t.Error("open with a store that is closed")
	}
	_, err = p.Person(t.Context(), newCredential(true).bearer(), "192.0.2.1")
	if err == nil || errors.Is(err, access.ErrUnknown) {
		t.Errorf("Person: %v, want an error that is not ErrUnknown: it cannot tell", err)
	}
}

func TestFirstLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		nobody := calling(t, "192.0.2.1", nil)
		token := func() string {
			path, err := r.Bootstrap(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			secret, ok := strings.CutPrefix(path, "/first?token=")
			if !ok || len(secret) != 2*secretBytes {
				t.Fatalf("path %q", path)
			}
			return secret
		}
		old := token()
		present := token()
		for what, secret := range map[string]string{"no token": "", "a guess": strings.Repeat("0", 64), "the link before the last": old} {
			if r.MayCreateFirst(nobody, secret) {
				t.Errorf("%s: may create", what)
			}
			_, err := r.CreateFirst(nobody, secret, "mallory", adaPassword)
			wantCode(t, what, err, connect.CodePermissionDenied)
		}
		time.Sleep(FirstLinkLife)
		_, err := r.CreateFirst(nobody, present, "root", rootPassword)
		wantCode(t, "after an hour", err, connect.CodePermissionDenied)

		present = token()
		_, err = r.CreateFirst(nobody, present, "root", "short")
		wantCode(t, "with a short password", err, connect.CodeInvalidArgument)
		bearer, err := r.CreateFirst(nobody, present, "root", rootPassword)
		if err != nil {
			t.Fatalf("after a refused password: %v", err)
		}
		if p, err := r.Person(t.Context(), bearer, ""); err != nil || p.Name != "root" || p.Level != access.Admin {
			t.Errorf("person %+v, %v", p, err)
		}
		_, err = r.CreateFirst(nobody, present, "mallory", adaPassword)
		wantCode(t, "a second time", err, connect.CodePermissionDenied)
		if path, err := r.Bootstrap(t.Context()); path != "" || err != nil {
			t.Errorf("Bootstrap with an account: %q, %v", path, err)
		}
		if put := r.entries(t, "account.put"); len(put) != 1 || put[0].Actor != "root" || put[0].Reason != "first account" {
			t.Errorf("audit: %+v", put)
		}
	})
}

// While nobody needs to sign in, the dashboard makes the first account without a
// link.
func TestFirstAccountWhileOpen(t *testing.T) {
	r := newRig(t, nil)
	if _, err := r.CreateFirst(open(t), "", "root", rootPassword); err != nil {
		t.Fatal(err)
	}
	_, err := r.CreateFirst(open(t), "", "mallory", adaPassword)
	wantCode(t, "a second time", err, connect.CodePermissionDenied)
}

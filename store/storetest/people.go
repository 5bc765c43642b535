package storetest

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"grl/store/ledger"
)

func account(name, role string) ledger.Account {
	return ledger.Account{Name: name, Role: role, Services: []string{"payments"}, Owners: []string{"team"}, Password: secretPassword, CreatedAt: noon}
}

const (
	secretPassword = "$argon2id$v=19$m=19456,t=2,p=1$c2FsdA$aGFzaA"
	secretHash     = "0123456789abcdef0123456789abcdef"
)

func (b *book) mustPut(t testing.TB, a ledger.Account) {
	t.Helper()
	if err := b.PutAccount(t.Context(), by("root"), a); err != nil {
		t.Fatal(err)
	}
}

func testAccounts(t *testing.T, b *book) {
	put := func(a ledger.Account) error { return b.PutAccount(t.Context(), by("root"), a) }
	if err := put(account("ed", "editor")); !errors.Is(err, ledger.ErrLastAdmin) {
		t.Errorf("a first account that is no admin: %v, want ErrLastAdmin", err)
	}
	b.mustPut(t, account("ann", "admin"))
	b.mustPut(t, account("ed/ü x", "editor"))
	a, err := b.Account(t.Context(), "ed/ü x")
	if err != nil || a.Role != "editor" || a.Password != secretPassword || a.Services[0] != "payments" || a.Owners[0] != "team" || !a.CreatedAt.Equal(noon) {
		t.Errorf("Account = %+v, %v", a, err)
	}
	for _, name := range []string{"nobody", "", "ANN", strings.Repeat("x", 500)} {
		if _, err := b.Account(t.Context(), name); !errors.Is(err, ledger.ErrNotFound) {
			t.Errorf("Account(%.10q): %v, want ErrNotFound", name, err)
		}
	}
	if err := put(account("ann", "viewer")); !errors.Is(err, ledger.ErrLastAdmin) {
		t.Errorf("the last admin becomes a viewer: %v, want ErrLastAdmin", err)
	}
	if err := b.DeleteAccount(t.Context(), by("root"), "ann"); !errors.Is(err, ledger.ErrLastAdmin) {
		t.Errorf("the last admin is deleted: %v, want ErrLastAdmin", err)
	}
	b.mustPut(t, account("bob", "admin"))
	if err := b.DeleteAccount(t.Context(), by("root"), "ann"); err != nil {
		t.Error(err)
	}
	if err := b.DeleteAccount(t.Context(), by("root"), "ann"); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("deleting again: %v, want ErrNotFound", err)
	}
	accounts, err := b.Accounts(t.Context())
	if err != nil || len(accounts) != 2 || accounts[0].Name != "bob" {
		t.Errorf("Accounts = %v, %v, want bob and ed", accounts, err)
	}
	b.wantSound(t, 4)
	testAccountBound(t, b)
}

func testAccountBound(t *testing.T, b *book) {
	for i := range ledger.MaxAccounts - 2 { // behind its back, or it would take long
		name := fmt.Sprint("viewer-", i)
		mustCommit(t, b.engine, set("account/"+name, fmt.Sprintf(`{"name":%q,"role":"viewer"}`, name)))
	}
	if err := b.PutAccount(t.Context(), by("root"), account("more", "viewer")); !errors.Is(err, ledger.ErrTooMany) {
		t.Errorf("an account more: %v, want ErrTooMany", err)
	}
	b.mustPut(t, account("viewer-7", "editor"))
}

func token(id, account string) ledger.Token {
	return ledger.Token{ID: id, Name: "ci", Account: account, Role: "editor", Hash: []byte(secretHash), CreatedAt: noon, ExpiresAt: noon.Add(24 * time.Hour)}
}

func testTokens(t *testing.T, b *book) {
	add := func(tk ledger.Token) error { return b.AddToken(t.Context(), by("ann"), tk) }
	if err := add(token("t1", "ann")); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("a token of no account: %v, want ErrNotFound", err)
	}
	b.mustPut(t, account("ann", "admin"))
	b.mustPut(t, account("ed", "editor"))
	if err := errors.Join(add(token("t1", "ann")), add(token("t2", "ed"))); err != nil {
		t.Fatal(err)
	}
	if err := add(token("t1", "ed")); !errors.Is(err, ledger.ErrConflict) {
		t.Errorf("a second token of an id: %v, want ErrConflict", err)
	}
	tk, err := b.Token(t.Context(), "t1")
	if err != nil || tk.Account != "ann" || string(tk.Hash) != secretHash || !tk.UsedAt.IsZero() {
		t.Errorf("Token = %+v, %v", tk, err)
	}
	use := func(at time.Time) uint64 {
		t.Helper()
		if err := b.UseToken(t.Context(), "t1", at); err != nil {
			t.Error(err)
		}
		return mustGet(t, b.engine, "token/t1")[0].Version
	}
	first := use(noon.Add(time.Second))
	if again := use(noon.Add(50 * time.Second)); again != first {
		t.Error("use within a minute was written again")
	}
	if later := use(noon.Add(time.Minute)); later == first {
		t.Error("use a minute later was not written")
	}
	if tk, err := b.Token(t.Context(), "t1"); err != nil || !tk.UsedAt.Equal(noon.Truncate(time.Minute).Add(time.Minute)) {
		t.Errorf("used at %v, %v, want 12:01", tk.UsedAt, err)
	}
	if err := b.RevokeToken(t.Context(), by("ann"), "t1"); err != nil {
		t.Error(err)
	}
	if err := b.UseToken(t.Context(), "t1", noon.Add(time.Hour)); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("use of what was revoked: %v, want ErrNotFound", err)
	}
	if err := b.RevokeToken(t.Context(), by("ann"), "t1"); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("revoking again: %v, want ErrNotFound", err)
	}
	if tokens, err := b.Tokens(t.Context()); err != nil || len(tokens) != 1 || tokens[0].ID != "t2" {
		t.Errorf("Tokens = %v, %v, want t2", tokens, err)
	}
	testDeletedAccount(t, b)
}

// testDeletedAccount deletes an account with more tokens and sessions than fit
// in a commit.
func testDeletedAccount(t *testing.T, b *book) {
	const many = 230
	for i := range many {
		mustCommit(t, b.engine,
			set(fmt.Sprintf("token/of-ed-%d", i), `{"account":"ed"}`),
			set(fmt.Sprintf("session/of-ed-%d", i), `{"account":"ed"}`))
	}
	mustCommit(t, b.engine, set("session/of-ann", `{"account":"ann"}`))
	if err := b.DeleteAccount(t.Context(), by("ann"), "ed"); err != nil {
		t.Fatal(err)
	}
	if tokens, err := b.Tokens(t.Context()); err != nil || len(tokens) != 0 {
		t.Errorf("%d tokens are left, %v", len(tokens), err)
	}
	if sessions, err := b.Sessions(t.Context()); err != nil || len(sessions) != 1 {
		t.Errorf("%d sessions are left, %v, want that of ann", len(sessions), err)
	}
	b.wantSound(t, 6)
}

func session(id, account string, expires time.Time) ledger.Session {
	return ledger.Session{ID: id, Account: account, Hash: []byte(secretHash), From: "127.0.0.1", CreatedAt: noon, UsedAt: noon, ExpiresAt: expires}
}

func testSessions(t *testing.T, b *book) {
	b.mustPut(t, account("ann", "admin"))
	add := func(id string, at, expires time.Time) error {
		act := by("ann")
		act.At = at
		return b.AddSession(t.Context(), act, session(id, "ann", expires))
	}
	if err := errors.Join(add("s1", noon, noon.Add(time.Hour)), add("s2", noon, noon.Add(2*time.Hour))); err != nil {
		t.Fatal(err)
	}
	if err := add("s1", noon, noon.Add(time.Hour)); !errors.Is(err, ledger.ErrConflict) {
		t.Errorf("a second session of an id: %v, want ErrConflict", err)
	}
	if err := b.AddSession(t.Context(), by("ann"), session("s9", "bob", noon.Add(time.Hour))); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("a session of no account: %v, want ErrNotFound", err)
	}
	if err := b.UseSession(t.Context(), "s2", noon.Add(3*time.Minute)); err != nil {
		t.Error(err)
	}
	if s, err := b.Session(t.Context(), "s2"); err != nil || s.Account != "ann" || !s.UsedAt.Equal(noon.Truncate(time.Minute).Add(3*time.Minute)) {
		t.Errorf("Session = %+v, %v, want used at 12:03", s, err)
	}
	if err := add("s3", noon.Add(time.Hour), noon.Add(3*time.Hour)); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Session(t.Context(), "s1"); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("a session that expired when another began: %v, want ErrNotFound", err)
	}
	if err := b.EndSession(t.Context(), by("ann"), "s2"); err != nil {
		t.Error(err)
	}
	for _, err := range []error{b.EndSession(t.Context(), by("ann"), "s2"), b.UseSession(t.Context(), "s2", noon)} {
		if !errors.Is(err, ledger.ErrNotFound) {
			t.Errorf("a session that ended: %v, want ErrNotFound", err)
		}
	}
	if sessions, err := b.Sessions(t.Context()); err != nil || len(sessions) != 1 || sessions[0].ID != "s3" {
		t.Errorf("Sessions = %v, %v, want s3", sessions, err)
	}
	b.wantSound(t, 5)
}

// testNoSecrets does all that has to do with secrets, and looks for them in the
// audit.
func testNoSecrets(t *testing.T, b *book) {
	b.mustPut(t, account("ann", "admin"))
	changed := account("ann", "admin")
	changed.Password = strings.Replace(secretPassword, "c2FsdA", "b3RoZXI", 1)
	b.mustPut(t, changed)
	b.mustPut(t, account("ed", "editor"))
	if err := errors.Join(
		b.AddToken(t.Context(), by("ann"), token("t1", "ed")),
		b.RevokeToken(t.Context(), by("ann"), "t1"),
		b.AddSession(t.Context(), by("ed"), session("s1", "ed", noon.Add(time.Hour))),
		b.EndSession(t.Context(), by("ed"), "s1"),
		b.DeleteAccount(t.Context(), by("ann"), "ed"),
	); err != nil {
		t.Fatal(err)
	}
	records, err := b.engine.List(t.Context(), "audit/", "", 0)
	if err != nil || len(records) != 8 {
		t.Fatalf("%d entries, %v, want 8", len(records), err)
	}
	for _, r := range records {
		for _, secret := range []string{"argon2id", "aGFzaA", secretHash, base64.StdEncoding.EncodeToString([]byte(secretHash))[:30]} {
			if bytes.Contains(r.Value, []byte(secret)) {
				t.Errorf("entry %s holds %q", r.Value, secret)
			}
		}
	}
	if !bytes.Contains(records[1].Value, []byte(`changed`)) {
		t.Errorf("entry %s does not say that the password was changed", records[1].Value)
	}
}

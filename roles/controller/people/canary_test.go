package people

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"grl/proto/access"
	"grl/store/ledger"
)

// TestNoSecretLeaks goes every way in and out, right and wrong, and looks for
// what was secret in the log, the audit and all errors.
func TestNoSecretLeaks(t *testing.T) {
	p := newIDP(t)
	r := newRig(t, p.settings(t))
	var said strings.Builder
	hear := func(err error) {
		if err != nil {
			fmt.Fprintln(&said, err)
			fmt.Fprintln(&said, errors.Unwrap(err))
		}
	}
	secrets := []string{clientSecret, "canary of a wrong password", "canary in the field of the account", "canary of a new password", rootPassword}
	from := calling(t, "192.0.2.1:1000", nil)

	path, err := r.Bootstrap(t.Context())
	hear(err)
	link := strings.TrimPrefix(path, "/first?token=")
	_, err = r.CreateFirst(from, link+"0", "root", rootPassword)
	hear(err)
	_, err = r.CreateFirst(from, link, "Root", rootPassword)
	hear(err)
	first, err := r.CreateFirst(from, link, "root", rootPassword)
	hear(err)
	root := r.with(t, first)
	_, token, err := r.CreateToken(root, ledger.Token{Name: "ci", Role: "admin"}, time.Hour)
	hear(err)
	secrets = append(secrets, link, secretOf(t, first), secretOf(t, token))

	_, _, err = r.Login(from, "root", "canary of a wrong password")
	hear(err)
	_, _, err = r.Login(from, "canary in the field of the account", "canary of a wrong password")
	hear(err)
	_, err = r.PutAccount(root, ledger.Account{Name: "root", Role: "admin"}, "canary of a new password")
	hear(err)
	_, err = r.PutAccount(root, ledger.Account{Name: "ada", Role: "owner"}, "canary of a new password")
	hear(err)
	for _, bearer := range []string{first, token} {
		c, _ := parseCredential(bearer)
		c.id = random(idBytes)
		_, err = r.Person(t.Context(), c.bearer(), "192.0.2.1")
		hear(err)
	}
	hear(r.EndSession(root, secretOf(t, first)))
	hear(r.RevokeToken(root, secretOf(t, token)))

	for _, alter := range []func(map[string]any){nil, func(c map[string]any) { c["aud"] = "another" }} {
		p.alter = alter
		address, cookie, err := r.StartProvider(from, "/")
		hear(err)
		answer := p.authorize(t, address, ada("sre"))
		f := r.provider.flows.byID[cookie]
		secrets = append(secrets, cookie, answer.Get("code"), f.verifier, f.nonce, f.state)
		bearer, _, err := r.FinishProvider(from, cookie, answer)
		hear(err)
		if err == nil {
			secrets = append(secrets, secretOf(t, bearer))
			hear(r.Logout(r.with(t, bearer)))
		}
		_, _, err = r.FinishProvider(from, cookie, answer)
		hear(err)
	}
	p.alter = nil
	address, cookie, err := r.StartProvider(from, "/")
	hear(err)
	answer := p.authorize(t, address, ada("sre"))
	answer.Set("code", "canary-of-a-code")
	secrets = append(secrets, "canary-of-a-code", "an-access-token-of-the-provider")
	_, _, err = r.FinishProvider(from, cookie, answer)
	hear(err)
	r.refusals.flush(t.Context(), time.Now().Add(time.Hour), 0)

	entries, err := r.ledger.Audit(t.Context(), 0, 1000, ledger.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	audit, err := json.Marshal(entries)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) < 10 || !strings.Contains(r.log.String(), "sign in through the provider") || !strings.Contains(said.String(), "password is wrong") {
		t.Fatalf("%d entries, log %q, errors %q: too little was said to find anything", len(entries), r.log, &said)
	}
	for place, text := range map[string]string{"the audit": string(audit), "the log": r.log.String(), "an error": said.String()} {
		for i, secret := range secrets {
			if strings.Contains(text, secret) {
				t.Errorf("secret %d, %.8s…, is in %s", i, secret, place)
			}
		}
		if strings.Contains(text, "$argon2id$") {
			t.Errorf("the hash of a password is in %s", place)
		}
	}
}

// What lists give out has neither passwords nor secrets, nor their hashes.
func TestListsHoldNoSecrets(t *testing.T) {
	r := newRig(t, nil)
	r.put(t)
	bearer, root := r.login(t, "root", rootPassword)
	_, token, err := r.CreateToken(root, ledger.Token{Name: "ci", Role: "admin"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	s := r.Service()
	accounts, errA := s.ListAccounts(root, nil)
	tokens, errT := s.ListTokens(root, nil)
	sessions, errS := s.ListSessions(root, nil)
	who, errW := s.WhoAmI(root, nil)
	if err := errors.Join(errA, errT, errS, errW); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprint(accounts, tokens, sessions, who)
	for _, secret := range []string{"argon2", secretOf(t, bearer), secretOf(t, token), fmt.Sprintf("%x", hashOf(secretOf(t, token)))} {
		if strings.Contains(text, secret) {
			t.Errorf("%.8s… is in %s", secret, text)
		}
	}
	if len(accounts.GetAccounts()) != 1 || len(tokens.GetTokens()) != 1 || len(sessions.GetSessions()) != 1 {
		t.Errorf("lists: %s", text)
	}
}

func secretOf(t *testing.T, bearer string) string {
	t.Helper()
	c, ok := parseCredential(bearer)
	if !ok {
		t.Fatal("not a bearer")
	}
	return c.secret
}

var _ access.People = (*People)(nil)

package people

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"

	"grl/proto/access"
	"grl/store/ledger"
)

func TestSessionEndsWhenIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.put(t)
		bearer, _ := r.login(t, "root", rootPassword)
		for range 10 { // used each 29 minutes it goes on
			time.Sleep(SessionIdle - time.Minute)
			r.with(t, bearer)
		}
		time.Sleep(SessionIdle)
		r.wantGone(t, "after half an hour", bearer)
	})
}

func TestSessionEndsAfterTwelveHours(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.put(t)
		bearer, _ := r.login(t, "root", rootPassword)
		began := time.Now()
		for time.Since(began) < SessionLife-2*time.Second {
			r.with(t, bearer)
			time.Sleep(min(10*time.Minute, SessionLife-2*time.Second-time.Since(began)))
		}
		r.with(t, bearer)
		time.Sleep(2 * time.Second)
		r.wantGone(t, "after twelve hours of use", bearer)
	})
}

// A burst of calls reads the store once and writes once a minute.
func TestPersonIsRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.put(t)
		bearer, _ := r.login(t, "root", rootPassword)
		c, _ := parseCredential(bearer)
		time.Sleep(5 * time.Minute)
		r.with(t, bearer)
		s, err := r.ledger.Session(t.Context(), c.id)
		if err != nil || time.Since(s.UsedAt) >= time.Minute {
			t.Errorf("used %v ago, %v; want within the minute", time.Since(s.UsedAt), err)
		}
		// Behind the back of People, as another controller would.
		if err := r.ledger.EndSession(t.Context(), act(open(t), ""), c.id); err != nil {
			t.Fatal(err)
		}
		time.Sleep(cacheFor - time.Millisecond)
		r.with(t, bearer)
		time.Sleep(time.Millisecond)
		r.wantGone(t, "after a second", bearer)
	})
}

// A read that was under way while something changed is not remembered.
func TestCacheTakesNoOldReads(t *testing.T) {
	var c cache
	generation, at := c.begin()
	c.forget()
	c.keep(generation, at, "b", access.Person{Name: "ada"}, at.Add(time.Hour))
	c.keepOpen(generation, at)
	if p, ok := c.get(at, "b"); ok {
		t.Errorf("remembered %+v", p)
	}
	if _, ok := c.isOpen(at); ok {
		t.Error("remembered that it was open")
	}
}

func TestLoginTakesANewSession(t *testing.T) {
	r := newRig(t, nil)
	r.put(t)
	first, ctx := r.login(t, "root", rootPassword)
	second, _, err := r.Login(ctx, "root", rootPassword)
	if err != nil {
		t.Fatal(err)
	}
	if second == first {
		t.Error("the same session")
	}
	r.wantGone(t, "the session from before", first)
	r.with(t, second)
}

func TestWhatEndsASession(t *testing.T) {
	viewer := ledger.Account{Name: "ada", Role: "viewer"}
	for _, tt := range []struct {
		name string
		end  func(t *testing.T, r *rig, bearer string) error
	}{
		{"logout", func(t *testing.T, r *rig, bearer string) error { return r.Logout(r.with(t, bearer)) }},
		{"an admin", func(t *testing.T, r *rig, bearer string) error {
			c, _ := parseCredential(bearer)
			_, root := r.login(t, "root", rootPassword)
			return r.EndSession(root, c.id)
		}},
		{"deleting the account", func(t *testing.T, r *rig, _ string) error {
			_, root := r.login(t, "root", rootPassword)
			return r.DeleteAccount(root, "ada")
		}},
		{"another password", func(t *testing.T, r *rig, _ string) error {
			_, root := r.login(t, "root", rootPassword)
			_, err := r.PutAccount(root, viewer, "another password than before")
			return err
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, nil)
			r.put(t, viewer)
			bearer, _ := r.login(t, "ada", adaPassword)
			if err := tt.end(t, r, bearer); err != nil {
				t.Fatal(err)
			}
			r.wantGone(t, "at once", bearer)
		})
	}
}

// Who changes their own password stays signed in where they did it.
func TestOwnPasswordKeepsTheSession(t *testing.T) {
	r := newRig(t, nil)
	r.put(t)
	other, _ := r.login(t, "root", rootPassword)
	bearer, ctx := r.login(t, "root", rootPassword)
	if _, err := r.PutAccount(ctx, ledger.Account{Name: "root", Role: "admin"}, "another password than before"); err != nil {
		t.Fatal(err)
	}
	r.with(t, bearer)
	r.wantGone(t, "the other session", other)
}

func TestRoleChangeTakesEffectAtOnce(t *testing.T) {
	r := newRig(t, nil)
	r.put(t, ledger.Account{Name: "ada", Role: "admin"})
	bearer, _ := r.login(t, "ada", adaPassword)
	_, root := r.login(t, "root", rootPassword)
	if _, err := r.PutAccount(root, ledger.Account{Name: "ada", Role: "editor", Services: []string{"pay"}}, ""); err != nil {
		t.Fatal(err)
	}
	p, err := r.Person(t.Context(), bearer, "")
	if err != nil || p.Level != access.Editor || !p.MayEdit("pay", "") || p.MayEdit("search", "") {
		t.Errorf("person %+v, %v; want an editor of pay", p, err)
	}
}

func TestSessionsOfOthers(t *testing.T) {
	r := newRig(t, nil)
	r.put(t, ledger.Account{Name: "ada", Role: "viewer"})
	bearer, root := r.login(t, "root", rootPassword)
	_, ada := r.login(t, "ada", adaPassword)
	own, err := r.Sessions(ada)
	if err != nil || len(own) != 1 || own[0].Account != "ada" {
		t.Errorf("a viewer sees %+v, %v", own, err)
	}
	if all, err := r.Sessions(root); err != nil || len(all) != 2 {
		t.Errorf("an admin sees %+v, %v", all, err)
	}
	c, _ := parseCredential(bearer)
	wantCode(t, "ending somebody else's", r.EndSession(ada, c.id), connect.CodeNotFound)
	wantCode(t, "ending none", r.EndSession(root, "0000000000000000"), connect.CodeNotFound)
	wantCode(t, "ending nonsense", r.EndSession(root, "../account/root"), connect.CodeInvalidArgument)
	r.with(t, bearer)
	_, err = r.Sessions(calling(t, "192.0.2.1", nil))
	wantCode(t, "nobody's sessions", err, connect.CodeUnauthenticated)
}

func TestBearersThatAreNone(t *testing.T) {
	r := newRig(t, nil)
	r.put(t)
	bearer, root := r.login(t, "root", rootPassword)
	_, token, err := r.CreateToken(root, ledger.Token{Name: "ci", Role: "admin"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	session, _ := parseCredential(bearer)
	other := newCredential(true)
	for name, b := range map[string]string{
		"empty":                     "",
		"a word":                    "root",
		"the id alone":              "grls_" + session.id,
		"another secret":            "grls_" + session.id + "_" + other.secret,
		"another id":                "grls_" + other.id + "_" + session.secret,
		"a session as a token":      "grl_" + session.id + "_" + session.secret,
		"a token as a session":      "grls" + token[len("grl"):],
		"upper case":                "GRLS" + bearer[len("grls"):],
		"a space behind":            bearer + " ",
		"more behind":               bearer + "_00",
		"the key of another record": "grls_../head_" + session.secret,
		"a secret that is a hash":   "grls_" + session.id + "_" + string(session.hash()),
	} {
		if p, err := r.Person(t.Context(), b, "192.0.2.1"); !errors.Is(err, access.ErrUnknown) {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
}

package people

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
)

func TestPasswordHash(t *testing.T) {
	h := newHasher()
	stored, err := h.hash(t.Context(), rootPassword)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(stored, "$argon2id$v=19$m=19456,t=2,p=1$") || strings.Contains(stored, rootPassword) {
		t.Errorf("stored %q", stored)
	}
	again, err := h.hash(t.Context(), rootPassword)
	if err != nil || again == stored {
		t.Errorf("the same hash twice (%v): no salt", err)
	}
	for password, want := range map[string]bool{rootPassword: true, rootPassword + " ": false, "": false} {
		if got, err := h.verify(t.Context(), stored, password); got != want || err != nil {
			t.Errorf("verify %q: %v, %v", password, got, err)
		}
	}
	if right, err := h.verify(t.Context(), nobodysHash, ""); right || err != nil {
		t.Errorf("nobody's hash: %v, %v", right, err)
	}
}

// TestVectorOfArgon2id checks against the reference implementation:
// echo -n password | argon2 somesalt -id -t 2 -m 16 -p 1 -l 32
func TestVectorOfArgon2id(t *testing.T) {
	const stored = "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc"
	if right, err := newHasher().verify(t.Context(), stored, "password"); !right || err != nil {
		t.Errorf("verify: %v, %v", right, err)
	}
}

// A record that was tampered with is refused before it costs anything.
func TestStoredHashIsBounded(t *testing.T) {
	const salt, key = "c29tZXNhbHQ", "CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc"
	for _, stored := range []string{
		"",
		"secret",
		"$argon2i$v=19$m=19456,t=2,p=1$" + salt + "$" + key,
		"$argon2id$v=16$m=19456,t=2,p=1$" + salt + "$" + key,
		"$argon2id$v=19$m=4194304,t=2,p=1$" + salt + "$" + key,
		"$argon2id$v=19$m=19456,t=4000000,p=1$" + salt + "$" + key,
		"$argon2id$v=19$m=19456,t=2,p=200$" + salt + "$" + key,
		"$argon2id$v=19$m=19456,t=0,p=1$" + salt + "$" + key,
		"$argon2id$v=19$m=19456,t=2,p=1$$" + key,
		"$argon2id$v=19$m=19456,t=2,p=1$" + salt + "$",
		"$argon2id$v=19$m=19456,t=2,p=1$" + salt + "$" + key + "$x",
		"$argon2id$v=19$m=-1,t=2,p=1$" + salt + "$" + key,
	} {
		if right, err := newHasher().verify(t.Context(), stored, "password"); right || !errors.Is(err, errStoredHash) {
			t.Errorf("%q: %v, %v", stored, right, err)
		}
	}
}

// Logins wait for each other; beyond those that may wait they are refused, so
// memory stays bounded.
func TestHashingIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHasher()
		var leave []func()
		for range HashesAtOnce {
			l, err := h.enter(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			leave = append(leave, l)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var waiting sync.WaitGroup
		for range HashesWaiting {
			waiting.Go(func() {
				if _, err := h.enter(ctx); !errors.Is(err, context.Canceled) {
					t.Errorf("waiting: %v", err)
				}
			})
		}
		synctest.Wait()
		if _, err := h.enter(t.Context()); !errors.Is(err, errBusy) {
			t.Errorf("one too many: %v, want errBusy", err)
		}
		cancel()
		waiting.Wait()
		for _, l := range leave {
			l()
		}
		if len(h.running)+len(h.waiting) != 0 {
			t.Errorf("%d run, %d wait after all have left", len(h.running), len(h.waiting))
		}
	})
}

// Where there is no account as much is hashed as where there is one, so that the
// time of the answer does not tell.
func TestUnknownAccountsCostAsMuch(t *testing.T) {
	r := newRig(t, nil)
	r.put(t)
	for range cap(r.hasher.waiting) {
		r.hasher.waiting <- struct{}{}
	}
	from := calling(t, "192.0.2.1", nil)
	for name, login := range map[string][2]string{
		"right":               {"root", rootPassword},
		"wrong":               {"root", "wrong"},
		"unknown":             {"eve", "wrong"},
		"no name":             {"../root", "wrong"},
		"a password too long": {"root", strings.Repeat("a", 2*maxPasswordBytes)},
	} {
		if _, _, err := r.Login(from, login[0], login[1]); !errors.Is(err, errBusy) {
			t.Errorf("%s: %v, want errBusy: nothing is told without hashing", name, err)
		}
	}
	if s, err := decodeHash(nobodysHash); err != nil || s.kib != hashKiB || s.passes != hashPasses || s.threads != hashThreads {
		t.Errorf("nobody's hash costs %+v, %v", s, err)
	}
}

func TestCheckPassword(t *testing.T) {
	for password, ok := range map[string]bool{
		strings.Repeat("a", 11):      false,
		strings.Repeat("a", 12):      true,
		strings.Repeat("é", 11):      false,
		strings.Repeat("é", 256):     true,
		strings.Repeat("a", 257):     false,
		"twelve bytes\xff and more":  false,
		"with spaces and \t control": true,
		"":                           false,
	} {
		if err := checkPassword(password); (err == nil) != ok {
			t.Errorf("%.20q: %v", password, err)
		}
	}
}

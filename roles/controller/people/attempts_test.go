package people

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"

	"grl/store/ledger"
)

func TestAttemptsInASlidingMinute(t *testing.T) {
	a, now := newAttempts(), time.Now()
	take := func(after time.Duration) bool { return a.take(now.Add(after), bound{"k", 2}) }
	for _, tt := range []struct {
		after time.Duration
		want  bool
	}{
		{0, true},
		{50 * time.Second, true},
		{59 * time.Second, false},
		{60 * time.Second, true},
		{61 * time.Second, false},
		{109 * time.Second, false},
		{110 * time.Second, true},
	} {
		if got := take(tt.after); got != tt.want {
			t.Errorf("at %v: %v, want %v", tt.after, got, tt.want)
		}
	}
}

// However many accounts and addresses are tried, little is kept.
func TestAttemptsKeepLittle(t *testing.T) {
	a, now, most := newAttempts(), time.Now(), 0
	for i := range 200_000 {
		from := fmt.Sprint(i)
		a.take(now.Add(time.Duration(i)*time.Millisecond), append([]bound{{accountKey("ada", from), AttemptsPerAccount}}, addressBounds(from)...)...)
		most = max(most, len(a.made))
	}
	if most > 4*AttemptsInAll+1 {
		t.Errorf("%d keys kept, want at most %d", most, 4*AttemptsInAll+1)
	}
}

func TestHostOf(t *testing.T) {
	for from, want := range map[string]string{
		"192.0.2.1:443":              "192.0.2.1",
		"192.0.2.1":                  "192.0.2.1",
		"[::ffff:192.0.2.1]:443":     "192.0.2.1",
		"[2001:db8:1:2:3:4:5:6]:443": "2001:db8:1:2::/64",
		"2001:db8:1:2:ffff::1":       "2001:db8:1:2::/64",
		"[fe80::1%eth0]:443":         "fe80::/64",
		"::1":                        "::1",
		"in-memory":                  "in-memory",
		"":                           "",
	} {
		if got := hostOf(from); got != want {
			t.Errorf("hostOf(%q) = %q, want %q", from, got, want)
		}
	}
}

func TestLoginAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.put(t, ledger.Account{Name: "ada", Role: "viewer"})
		here, there := calling(t, "192.0.2.1:1000", nil), calling(t, "192.0.2.2:1000", nil)
		for range AttemptsPerAccount {
			_, _, err := r.Login(here, "ada", "wrong password")
			wantCode(t, "a wrong password", err, connect.CodeUnauthenticated)
		}
		_, _, err := r.Login(here, "ada", adaPassword)
		wantCode(t, "the right one after five wrong ones", err, connect.CodeResourceExhausted)
		if _, _, err := r.Login(here, "root", rootPassword); err != nil {
			t.Errorf("another account from the same address: %v", err)
		}
		if _, _, err := r.Login(there, "ada", adaPassword); err != nil {
			t.Errorf("the account from another address: %v", err)
		}
		time.Sleep(attemptWindow)
		for range AttemptsPerAccount + 1 { // right ones are not held against the account
			if _, _, err := r.Login(here, "ada", adaPassword); err != nil {
				t.Errorf("a minute later: %v", err)
			}
		}
	})
}

// One address cannot try many accounts.
func TestAttemptsOfOneAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		for i := range AttemptsPerAddress {
			if !r.attempts.take(time.Now(), append([]bound{{accountKey(fmt.Sprint(i), "192.0.2.1"), AttemptsPerAccount}}, addressBounds("192.0.2.1")...)...) {
				t.Fatalf("attempt %d is refused", i)
			}
		}
		_, _, err := r.Login(calling(t, "192.0.2.1:1000", nil), "ada", adaPassword)
		wantCode(t, "one more account", err, connect.CodeResourceExhausted)
		_, _, err = r.StartProvider(calling(t, "192.0.2.1:1000", nil), "/")
		wantCode(t, "no provider", err, connect.CodeUnimplemented)
		_, err = r.CreateFirst(open(t), "", "root", rootPassword)
		if err != nil {
			t.Errorf("from another address: %v", err)
		}
	})
}

// An attack makes a few entries a minute, which tell how large it was.
func TestRefusalsInTheAudit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.put(t, ledger.Account{Name: "ada", Role: "viewer"})
		go func() { _ = r.Run(t.Context()) }()
		here := calling(t, "192.0.2.1:1000", nil)
		for range 4 {
			_, _, _ = r.Login(here, "ada", "wrong password")
		}
		_, _, _ = r.Login(here, "no such account", "wrong password")
		if got := told(r.entries(t, loginRefused)); got != "nobody 192.0.2.1 [ada] refused, times: 1; nobody 192.0.2.1 [] refused, times: 1" {
			t.Errorf("at once: %s", got)
		}
		time.Sleep(refusalWindow + flushEach)
		synctest.Wait()
		if got := told(r.entries(t, loginRefused)[2:]); got != "nobody 192.0.2.1 [ada] refused, times: 3" {
			t.Errorf("after a minute: %s", got)
		}
		time.Sleep(3 * refusalWindow)
		synctest.Wait()
		if n := len(r.entries(t, loginRefused)); n != 3 {
			t.Errorf("%d entries after three quiet minutes, want 3", n)
		}
	})
}

func told(entries []ledger.Entry) string {
	var s []string
	for _, e := range entries {
		s = append(s, fmt.Sprint(e.Actor, " ", e.From, " ", e.Subjects, " ", e.After))
	}
	return strings.Join(s, "; ")
}

// Many addresses share the entry of all others.
func TestRefusalsOfManyAddresses(t *testing.T) {
	r, now := newRig(t, nil), time.Now()
	for i := range 1000 {
		r.refusals.add(t.Context(), now, refused{action: loginRefused, from: fmt.Sprint(i)})
	}
	r.refusals.flush(t.Context(), now.Add(refusalWindow), refusalWindow)
	all, err := r.ledger.Audit(t.Context(), 0, 1000, ledger.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != MostRefusals+2 {
		t.Errorf("%d entries, want %d", len(all), MostRefusals+2)
	}
	if want := fmt.Sprintf("refused, times: %d", 1000-MostRefusals-1); all[0].After != want {
		t.Errorf("the last entry says %q, want %q", all[0].After, want)
	}
}

// What is counted is written when the controller ends.
func TestRefusalsAreWrittenAtTheEnd(t *testing.T) {
	r := newRig(t, nil)
	for range 3 {
		r.refusals.add(t.Context(), time.Now(), refused{action: loginRefused, from: "192.0.2.1"})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if got := told(r.entries(t, loginRefused)); got != "nobody 192.0.2.1 [] refused, times: 1; nobody 192.0.2.1 [] refused, times: 2" {
		t.Errorf("%s", got)
	}
}

package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"grl/store/ledger"
)

func testMutes(t *testing.T, b *book) {
	mute := func(who, rule, subject string, until time.Time) error {
		return b.Mute(t.Context(), by(who), rule, subject, until)
	}
	list := func(now time.Time) []string {
		t.Helper()
		all, err := b.Mutes(t.Context(), now)
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, m := range all {
			out = append(out, fmt.Sprintf("%s %s until %s by %s, %s", m.Rule, m.Subject, m.Until.Format("15:04"), m.By, m.Reason))
		}
		return out
	}
	want := func(now time.Time, lines ...string) {
		t.Helper()
		if got := list(now); !slices.Equal(got, lines) {
			t.Errorf("mutes %q, want %q", got, lines)
		}
	}
	want(noon)
	for _, tt := range []struct {
		name          string
		rule, subject string
		until         time.Time
		want          error // nil: any
	}{
		{"nothing to end", "over_limit", "a/b", noon, ledger.ErrNotFound},
		{"beyond a day", "over_limit", "a/b", noon.Add(24*time.Hour + time.Millisecond), nil},
		{"no rule", "", "a/b", noon.Add(time.Hour), nil},
		{"a subject too long", "over_limit", strings.Repeat("x", 601), noon.Add(time.Hour), nil},
	} {
		if err := mute("ann", tt.rule, tt.subject, tt.until); err == nil || tt.want != nil && !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
	}
	for _, m := range []struct {
		who, rule, subject string
		until              time.Time
	}{
		{"ann", "over_limit", "a/b", noon.Add(time.Hour)},
		{"bob", "over_limit", "", noon.Add(2 * time.Hour)},
		{"bob", "over_limit", "a/b", noon.Add(3 * time.Hour)},
	} {
		if err := mute(m.who, m.rule, m.subject, m.until); err != nil {
			t.Fatal(err)
		}
	}
	want(noon, "over_limit  until 14:00 by bob, test", "over_limit a/b until 15:00 by bob, test")
	want(noon.Add(2*time.Hour), "over_limit a/b until 15:00 by bob, test")
	want(noon.Add(3 * time.Hour))
	if err := mute("ann", "over_limit", "", noon); err != nil {
		t.Fatal(err)
	}
	want(noon, "over_limit a/b until 15:00 by bob, test")
	entries, err := b.Audit(t.Context(), 0, 10, ledger.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	var audit []string
	for _, e := range entries {
		audit = append(audit, fmt.Sprintf("%s %s: %v, %t %t", e.Actor, e.Action, e.Subjects, e.Before != "", e.After != ""))
	}
	if lines := []string{
		"ann alert.unmute: [alert over_limit], true false", "bob alert.mute: [alert over_limit a/b], true true",
		"bob alert.mute: [alert over_limit], false true", "ann alert.mute: [alert over_limit a/b], false true",
	}; !slices.Equal(audit, lines) {
		t.Errorf("audit %q, want %q", audit, lines)
	}
	for i := range ledger.MaxMutes {
		if err := mute("ann", "over_limit", strings.Repeat("\\", 590)+fmt.Sprint(i), noon.Add(time.Hour)); err != nil {
			if i != ledger.MaxMutes-1 || !errors.Is(err, ledger.ErrTooMany) {
				t.Fatalf("mute %d: %v", i, err)
			}
			return
		}
	}
	t.Errorf("more than %d mutes are taken", ledger.MaxMutes)
}

package storetest

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"grl/store/ledger"
)

func aCap(service string) ledger.Cap {
	return ledger.Cap{Service: service, Caller: "checkout", RPS: 100, EndsAt: noon.Add(time.Hour)}
}

func (b *book) mustPlace(t testing.TB, c ledger.Cap) ledger.Cap {
	t.Helper()
	placed, err := b.PlaceCap(t.Context(), by("ann"), c)
	if err != nil {
		t.Fatal(err)
	}
	return placed
}

// A request places one cap, however often it comes.
func testCapRequests(t *testing.T, b *book) {
	asked := aCap("payments")
	asked.Request = "form-1"
	first := b.mustPlace(t, asked)
	var same sync.WaitGroup
	for range 8 {
		same.Go(func() {
			again := asked
			again.EndsAt = noon.Add(2 * time.Hour)
			if placed, err := b.PlaceCap(t.Context(), by("ann"), again); err != nil || placed != first {
				t.Errorf("placed again: %+v, %v, want %+v", placed, err, first)
			}
		})
	}
	same.Wait()
	if i := b.mustState(t).Incident; i.Serial != 1 || len(i.Caps) != 1 {
		t.Errorf("incident = %+v, want one cap, serial 1", i)
	}
	other := asked
	other.RPS = 50
	if placed, err := b.PlaceCap(t.Context(), by("ann"), other); !errors.Is(err, ledger.ErrRequestUsed) {
		t.Errorf("another cap of the same request: %+v, %v", placed, err)
	}
	if _, err := b.LiftCap(t.Context(), by("ann"), first.ID); err != nil {
		t.Fatal(err)
	}
	if placed, err := b.PlaceCap(t.Context(), by("ann"), asked); !errors.Is(err, ledger.ErrCapEnded) {
		t.Errorf("placed again after it was lifted: %+v, %v", placed, err)
	}
	for range 2 {
		b.mustPlace(t, aCap("search"))
	}
	asked.Request = "form-2"
	b.mustPlace(t, asked)
	if i := b.mustState(t).Incident; len(i.Caps) != 3 {
		t.Errorf("%d caps, want that of another request, and two without one", len(i.Caps))
	}
}

func testCaps(t *testing.T, b *book) {
	first, second := b.mustPlace(t, aCap("payments")), b.mustPlace(t, aCap("search"))
	if first.ID == "" || first.ID == second.ID || len(second.ID) > 8 {
		t.Errorf("ids %q and %q, want short ones of their own", first.ID, second.ID)
	}
	if first.Author != "ann" || first.Reason != "test" || !first.PlacedAt.Equal(noon) {
		t.Errorf("cap = %+v, want who placed it, why and when", first)
	}
	i := b.mustState(t).Incident
	if i.Serial != 2 || len(i.Caps) != 2 || i.Caps[0] != second || i.Caps[1] != first {
		t.Errorf("incident = %+v, want both caps, the newest first, and serial 2", i)
	}
	if lifted, err := b.LiftCap(t.Context(), by("bob"), first.ID); err != nil || lifted != first {
		t.Errorf("LiftCap = %+v, %v, want %+v", lifted, err, first)
	}
	if _, err := b.LiftCap(t.Context(), by("bob"), first.ID); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("LiftCap again: %v, want ErrNotFound", err)
	}
	if third := b.mustPlace(t, aCap("payments")); third.ID == first.ID {
		t.Errorf("the id %q of a cap that was lifted is given out again", third.ID)
	}
	forget := func(before time.Time, caps int, serial uint64) {
		t.Helper()
		if err := b.ForgetCaps(t.Context(), before); err != nil {
			t.Fatal(err)
		}
		if i := b.mustState(t).Incident; len(i.Caps) != caps || i.Serial != serial {
			t.Errorf("%d caps, serial %d, want %d, serial %d", len(i.Caps), i.Serial, caps, serial)
		}
	}
	forget(noon.Add(time.Hour), 2, 4) // none ended before
	forget(noon.Add(time.Hour+time.Millisecond), 0, 5)
	forget(noon.Add(2*time.Hour), 0, 5)
	b.wantSound(t, 4)
}

func testExtendCap(t *testing.T, b *book) {
	other, c := b.mustPlace(t, aCap("search")), b.mustPlace(t, aCap("payments"))
	for _, tt := range []struct {
		name string
		id   string
		ends time.Time
		want error // nil: any
	}{
		{"no such cap", "77", noon.Add(2 * time.Hour), ledger.ErrNotFound},
		{"to an earlier end", c.ID, noon.Add(time.Hour - time.Millisecond), ledger.ErrCapLonger},
		{"to the end it has", c.ID, noon.Add(time.Hour), ledger.ErrCapLonger},
		{"beyond a day from now", c.ID, noon.Add(24*time.Hour + time.Millisecond), nil},
	} {
		if _, err := b.ExtendCap(t.Context(), by("bob"), tt.id, tt.ends); err == nil || tt.want != nil && !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
	}
	if i := b.mustState(t).Incident; i.Serial != 2 || i.Caps[0] != c || i.Caps[1] != other {
		t.Errorf("incident = %+v, want it as it was", i)
	}
	want := c
	want.EndsAt = noon.Add(24 * time.Hour)
	if longer, err := b.ExtendCap(t.Context(), by("bob"), c.ID, want.EndsAt); err != nil || longer != want {
		t.Errorf("ExtendCap = %+v, %v, want %+v", longer, err, want)
	}
	if i := b.mustState(t).Incident; i.Serial != 3 || i.Caps[0] != want || i.Caps[1] != other {
		t.Errorf("incident = %+v, want only the end of %s moved, and serial 3", i, c.ID)
	}
	entries, err := b.Audit(t.Context(), 0, 9, ledger.Filter{Action: "cap.extend"})
	if err != nil || len(entries) != 1 || entries[0].Actor != "bob" ||
		!strings.Contains(entries[0].Before, `"ends_at":"2026-03-04T13:00:00.007Z"`) || !strings.Contains(entries[0].After, `"ends_at":"2026-03-05T12:00:00.007Z"`) {
		t.Errorf("audit = %+v, %v, want one entry of bob with both ends", entries, err)
	}
	late := by("bob")
	late.At = other.EndsAt
	if _, err := b.ExtendCap(t.Context(), late, other.ID, late.At.Add(time.Hour)); !errors.Is(err, ledger.ErrCapEnded) {
		t.Errorf("ExtendCap of one that ramps out: %v, want ErrCapEnded", err)
	}
	b.wantSound(t, 3)
}

func testCapBounds(t *testing.T, b *book) {
	for i, spoil := range []func(*ledger.Cap){
		func(c *ledger.Cap) { c.Service = "" },
		func(c *ledger.Cap) { c.Caller = strings.Repeat("c", 257) },
		func(c *ledger.Cap) { c.RPS = 0 },
		func(c *ledger.Cap) { c.RPS = -1 },
		func(c *ledger.Cap) { c.RPS = math.NaN() },
		func(c *ledger.Cap) { c.RPS = math.Inf(1) },
		func(c *ledger.Cap) { c.Block = true },
		func(c *ledger.Cap) { c.EndsAt = time.Time{} },
		func(c *ledger.Cap) { c.EndsAt = noon },
		func(c *ledger.Cap) { c.EndsAt = noon.Add(24*time.Hour + time.Second) },
	} {
		c := aCap("payments")
		spoil(&c)
		if placed, err := b.PlaceCap(t.Context(), by("ann"), c); err == nil {
			t.Errorf("case %d: placed %+v", i, placed)
		}
	}
	act := by(strings.Repeat("a", 5000))
	act.Reason = strings.Repeat("because\n", 5000)
	if _, err := b.PlaceCap(t.Context(), act, aCap("payments")); err != nil {
		t.Fatal(err)
	}
	// The others behind its back, or it would take long.
	const key = "state/incident"
	one, ok := bytes.CutPrefix(mustGet(t, b.engine, key)[0].Value, []byte(`{"serial":1,"caps":[`))
	one, rest, ok2 := bytes.Cut(one, []byte("]"))
	if !ok || !ok2 {
		t.Fatalf("unexpected record: %s", mustGet(t, b.engine, key)[0].Value)
	}
	all := slices.Repeat([]string{string(one)}, ledger.MaxCaps-1)
	mustCommit(t, b.engine, set(key, `{"serial":1,"caps":[`+strings.Join(all, ",")+"]"+string(rest)))
	if _, err := b.PlaceCap(t.Context(), act, aCap("payments")); err != nil {
		t.Errorf("cap %d: %v", ledger.MaxCaps, err)
	}
	if _, err := b.PlaceCap(t.Context(), by("ann"), aCap("payments")); !errors.Is(err, ledger.ErrTooMany) {
		t.Errorf("a cap more than %d: %v, want ErrTooMany", ledger.MaxCaps, err)
	}
}

func testDisable(t *testing.T, b *book) {
	toggle := func(do func(string) (ledger.Incident, error), service string, serial uint64, all bool, disabled string) {
		t.Helper()
		i, err := do(service)
		if err != nil || i.Serial != serial || i.AllDisabled != all || strings.Join(i.Disabled, " ") != disabled {
			t.Errorf("incident = %+v, %v, want serial %d, all %v, disabled %s", i, err, serial, all, disabled)
		}
		if now := b.mustState(t).Incident; now.Serial != serial || now.AllDisabled != all {
			t.Errorf("state has %+v", now)
		}
	}
	off := func(s string) (ledger.Incident, error) { return b.Disable(t.Context(), by("ann"), s) }
	on := func(s string) (ledger.Incident, error) { return b.Enable(t.Context(), by("ann"), s) }
	toggle(on, "", 0, false, "")
	toggle(off, "search", 1, false, "search")
	toggle(off, "payments", 2, false, "payments search")
	toggle(off, "search", 2, false, "payments search")
	toggle(off, "", 3, true, "payments search")
	toggle(off, "", 3, true, "payments search")
	toggle(on, "payments", 4, true, "search")
	toggle(on, "payments", 4, true, "search")
	toggle(on, "", 5, false, "search")
	b.wantSound(t, 5)
	if _, err := off(strings.Repeat("s", 257)); err == nil {
		t.Error("Disable of a name too long: no error")
	}
}

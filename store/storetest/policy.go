package storetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"grl/store/ledger"
)

// applyPolicies makes pairs of name and text the policies.
func (b *book) applyPolicies(t testing.TB, base uint64, pairs ...string) (ledger.Revision, error) {
	t.Helper()
	texts := make(map[string][]byte)
	for i := 0; i < len(pairs); i += 2 {
		texts[pairs[i]] = []byte(pairs[i+1])
	}
	return b.ApplyPolicies(t.Context(), base, by("ann"), "policy.apply", []string{"policy nightly"}, "before", "after", texts)
}

func (b *book) wantPolicies(t testing.TB, revision, number uint64, want map[string]string) {
	t.Helper()
	set, err := b.Policies(t.Context(), revision)
	if err != nil || set.Revision.Number != number {
		t.Fatalf("Policies(%d) = p%d, %v, want p%d", revision, set.Revision.Number, err, number)
	}
	if diff := cmp.Diff(want, asText(set.Texts)); diff != "" {
		t.Errorf("policies of p%d (-want +got):\n%s", number, diff)
	}
}

func testPolicies(t *testing.T, b *book) {
	none := map[string]string{}
	b.wantPolicies(t, 0, 0, none)
	if r, err := b.applyPolicies(t, 0); err != nil || r.Number != 0 || r.Changed {
		t.Errorf("applying none to none = %+v, %v, want p0, unchanged", r, err)
	}
	first := map[string]string{"nightly": "policy: nightly\n# <&> 日本\u2028\n", "live": ""}
	if r, err := b.applyPolicies(t, 0, "nightly", first["nightly"], "live", ""); err != nil || r.Number != 1 || !r.Changed || r.Author != "ann" || r.Reason != "test" || !r.At.Equal(noon) {
		t.Errorf("ApplyPolicies = %+v, %v, want p1 by ann", r, err)
	}
	for _, base := range []uint64{1, 0} { // 0: the answer was lost
		if r, err := b.applyPolicies(t, base, "live", "", "nightly", first["nightly"]); err != nil || r.Number != 1 || r.Changed {
			t.Errorf("the same on p%d = p%d, changed %v, %v, want p1, unchanged", base, r.Number, r.Changed, err)
		}
	}
	for _, base := range []uint64{0, 2} {
		if r, err := b.applyPolicies(t, base, "live", "x"); !errors.Is(err, ledger.ErrConflict) || r.Number != 1 || r.Changed {
			t.Errorf("ApplyPolicies on p%d = p%d, %v, want the head p1 and ErrConflict", base, r.Number, err)
		}
	}
	if r, err := b.applyPolicies(t, 1); err != nil || r.Number != 2 || !r.Changed {
		t.Errorf("removing all = p%d, %v, want p2", r.Number, err)
	}
	b.wantPolicies(t, 0, 2, none)
	b.wantPolicies(t, 1, 1, first)
	b.wantPolicies(t, 2, 2, none)
	if _, err := b.Policies(t.Context(), 3); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("Policies(3): %v, want ErrNotFound", err)
	}
	list, err := b.PolicyRevisions(t.Context(), 0, 10)
	if err != nil || len(list) != 2 || list[0].Number != 2 || list[1].Number != 1 {
		t.Errorf("PolicyRevisions = %+v, %v, want p2 and p1", list, err)
	}
	if list, err := b.PolicyRevisions(t.Context(), 2, 10); err != nil || len(list) != 1 || list[0].Number != 1 {
		t.Errorf("PolicyRevisions before p2 = %+v, %v, want p1", list, err)
	}
	if head := b.mustState(t).Head.Number; head != 0 {
		t.Errorf("the configuration is at r%d, want r0", head)
	}
	entries, err := b.Audit(t.Context(), 0, 10, ledger.Filter{Action: "policy.apply", Subject: "policy nightly"})
	if err != nil || len(entries) != 2 || entries[0].Before != "before" || entries[0].After != "after" || entries[0].Revision != 0 {
		t.Errorf("audit = %+v, %v, want both changes", entries, err)
	}
	b.wantSound(t, 2)
}

func testPolicyBounds(t *testing.T, b *book) {
	for _, pair := range [][2]string{{"", "x"}, {strings.Repeat("n", 161), "x"}, {"a\xff", "x"}, {"a", "\xff"}} {
		if r, err := b.applyPolicies(t, 0, pair[0], pair[1]); err == nil {
			t.Errorf("policy %.10q: made p%d", pair[0], r.Number)
		}
	}
	// Random: it does not compress.
	r := rand.New(rand.NewPCG(1, 0))
	text := make([]byte, ledger.MaxPolicies-len(`{"p":""}`))
	for i := range text {
		text[i] = byte('0' + r.IntN(10))
	}
	act := by("ann")
	long := strings.Repeat("\n", 1<<20) // the longest audit entry
	subjects := strings.Split(strings.Repeat("policy,", 10_000), ",")
	apply := func(text string) error {
		_, err := b.ApplyPolicies(t.Context(), 0, act, "policy.apply", subjects, long, long, map[string][]byte{"p": []byte(text)})
		return err
	}
	if err := apply(string(text) + "0"); !errors.Is(err, ledger.ErrTooMany) {
		t.Errorf("a byte more than MaxPolicies: %v, want ErrTooMany", err)
	}
	if err := apply(string(text)); err != nil {
		t.Errorf("MaxPolicies: %v", err)
	}
	b.wantPolicies(t, 0, 1, map[string]string{"p": string(text)})
}

func testMemory(t *testing.T, b *book) {
	put := func(memories map[string][]byte) {
		t.Helper()
		if err := b.PutMemory(t.Context(), memories); err != nil {
			t.Fatal(err)
		}
	}
	want := make(map[string]string)
	names := []string{"payments/reads", strings.Repeat("s", 256) + "/" + strings.Repeat("é", 200), "x"}
	for i := range 250 { // more than a commit takes, in number and in size
		names = append(names, fmt.Sprintf("bulk/%d", i))
	}
	memories := make(map[string][]byte)
	for i, name := range names {
		want[name] = fmt.Sprint(i) + strings.Repeat("m", 6000)
		memories[name] = []byte(want[name])
	}
	want["x"] = strings.Repeat("\x00", ledger.MaxMemory)
	memories["x"] = []byte(want["x"])
	put(memories)
	check := func() {
		t.Helper()
		got, err := b.Memory(t.Context(), append(names, "unknown"))
		if diff := cmp.Diff(want, asText(got)); err != nil || diff != "" {
			t.Errorf("Memory: %v (-want +got):\n%.1000s", err, diff)
		}
	}
	check()
	put(map[string][]byte{"payments/reads": nil, "bulk/0": []byte("new")})
	delete(want, "payments/reads")
	want["bulk/0"] = "new"
	check()
	if err := b.PutMemory(t.Context(), map[string][]byte{"big": make([]byte, ledger.MaxMemory+1)}); !errors.Is(err, ledger.ErrTooMany) {
		t.Errorf("a byte more than MaxMemory: %v, want ErrTooMany", err)
	}
	keep := []string{"bulk/0", "bulk/249", names[1], "unknown"}
	if err := b.PruneMemory(t.Context(), keep); err != nil {
		t.Fatal(err)
	}
	want = map[string]string{"bulk/0": "new", "bulk/249": want["bulk/249"], names[1]: want[names[1]]}
	check()
}

func testHour(t *testing.T, b *book) {
	b.mustPlace(t, aCap("payments"))
	set := func(hour time.Time, want time.Time, serial uint64) {
		t.Helper()
		if err := b.SetHour(t.Context(), hour); err != nil {
			t.Fatal(err)
		}
		if i := b.mustState(t).Incident; !i.Hour.Equal(want) || i.Serial != serial || len(i.Caps) != 1 {
			t.Errorf("hour %v, serial %d, want %v, serial %d, and the cap", i.Hour, i.Serial, want, serial)
		}
	}
	quarter := noon.Truncate(15 * time.Minute)
	next := quarter.Add(15 * time.Minute)
	set(quarter, quarter, 2)
	set(quarter, quarter, 2)
	set(next.In(time.FixedZone("", 3600)), next, 3)
	set(quarter, next, 3)
	wrong := next.AddDate(1, 0, 0)
	set(wrong, wrong, 4)
	set(wrong.Add(15*time.Minute-ledger.HourAhead), wrong, 4)
	set(next, next, 5)
	if err := b.SetHour(t.Context(), time.Time{}); err == nil {
		t.Error("SetHour of no hour: no error")
	}
	b.wantSound(t, 1) // the cap
}

package storetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"grl/store"
	"grl/store/ledger"
)

func (b *book) mustNote(t testing.TB, actor, action string, subjects ...string) {
	t.Helper()
	if err := b.Note(t.Context(), by(actor), action, subjects, "", ""); err != nil {
		t.Fatal(err)
	}
}

func (b *book) mustAudit(t testing.TB, before uint64, limit int, f ledger.Filter) []ledger.Entry {
	t.Helper()
	entries, err := b.Audit(t.Context(), before, limit, f)
	if err != nil {
		t.Fatal(err)
	}
	return entries
}

func testAudit(t *testing.T, b *book) {
	if entries := b.mustAudit(t, 0, 10, ledger.Filter{}); len(entries) != 0 {
		t.Errorf("audit of a new ledger = %v", entries)
	}
	b.wantSound(t, 0)
	c := change("payments", "limit: 1")
	c.Before, c.After, c.Forced = "old\x1b[31m", "new <b> \u2028", true
	b.mustApply(t, 0, c)
	for i := range 250 {
		b.mustNote(t, fmt.Sprint("user-", i%3), "login.refused", fmt.Sprint("account ", i%5))
	}
	first := b.mustAudit(t, 2, 10, ledger.Filter{})
	if len(first) != 1 {
		t.Fatalf("%d entries before the second, want 1", len(first))
	}
	e := first[0]
	if e.Number != 1 || e.Revision != 1 || e.Actor != "ann" || e.From != "127.0.0.1" || e.Action != "apply" || e.Before != c.Before ||
		e.After != c.After || e.Reason != "test" || e.RequestID != "1" || !e.Forced || !e.At.Equal(noon) || len(e.Hash) != 32 {
		t.Errorf("first entry = %+v, want what was done", e)
	}
	tests := []struct {
		before uint64
		limit  int
		filter ledger.Filter
		want   int
		newest uint64
	}{
		{0, 5, ledger.Filter{}, 5, 251},
		{0, 1000, ledger.Filter{}, 251, 251},
		{0, 0, ledger.Filter{}, 0, 0},
		{100, 1000, ledger.Filter{}, 99, 99},
		{1, 10, ledger.Filter{}, 0, 0},
		{9999, 1, ledger.Filter{}, 1, 251},
		{0, 10, ledger.Filter{Action: "apply"}, 1, 1},
		{0, 1000, ledger.Filter{Actor: "user-0"}, 84, 251},
		{0, 1000, ledger.Filter{Actor: "user-0", Subject: "account 0"}, 17, 242},
		{0, 10, ledger.Filter{Subject: "payments"}, 1, 1},
		{0, 10, ledger.Filter{Subject: "payments/all"}, 1, 1},
		{0, 10, ledger.Filter{Subject: "pay"}, 0, 0},
	}
	for _, tt := range tests {
		entries := b.mustAudit(t, tt.before, tt.limit, tt.filter)
		if len(entries) != tt.want || len(entries) > 0 && entries[0].Number != tt.newest {
			t.Errorf("Audit(%d, %d, %+v) has %d entries, want %d, the newest %d", tt.before, tt.limit, tt.filter, len(entries), tt.want, tt.newest)
		}
		for i := 1; i < len(entries); i++ {
			if entries[i].Number >= entries[i-1].Number {
				t.Errorf("Audit(%d, %d, %+v): %d follows %d", tt.before, tt.limit, tt.filter, entries[i].Number, entries[i-1].Number)
			}
		}
	}
	b.wantSound(t, 251)
	records, err := b.engine.List(t.Context(), "audit/", "", 1)
	if err != nil || bytes.ContainsAny(records[0].Value, "\x1b\n") || bytes.Contains(records[0].Value, []byte("\u2028")) {
		t.Errorf("control characters are not escaped: %q, %v", records[0].Value, err)
	}
}

func testLongEntries(t *testing.T, b *book) {
	long := strings.Repeat("\x01\"é\xff", 300_000)
	var subjects []string
	for i := range 100_000 {
		subjects = append(subjects, fmt.Sprintf("service/bucket-%d", i))
	}
	act := ledger.Act{Actor: long, From: long, Reason: long, RequestID: long, At: noon}
	if err := b.Note(t.Context(), act, long, subjects, long, long+"x"); err != nil {
		t.Fatal(err)
	}
	b.wantSound(t, 1)
	e := b.mustAudit(t, 0, 1, ledger.Filter{})[0]
	for _, text := range []string{e.Before, e.After} {
		inJSON, err := json.Marshal(text)
		if err != nil || len(inJSON) > ledger.MaxText+2 || len(inJSON) < ledger.MaxText-200 {
			t.Errorf("text of %d bytes in JSON, %v, want about %d", len(inJSON), err, ledger.MaxText)
		}
		if !strings.HasPrefix(text, "\x01\"é\ufffd\x01") || !strings.Contains(text[len(text)-120:], "(cut: 15") {
			t.Errorf("text ends in %q, want a note", text[len(text)-120:])
		}
	}
	if e.Before[len(e.Before)-60:] == e.After[len(e.After)-60:] {
		t.Error("texts that differ only in what was cut look the same")
	}
	if last := e.Subjects[len(e.Subjects)-1]; len(e.Subjects) < 100 || !strings.HasPrefix(last, "and 99") {
		t.Errorf("%d subjects, the last %q, want some and how many more", len(e.Subjects), last)
	}
}

// testAuditWriters lets many change things at once.
func testAuditWriters(t *testing.T, b *book) {
	const each = 12
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				actor := fmt.Sprint("writer-", w)
				var err error
				if i%2 == 0 {
					err = b.Note(t.Context(), by(actor), "note", []string{fmt.Sprint(i)}, "", "")
				} else {
					_, err = b.PlaceCap(t.Context(), by(actor), aCap(fmt.Sprint(i)))
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	b.wantSound(t, writers*each)
	if i := b.mustState(t).Incident; i.Serial != writers*each/2 || len(i.Caps) != writers*each/2 {
		t.Errorf("%d caps, serial %d, want %d", len(i.Caps), i.Serial, writers*each/2)
	}
	for w := range writers {
		if entries := b.mustAudit(t, 0, 1000, ledger.Filter{Actor: fmt.Sprint("writer-", w)}); len(entries) != each {
			t.Errorf("writer %d has %d entries, want %d", w, len(entries), each)
		}
	}
}

func testBrokenAudit(t *testing.T, b *book) {
	const entries = 230
	for i := range entries {
		b.mustNote(t, "ann", "note", fmt.Sprint(i))
	}
	key := func(n int) string { return fmt.Sprintf("audit/%020d", n) }
	value := func(key string) []byte { return mustGet(t, b.engine, key)[0].Value }
	edit := func(n int, old, new string) store.Write {
		return store.Write{Key: key(n), Value: bytes.Replace(value(key(n)), []byte(old), []byte(new), 1)}
	}
	head := func(n int) store.Write { // as if n were the newest
		var e ledger.Entry
		if err := json.Unmarshal(value(key(n)), &e); err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(map[string]any{"number": e.Number, "hash": e.Hash})
		if err != nil {
			t.Fatal(err)
		}
		return store.Write{Key: "audit-head", Value: text}
	}
	tests := []struct {
		name   string
		writes []store.Write
		broken uint64
	}{
		{"changed actor", []store.Write{edit(7, `"ann"`, `"bob"`)}, 7},
		{"changed time", []store.Write{edit(7, `2026-03-04`, `2026-03-05`)}, 7},
		{"changed subject", []store.Write{edit(1, `"0"`, `"1"`)}, 1},
		{"moved a field", []store.Write{edit(7, `"before":"","after":""`, `"before":"","after":"x"`)}, 7},
		{"no JSON", []store.Write{set(key(5), "{")}, 5},
		{"missing", []store.Write{remove(key(150))}, 150},
		{"missing first", []store.Write{remove(key(1))}, 1},
		{"swapped", []store.Write{{Key: key(7), Value: value(key(8))}, {Key: key(8), Value: value(key(7))}}, 7},
		{"doubled", []store.Write{{Key: key(8), Value: value(key(7))}}, 8},
		{"cut", []store.Write{remove(key(entries))}, entries},
		{"cut at a page", []store.Write{remove(key(entries)), remove(key(entries - 1))}, entries - 1},
		{"head put back", []store.Write{head(entries - 2)}, entries - 1},
		{"head of another", []store.Write{{Key: "audit-head", Value: bytes.Replace(value("audit-head"), []byte(`"number":`), []byte(`"number":1`), 1)}}, entries + 1},
	}
	for _, tt := range tests {
		var restore []store.Write
		for _, w := range tt.writes {
			restore = append(restore, store.Write{Key: w.Key, Value: value(w.Key)})
		}
		mustCommit(t, b.engine, tt.writes...)
		v, err := b.VerifyAudit(t.Context())
		if err != nil || v.Broken != tt.broken || v.Reason == "" {
			t.Errorf("%s: VerifyAudit = %+v, %v, want entry %d broken", tt.name, v, err, tt.broken)
		}
		mustCommit(t, b.engine, restore...)
		b.wantSound(t, entries)
	}
	// Cut with its head: only who kept the hash can tell.
	before, err := b.VerifyAudit(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	mustCommit(t, b.engine, remove(key(entries)), head(entries-1))
	after, err := b.VerifyAudit(t.Context())
	if err != nil || after.Broken != 0 || bytes.Equal(before.Hash, after.Hash) {
		t.Errorf("VerifyAudit = %+v, %v, want another hash", after, err)
	}
}

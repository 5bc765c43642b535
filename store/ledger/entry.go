package ledger

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"grl/store"
)

// Entry is one entry of the audit. Its texts are valid UTF-8, at most MaxText
// bytes Before and After, else 1 KiB, as written in JSON; Subjects have 16 KiB in
// all. What was longer ends with a note that says how long, and its SHA-256.
type Entry struct {
	Number    uint64    `json:"number"`
	At        time.Time `json:"at"` // in milliseconds
	Actor     string    `json:"actor"`
	From      string    `json:"from"`
	Action    string    `json:"action"`
	Subjects  []string  `json:"subjects"`
	Before    string    `json:"before"`
	After     string    `json:"after"`
	Reason    string    `json:"reason"`
	RequestID string    `json:"request_id"`
	Forced    bool      `json:"forced"`
	Revision  uint64    `json:"revision"` // that it made; 0: none
	// Hash is the SHA-256 over the entry and the hash of the one before; see
	// chain.
	Hash []byte `json:"hash"`
}

// Bounds of an entry, in bytes of its JSON.
const (
	MaxText     = 64 << 10 // Before, After
	maxShort    = 1 << 10  // other texts
	maxSubjects = 16 << 10 // all of them
)

// entry returns the audit entry of an act, without number and hash.
func (a *Act) entry(action string, subjects []string, before, after string) *Entry {
	return &Entry{
		At:        time.UnixMilli(a.At.UnixMilli()).UTC(),
		Actor:     bounded(a.Actor, maxShort),
		From:      bounded(a.From, maxShort),
		Action:    bounded(action, maxShort),
		Subjects:  boundedList(subjects),
		Before:    bounded(before, MaxText),
		After:     bounded(after, MaxText),
		Reason:    bounded(a.Reason, maxShort),
		RequestID: bounded(a.RequestID, maxShort),
		Forced:    a.Forced,
	}
}

// noteRoom is what the note on a text that was cut may take.
const noteRoom = 128

// bounded returns text as valid UTF-8 that takes most bytes in JSON.
func bounded(text string, most int) string {
	whole := text
	text = strings.ToValidUTF8(text, "\ufffd")
	size, end := 0, 0 // what text takes, and what of it fits beside a note
	for i, r := range text {
		if size <= most-noteRoom {
			end = i
		}
		size += escapedLen(r)
	}
	if size <= most {
		return text
	}
	hash := sha256.Sum256([]byte(whole))
	return fmt.Sprintf("%s… (cut: %d bytes, SHA-256 %s)", text[:end], len(whole), hex.EncodeToString(hash[:]))
}

// escapedLen is the most that a rune takes in JSON, in bytes.
func escapedLen(r rune) int {
	switch {
	case r < ' ' || r == '\u2028' || r == '\u2029':
		return len(`\u0000`)
	case r == '"' || r == '\\':
		return 2
	default:
		return utf8.RuneLen(r)
	}
}

// boundedList returns the first subjects, and how many there are beside them.
func boundedList(subjects []string) []string {
	list := []string{}
	size := 0
	for i, s := range subjects {
		s = bounded(s, maxShort)
		for _, r := range s {
			size += escapedLen(r)
		}
		if size += len(`"",`); size > maxSubjects {
			return append(list, fmt.Sprintf("and %d more", len(subjects)-i))
		}
		list = append(list, s)
	}
	return list
}

// chain returns the hash of an entry: the SHA-256 over its fields in the order
// of Entry, numbers and the time in milliseconds as 8 bytes with the highest
// first, texts after their length as such a number, a list after its length,
// Forced as 0 or 1, and at last the hash of the entry before, nothing for the
// first.
func (e *Entry) chain(previous []byte) []byte {
	var b []byte
	number := func(n uint64) { b = binary.BigEndian.AppendUint64(b, n) }
	text := func(s string) { number(uint64(len(s))); b = append(b, s...) }
	number(e.Number)
	number(uint64(e.At.UnixMilli()))
	text(e.Actor)
	text(e.From)
	text(e.Action)
	number(uint64(len(e.Subjects)))
	for _, s := range e.Subjects {
		text(s)
	}
	text(e.Before)
	text(e.After)
	text(e.Reason)
	text(e.RequestID)
	if e.Forced {
		number(1)
	} else {
		number(0)
	}
	number(e.Revision)
	hash := sha256.Sum256(append(b, previous...))
	return hash[:]
}

const (
	keyAudit     = "audit/"
	keyAuditHead = "audit-head"
)

// auditHead is the number and the hash of the newest entry.
type auditHead struct {
	Number uint64 `json:"number"`
	Hash   []byte `json:"hash"`
}

// link numbers an entry after the newest one and returns what writes it.
func link(e *Entry, head store.Record) ([]store.Write, error) {
	var last auditHead
	if err := decode(head, &last); err != nil {
		return nil, err
	}
	e.Number = last.Number + 1
	e.Hash = e.chain(last.Hash)
	return []store.Write{
		put(numbered(keyAudit, e.Number), e),
		put(keyAuditHead, auditHead{e.Number, e.Hash}),
	}, nil
}

package ledger

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"grl/store"
)

// Verification is what VerifyAudit found.
type Verification struct {
	Entries uint64
	Hash    []byte // of the newest entry
	Broken  uint64 // first entry that does not hold; 0: all hold
	Reason  string
}

// VerifyAudit goes through the whole audit and reports the first entry that was
// changed, is missing or stands in another's place. That the newest ones were
// cut off shows unless audit-head was changed along: whoever keeps the hash
// elsewhere can compare.
func (l *Ledger) VerifyAudit(ctx context.Context) (Verification, error) {
	v, err := l.verify(ctx)
	if err != nil {
		return Verification{}, fmt.Errorf("verify audit: %w", err)
	}
	return v, nil
}

func (l *Ledger) verify(ctx context.Context) (v Verification, err error) {
	var head auditHead
	for {
		page, err := l.engine.List(ctx, keyAudit, numbered(keyAudit, v.Entries), auditPage)
		if errors.Is(err, store.ErrDamaged) {
			page, err = l.undamaged(ctx, v.Entries)
		}
		if err != nil {
			return v, err
		}
		for _, r := range page {
			if v.next(r); v.Broken > 0 {
				return v, nil
			}
		}
		if len(page) > 0 {
			continue
		}
		if head.Number > v.Entries {
			v.Broken, v.Reason = v.Entries+1, missing
			return v, nil
		}
		// Read after the entries, it is never older than they are.
		if head, err = l.auditHead(ctx); err != nil {
			return v, err
		}
		if head.Number <= v.Entries {
			v.end(head)
			return v, nil
		}
	}
}

const missing = "it is missing"

// undamaged returns the entries after a number, up to the first that is damaged,
// which comes last and empty.
func (l *Ledger) undamaged(ctx context.Context, after uint64) ([]store.Record, error) {
	var page []store.Record
	for range auditPage {
		after++
		records, err := l.engine.Get(ctx, numbered(keyAudit, after))
		if errors.Is(err, store.ErrDamaged) {
			return append(page, store.Record{Key: numbered(keyAudit, after), Version: 1}), nil
		}
		if err != nil {
			return nil, err
		}
		page = append(page, records...)
	}
	return page, nil
}

// next compares an entry with those before it.
func (v *Verification) next(r store.Record) {
	number := v.Entries + 1
	var e Entry
	switch {
	case r.Key != numbered(keyAudit, number) || r.Version == 0:
		v.Broken, v.Reason = number, missing
	case decode(r, &e) != nil:
		v.Broken, v.Reason = number, "its record is damaged"
	case e.Number != number:
		v.Broken, v.Reason = number, fmt.Sprintf("entry %d stands in its place", e.Number)
	case !bytes.Equal(e.Hash, e.chain(v.Hash)):
		v.Broken, v.Reason = number, "it does not hash to its hash"
	default:
		v.Entries, v.Hash = number, e.Hash
	}
}

// end compares the last entry with the head of the audit, which is not beyond it.
func (v *Verification) end(head auditHead) {
	switch {
	case head.Number < v.Entries:
		v.Broken, v.Reason = head.Number+1, "the head of the audit is before it"
	case !bytes.Equal(head.Hash, v.Hash):
		v.Broken, v.Reason = v.Entries, "the head of the audit has another hash"
	}
}

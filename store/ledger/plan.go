package ledger

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"grl/store"
)

// attempts bounds how often a change is planned anew because another one came
// in between. Each time one of those in the way was done, so only a crowd of
// that many at once runs into it.
const attempts = 100

// plan is what a change wants written.
type plan struct {
	writes     []store.Write
	conditions []store.Condition // beside those of the keys
	entry      *Entry            // nil: not for the audit
}

// change reads the records of keys, lets draft plan a change of them, and commits
// it together with its audit entry if none of them changed meanwhile, nor the
// audit if there is an entry; else it starts anew. draft may read what else it
// needs: changes with an entry come one after another, so it has not changed at
// the commit if whatever changes it has entries. A nil plan changes nothing.
func (l *Ledger) change(ctx context.Context, keys []string, draft func(ctx context.Context, records []store.Record) (*plan, error)) error {
	keys = append(keys, keyAuditHead)
	for attempt := range attempts {
		records, err := l.engine.Get(ctx, keys...)
		if err != nil {
			return err
		}
		last := len(records) - 1
		p, err := draft(ctx, records[:last])
		if p == nil || err != nil {
			return err
		}
		err = l.commit(ctx, p, records[:last], records[last])
		if !errors.Is(err, store.ErrConflict) {
			return err
		}
		if err := pause(ctx, attempt); err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: other changes came in between %d times", store.ErrUnavailable, attempts)
}

func (l *Ledger) commit(ctx context.Context, p *plan, records []store.Record, auditHead store.Record) error {
	writes := p.writes
	conditions := p.conditions
	for _, r := range records {
		conditions = append(conditions, store.Condition{Key: r.Key, Version: r.Version})
	}
	if p.entry != nil {
		linked, err := link(p.entry, auditHead)
		if err != nil {
			return err
		}
		writes = append(writes, linked...)
		conditions = append(conditions, store.Condition{Key: auditHead.Key, Version: auditHead.Version})
	}
	return l.engine.Commit(ctx, conditions, writes)
}

// pause waits, the longer the more attempts were in vain, so that of many who
// change at once each gets through.
func pause(ctx context.Context, attempt int) error {
	longest := min(time.Duration(attempt+1)*2*time.Millisecond, 50*time.Millisecond)
	select {
	case <-time.After(rand.N(longest)):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

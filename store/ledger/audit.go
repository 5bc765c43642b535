package ledger

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"grl/store"
)

// auditPage is how many entries are read at once.
const auditPage = 100

// Note adds an entry about what changes nothing here, such as "login.refused".
func (l *Ledger) Note(ctx context.Context, act Act, action string, subjects []string, before, after string) error {
	err := act.validate()
	if err == nil {
		err = l.change(ctx, nil, func(context.Context, []store.Record) (*plan, error) {
			return &plan{entry: act.entry(action, subjects, before, after)}, nil
		})
	}
	if err != nil {
		return fmt.Errorf("note %s: %w", action, err)
	}
	return nil
}

// Filter selects entries; its zero value all. Subject also selects what is below
// it: "payments" selects "payments/checkout".
type Filter struct{ Actor, Action, Subject string }

func (f *Filter) selects(e *Entry) bool {
	return (f.Actor == "" || e.Actor == f.Actor) &&
		(f.Action == "" || e.Action == f.Action) &&
		(f.Subject == "" || slices.ContainsFunc(e.Subjects, func(s string) bool {
			below, ok := strings.CutPrefix(s, f.Subject)
			return ok && (below == "" || below[0] == '/')
		}))
}

// Audit returns entries, the newest first, that f selects and whose numbers are
// below before, 0: all; limit at most.
func (l *Ledger) Audit(ctx context.Context, before uint64, limit int, f Filter) ([]Entry, error) {
	entries, err := l.audit(ctx, before, limit, f)
	if err != nil {
		return nil, fmt.Errorf("read audit: %w", err)
	}
	return entries, nil
}

func (l *Ledger) audit(ctx context.Context, before uint64, limit int, f Filter) ([]Entry, error) {
	head, err := l.auditHead(ctx)
	if err != nil {
		return nil, err
	}
	if before == 0 || before > head.Number {
		before = head.Number + 1
	}
	var found []Entry
	for before > 1 && len(found) < limit {
		page, err := listBefore[Entry](ctx, l.engine, keyAudit, before, auditPage)
		if err != nil {
			return nil, err
		}
		for i := range page {
			if f.selects(&page[i]) && len(found) < limit {
				found = append(found, page[i])
			}
		}
		before -= min(before, auditPage)
	}
	return found, nil
}

func (l *Ledger) auditHead(ctx context.Context) (auditHead, error) {
	records, err := l.engine.Get(ctx, keyAuditHead)
	if err != nil {
		return auditHead{}, err
	}
	var head auditHead
	return head, decode(records[0], &head)
}

// listBefore returns what has the numbers below before, at most limit numbers,
// the highest first. They have no gaps, so it can ask for them upwards, as
// engines do best.
func listBefore[T any](ctx context.Context, engine store.Engine, prefix string, before uint64, limit int) ([]T, error) {
	first := uint64(1)
	if before > uint64(limit) {
		first = before - uint64(limit)
	}
	if before <= first {
		return nil, nil
	}
	records, err := engine.List(ctx, prefix, numbered(prefix, first-1), int(before-first))
	if err != nil {
		return nil, err
	}
	list, err := decodeAll[T](records)
	slices.Reverse(list)
	return list, err
}

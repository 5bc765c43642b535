package ledger

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"grl/store"
)

// Apply makes a revision of a change and the head of it, if the head still is
// base; else it returns the present head and ErrConflict. A change that equals
// the head makes none, whatever its base, and returns the head with Changed
// false, so that a caller whose answer was lost can ask again; its sources are
// remembered, and a rollout goes on. What Apply returns without an error was
// committed and read back.
func (l *Ledger) Apply(ctx context.Context, base uint64, c Change) (Revision, error) {
	r, err := l.apply(ctx, base, c)
	if err != nil {
		return r, fmt.Errorf("apply configuration on r%d: %w", base, err)
	}
	return r, nil
}

// application is one Apply under way.
type application struct {
	ledger *Ledger
	base   uint64
	change *Change

	services map[string]Hash
	next     manifest // once written
	packs    []Hash   // those written for it
	stored   bool
	result   Revision
}

func (l *Ledger) apply(ctx context.Context, base uint64, c Change) (Revision, error) {
	if err := c.validate(); err != nil {
		return Revision{}, err
	}
	a := application{ledger: l, base: base, change: &c, services: hashDocuments(c.Documents)}
	err := l.change(ctx, []string{keyHead}, a.plan)
	if errors.Is(err, ErrConflict) {
		return a.result, err
	}
	if err == nil && a.result.Changed {
		err = a.readBack(ctx)
	}
	if err != nil {
		return Revision{}, err
	}
	return a.result, nil
}

func (a *application) plan(ctx context.Context, records []store.Record) (*plan, error) {
	head, err := decodeRevision(records[0])
	if err != nil {
		return nil, err
	}
	a.result = head
	m, err := a.ledger.manifest(ctx, head)
	if err != nil {
		return nil, err
	}
	if m.holds(a.services) {
		return a.remember(head.Number)
	}
	if head.Number != a.base {
		return nil, fmt.Errorf("%w: head is r%d", ErrConflict, head.Number)
	}
	if err := a.store(ctx, m); err != nil {
		return nil, err
	}
	return a.revise(head)
}

// remember is the plan of a change that equals the head.
func (a *application) remember(head uint64) (*plan, error) {
	writes, err := loaded(a.change.Sources, head)
	if len(writes) == 0 || err != nil {
		return nil, err
	}
	return &plan{writes: writes}, nil
}

// store writes what the revision will consist of and the head does not, once. If
// the revision comes to nothing, it lies there and harms nobody.
func (a *application) store(ctx context.Context, head manifest) error {
	if a.stored {
		return nil
	}
	next, packs := head.next(a.services, a.change.Documents)
	var writes []store.Write
	for hash, body := range packs {
		writes = append(writes, parts(hash, body)...)
	}
	for hash, text := range next.records {
		if _, ok := head.records[hash]; !ok {
			writes = append(writes, store.Write{Key: manifestKey(hash), Value: text})
		}
	}
	if err := a.ledger.write(ctx, writes); err != nil {
		return err
	}
	a.next, a.packs, a.stored = next, slices.Collect(maps.Keys(packs)), true
	return nil
}

// revise is the plan of a change that makes a revision.
func (a *application) revise(head Revision) (*plan, error) {
	c := a.change
	r := Revision{
		Number: head.Number + 1, Author: bounded(c.Actor, maxShort), Reason: bounded(c.Reason, maxShort),
		At: time.UnixMilli(c.At.UnixMilli()).UTC(), Changed: true, manifest: a.next.root,
	}
	if len(c.Sources) > 0 {
		r.Source, r.SourceHash = c.Sources[0].Name, c.Sources[0].Hash
	}
	writes, err := loaded(c.Sources, r.Number)
	if err != nil {
		return nil, err
	}
	writes = append(writes, put(keyHead, r.record()), put(numbered(keyRevision, r.Number), r.record()), c.Rollout.write(r.Number))
	entry := c.entry(c.Action, c.Subjects, c.Before, c.After)
	entry.Revision = r.Number
	a.result = r
	return &plan{writes: writes, entry: entry}, nil
}

// readBack makes sure that a reader finds what was written.
func (a *application) readBack(ctx context.Context) error {
	l, r := a.ledger, a.result
	m, err := l.manifest(ctx, r)
	if err == nil && !m.holds(a.services) {
		err = store.ErrDamaged
	}
	if err == nil {
		err = l.packs(ctx, a.packs, func(Hash, []byte) error { return nil })
	}
	if err == nil {
		var found Revision
		if found, err = l.revision(ctx, r.Number); err == nil && !bytes.Equal(encode(found.record()), encode(r.record())) {
			err = store.ErrDamaged
		}
	}
	if err != nil {
		return fmt.Errorf("read back r%d: %w", r.Number, err)
	}
	return nil
}

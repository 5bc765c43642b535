package desk

import (
	"context"
	"slices"
	"strings"

	"grl/store/ledger"
)

// Bounds on finding out who made a later change.
const (
	maxConflicts  = 1_000 // told
	revisionsBack = 50    // looked at
)

// attribute finds the revision that made each conflict what it is now: the last
// one that changed the item. Beyond the revisions that it looks at, and when
// they cannot be read, it stays the head.
func (d *Desk) attribute(ctx context.Context, conflicts []Conflict) []Conflict {
	slices.SortFunc(conflicts, func(a, b Conflict) int { return strings.Compare(a.Bucket, b.Bucket) })
	conflicts = conflicts[:min(len(conflicts), maxConflicts)]
	if len(conflicts) == 0 {
		return nil
	}
	if err := d.findRevisions(ctx, conflicts); err != nil {
		d.opts.Log.WarnContext(ctx, "cannot tell who made a later change", "err", err)
	}
	return conflicts
}

func (d *Desk) findRevisions(ctx context.Context, conflicts []Conflict) error {
	revisions, err := d.opts.Ledger.Revisions(ctx, 0, revisionsBack)
	if err != nil {
		return err
	}
	open := make(map[int]bool, len(conflicts)) // not found yet
	for i := range conflicts {
		open[i] = true
	}
	for _, r := range revisions {
		if len(open) == 0 {
			break
		}
		before, err := d.opts.Ledger.Manifest(ctx, r.Number-1)
		if err != nil {
			return err
		}
		if err := d.settle(ctx, r, before, conflicts, open); err != nil {
			return err
		}
	}
	return nil
}

// settle finds the conflicts that a revision made, given what was before it.
func (d *Desk) settle(ctx context.Context, r ledger.Revision, before map[string]ledger.Document, conflicts []Conflict, open map[int]bool) error {
	was := map[string]items{}
	for i := range open {
		c := &conflicts[i]
		service := serviceOf(c.Bucket)
		if was[service] == nil {
			doc, err := d.readOne(ctx, before, service)
			if err != nil {
				return err
			}
			was[service] = itemsOf(doc)
		}
		if was[service][c.Bucket] != c.TheirText {
			c.Revision = r
			delete(open, i)
		}
	}
	return nil
}

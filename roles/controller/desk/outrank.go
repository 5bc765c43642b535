package desk

import (
	"context"
	"fmt"

	"grl/store/ledger"
)

// revisionsOutranked bounds the revisions that are looked at to find out that
// nobody but the configurator changed a bucket since.
const revisionsOutranked = 1_000

// contest is an item that files and head changed otherwise.
type contest struct {
	service string
	base    uint64 // of the files
	owed    mark   // see merging.owed; only if isOwed
	isOwed  bool
	is      string // its text after the revision that is looked at
}

// begun reports whether the item is, after a revision, what the files were made
// from.
func (c *contest) begun(revision uint64) bool {
	if c.isOwed {
		return markOf(c.is) == c.owed
	}
	return revision <= c.base
}

// contests returns the items of a service that clash.
func (m merging) contests(base uint64, clashes []string) map[string]*contest {
	if len(clashes) == 0 {
		return nil
	}
	head := itemsOf(m.head)
	all := make(map[string]*contest, len(clashes))
	for _, key := range clashes {
		c := &contest{service: m.service, base: base, is: head[key]}
		c.owed, c.isOwed = m.owed.of(key)
		all[key] = c
	}
	return all
}

// outranked returns the items, of those that clash, that nobody but the
// configurator changed since what the files were made from. There the files win:
// people outrank the machine.
func (d *Desk) outranked(ctx context.Context, open map[string]*contest) (map[string]bool, error) {
	won := make(map[string]bool)
	if len(open) == 0 {
		return won, nil
	}
	revisions, err := d.opts.Ledger.Revisions(ctx, 0, revisionsOutranked)
	if err != nil {
		return nil, fmt.Errorf("read who changed what: %w", err)
	}
	settle := func(revision uint64) {
		for key, c := range open {
			if c.begun(revision) {
				won[key] = true
				delete(open, key)
			}
		}
	}
	for _, r := range revisions {
		if settle(r.Number); len(open) == 0 {
			return won, nil
		}
		if err := d.goBack(ctx, r, open); err != nil {
			return nil, fmt.Errorf("read who changed what: %w", err)
		}
		if r.Number == 1 {
			settle(0)
		}
	}
	return won, nil
}

// goBack makes items what they were before a revision, and leaves out those that
// somebody else than the configurator changed in it.
func (d *Desk) goBack(ctx context.Context, r ledger.Revision, open map[string]*contest) error {
	before, err := d.opts.Ledger.Manifest(ctx, r.Number-1)
	if err != nil {
		return err
	}
	was := make(map[string]items) // service →
	for key, c := range open {
		if was[c.service] == nil {
			doc, err := d.readOne(ctx, before, c.service)
			if err != nil {
				return err
			}
			was[c.service] = itemsOf(doc)
		}
		text := was[c.service][key]
		if text != c.is && r.Source != MachineSource {
			delete(open, key)
		}
		c.is = text
	}
	return nil
}

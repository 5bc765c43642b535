package ledger

import (
	"context"
	"fmt"
	"time"

	"grl/store"
)

// Revision is one state of the configuration. Number 0 is the empty one before
// the first change.
type Revision struct {
	Number     uint64
	Author     string
	Reason     string
	Source     string    // name of what it came from; "": none
	SourceHash string    // of the source's content
	At         time.Time // in milliseconds; zero for number 0
	// Changed is set by Apply only: the change made this revision.
	Changed bool

	manifest Hash // of the record that lists its pages; zero for number 0
}

const keyRevision = "rev/"

// revision is the record of a Revision.
type revision struct {
	Number     uint64    `json:"number"`
	Author     string    `json:"author"`
	Reason     string    `json:"reason"`
	Source     string    `json:"source"`
	SourceHash string    `json:"source_hash"`
	At         time.Time `json:"at"`
	Manifest   Hash      `json:"manifest"`
}

func (r *Revision) record() revision {
	return revision{r.Number, r.Author, r.Reason, r.Source, r.SourceHash, r.At, r.manifest}
}

func (r *revision) revision() Revision {
	return Revision{
		Number: r.Number, Author: r.Author, Reason: r.Reason, Source: r.Source, SourceHash: r.SourceHash,
		At: r.At, manifest: r.Manifest,
	}
}

func decodeRevision(r store.Record) (Revision, error) {
	var kept revision
	err := decode(r, &kept)
	return kept.revision(), err
}

// Head returns the active revision, that of number 0 if there is none yet.
func (l *Ledger) Head(ctx context.Context) (Revision, error) {
	head, err := l.readRevision(ctx, keyHead)
	if err != nil {
		return Revision{}, fmt.Errorf("read head: %w", err)
	}
	return head, nil
}

// Revision returns the revision of a number. ErrNotFound if there is none.
func (l *Ledger) Revision(ctx context.Context, number uint64) (Revision, error) {
	r, err := l.revision(ctx, number)
	if err != nil {
		return Revision{}, fmt.Errorf("read r%d: %w", number, err)
	}
	return r, nil
}

func (l *Ledger) revision(ctx context.Context, number uint64) (Revision, error) {
	if number == 0 {
		return Revision{}, nil
	}
	r, err := l.readRevision(ctx, numbered(keyRevision, number))
	if err == nil && r.Number == 0 {
		err = ErrNotFound
	}
	return r, err
}

func (l *Ledger) readRevision(ctx context.Context, key string) (Revision, error) {
	records, err := l.engine.Get(ctx, key)
	if err != nil {
		return Revision{}, err
	}
	return decodeRevision(records[0])
}

// Revisions returns the revisions with numbers below before, 0: all, the newest
// first, limit at most.
func (l *Ledger) Revisions(ctx context.Context, before uint64, limit int) ([]Revision, error) {
	list, err := l.revisions(ctx, keyHead, keyRevision, before, limit)
	if err != nil {
		return nil, fmt.Errorf("list revisions: %w", err)
	}
	return list, nil
}

// revisions lists those below prefix, of which headKey has the newest.
func (l *Ledger) revisions(ctx context.Context, headKey, prefix string, before uint64, limit int) ([]Revision, error) {
	head, err := l.readRevision(ctx, headKey)
	if err != nil {
		return nil, err
	}
	if before == 0 || before > head.Number {
		before = head.Number + 1
	}
	records, err := listBefore[revision](ctx, l.engine, prefix, before, max(limit, 0))
	list := make([]Revision, len(records))
	for i := range records {
		list[i] = records[i].revision()
	}
	return list, err
}

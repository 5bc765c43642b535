package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Revision is one state of the configuration. Number 0 is the empty one before
// the first change.
type Revision struct {
	Number     uint64
	Author     string
	Reason     string
	Source     string
	SourceHash string
	At         time.Time // in milliseconds; zero for number 0
	// Changed is set by Apply only: the change made this revision.
	Changed bool

	manifest []byte // SHA-256, see manifestHash; nil for number 0
}

// Change is the configuration as it shall be.
type Change struct {
	// Documents holds the normalised YAML of every service by the service's
	// name: the whole configuration, not a difference. Apply does not keep it.
	Documents map[string][]byte
	Author    string // required
	Reason    string
	// Source is what the change came from, such as "limits directory", and
	// SourceHash its content; LastSource returns both. Source "": none.
	Source     string
	SourceHash string
	At         time.Time // required
}

func (c *Change) validate() error {
	var errs []error
	if c.Author == "" {
		errs = append(errs, errors.New("author missing"))
	}
	if c.At.IsZero() {
		errs = append(errs, errors.New("time missing"))
	}
	if _, ok := c.Documents[""]; ok {
		errs = append(errs, errors.New("document without a service"))
	}
	return errors.Join(errs...)
}

// Head returns the active revision, that of number 0 if there is none yet.
func (s *Store) Head(ctx context.Context) (Revision, error) {
	head, err := readHead(ctx, s.config.read)
	if err != nil {
		return Revision{}, fmt.Errorf("read head: %w", s.config.fail(ctx, err))
	}
	return head, nil
}

// Apply makes a revision of change and the head of it, if the head still is
// base; else it returns the present head and ErrConflict. A change that equals
// the head makes none, whatever its base, and returns the head with Changed
// false, so that a caller whose answer was lost can ask again. What Apply
// returns without an error was committed and read back. After any other error
// than ErrConflict ask for the head: an error between commit and answer leaves
// a change in place.
func (s *Store) Apply(ctx context.Context, base uint64, change Change) (Revision, error) {
	revision, err := s.apply(ctx, base, change)
	if err != nil {
		return revision, fmt.Errorf("apply configuration on r%d: %w", base, err)
	}
	return revision, nil
}

func (s *Store) apply(ctx context.Context, base uint64, change Change) (Revision, error) {
	if err := change.validate(); err != nil {
		return Revision{}, err
	}
	hashes := hashDocuments(change.Documents)
	var revision Revision
	err := s.config.update(ctx, func(tx *sql.Tx) error {
		head, err := readHead(ctx, tx)
		if err != nil {
			return err
		}
		revision = head
		if !head.holds(hashes) {
			if head.Number != base {
				return fmt.Errorf("%w: head is r%d", ErrConflict, head.Number)
			}
			if revision, err = insertRevision(ctx, tx, head, change, hashes); err != nil {
				return err
			}
		}
		return writeSource(ctx, tx, change, revision.Number)
	}, nil)
	if errors.Is(err, ErrConflict) {
		return revision, err
	}
	if err != nil {
		return Revision{}, err
	}
	if err := s.readBack(ctx, revision, hashes); err != nil {
		return Revision{}, fmt.Errorf("read back r%d: %w", revision.Number, err)
	}
	return revision, nil
}

// holds reports whether r consists of documents of these hashes.
func (r *Revision) holds(hashes map[string][]byte) bool {
	if r.Number == 0 {
		return len(hashes) == 0
	}
	return bytes.Equal(r.manifest, manifestHash(hashes))
}

// readBack makes sure that a reader finds what was written.
func (s *Store) readBack(ctx context.Context, r Revision, hashes map[string][]byte) error {
	if r.Number == 0 {
		return nil
	}
	documents, err := s.Documents(ctx, r.Number)
	if err != nil {
		return err
	}
	if !bytes.Equal(manifestHash(hashDocuments(documents)), manifestHash(hashes)) {
		return fmt.Errorf("%w: %w: it is not what was written", ErrUnavailable, errDamaged)
	}
	return nil
}

func insertRevision(ctx context.Context, tx *sql.Tx, head Revision, c Change, hashes map[string][]byte) (Revision, error) {
	r := Revision{
		Number: head.Number + 1, Author: c.Author, Reason: c.Reason, Source: c.Source, SourceHash: c.SourceHash,
		At: time.UnixMilli(c.At.UnixMilli()), Changed: true, manifest: manifestHash(hashes),
	}
	if _, err := tx.ExecContext(ctx, "INSERT INTO revisions (number, manifest, author, reason, source, source_hash, at, sum) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
		r.Number, r.manifest, r.Author, r.Reason, r.Source, r.SourceHash, r.At.UnixMilli(), r.sum()); err != nil {
		return Revision{}, err
	}
	if err := insertManifest(ctx, tx, r.Number, c.Documents, hashes); err != nil {
		return Revision{}, err
	}
	_, err := tx.ExecContext(ctx, "INSERT INTO head (one, revision, sum) VALUES (1, ?1, ?2) ON CONFLICT (one) DO UPDATE SET revision = ?1, sum = ?2",
		r.Number, headSum(r.Number))
	return r, err
}

func headSum(number uint64) int64 { return sum{}.int(int64(number)).crc() }

func (r *Revision) sum() int64 {
	return sum{}.int(int64(r.Number)).blob(r.manifest).text(r.Author).text(r.Reason).
		text(r.Source).text(r.SourceHash).int(r.At.UnixMilli()).crc()
}

// revisionColumns are what scanRevision reads.
const revisionColumns = "number, manifest, author, reason, source, source_hash, at, sum"

func scanRevision(scan func(...any) error) (Revision, error) {
	var r Revision
	var at, sum int64
	if err := scan(&r.Number, &r.manifest, &r.Author, &r.Reason, &r.Source, &r.SourceHash, &at, &sum); err != nil {
		return Revision{}, err
	}
	r.At = time.UnixMilli(at)
	if sum != r.sum() {
		return Revision{}, fmt.Errorf("%w: %w: row of r%d", ErrUnavailable, errDamaged, r.Number)
	}
	return r, nil
}

func readHead(ctx context.Context, q queryer) (Revision, error) {
	var number uint64
	var sum int64
	err := q.QueryRowContext(ctx, "SELECT revision, sum FROM head").Scan(&number, &sum)
	if errors.Is(err, sql.ErrNoRows) {
		return Revision{}, nil
	}
	if err != nil {
		return Revision{}, err
	}
	if sum != headSum(number) {
		return Revision{}, fmt.Errorf("%w: %w: head", ErrUnavailable, errDamaged)
	}
	return readRevision(ctx, q, number)
}

func readRevision(ctx context.Context, q queryer, number uint64) (Revision, error) {
	r, err := scanRevision(q.QueryRowContext(ctx, "SELECT "+revisionColumns+" FROM revisions WHERE number = ?", int64(number)).Scan)
	if errors.Is(err, sql.ErrNoRows) {
		return Revision{}, fmt.Errorf("%w: r%d", ErrNotFound, number)
	}
	return r, err
}

// Revisions returns the newest revisions, the newest first, limit at most.
func (s *Store) Revisions(ctx context.Context, limit int) ([]Revision, error) {
	revisions, err := s.revisions(ctx, limit)
	if err != nil {
		return nil, fmt.Errorf("list revisions: %w", s.config.fail(ctx, err))
	}
	return revisions, nil
}

func (s *Store) revisions(ctx context.Context, limit int) ([]Revision, error) {
	rows, err := s.config.read.QueryContext(ctx, "SELECT "+revisionColumns+" FROM revisions ORDER BY number DESC LIMIT ?", max(limit, 0))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var revisions []Revision
	for rows.Next() {
		r, err := scanRevision(rows.Scan)
		if err != nil {
			return nil, err
		}
		revisions = append(revisions, r)
	}
	return revisions, rows.Err()
}

// manifestHash is the SHA-256 over the services in order, each with the hash of
// its document.
func manifestHash(hashes map[string][]byte) []byte {
	h := sha256.New()
	for _, service := range slices.Sorted(maps.Keys(hashes)) {
		h.Write(sum{}.text(service).blob(hashes[service]).buf)
	}
	return h.Sum(nil)
}

func hashDocuments(documents map[string][]byte) map[string][]byte {
	hashes := make(map[string][]byte, len(documents))
	for service, body := range documents {
		hash := sha256.Sum256(body)
		hashes[service] = hash[:]
	}
	return hashes
}

// Package store keeps what a controller must not forget: as records under keys,
// in whatever Engine, of which package ledger makes the configuration, caps,
// accounts and the audit; and, in SQLite, what was seen each minute.
//
// Open returns a Store, which has both in two SQLite files of one directory:
// grl.db holds the records, history.db the minutes. It is the only package with
// SQL. Commit, AppendMinute and SawZones return after the commit, so what they
// acknowledged survives a kill at any moment (and, in grl.db, a power cut). Why
// the layout is what it is: docs/decisions/0002-store-layout.md and
// 0018-store-engines.md.
package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

var (
	// ErrUnavailable says that the files cannot be read or written now: locked,
	// full, failing or damaged. Nothing was changed; a later try may work.
	ErrUnavailable = errors.New("store unavailable")
	// ErrFull is the ErrUnavailable of a full disk.
	ErrFull = fmt.Errorf("%w: no space left", ErrUnavailable)
	// ErrConflict says that a record is not the one that a change was made for.
	ErrConflict = errors.New("changed meanwhile")
	// ErrInUse says that another controller has the directory open.
	ErrInUse = errors.New("in use by another controller")
)

// Store is an open directory, and an Engine. All methods may be called
// concurrently; writes to one file run one after another.
type Store struct {
	lock    *os.File
	config  *file
	history *file
	names   names
	changes changes

	setAside []string // names of files that lie where grl.db was

	mu       sync.Mutex // guards warnings
	warnings []string
}

// Open opens the store in dir, and creates what is missing: the directory with
// mode 0700, files with 0600. A file of an older version is migrated; if one
// is newer than this binary, Open returns an error before it changes anything.
// A damaged file is set aside under another name, never deleted, an empty one
// takes its place, and Warnings says so; but of grl.db damaged records that can
// be made anew, such as runs of the configurator, are deleted by themselves. ErrInUse if another process, or
// another Store of this one, has dir open. Call Close when done.
func Open(ctx context.Context, dir string) (*Store, error) {
	s, err := open(ctx, dir)
	if err != nil {
		return nil, fmt.Errorf("open store %q: %w", dir, err)
	}
	return s, nil
}

func open(ctx context.Context, dir string) (*Store, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	s := &Store{}
	if s.lock, err = lockDir(dir); err != nil {
		return nil, err
	}
	if err := s.openFiles(ctx, dir); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Store) openFiles(ctx context.Context, dir string) error {
	schemas := []*schema{configSchema(), historySchema()}
	for _, sc := range schemas {
		if err := sc.refuseNewer(ctx, filepath.Join(dir, sc.name)); err != nil {
			return err
		}
	}
	for i, target := range []**file{&s.config, &s.history} {
		f, warning, err := openFile(ctx, filepath.Join(dir, schemas[i].name), schemas[i])
		if err != nil {
			return err
		}
		*target = f
		s.warn(warning)
	}
	if err := s.loadNames(ctx, s.history.read); err != nil {
		return fmt.Errorf("read names of cells: %w", err)
	}
	var err error
	s.setAside, err = findAside(filepath.Join(dir, schemas[0].name))
	return err
}

// SetAside returns the names of the damaged files that lie beside grl.db, of
// this start or of earlier ones, until somebody takes them away. While there are
// some, an empty store is no new one.
func (s *Store) SetAside() []string { return slices.Clone(s.setAside) }

var _ Engine = (*Store)(nil)

// Close closes the files and gives the directory free. No other method may be
// called afterwards.
func (s *Store) Close() error {
	return errors.Join(s.config.close(), s.history.close(), unlockDir(s.lock))
}

// Warnings returns what a person should hear about, oldest first: files set
// aside by Open, damaged records that it deleted, damaged rows that were left out since. Empty when all is well.
func (s *Store) Warnings() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.warnings)
}

// maxWarnings bounds the warnings kept: a damaged file may have any number of
// damaged rows.
const maxWarnings = 100

func (s *Store) warn(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if text == "" || len(s.warnings) >= maxWarnings || slices.Contains(s.warnings, text) {
		return
	}
	s.warnings = append(s.warnings, text)
}

package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"

	_ "modernc.org/sqlite" // the driver "sqlite"
)

const (
	// busyTimeout is how long to wait for a lock that another process holds.
	busyTimeout = "busy_timeout(5000)" // ms
	// readers bounds the connections that read.
	readers = 4
)

// file is one open SQLite file: a connection that writes and a pool that reads
// beside it, which WAL keeps out of each other's way.
type file struct {
	write *sql.DB // one connection; who has it is the writer
	read  *sql.DB
	// suspect is set when a write failed for a reason of the disk; the next
	// writer then starts anew, see heal.
	suspect atomic.Bool
}

// openFile opens, checks and migrates the file at path. A damaged one is set
// aside, and warning says where it went, or what was left out of one that is
// sound but for that.
func openFile(ctx context.Context, path string, sc *schema) (f *file, warning string, err error) {
	f, warning, err = tryOpen(ctx, path, sc)
	if !isDamage(err) {
		return f, warning, err
	}
	cause := err
	aside, err := setAside(path)
	if err != nil {
		return nil, "", fmt.Errorf("set damaged %s aside: %w", sc.name, err)
	}
	warning = fmt.Sprintf("%s was damaged (%v): it is set aside as %s, an empty one takes its place", sc.name, cause, aside)
	f, _, err = tryOpen(ctx, path, sc) // an empty one warns of nothing
	return f, warning, err
}

func tryOpen(ctx context.Context, path string, sc *schema) (f *file, warning string, err error) {
	fresh, err := touch(path)
	if err != nil {
		return nil, "", err
	}
	if !fresh {
		if err := checkHeader(path); err != nil {
			return nil, "", err
		}
	}
	if f, err = connect(path, sc.synchronous, fresh); err != nil {
		return nil, "", err
	}
	if warning, err = f.prepare(ctx, sc, fresh); err != nil {
		return nil, "", errors.Join(err, f.close())
	}
	return f, warning, nil
}

func (f *file) prepare(ctx context.Context, sc *schema, fresh bool) (warning string, err error) {
	if !fresh {
		if err := f.quickCheck(ctx); err != nil {
			return "", err
		}
		// What a failed sync left in the write-ahead log may be in the page
		// cache only: copied into the database and synced, it can be trusted.
		if err := f.checkpoint(ctx); err != nil {
			return "", err
		}
	}
	if err := sc.migrate(ctx, f); err != nil {
		return "", err
	}
	if err := sc.checkObjects(ctx, f); err != nil {
		return "", err
	}
	return sc.verify(ctx, f)
}

// touch creates the file with mode 0600, which SQLite would make 0644; its
// companions -wal and -shm take the mode from it. fresh says that it is empty.
func touch(path string) (fresh bool, err error) {
	info, err := os.Stat(path)
	if err == nil {
		return info.Size() == 0, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	created, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return false, err
	}
	return true, errors.Join(created.Close(), syncDir(filepath.Dir(path)))
}

// syncDir makes a new name in dir survive a power cut; syncing the file alone
// need not.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func connect(path, synchronous string, fresh bool) (*file, error) {
	params := []string{
		"_txlock", "immediate",
		"_pragma", busyTimeout,
		"_pragma", "foreign_keys(ON)",
		"_pragma", "journal_mode(WAL)",
		"_pragma", "journal_size_limit(16777216)", // bytes; a long read may have let the log grow
		"_pragma", "synchronous(" + synchronous + ")",
		"_pragma", "cell_size_check(ON)",
	}
	if fresh { // it is settled with the first page, and each later time writes
		params = append(params, "_pragma", "auto_vacuum(INCREMENTAL)")
	}
	write, err := sql.Open("sqlite", dsn(path, params...))
	if err != nil {
		return nil, err
	}
	write.SetMaxOpenConns(1)
	read, err := sql.Open("sqlite", dsn(path,
		"_pragma", busyTimeout,
		"_pragma", "query_only(ON)",
		"_pragma", "cell_size_check(ON)",
	))
	if err != nil {
		return nil, errors.Join(err, write.Close())
	}
	read.SetMaxOpenConns(readers)
	read.SetMaxIdleConns(readers)
	return &file{write: write, read: read}, nil
}

// dsn names the file as a URI, since a path may contain a question mark.
func dsn(path string, params ...string) string {
	query := make(url.Values)
	for i := 0; i < len(params); i += 2 {
		query.Add(params[i], params[i+1])
	}
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + query.Encode()
}

// close closes all connections; nil is closed.
func (f *file) close() error {
	if f == nil {
		return nil
	}
	return errors.Join(f.read.Close(), f.write.Close())
}

// update runs fn in a transaction and commits it; on any error nothing is
// changed. committed, if not nil, runs while the writer still has the
// connection, so what it publishes is there before the next transaction.
func (f *file) update(ctx context.Context, fn func(*sql.Tx) error, committed func()) error {
	if err := f.heal(ctx); err != nil {
		return f.fail(ctx, err)
	}
	conn, err := f.write.Conn(ctx)
	if err != nil {
		return f.fail(ctx, err)
	}
	defer conn.Close()
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return f.fail(ctx, err)
	}
	// After a commit this does nothing; before conn.Close it must be done, which
	// waits for the transaction, even if fn panics.
	defer func() { _ = tx.Rollback() }()
	if err := fn(tx); err != nil {
		return f.fail(ctx, err)
	}
	if err := tx.Commit(); err != nil {
		return f.fail(ctx, err)
	}
	if committed != nil {
		committed()
	}
	return nil
}

// fail returns err as the callers of the package know it, and marks the file as
// suspect if the disk is to blame.
func (f *file) fail(ctx context.Context, err error) error {
	if isDiskFailure(err) {
		f.suspect.Store(true)
	}
	return classify(ctx, err)
}

// heal starts anew after the disk failed a write: the kernel forgets what it
// could not sync, so the writer's connection and its view of the log go, and
// all that is in the log is copied into the database and synced.
func (f *file) heal(ctx context.Context) error {
	if !f.suspect.Load() {
		return nil
	}
	f.write.SetMaxIdleConns(0) // closes the connection once it is idle
	f.write.SetMaxIdleConns(1)
	if err := f.checkpoint(ctx); err != nil {
		return fmt.Errorf("reopen: %w", err)
	}
	f.suspect.Store(false)
	return nil
}

// checkpoint empties the write-ahead log into the database.
func (f *file) checkpoint(ctx context.Context) error {
	var busy, frames, copied int
	if err := f.write.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &frames, &copied); err != nil {
		return err
	}
	if busy != 0 {
		return fmt.Errorf("checkpoint: %w: another process reads it", ErrUnavailable)
	}
	return nil
}

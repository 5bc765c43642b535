package store

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

//go:embed schema.sql
var configSQL string

//go:embed records.sql
var recordsSQL string

//go:embed history.sql
var historySQL string

// schema is what one file should look like.
type schema struct {
	name        string // of the file
	synchronous string // PRAGMA synchronous
	// migrations lead from version i to version i+1; append only. The first
	// makes the tables in an empty file.
	migrations []migration
	// verify returns errDamaged if values that Open relies on are not as they
	// were written. What it left out of the file, the warning says.
	verify func(context.Context, *file) (warning string, err error)
}

// migration changes tables and content, in a transaction.
type migration func(context.Context, *sql.Tx) error

// statements is a migration by SQL alone.
func statements(text string) migration {
	return func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, text)
		return err
	}
}

func configSchema() *schema {
	return &schema{
		name:        "grl.db",
		synchronous: "FULL",
		migrations:  []migration{statements(configSQL), moveToRecords},
		verify:      verifyRecords,
	}
}

func historySchema() *schema {
	return &schema{
		name:        "history.db",
		synchronous: "NORMAL",
		migrations:  []migration{statements(historySQL)},
		verify:      func(context.Context, *file) (string, error) { return "", nil }, // rows are checked when read
	}
}

// version is the one this binary writes.
func (sc *schema) version() int { return len(sc.migrations) }

// refuseNewer returns an error if the file at path was written by a newer grl.
// It reads only. A missing or damaged file is for openFile to deal with.
func (sc *schema) refuseNewer(ctx context.Context, path string) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	if checkHeader(path) != nil {
		return nil
	}
	db, err := sql.Open("sqlite", dsn(path, "mode", "ro", "_pragma", busyTimeout))
	if err != nil {
		return err
	}
	defer db.Close()
	version, err := userVersion(ctx, db)
	if isDamage(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read version of %s: %w", sc.name, err)
	}
	return sc.checkVersion(version)
}

func (sc *schema) checkVersion(version int) error {
	if version > sc.version() {
		return fmt.Errorf("%s has version %d, this grl knows up to version %d: use a newer grl, or another directory", sc.name, version, sc.version())
	}
	return nil
}

type queryer interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

func userVersion(ctx context.Context, q queryer) (version int, err error) {
	err = q.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version)
	return version, err
}

// migrate brings the file to the present version, one transaction each.
func (sc *schema) migrate(ctx context.Context, f *file) error {
	version, err := userVersion(ctx, f.write)
	if err != nil {
		return err
	}
	if err := sc.checkVersion(version); err != nil {
		return err
	}
	if version < 0 {
		return fmt.Errorf("%w: version %d", errDamaged, version)
	}
	if version == 0 {
		if err := refuseTables(ctx, f); err != nil {
			return err
		}
	}
	for ; version < sc.version(); version++ {
		if err := sc.step(ctx, f, version); err != nil {
			return fmt.Errorf("migrate %s to version %d: %w", sc.name, version+1, err)
		}
	}
	return nil
}

// refuseTables returns errDamaged if a file that says it is new has tables.
func refuseTables(ctx context.Context, f *file) error {
	have, err := objects(ctx, f.read)
	if err == nil && len(have) > 0 {
		return fmt.Errorf("%w: version 0 with %d tables and indexes", errDamaged, len(have))
	}
	return err
}

func (sc *schema) step(ctx context.Context, f *file, version int) error {
	return f.update(ctx, func(tx *sql.Tx) error {
		if err := sc.migrations[version](ctx, tx); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, fmt.Sprintf("PRAGMA user_version = %d", version+1))
		return err
	}, nil)
}

// checkObjects compares the tables of the file with those that the migrations
// make: a flipped bit in the text of a schema may pass quick_check. What
// somebody added is let be.
func (sc *schema) checkObjects(ctx context.Context, f *file) error {
	model, err := sc.model(ctx)
	if err != nil {
		return err
	}
	have, err := objects(ctx, f.read)
	if err != nil {
		return err
	}
	for name, want := range model {
		if have[name] != want {
			return fmt.Errorf("%w: definition of %q is not that of version %d", errDamaged, name, sc.version())
		}
	}
	return nil
}

// model returns what objects finds in a new file.
func (sc *schema) model(ctx context.Context) (map[string]string, error) {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return nil, err
	}
	defer db.Close()
	db.SetMaxOpenConns(1) // each connection has a memory of its own
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	for _, migrate := range sc.migrations {
		if err := migrate(ctx, tx); err != nil {
			return nil, err
		}
	}
	if err := tx.Commit(); err != nil {
		return nil, err
	}
	return objects(ctx, db)
}

// objects returns the tables and indexes by name.
func objects(ctx context.Context, db *sql.DB) (map[string]string, error) {
	rows, err := db.QueryContext(ctx, "SELECT name, type || ' ' || tbl_name || ' ' || coalesce(sql, '') FROM sqlite_schema")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	found := make(map[string]string)
	for rows.Next() {
		var name, definition string
		if err := rows.Scan(&name, &definition); err != nil {
			return nil, err
		}
		found[name] = definition
	}
	return found, rows.Err()
}

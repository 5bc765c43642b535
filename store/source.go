package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// LastSource returns the hash of the content that was last loaded from a
// source, and the revision that was head after it: the base for the next load.
// "" and 0 if nothing was loaded from it yet.
func (s *Store) LastSource(ctx context.Context, source string) (hash string, revision uint64, err error) {
	row := s.config.read.QueryRowContext(ctx, "SELECT source, hash, revision, at, sum FROM sources WHERE source = ?", source)
	_, hash, revision, err = scanSource(row.Scan)
	if errors.Is(err, sql.ErrNoRows) {
		return "", 0, nil
	}
	if err != nil {
		return "", 0, fmt.Errorf("read source %q: %w", source, s.config.fail(ctx, err))
	}
	return hash, revision, nil
}

func scanSource(scan func(...any) error) (source, hash string, revision uint64, err error) {
	var at, sum int64
	if err := scan(&source, &hash, &revision, &at, &sum); err != nil {
		return "", "", 0, err
	}
	if sum != sourceSum(source, hash, revision, at) {
		return "", "", 0, fmt.Errorf("%w: %w: row of the source", ErrUnavailable, errDamaged)
	}
	return source, hash, revision, nil
}

func sourceSum(source, hash string, revision uint64, at int64) int64 {
	return sum{}.text(source).text(hash).int(int64(revision)).int(at).crc()
}

// writeSource remembers what was loaded, even if it changed nothing: comments
// in a limits file change its hash and no document.
func writeSource(ctx context.Context, tx *sql.Tx, c Change, revision uint64) error {
	if c.Source == "" {
		return nil
	}
	at := c.At.UnixMilli()
	_, err := tx.ExecContext(ctx, "INSERT OR REPLACE INTO sources (source, hash, revision, at, sum) VALUES (?, ?, ?, ?, ?)",
		c.Source, c.SourceHash, int64(revision), at, sourceSum(c.Source, c.SourceHash, revision, at))
	return err
}

func verifySources(ctx context.Context, db *sql.DB) error {
	rows, err := db.QueryContext(ctx, "SELECT source, hash, revision, at, sum FROM sources")
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if _, _, _, err := scanSource(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

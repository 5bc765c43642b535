package store

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// Get implements Engine.
func (s *Store) Get(ctx context.Context, keys ...string) ([]Record, error) {
	for _, key := range keys {
		if err := CheckKey(key); err != nil {
			return nil, fmt.Errorf("get records: %w", err)
		}
	}
	records, err := s.get(ctx, keys)
	if err != nil {
		return nil, fmt.Errorf("get records: %w", s.config.fail(ctx, err))
	}
	return records, nil
}

func (s *Store) get(ctx context.Context, keys []string) ([]Record, error) {
	tx, err := s.config.read.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback() }() // it only reads
	one, err := tx.PrepareContext(ctx, "SELECT key, value, version, sum FROM records WHERE key = ?")
	if err != nil {
		return nil, err
	}
	defer one.Close()
	records := make([]Record, len(keys))
	for i, key := range keys {
		records[i], err = scanRecord(one.QueryRowContext(ctx, key).Scan)
		if errors.Is(err, sql.ErrNoRows) {
			records[i] = Record{Key: key}
		} else if err != nil {
			return nil, err
		}
	}
	return records, nil
}

// scanRecord returns ErrDamaged for a row that is not as it was written.
func scanRecord(scan func(...any) error) (Record, error) {
	r, sum, err := scanRow(scan)
	if err != nil {
		return Record{}, err
	}
	if sum != r.sum() {
		return Record{}, r.damaged()
	}
	return r, nil
}

// scanRow returns a row as it is, and the sum that it had when it was written.
func scanRow(scan func(...any) error) (r Record, sum int64, err error) {
	err = scan(&r.Key, &r.Value, &r.Version, &sum)
	return r, sum, err
}

func (r *Record) damaged() error { return fmt.Errorf("%w: record %q", ErrDamaged, r.Key) }

func (r *Record) sum() int64 { return sum{}.text(r.Key).blob(r.Value).int(int64(r.Version)).crc() }

// List implements Engine.
func (s *Store) List(ctx context.Context, prefix, after string, limit int) ([]Record, error) {
	if err := checkPrefix(prefix); err != nil {
		return nil, fmt.Errorf("list records: %w", err)
	}
	records, err := s.list(ctx, prefix, after, limit)
	if err != nil {
		return nil, fmt.Errorf("list records: %w", s.config.fail(ctx, err))
	}
	return records, nil
}

func (s *Store) list(ctx context.Context, prefix, after string, limit int) ([]Record, error) {
	if limit <= 0 {
		limit = -1 // to SQLite: all
	}
	// No key has a byte above '~', so the range ends there.
	rows, err := s.config.read.QueryContext(ctx, "SELECT key, value, version, sum FROM records WHERE key >= ? AND key < ? AND key > ? ORDER BY key LIMIT ?",
		prefix, prefix+"\x7f", after, limit)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var records []Record
	for rows.Next() {
		r, err := scanRecord(rows.Scan)
		if err != nil {
			return nil, err
		}
		records = append(records, r)
	}
	return records, rows.Err()
}

// Commit implements Engine.
func (s *Store) Commit(ctx context.Context, conditions []Condition, writes []Write) error {
	if err := s.commit(ctx, conditions, writes); err != nil {
		return fmt.Errorf("commit records: %w", err)
	}
	return nil
}

func (s *Store) commit(ctx context.Context, conditions []Condition, writes []Write) error {
	if err := CheckCommit(conditions, writes); err != nil {
		return err
	}
	var version uint64
	var unread error
	err := s.config.update(ctx, func(tx *sql.Tx) error {
		if err := checkConditions(ctx, tx, conditions); err != nil {
			return err
		}
		var err error
		version, err = writeRecords(ctx, tx, writes)
		return err
	}, func() {
		unread = s.confirm(ctx, writes, version)
		s.changes.notify(writes)
	})
	if err != nil {
		return err
	}
	return s.config.fail(ctx, unread)
}

func checkConditions(ctx context.Context, tx *sql.Tx, conditions []Condition) error {
	for _, c := range conditions {
		var version uint64
		err := tx.QueryRowContext(ctx, "SELECT version FROM records WHERE key = ?", c.Key).Scan(&version)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		if version != c.Version {
			return fmt.Errorf("%w: record %q", ErrConflict, c.Key)
		}
	}
	return nil
}

// writeRecords makes the writes and returns the version that they have.
func writeRecords(ctx context.Context, tx *sql.Tx, writes []Write) (uint64, error) {
	t, err := readTally(ctx, tx)
	if err != nil {
		return 0, err
	}
	t.version++
	for _, w := range writes {
		if err := t.remove(ctx, tx, w.Key); err != nil {
			return 0, err
		}
		if w.Delete {
			continue
		}
		r := Record{Key: w.Key, Value: w.Value, Version: t.version}
		if r.Value == nil {
			r.Value = []byte{} // nil is NULL to the driver
		}
		if _, err := tx.ExecContext(ctx, "INSERT INTO records (key, value, version, sum) VALUES (?, ?, ?, ?)",
			r.Key, r.Value, int64(r.Version), r.sum()); err != nil {
			return 0, err
		}
		t.records++
		t.digest ^= r.sum()
	}
	return t.version, t.write(ctx, tx)
}

// confirm makes sure that a reader finds what was written. It runs before the
// next transaction.
func (s *Store) confirm(ctx context.Context, writes []Write, version uint64) error {
	keys := make([]string, len(writes))
	for i, w := range writes {
		keys[i] = w.Key
	}
	records, err := s.get(ctx, keys)
	if err != nil {
		return fmt.Errorf("read back: %w", err)
	}
	for i, w := range writes {
		r := records[i]
		if w.Delete && r.Version != 0 || !w.Delete && (r.Version != version || !bytes.Equal(r.Value, w.Value)) {
			return fmt.Errorf("read back: %w: record %q is not what was written", ErrDamaged, w.Key)
		}
	}
	return nil
}

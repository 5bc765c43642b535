package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// tally is what all records are together. A record that got lost or came back,
// as no checksum of its own can tell, is missing in it.
type tally struct {
	version uint64
	records int64
	digest  int64 // of the records' sums, by exclusive or
}

func (t *tally) sum() int64 { return sum{}.int(int64(t.version)).int(t.records).int(t.digest).crc() }

func readTally(ctx context.Context, q queryer) (tally, error) {
	var t tally
	var sum int64
	err := q.QueryRowContext(ctx, "SELECT version, records, digest, sum FROM tally").Scan(&t.version, &t.records, &t.digest, &sum)
	if errors.Is(err, sql.ErrNoRows) {
		return tally{}, nil
	}
	if err == nil && sum != t.sum() {
		err = fmt.Errorf("%w: tally of the records", ErrDamaged)
	}
	return t, err
}

// remove deletes the record of key, if there is one.
func (t *tally) remove(ctx context.Context, tx *sql.Tx, key string) error {
	var sum int64
	err := tx.QueryRowContext(ctx, "DELETE FROM records WHERE key = ? RETURNING sum", key).Scan(&sum)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	t.records--
	t.digest ^= sum
	return err
}

func (t *tally) write(ctx context.Context, tx *sql.Tx) error {
	_, err := tx.ExecContext(ctx, "INSERT OR REPLACE INTO tally (one, version, records, digest, sum) VALUES (1, ?, ?, ?, ?)",
		int64(t.version), t.records, t.digest, t.sum())
	return err
}

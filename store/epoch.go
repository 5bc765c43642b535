package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
)

// NextEpoch returns an epoch above every one this store gave out and above
// heard, the highest that a receiver of directives knows, so that a lost or
// restored store does not silence a controller. It is on disk before NextEpoch
// returns. At least 1.
func (s *Store) NextEpoch(ctx context.Context, heard uint64) (uint64, error) {
	var epoch uint64
	err := s.config.update(ctx, func(tx *sql.Tx) error {
		stored, err := readEpoch(ctx, tx)
		if err != nil {
			return err
		}
		epoch = max(stored, heard)
		if epoch >= math.MaxInt64 {
			return fmt.Errorf("no epoch is left above %d", epoch)
		}
		epoch++
		_, err = tx.ExecContext(ctx, "INSERT OR REPLACE INTO counters (name, value, sum) VALUES ('epoch', ?, ?)", int64(epoch), epochSum(epoch))
		return err
	}, nil)
	if err != nil {
		return 0, fmt.Errorf("take epoch: %w", err)
	}
	return epoch, nil
}

func readEpoch(ctx context.Context, q queryer) (epoch uint64, err error) {
	var sum int64
	err = q.QueryRowContext(ctx, "SELECT value, sum FROM counters WHERE name = 'epoch'").Scan(&epoch, &sum)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	if err == nil && sum != epochSum(epoch) {
		return 0, fmt.Errorf("%w: %w: epoch", ErrUnavailable, errDamaged)
	}
	return epoch, err
}

func epochSum(epoch uint64) int64 { return sum{}.text("epoch").int(int64(epoch)).crc() }

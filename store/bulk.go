package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"time"

	"grl/limiter"
)

// CellHour is what one cell counted in one zone in an hour.
type CellHour struct {
	Cell limiter.CellID
	Zone string
	// Minutes are in order; their Start is not looked at. Counts are at most
	// 2^63-1.
	Minutes [minutesPerHour]Minute
}

// PutHours writes whole hours in bulk, in one transaction, in place of what there
// is of the same cells and zones: for imports, benchmarks and tests. start is
// that of the hour. Hours without requests write nothing. rows may use one
// CellHour for all. It is fastest when the cells come in the order in which they
// first came.
func (s *Store) PutHours(ctx context.Context, start time.Time, rows iter.Seq[*CellHour]) error {
	hour, minute := splitMinute(start)
	var err error
	if minute != 0 || !time.UnixMilli(hour).Equal(start) {
		err = errors.New("no start of an hour")
	} else {
		err = s.putHours(ctx, hour, rows)
	}
	if err != nil {
		return fmt.Errorf("put hours of %v: %w", start, err)
	}
	return nil
}

func (s *Store) putHours(ctx context.Context, start int64, rows iter.Seq[*CellHour]) error {
	var given *naming
	err := s.history.update(ctx, func(tx *sql.Tx) error {
		quiet := context.WithoutCancel(ctx)
		if err := s.loadNames(quiet, tx); err != nil {
			return err
		}
		given = s.names.begin()
		w, err := newHourWriter(quiet, tx, start)
		if err != nil {
			return err
		}
		defer w.close()
		for row := range rows {
			h := row.hour()
			if *h == (hour{}) {
				continue
			}
			if err := w.put(quiet, rowKey{given.cell(row.Cell, start), given.zone(row.Zone)}, h); err != nil {
				return err
			}
		}
		return given.write(quiet, tx)
	}, func() { given.publish() })
	if err != nil {
		s.names.forget()
	}
	return err
}

func (c *CellHour) hour() *hour {
	var h hour
	for m := range c.Minutes {
		h[m] = c.Minutes[m].counts()
	}
	return &h
}

package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"grl/limiter"
)

// Sample is what one cell counted in one zone in one minute, or in the part of
// it since the controller started. Requests; what exceeds 2^63-1 counts as that.
type Sample struct {
	Cell limiter.CellID
	// Zone is "" for what is known only of all zones together: CandidateDropped.
	Zone          string
	Offered       uint64
	Admitted      uint64
	Dropped       uint64
	ShadowDropped uint64 // part of Admitted
	HighestSecond uint64 // offered requests in the highest second
	// CandidateDropped is what the candidate of the bucket would have dropped of
	// what was admitted.
	CandidateDropped uint64
}

func (s *Sample) counts() counts {
	m := Minute{
		Offered: s.Offered, Admitted: s.Admitted, Dropped: s.Dropped, ShadowDropped: s.ShadowDropped,
		HighestSecond: s.HighestSecond, CandidateDropped: s.CandidateDropped,
	}
	return m.counts()
}

// AppendMinute adds samples to the minute that contains minute: counts add to
// what is there, and the highest second is the higher of both, so that neither
// a restart within a minute nor a second call loses anything. Samples without
// requests write nothing. All are written, or on an error none; on an error
// from the disk at commit they may be there nevertheless.
func (s *Store) AppendMinute(ctx context.Context, minute time.Time, samples []Sample) error {
	var given *naming
	err := s.history.update(ctx, func(tx *sql.Tx) error {
		// Statements that watch a context cost a goroutine each; the
		// transaction watches it for all of them.
		quiet := context.WithoutCancel(ctx)
		if err := s.loadNames(quiet, tx); err != nil {
			return err
		}
		given = s.names.begin()
		start, index := splitMinute(minute)
		rows, err := s.mergeSamples(quiet, tx, given, start, index, samples)
		if err != nil {
			return err
		}
		if err := given.write(quiet, tx); err != nil {
			return err
		}
		return writeHours(quiet, tx, start, rows)
	}, func() { given.publish() })
	if err != nil {
		s.names.forget()
		return fmt.Errorf("append minute: %w", err)
	}
	return nil
}

const hourMillis = int64(time.Hour / time.Millisecond)

// splitMinute returns the hour of t, in unix ms, and the minute in it.
func splitMinute(t time.Time) (start int64, minute int) {
	ms := t.UnixMilli()
	start = ms - ((ms%hourMillis)+hourMillis)%hourMillis
	return start, int((ms - start) / int64(time.Minute/time.Millisecond))
}

// rowKey is a row of one hour.
type rowKey struct{ cell, zone int64 }

// mergeSamples returns the rows that the samples change, as they shall be.
func (s *Store) mergeSamples(ctx context.Context, tx *sql.Tx, given *naming, start int64, minute int, samples []Sample) (map[rowKey]*hour, error) {
	stored, err := s.readHour(ctx, tx, start)
	if err != nil {
		return nil, err
	}
	merged := make(map[rowKey]*hour, len(samples))
	for i := range samples {
		c := samples[i].counts()
		if c == (counts{}) {
			continue
		}
		key := rowKey{given.cell(samples[i].Cell, start), given.zone(samples[i].Zone)}
		h, ok := merged[key]
		if !ok {
			if h, err = unpack(stored[key]); err != nil {
				return nil, err
			}
			merged[key] = h
		}
		h[minute].addUp(c)
	}
	return merged, nil
}

// unpack decodes a row; nil is an idle hour.
func unpack(packed []byte) (*hour, error) {
	if packed == nil {
		return &hour{}, nil
	}
	h, err := decodeHour(packed)
	return &h, err
}

// readHour returns all rows of an hour, packed: one pass is faster than looking
// for each row, and a copy kept in memory could differ from the disk.
func (s *Store) readHour(ctx context.Context, tx *sql.Tx, start int64) (map[rowKey][]byte, error) {
	rows, err := tx.QueryContext(ctx, "SELECT cell, zone, "+hourValues+" FROM hours WHERE hour = ?", start)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	stored := make(map[rowKey][]byte)
	for rows.Next() {
		var key rowKey
		var v hourRow
		if err := rows.Scan(&key.cell, &key.zone, &v.minutes, &v.maxMinute, &v.maxSecond, &v.sum); err != nil {
			return nil, err
		}
		if !v.intact(start, key) {
			s.warn(damagedHour)
			continue
		}
		stored[key] = v.minutes
	}
	return stored, rows.Err()
}

func writeHours(ctx context.Context, tx *sql.Tx, start int64, rows map[rowKey]*hour) error {
	w, err := newHourWriter(ctx, tx, start)
	if err != nil {
		return err
	}
	defer w.close()
	for key, h := range rows {
		if err := w.put(ctx, key, h); err != nil {
			return err
		}
	}
	return nil
}

// hourWriter writes rows of one hour.
type hourWriter struct {
	start  int64
	insert *sql.Stmt
	packed []byte
}

func newHourWriter(ctx context.Context, tx *sql.Tx, start int64) (*hourWriter, error) {
	insert, err := tx.PrepareContext(ctx, "INSERT OR REPLACE INTO hours (hour, cell, zone, "+hourValues+") VALUES (?, ?, ?, ?, ?, ?, ?)")
	return &hourWriter{start: start, insert: insert}, err
}

func (w *hourWriter) close() { _ = w.insert.Close() } // with the transaction at the latest

func (w *hourWriter) put(ctx context.Context, key rowKey, h *hour) error {
	w.packed = h.encode(w.packed[:0])
	minute, second := h.maxima()
	v := hourRow{minutes: w.packed, maxMinute: int64(minute), maxSecond: int64(second)}
	_, err := w.insert.ExecContext(ctx, w.start, key.cell, key.zone, v.minutes, v.maxMinute, v.maxSecond, v.crc(w.start, key))
	return err
}

// hourValues are the columns of hourRow.
const hourValues = "minutes, max_minute, max_second, sum"

// hourRow is a row of hours without its key.
type hourRow struct {
	minutes   []byte
	maxMinute int64
	maxSecond int64
	sum       int64
}

func (r *hourRow) crc(start int64, key rowKey) int64 {
	s := sum{make([]byte, 0, 512)} // on the stack
	return s.int(start).int(key.cell).int(key.zone).blob(r.minutes).int(r.maxMinute).int(r.maxSecond).crc()
}

func (r *hourRow) intact(start int64, key rowKey) bool { return r.sum == r.crc(start, key) }

const damagedHour = "history.db: damaged hour of a cell left out"

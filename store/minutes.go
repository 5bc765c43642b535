package store

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"grl/limiter"
)

// FleetBucket stands for all requests together: each counts in its cell once,
// whatever it passes. No bucket has this name, since theirs have a slash. Cells,
// and what selects buckets by a prefix, leave it out.
const FleetBucket = "_fleet"

// Minute is what a cell counted in one minute.
type Minute struct {
	Start         time.Time
	Offered       uint64 // requests
	Admitted      uint64
	Dropped       uint64
	ShadowDropped uint64 // part of Admitted
	// HighestSecond is offered requests in the highest second of a zone. Summed
	// over zones, whose highest seconds need not be the same, it is an upper
	// bound.
	HighestSecond uint64
	// CandidateDropped is what the candidate of the bucket would have dropped of
	// Admitted. It is known of all zones together only.
	CandidateDropped uint64
}

func newMinute(start time.Time, c counts) Minute {
	return Minute{
		Start: start, Offered: c[offered], Admitted: c[admitted], Dropped: c[dropped],
		ShadowDropped: c[shadowDropped], HighestSecond: c[highestSecond], CandidateDropped: c[candidateDropped],
	}
}

func (m *Minute) counts() counts {
	c := counts{
		offered: m.Offered, admitted: m.Admitted, dropped: m.Dropped, shadowDropped: m.ShadowDropped,
		highestSecond: m.HighestSecond, candidateDropped: m.CandidateDropped,
	}
	for i := range c {
		c[i] = min(c[i], maxCount)
	}
	return c
}

// Minutes returns what a cell counted in the minutes that start in [from, to),
// summed over zones, in order. Idle minutes are left out, and so are hours of
// which a zone's row is damaged: too low a sum would teach a wrong limit.
func (s *Store) Minutes(ctx context.Context, cell limiter.CellID, from, to time.Time) ([]Minute, error) {
	hours := make(map[int64]*hour) // start → sum
	damaged, err := s.eachHour(ctx, cell, from, to, func(r hourOf) error {
		h, err := decodeHour(r.minutes)
		if err != nil {
			return err
		}
		if total, ok := hours[r.start]; ok {
			for m := range h {
				total[m].add(h[m])
			}
		} else {
			hours[r.start] = &h
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read minutes of %q: %w", cell.Bucket, err)
	}
	for _, start := range damaged {
		delete(hours, start)
	}
	return listMinutes(hours, from, to), nil
}

// MinutesByZone is Minutes for each zone by itself. Zones without requests are
// left out, and what is known of all together only.
func (s *Store) MinutesByZone(ctx context.Context, cell limiter.CellID, from, to time.Time) (map[string][]Minute, error) {
	zones := make(map[string]map[int64]*hour)
	_, err := s.eachHour(ctx, cell, from, to, func(r hourOf) error {
		h, err := decodeHour(r.minutes)
		if err != nil {
			return err
		}
		if r.zone == "" {
			return nil
		}
		if zones[r.zone] == nil {
			zones[r.zone] = make(map[int64]*hour)
		}
		zones[r.zone][r.start] = &h
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read minutes of %q: %w", cell.Bucket, err)
	}
	minutes := make(map[string][]Minute, len(zones))
	for zone, hours := range zones {
		if list := listMinutes(hours, from, to); len(list) > 0 {
			minutes[zone] = list
		}
	}
	return minutes, nil
}

// listMinutes returns the minutes of hours in [from, to) that are not idle.
func listMinutes(hours map[int64]*hour, from, to time.Time) []Minute {
	var minutes []Minute
	for _, start := range slices.Sorted(maps.Keys(hours)) {
		for m, c := range hours[start] {
			at := time.UnixMilli(start).Add(time.Duration(m) * time.Minute)
			if c == (counts{}) || at.Before(from) || !at.Before(to) {
				continue
			}
			minutes = append(minutes, newMinute(at, c))
		}
	}
	return minutes
}

// Maximum is the most that a cell was offered in one zone within an hour.
type Maximum struct {
	Hour   time.Time // start
	Zone   string
	Minute uint64 // requests in the highest minute
	Second uint64 // requests in the highest second
}

// Maxima returns the maxima of the hours that contain a minute of [from, to),
// by hour and zone. It reads a fraction of what Minutes reads.
func (s *Store) Maxima(ctx context.Context, cell limiter.CellID, from, to time.Time) ([]Maximum, error) {
	var maxima []Maximum
	_, err := s.eachHour(ctx, cell, from, to, func(r hourOf) error {
		if r.zone == "" {
			return nil // nothing is offered to all zones together
		}
		maxima = append(maxima, Maximum{
			Hour: time.UnixMilli(r.start), Zone: r.zone, Minute: uint64(r.maxMinute), Second: uint64(r.maxSecond),
		})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read maxima of %q: %w", cell.Bucket, err)
	}
	slices.SortFunc(maxima, func(a, b Maximum) int {
		if order := a.Hour.Compare(b.Hour); order != 0 {
			return order
		}
		return strings.Compare(a.Zone, b.Zone)
	})
	return maxima, nil
}

// CellsOf returns the cells of one bucket with history, in order.
func (s *Store) CellsOf(bucket string) []limiter.CellID {
	return slices.SortedFunc(slices.Values(s.names.of(bucket)), compareCells)
}

// Cells returns the cells with history whose bucket's full name begins with
// bucketPrefix, in order; "" returns those of all buckets.
func (s *Store) Cells(bucketPrefix string) []limiter.CellID {
	cells := s.names.withPrefix(bucketPrefix)
	slices.SortFunc(cells, compareCells)
	return cells
}

func compareCells(a, b limiter.CellID) int {
	return cmp.Or(strings.Compare(a.Bucket, b.Bucket), strings.Compare(a.Instance, b.Instance), strings.Compare(a.Caller, b.Caller))
}

// hourOf is a row of hours with its key.
type hourOf struct {
	start int64 // unix ms
	zone  string
	hourRow
}

// eachHour calls fn for each intact row of a cell whose hour has a minute in
// [from, to), by hour. It returns the starts of hours with damaged rows.
func (s *Store) eachHour(ctx context.Context, cell limiter.CellID, from, to time.Time, fn func(hourOf) error) (damaged []int64, err error) {
	id, ok := s.names.cell(cell)
	if !ok || !from.Before(to) {
		return nil, nil
	}
	first, last, err := s.span(ctx, from, to)
	if err != nil {
		return nil, s.history.fail(ctx, err)
	}
	// The hour leads the key: seek each one, instead of reading all cells.
	rows, err := s.history.read.QueryContext(ctx,
		"WITH RECURSIVE span (hour) AS (SELECT ?1 WHERE ?1 <= ?2 UNION ALL SELECT hour + ?3 FROM span WHERE hour + ?3 <= ?2)"+
			" SELECT hour, zone, "+hourValues+" FROM span CROSS JOIN hours USING (hour) WHERE cell = ?4",
		first, last, hourMillis, id)
	if err != nil {
		return nil, s.history.fail(ctx, err)
	}
	defer rows.Close()
	damaged, err = s.scanHours(rows, id, fn)
	return damaged, s.history.fail(ctx, err)
}

// span cuts the hours of [from, to) at the oldest and the newest there are.
func (s *Store) span(ctx context.Context, from, to time.Time) (first, last int64, err error) {
	var oldest, newest sql.Null[int64]
	const query = "SELECT (SELECT hour FROM hours ORDER BY hour LIMIT 1), (SELECT hour FROM hours ORDER BY hour DESC LIMIT 1)"
	if err := s.history.read.QueryRowContext(ctx, query).Scan(&oldest, &newest); err != nil {
		return 0, 0, err
	}
	if !oldest.Valid {
		return 0, -1, nil
	}
	first, _ = splitMinute(from)
	last, _ = splitMinute(to)
	return max(first, oldest.V), min(last, newest.V), nil
}

func (s *Store) scanHours(rows *sql.Rows, cell int64, fn func(hourOf) error) (damaged []int64, err error) {
	zones := s.names.zonesByID()
	for rows.Next() {
		var r hourOf
		var zone int64
		if err := rows.Scan(&r.start, &zone, &r.minutes, &r.maxMinute, &r.maxSecond, &r.sum); err != nil {
			return nil, err
		}
		name, named := zones[zone]
		if !named || !r.intact(r.start, rowKey{cell, zone}) {
			s.warn(damagedHour)
			damaged = append(damaged, r.start)
			continue
		}
		r.zone = name
		if err := fn(r); err != nil {
			return nil, err
		}
	}
	return damaged, rows.Err()
}

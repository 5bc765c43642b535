package store

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"grl/limiter"
)

// SeriesQuery selects history in bulk.
type SeriesQuery struct {
	// Buckets are full names. Their cells come with all instances and callers.
	Buckets []string
	// Prefixes select the cells of all buckets whose full names begin with one of
	// them, such as those of a service's caps, "payments/_cap-".
	Prefixes []string
	// Cells select single ones.
	Cells []limiter.CellID
	// Zone selects what came from one zone; "": what came from all together, and
	// what is known of all together only.
	Zone string
	// The hours that contain a minute of [From, To): at most MaxHours.
	From, To time.Time
}

// MaxHours bounds the hours of a SeriesQuery: twice those that are kept.
const MaxHours = int(2 * Keep / time.Hour)

// CellSeries is what one cell counted minute by minute from the first hour on,
// summed over zones. Counts above 2^63-1 stand for that.
type CellSeries struct {
	Cell    limiter.CellID
	Offered []uint64 // requests in each minute
	Dropped []uint64
	// ShadowDropped is part of what was offered and not dropped.
	ShadowDropped []uint64
	// HighestSecond is as in Minute: an upper bound if there are several zones.
	HighestSecond    []uint64
	CandidateDropped []uint64
	// Zones has for each zone, in the order of Presence, a bit for each hour, the
	// lowest of the first byte first: the cell has a row. A zone that came after
	// the Presence was read is at the end.
	Zones [][]byte
	// Damaged are the hours that are left out, since a row of them is damaged,
	// counted from the first hour, in order.
	Damaged []int
}

// Presence says of which hours there is history at all.
type Presence struct {
	From  time.Time // start of the first hour
	Hours int
	Zones []string // all that ever had requests, the oldest first
	// Present has for each zone a bit for each hour, the lowest of the first byte
	// first: it recorded something, of whichever cell.
	Present [][]byte
}

// hours are those of a query.
type hours struct {
	first, last int64 // starts, unix ms
	count       int
}

func hoursOf(from, to time.Time) (hours, error) {
	if !from.Before(to) {
		return hours{}, fmt.Errorf("no time from %v to %v", from, to)
	}
	h := hours{}
	h.first, _ = splitMinute(from)
	h.last, _ = splitMinute(to.Add(-time.Nanosecond))
	count := (h.last-h.first)/hourMillis + 1
	if count <= 0 || count > int64(MaxHours) {
		return hours{}, fmt.Errorf("%d hours from %v to %v, at most %d", count, from, to, MaxHours)
	}
	h.count = int(count)
	return h, nil
}

// bitmaps returns n empty maps of one bit for each hour.
func (h hours) bitmaps(n int) [][]byte {
	maps := make([][]byte, n)
	size := (h.count + 7) / 8
	all := make([]byte, n*size)
	for i := range maps {
		maps[i] = all[i*size : (i+1)*size : (i+1)*size]
	}
	return maps
}

func setBit(bitmap []byte, i int) { bitmap[i/8] |= 1 << (i % 8) }

// zoneList returns the names of the zones in the order of their ids, which does
// not change when one is added, and the place of each id in it. The zone "" is
// none.
func (n *names) zoneList() (list []string, places map[int64]int) {
	byID := n.zonesByID()
	places = make(map[int64]int, len(byID))
	ids := make([]int64, 0, len(byID))
	for id, name := range byID {
		if name != "" {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	for i, id := range ids {
		list = append(list, byID[id])
		places[id] = i
	}
	return list, places
}

// Presence returns of which of the hours that contain a minute of [from, to)
// there is history, at most MaxHours.
func (s *Store) Presence(ctx context.Context, from, to time.Time) (Presence, error) {
	h, err := hoursOf(from, to)
	var p Presence
	if err == nil {
		p, err = s.presence(ctx, h)
		err = s.history.fail(ctx, err)
	}
	if err != nil {
		return Presence{}, fmt.Errorf("read presence: %w", err)
	}
	return p, nil
}

func (s *Store) presence(ctx context.Context, h hours) (Presence, error) {
	p := Presence{From: time.UnixMilli(h.first).UTC(), Hours: h.count}
	var places map[int64]int
	p.Zones, places = s.names.zoneList()
	p.Present = h.bitmaps(len(p.Zones))
	query, err := s.history.read.PrepareContext(ctx, "SELECT DISTINCT zone FROM hours WHERE hour = ?")
	if err != nil {
		return p, err
	}
	defer query.Close()
	for i := range h.count {
		if err := p.readHour(ctx, query, places, i); err != nil {
			return p, err
		}
	}
	return p, nil
}

// Recorded returns the starts of the hours that contain a minute of [from, to)
// and of which there is history, in order; at most MaxHours. It reads a fraction
// of what Presence reads.
func (s *Store) Recorded(ctx context.Context, from, to time.Time) ([]time.Time, error) {
	h, err := hoursOf(from, to)
	var list []time.Time
	if err == nil {
		list, err = s.recorded(ctx, h)
		err = s.history.fail(ctx, err)
	}
	if err != nil {
		return nil, fmt.Errorf("read hours: %w", err)
	}
	return list, nil
}

func (s *Store) recorded(ctx context.Context, h hours) (list []time.Time, err error) {
	// From one hour to the next one there is, instead of through all rows.
	rows, err := s.history.read.QueryContext(ctx,
		"WITH RECURSIVE span (hour) AS (SELECT min(hour) FROM hours WHERE hour >= ?1 AND hour <= ?2"+
			" UNION ALL SELECT (SELECT min(hours.hour) FROM hours WHERE hours.hour > span.hour AND hours.hour <= ?2) FROM span WHERE span.hour IS NOT NULL)"+
			" SELECT hour FROM span WHERE hour IS NOT NULL", h.first, h.last)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var hour int64
		if err := rows.Scan(&hour); err != nil {
			return nil, err
		}
		list = append(list, time.UnixMilli(hour).UTC())
	}
	return list, rows.Err()
}

// readHour sets the bits of an hour. It reads rows until all zones were found.
func (p *Presence) readHour(ctx context.Context, query *sql.Stmt, places map[int64]int, hour int) error {
	rows, err := query.QueryContext(ctx, p.From.UnixMilli()+int64(hour)*hourMillis)
	if err != nil {
		return err
	}
	defer rows.Close()
	for found := 0; found < len(p.Zones) && rows.Next(); {
		var zone int64
		if err := rows.Scan(&zone); err != nil {
			return err
		}
		if place, ok := places[zone]; ok {
			setBit(p.Present[place], hour)
			found++
		}
	}
	return rows.Err()
}

// ReadSeries calls fn with the history of one cell after another, those of one
// bucket together, of which there is some in the time asked for, until fn
// returns an error, which ReadSeries returns. The slices are valid until fn
// returns. The first hour is the one that contains From.
func (s *Store) ReadSeries(ctx context.Context, q SeriesQuery, fn func(CellSeries) error) error {
	h, err := hoursOf(q.From, q.To)
	if err != nil {
		return fmt.Errorf("read series: %w", err)
	}
	zones, places := s.names.zoneList()
	cells := s.names.selected(q)
	r := newSeriesReader(h, len(cells), len(zones), places)
	if q.Zone != "" {
		place := slices.Index(zones, q.Zone)
		if place < 0 {
			return nil // nothing ever came from it
		}
		r.only = &place
	}
	for batch := range slices.Chunk(cells, r.size) {
		if err := s.readBatch(ctx, r, batch); err != nil {
			return fmt.Errorf("read series: %w", s.history.fail(ctx, err))
		}
		for i := range batch {
			if !r.found[i] {
				continue
			}
			if err := fn(r.series(i, batch[i])); err != nil {
				return err
			}
		}
	}
	return nil
}

// numberedCell is a cell with its id.
type numberedCell struct {
	cell limiter.CellID
	id   int64
}

// selected returns the cells of a query, those of one bucket together, and
// buckets whose cells came to be together near each other: their rows are, too.
func (n *names) selected(q SeriesQuery) []numberedCell {
	chosen := make(map[limiter.CellID]bool)
	for _, cell := range q.Cells {
		chosen[cell] = true
	}
	for _, bucket := range q.Buckets {
		for _, cell := range n.of(bucket) {
			chosen[cell] = true
		}
	}
	prefixes := shortest(q.Prefixes)
	n.mu.RLock()
	defer n.mu.RUnlock()
	var cells []numberedCell
	lowest := make(map[string]int64) // bucket → lowest id of its cells
	add := func(cell limiter.CellID, name cellName) {
		cells = append(cells, numberedCell{cell, name.id})
		if low, ok := lowest[cell.Bucket]; !ok || name.id < low {
			lowest[cell.Bucket] = name.id
		}
	}
	for cell := range chosen {
		if name, ok := n.cells[cell]; ok {
			add(cell, name)
		}
	}
	if len(prefixes) > 0 { // else no need to look at all
		for cell, name := range n.cells {
			if !chosen[cell] && cell.Bucket != FleetBucket && hasPrefixOf(cell.Bucket, prefixes) {
				add(cell, name)
			}
		}
	}
	slices.SortFunc(cells, func(a, b numberedCell) int {
		return cmp.Or(cmp.Compare(lowest[a.cell.Bucket], lowest[b.cell.Bucket]), compareCells(a.cell, b.cell))
	})
	return cells
}

// shortest returns prefixes in order, without those that begin with another one.
func shortest(prefixes []string) []string {
	var list []string
	for _, p := range slices.Sorted(slices.Values(prefixes)) {
		if len(list) == 0 || !strings.HasPrefix(p, list[len(list)-1]) {
			list = append(list, p)
		}
	}
	return list
}

// hasPrefixOf reports whether name begins with one of prefixes, as shortest
// returns them: only the last one up to name can be it.
func hasPrefixOf(name string, prefixes []string) bool {
	i, is := slices.BinarySearch(prefixes, name)
	return is || i > 0 && strings.HasPrefix(name, prefixes[i-1])
}

package store

import (
	"context"
	"database/sql"
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
	"strings"
)

// seriesMemory bounds the minutes that a seriesReader holds, in bytes.
const seriesMemory = 96 << 20

// maxBatch bounds the cells of a batch: each may be a range in its query.
const maxBatch = 400

// The columns of a series.
const (
	seriesOffered = iota
	seriesDropped
	seriesShadow
	seriesHighest
	seriesCandidate
	seriesColumns
)

// seriesColumn is the place in a series of each column of a minute; -1: it has
// none.
var seriesColumn = [columns]int{
	offered: seriesOffered, admitted: -1, dropped: seriesDropped, shadowDropped: seriesShadow,
	highestSecond: seriesHighest, candidateDropped: seriesCandidate,
}

// seriesReader reads the series of a batch of cells. Its memory serves one batch
// after another.
type seriesReader struct {
	hours  hours
	size   int // cells of a batch, at most
	zones  int
	places map[int64]int // id of a zone → its place
	only   *int          // the place of the one zone that is asked for; nil: all are

	place   map[int64]int // id of a cell → its place in the batch
	found   []bool        // the cell has a row
	minutes []uint64      // by cell, column and minute
	bitmaps [][]byte      // by cell and zone
	damaged [][]int       // by cell
}

// newSeriesReader returns one for so many cells in all.
func newSeriesReader(h hours, cells, zones int, places map[int64]int) *seriesReader {
	perCell := seriesColumns * h.count * minutesPerHour
	size := max(min(seriesMemory/8/perCell, cells, maxBatch), 1)
	return &seriesReader{
		hours: h, size: size, zones: zones, places: places,
		place: make(map[int64]int, size), found: make([]bool, size), minutes: make([]uint64, size*perCell),
		bitmaps: h.bitmaps(size * zones), damaged: make([][]int, size),
	}
}

func (r *seriesReader) reset(batch []numberedCell) {
	clear(r.place)
	clear(r.found)
	clear(r.minutes)
	for i := range r.bitmaps {
		clear(r.bitmaps[i])
	}
	for i := range r.damaged {
		r.damaged[i] = r.damaged[i][:0]
	}
	for i, c := range batch {
		r.place[c.id] = i
	}
}

// column returns the minutes of a column of a cell.
func (r *seriesReader) column(cell, column int) []uint64 {
	n := r.hours.count * minutesPerHour
	first := (cell*seriesColumns + column) * n
	return r.minutes[first : first+n : first+n]
}

func (r *seriesReader) series(i int, c numberedCell) CellSeries {
	return CellSeries{
		Cell: c.cell, Offered: r.column(i, seriesOffered), Dropped: r.column(i, seriesDropped),
		ShadowDropped: r.column(i, seriesShadow), HighestSecond: r.column(i, seriesHighest), CandidateDropped: r.column(i, seriesCandidate),
		Zones: r.bitmaps[i*r.zones : (i+1)*r.zones], Damaged: r.damaged[i],
	}
}

// farApart is how many cells that are not asked for are read rather than that
// the next one which is gets looked for.
const farApart = 8

// readBatch reads the series of cells, at most r.size. Within each hour it goes
// from one range of ids to the next, in the order of the key.
func (s *Store) readBatch(ctx context.Context, r *seriesReader, batch []numberedCell) error {
	r.reset(batch)
	ids := make([]int64, len(batch))
	for i, c := range batch {
		ids[i] = c.id
	}
	slices.Sort(ids)
	var ranges []string
	for i := 0; i < len(ids); {
		first := i
		for i++; i < len(ids) && ids[i]-ids[i-1] <= farApart; i++ {
		}
		ranges = append(ranges, fmt.Sprintf("(%d, %d)", ids[first], ids[i-1]))
	}
	rows, err := s.history.read.QueryContext(ctx,
		"WITH RECURSIVE span (hour) AS (SELECT ?1 UNION ALL SELECT hour + ?3 FROM span WHERE hour + ?3 <= ?2),"+
			" ranges (first, last) AS (VALUES "+strings.Join(ranges, ", ")+")"+
			" SELECT hours.hour, cell, zone, "+hourValues+" FROM span CROSS JOIN ranges CROSS JOIN hours"+
			" WHERE hours.hour = span.hour AND cell BETWEEN first AND last",
		r.hours.first, r.hours.last, hourMillis)
	if err != nil {
		return err
	}
	defer rows.Close()
	return s.scanBatch(r, rows)
}

func (s *Store) scanBatch(r *seriesReader, rows *sql.Rows) error {
	for rows.Next() {
		var start int64
		var key rowKey
		var v hourRow
		var minutes sql.RawBytes
		if err := rows.Scan(&start, &key.cell, &key.zone, &minutes, &v.maxMinute, &v.maxSecond, &v.sum); err != nil {
			return err
		}
		cell, wanted := r.place[key.cell]
		if !wanted {
			continue
		}
		v.minutes = minutes
		if place, ok := r.places[key.zone]; r.only != nil && (!ok || place != *r.only) {
			continue
		}
		hour := int((start - r.hours.first) / hourMillis)
		if !v.intact(start, key) || r.add(cell, hour, key.zone, v.minutes) != nil {
			s.warn(damagedHour)
			r.damage(cell, hour)
		}
	}
	return rows.Err()
}

// damage leaves an hour of a cell out.
func (r *seriesReader) damage(cell, hour int) {
	r.found[cell] = true
	if r.isDamaged(cell, hour) {
		return
	}
	r.damaged[cell] = append(r.damaged[cell], hour)
	for column := range seriesColumns {
		clear(r.column(cell, column)[hour*minutesPerHour : (hour+1)*minutesPerHour])
	}
}

// isDamaged reports whether an hour is left out. Hours come in order.
func (r *seriesReader) isDamaged(cell, hour int) bool {
	d := r.damaged[cell]
	return len(d) > 0 && d[len(d)-1] == hour
}

// add adds a packed hour of a zone to what the others counted.
func (r *seriesReader) add(cell, hour int, zone int64, packed []byte) error {
	r.found[cell] = true
	if place, ok := r.places[zone]; ok {
		setBit(r.bitmaps[cell*r.zones+place], hour)
	}
	if r.isDamaged(cell, hour) {
		return nil
	}
	var target [columns]*[minutesPerHour]uint64
	for column, to := range seriesColumn {
		if to >= 0 {
			target[column] = (*[minutesPerHour]uint64)(r.column(cell, to)[hour*minutesPerHour:])
		}
	}
	return addHour(packed, &target)
}

// addHour adds a packed hour to the columns of target, nil: not wanted. It
// returns errHour for what is no packed hour, but does not compare columns with
// each other as decodeHour does.
func addHour(buf []byte, target *[columns]*[minutesPerHour]uint64) error {
	if len(buf) < hourPrefix || buf[0] != hourFormat {
		return fmt.Errorf("%w: format", errHour)
	}
	bitmap, mask := binary.LittleEndian.Uint64(buf[1:]), buf[hourPrefix-1]
	if bitmap == 0 || bitmap>>minutesPerHour != 0 || mask>>columns != 0 {
		return fmt.Errorf("%w: bitmap %x, mask %x", errHour, bitmap, mask)
	}
	buf = buf[hourPrefix:]
	for column, to := range target {
		if mask&(1<<column) == 0 {
			continue
		}
		if to == nil {
			to = new([minutesPerHour]uint64)
		}
		var ok bool
		if buf, ok = addColumn(buf, bitmap, to); !ok {
			return fmt.Errorf("%w: column %d", errHour, column)
		}
	}
	if len(buf) != 0 {
		return fmt.Errorf("%w: %d bytes too many", errHour, len(buf))
	}
	return nil
}

// addColumn adds a column and returns what follows it.
func addColumn(buf []byte, bitmap uint64, to *[minutesPerHour]uint64) (rest []byte, ok bool) {
	for ; bitmap != 0; bitmap &= bitmap - 1 {
		v, n := binary.Uvarint(buf)
		if n <= 0 {
			return nil, false
		}
		buf = buf[n:]
		minute := &to[bits.TrailingZeros64(bitmap)]
		*minute = addCount(*minute, v)
	}
	return buf, true
}

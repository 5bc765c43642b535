package store

import (
	"context"
	"fmt"
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
	// The hours that contain a minute of [From, To).
	From, To time.Time
}

// CellSeries is what one cell counted minute by minute, summed over zones. The
// slices begin with the first hour of the Presence of the same time; what is
// missing at their end is 0. Counts above 2^63-1 stand for that.
type CellSeries struct {
	Cell    limiter.CellID
	Offered []uint64 // requests in each minute
	Dropped []uint64
	// HighestSecond is as in Minute: an upper bound of several zones.
	HighestSecond    []uint64
	CandidateDropped []uint64
	// Zones has for each zone of the Presence a bit for each hour, the lowest of
	// the first byte first: the cell has a row.
	Zones [][]byte
	// Damaged are the hours that are left out, since a row of them is damaged,
	// counted from the first hour, in order.
	Damaged []int
}

// Presence says of which hours there is history at all.
type Presence struct {
	From  time.Time // start of the first hour
	Hours int
	Zones []string // in order
	// Present has for each zone a bit for each hour, the lowest of the first byte
	// first: it recorded something, of whichever cell.
	Present [][]byte
}

// Presence returns of which of the hours that contain a minute of [from, to)
// there is history. Hours before the oldest there is are not in it.
func (s *Store) Presence(ctx context.Context, from, to time.Time) (Presence, error) {
	return Presence{}, fmt.Errorf("read presence: %w", ErrUnavailable)
}

// ReadSeries calls fn with the history of one cell after another, in the order
// of bucket, instance and caller, of those that have some in the time asked for,
// until fn returns an error, which ReadSeries returns. The slices are valid
// until fn returns.
func (s *Store) ReadSeries(ctx context.Context, q SeriesQuery, fn func(CellSeries) error) error {
	return fmt.Errorf("read series: %w", ErrUnavailable)
}

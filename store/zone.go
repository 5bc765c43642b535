package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"
)

// Zone is a zone that sent reports.
type Zone struct {
	Name   string
	Region string
	Seen   time.Time // last time, in milliseconds; SawZones ignores it
}

// Zones returns the zones ever seen, by name, for a controller that starts to
// know whom to wait for. When each was last seen says whether to.
func (s *Store) Zones(ctx context.Context) ([]Zone, error) {
	zones, err := s.zones(ctx)
	if err != nil {
		return nil, fmt.Errorf("list zones: %w", s.history.fail(ctx, err))
	}
	return zones, nil
}

func (s *Store) zones(ctx context.Context) ([]Zone, error) {
	rows, err := s.history.read.QueryContext(ctx, "SELECT name, region, seen, sum FROM zones ORDER BY name")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var zones []Zone
	for rows.Next() {
		var z Zone
		var seen, sum int64
		if err := rows.Scan(&z.Name, &z.Region, &seen, &sum); err != nil {
			return nil, err
		}
		if z.Seen = time.UnixMilli(seen); sum != z.sum() {
			s.warn("history.db: damaged row of a zone left out")
			continue
		}
		zones = append(zones, z)
	}
	return zones, rows.Err()
}

func (z *Zone) sum() int64 { return sum{}.text(z.Name).text(z.Region).int(z.Seen.UnixMilli()).crc() }

// SawZones remembers that the zones were seen at that time. A zone of a name
// that is known moves to the region given.
func (s *Store) SawZones(ctx context.Context, zones []Zone, at time.Time) error {
	err := s.history.update(ctx, func(tx *sql.Tx) error {
		for _, z := range zones {
			z.Seen = at
			if _, err := tx.ExecContext(ctx, "INSERT OR REPLACE INTO zones (name, region, seen, sum) VALUES (?, ?, ?, ?)",
				z.Name, z.Region, at.UnixMilli(), z.sum()); err != nil {
				return err
			}
		}
		return nil
	}, nil)
	if err != nil {
		return fmt.Errorf("remember zones: %w", err)
	}
	return nil
}

package store

import (
	"context"
	"database/sql"
	"maps"
	"strings"
	"sync"

	"grl/limiter"
)

// names holds the ids of all cells and zones of history.db. The writer, who
// alone gives out ids, changes it after each commit and before the next
// transaction; readers look up at any time.
type names struct {
	mu     sync.RWMutex // guards all; never held across SQL
	loaded bool         // false: read them before giving out an id
	cells  map[limiter.CellID]cellName
	zones  map[string]int64 // zone → id
	// The cells of each bucket; nil when out of date.
	byBucket map[string][]limiter.CellID
	// The highest ids on disk, those of damaged names too: their rows in hours
	// must not become those of another cell.
	maxCell, maxZone int64
}

type cellName struct {
	id       int64
	lastHour int64 // newest row in hours, unix ms
}

func cellSum(id int64, c limiter.CellID, lastHour int64) int64 {
	return sum{}.int(id).text(c.Bucket).text(c.Instance).text(c.Caller).int(lastHour).crc()
}

func zoneSum(id int64, name string) int64 { return sum{}.int(id).text(name).crc() }

// loadNames reads the names, if they are not known. q is the connection of the
// writer, or any as long as nobody writes.
func (s *Store) loadNames(ctx context.Context, q rowsQueryer) error {
	s.names.mu.RLock()
	loaded := s.names.loaded
	s.names.mu.RUnlock()
	if loaded {
		return nil
	}
	cells, maxCell, err := s.readCells(ctx, q)
	if err != nil {
		return err
	}
	zones, maxZone, err := s.readZoneNames(ctx, q)
	if err != nil {
		return err
	}
	s.names.mu.Lock()
	defer s.names.mu.Unlock()
	s.names.cells, s.names.maxCell, s.names.byBucket = cells, maxCell, nil
	s.names.zones, s.names.maxZone = zones, maxZone
	s.names.loaded = true
	return nil
}

type rowsQueryer interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

func (s *Store) readCells(ctx context.Context, q rowsQueryer) (cells map[limiter.CellID]cellName, maxID int64, err error) {
	rows, err := q.QueryContext(ctx, "SELECT id, bucket, instance, caller, last_hour, sum FROM cells")
	if err != nil {
		return nil, 0, err
	}
	defer rows.Close()
	cells = make(map[limiter.CellID]cellName)
	for rows.Next() {
		var cell limiter.CellID
		var name cellName
		var sum int64
		if err := rows.Scan(&name.id, &cell.Bucket, &cell.Instance, &cell.Caller, &name.lastHour, &sum); err != nil {
			return nil, 0, err
		}
		maxID = max(maxID, name.id)
		if sum != cellSum(name.id, cell, name.lastHour) {
			s.warn("history.db: damaged name of a cell: its history is left out")
			continue
		}
		cells[cell] = name
	}
	return cells, maxID, rows.Err()
}

func (s *Store) readZoneNames(ctx context.Context, q rowsQueryer) (zones map[string]int64, maxID int64, err error) {
	rows, err := q.QueryContext(ctx, "SELECT id, name, sum FROM zone_names")
	if err != nil {
		return nil, 0, err
	}
	defer rows.Close()
	zones = make(map[string]int64)
	for rows.Next() {
		var id, sum int64
		var name string
		if err := rows.Scan(&id, &name, &sum); err != nil {
			return nil, 0, err
		}
		maxID = max(maxID, id)
		if sum != zoneSum(id, name) {
			s.warn("history.db: damaged name of a zone: its history is left out")
			continue
		}
		zones[name] = id
	}
	return zones, maxID, rows.Err()
}

// forget makes the next writer read the names again: a transaction failed, and
// what it gave out may be on disk or not.
func (n *names) forget() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.loaded = false
}

// cell returns the id of a cell that has history.
func (n *names) cell(id limiter.CellID) (int64, bool) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	name, ok := n.cells[id]
	return name.id, ok
}

// zonesByID returns the names of the zones by their ids.
func (n *names) zonesByID() map[int64]string {
	n.mu.RLock()
	defer n.mu.RUnlock()
	byID := make(map[int64]string, len(n.zones))
	for name, id := range n.zones {
		byID[id] = name
	}
	return byID
}

// naming collects the names that one transaction gives out or changes. It
// belongs to the writer.
type naming struct {
	known            *names
	cells            map[limiter.CellID]cellName // given out, or with a newer hour
	zones            map[string]int64            // given out
	maxCell, maxZone int64
}

// begin returns an empty naming.
func (n *names) begin() *naming {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return &naming{
		known: n, maxCell: n.maxCell, maxZone: n.maxZone,
		cells: make(map[limiter.CellID]cellName), zones: make(map[string]int64),
	}
}

// cell returns the id of a cell that will have a row in hour, unix ms.
func (g *naming) cell(id limiter.CellID, hour int64) int64 {
	name, ok := g.cells[id]
	if !ok {
		g.known.mu.RLock()
		name, ok = g.known.cells[id]
		g.known.mu.RUnlock()
	}
	if !ok {
		g.maxCell++
		name.id = g.maxCell
	}
	if !ok || name.lastHour < hour {
		name.lastHour = hour
		g.cells[id] = name
	}
	return name.id
}

func (g *naming) zone(name string) int64 {
	if id, ok := g.zones[name]; ok {
		return id
	}
	g.known.mu.RLock()
	id, ok := g.known.zones[name]
	g.known.mu.RUnlock()
	if !ok {
		g.maxZone++
		id = g.maxZone
		g.zones[name] = id
	}
	return id
}

// write stores what was given out.
func (g *naming) write(ctx context.Context, tx *sql.Tx) error {
	for name, id := range g.zones {
		if _, err := tx.ExecContext(ctx, "INSERT INTO zone_names (id, name, sum) VALUES (?, ?, ?)", id, name, zoneSum(id, name)); err != nil {
			return err
		}
	}
	upsert, err := tx.PrepareContext(ctx, "INSERT INTO cells (id, bucket, instance, caller, last_hour, sum) VALUES (?1, ?2, ?3, ?4, ?5, ?6)"+
		" ON CONFLICT (id) DO UPDATE SET last_hour = ?5, sum = ?6")
	if err != nil {
		return err
	}
	defer upsert.Close()
	for cell, name := range g.cells {
		if _, err := upsert.ExecContext(ctx, name.id, cell.Bucket, cell.Instance, cell.Caller, name.lastHour, cellSum(name.id, cell, name.lastHour)); err != nil {
			return err
		}
	}
	return nil
}

// publish tells readers and the next writer what was committed.
func (g *naming) publish() {
	g.known.mu.Lock()
	defer g.known.mu.Unlock()
	for cell, name := range g.cells {
		if _, ok := g.known.cells[cell]; !ok {
			g.known.byBucket = nil
		}
		g.known.cells[cell] = name
	}
	maps.Copy(g.known.zones, g.zones)
	g.known.maxCell, g.known.maxZone = g.maxCell, g.maxZone
}

// withPrefix returns the cells whose bucket begins with prefix, in no order.
func (n *names) withPrefix(prefix string) []limiter.CellID {
	n.mu.RLock()
	defer n.mu.RUnlock()
	var cells []limiter.CellID
	for cell := range n.cells {
		if strings.HasPrefix(cell.Bucket, prefix) && cell.Bucket != FleetBucket {
			cells = append(cells, cell)
		}
	}
	return cells
}

// of returns the cells of a bucket, in no order. They are not to be changed.
func (n *names) of(bucket string) []limiter.CellID {
	n.mu.RLock()
	byBucket := n.byBucket
	n.mu.RUnlock()
	if byBucket != nil {
		return byBucket[bucket]
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.byBucket = make(map[string][]limiter.CellID)
	for cell := range n.cells {
		n.byBucket[cell.Bucket] = append(n.byBucket[cell.Bucket], cell)
	}
	return n.byBucket[bucket]
}

// olderThan returns cells, limit at most, whose newest hour starts before
// oldest, unix ms.
func (n *names) olderThan(oldest int64, limit int) []limiter.CellID {
	n.mu.RLock()
	defer n.mu.RUnlock()
	var old []limiter.CellID
	for cell, name := range n.cells {
		if name.lastHour < oldest && len(old) < limit {
			old = append(old, cell)
		}
	}
	return old
}

// remove forgets cells whose rows were deleted.
func (n *names) remove(cells []limiter.CellID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.byBucket = nil
	for _, cell := range cells {
		delete(n.cells, cell)
	}
}

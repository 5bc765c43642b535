package limiter

import "iter"

// Cell returns the cell of that name, nil if no bucket of the installed
// configuration has it or the bound on names is reached. A cell of a caller
// that was not seen yet comes to be.
func (l *Limiter) Cell(id CellID) *Cell {
	l.mu.Lock()
	defer l.mu.Unlock()
	in, ok := l.rules[id.Bucket]
	if !ok {
		return nil
	}
	if c, ok := in.callee.cells[id]; ok {
		return c
	}
	if !in.rule.has(id) || !in.callee.table.Load().tells(id.Caller) || len(l.orphans) >= l.maxNames() {
		return nil
	}
	c := l.addCell(in.callee, in.rule, id)
	c.usedAt = l.now
	l.orphans[c] = in.callee
	return c
}

// has reports whether id can be a cell of the rule.
func (r *rule) has(id CellID) bool {
	b := r.bucket
	switch {
	case id.Bucket != r.id.Bucket || id.Instance != r.id.Instance || (id.Caller != "") != b.HasCallers() || !b.hasClass(id.Class):
		return false
	case !b.HasCallers() || id.Caller == Other:
		return true // those beyond the bound, whatever their names
	case id.Caller == UnknownCaller && !b.selectsUnknown():
		return false
	default:
		return b.Match.Caller.Match(id.Caller)
	}
}

// Cells yields the live cells in no order.
func (l *Limiter) Cells() iter.Seq[*Cell] {
	return func(yield func(*Cell) bool) {
		for _, c := range l.allCells() {
			if !yield(c) {
				return
			}
		}
	}
}

// allCells returns all cells in a slice that nobody writes to.
func (l *Limiter) allCells() []*Cell {
	if list := l.cells.Load(); list != nil {
		return *list
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []*Cell
	for s := range l.callees() {
		for _, c := range s.cells {
			list = append(list, c)
		}
	}
	l.cells.Store(&list)
	return list
}

// cell returns the cell for requests of caller that r selects and that are of
// the class at that place; l.mu is held.
func (l *Limiter) cell(s *Callee, r *rule, caller string, class int) *Cell {
	if r.cells != nil {
		return r.cells[class]
	}
	id := r.cellID(caller, class)
	if c, ok := s.cells[id]; ok {
		return c
	}
	return l.addCell(s, r, id)
}

// SetNewcomers sets the ratio, as Cell.SetRatio takes it, with which cells of
// callers begin that are seen for the first time; id names bucket, instance and
// class, its caller is ignored. Without it they begin open, so callers that come
// with another name each time would never be dropped. 0 begins open again.
func (l *Limiter) SetNewcomers(id CellID, p float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.newcomers == nil {
		l.newcomers = make(map[CellID]uint64)
	}
	if ratio := FixedRatio(p); ratio > 0 {
		l.newcomers[id.withoutCaller()] = ratio
	} else {
		delete(l.newcomers, id.withoutCaller())
	}
}

func (id CellID) withoutCaller() CellID {
	id.Caller = ""
	return id
}

// addCell makes a cell; l.mu is held.
func (l *Limiter) addCell(s *Callee, r *rule, id CellID) *Cell {
	c := &Cell{id: id, ratioSpan: l.ratios.take(1), coinSpan: l.coins.take(1)}
	c.ratio = &c.ratioSpan.words()[0]
	c.coins, c.stride = c.coinSpan.words(), c.coinSpan.chunk.stride
	c.resetCoins()
	if p, ok := l.newcomers[id.withoutCaller()]; ok && id.Caller != "" {
		c.directed, c.directive = p, true
	}
	c.setBucket(r.bucket)
	s.cells[id] = c
	l.cells.Store(nil)
	return c
}

// adopt counts a leaf that has c among its steps; l.mu is held.
func (l *Limiter) adopt(c *Cell) {
	c.leaves++
	delete(l.orphans, c)
}

// release undoes adopt; l.mu is held.
func (l *Limiter) release(s *Callee, c *Cell) {
	if c.leaves--; c.leaves > 0 {
		return
	}
	switch {
	case c.removed:
		l.freeCell(c)
	case c.id.Caller != "":
		l.orphans[c] = s
	}
}

// removeCell takes c out of the live cells; its words stay while leaves that
// are being given up may still read them. l.mu is held.
func (l *Limiter) removeCell(s *Callee, c *Cell) {
	c.removed = true
	delete(s.cells, c.id)
	delete(l.orphans, c)
	l.cells.Store(nil)
	if c.leaves == 0 {
		l.freeCell(c)
	}
}

func (l *Limiter) freeCell(c *Cell) {
	c.free()
	l.ratios.give(c.ratioSpan)
	l.coins.give(c.coinSpan)
}

package law

import "grl/limiter"

// Cells gives the cells of a node small indices, and an index that was
// forgotten to another cell. The zero value has none. Not safe for concurrent
// use.
type Cells struct {
	index map[limiter.CellID]int
	ids   []limiter.CellID // index → cell; the zero CellID: free
	free  []int
}

// Index returns the index of a cell, a new one if it has none yet.
func (c *Cells) Index(id limiter.CellID) int {
	if i, ok := c.index[id]; ok {
		return i
	}
	if c.index == nil {
		c.index = make(map[limiter.CellID]int)
	}
	i := len(c.ids)
	if last := len(c.free) - 1; last >= 0 {
		i, c.free = c.free[last], c.free[:last]
		c.ids[i] = id
	} else {
		c.ids = append(c.ids, id)
	}
	c.index[id] = i
	return i
}

// Find returns the index of a cell, false if it has none.
func (c *Cells) Find(id limiter.CellID) (int, bool) {
	i, ok := c.index[id]
	return i, ok
}

// ID returns the cell at an index below Len, the zero CellID if it is free.
func (c *Cells) ID(i int) limiter.CellID { return c.ids[i] }

// Len returns the number of indices, free ones included.
func (c *Cells) Len() int { return len(c.ids) }

// Count returns the number of cells.
func (c *Cells) Count() int { return len(c.index) }

// Forget frees an index. All that is kept by it must be forgotten with it.
func (c *Cells) Forget(i int) {
	delete(c.index, c.ids[i])
	c.ids[i] = limiter.CellID{}
	c.free = append(c.free, i)
}

// Each calls f for each cell, in the order of the indices. It may forget the
// cell it is called for.
func (c *Cells) Each(f func(i int, id limiter.CellID)) {
	for i, id := range c.ids {
		if id != (limiter.CellID{}) {
			f(i, id)
		}
	}
}

package uplink

// Dirty collects the cells that may have moved, each once. The zero value has
// none. Not safe for concurrent use.
type Dirty struct {
	touched []bool // by cell: in cells
	cells   []int
}

// Touch adds a cell.
func (d *Dirty) Touch(cell int) {
	if len(d.touched) <= cell {
		d.touched = append(d.touched, make([]bool, cell+1-len(d.touched))...)
	}
	if !d.touched[cell] {
		d.touched[cell] = true
		d.cells = append(d.cells, cell)
	}
}

// Look returns the cells added since the last Look. The result holds until the
// next Touch.
func (d *Dirty) Look() []int {
	cells := d.cells
	for _, i := range cells {
		d.touched[i] = false
	}
	d.cells = d.cells[:0]
	return cells
}

package terminal

import (
	"strings"
	"unicode/utf8"
)

// Table is rows under a heading.
type Table struct {
	// Columns are the titles. One that begins with ">" is of numbers, which are
	// aligned to the right.
	Columns []string
	Rows    [][]string // each as long as Columns
}

// Add adds a row.
func (t *Table) Add(cells ...string) { t.Rows = append(t.Rows, cells) }

// String returns the table, columns two spaces apart, safe for a terminal. A
// line feed in a cell becomes a space.
func (t *Table) String() string {
	right := make([]bool, len(t.Columns))
	title := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		title[i], right[i] = strings.CutPrefix(c, ">")
	}
	rows := [][]string{title}
	for _, row := range t.Rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = strings.NewReplacer("\n", " ", "\t", " ").Replace(Printable(cell))
		}
		rows = append(rows, cells)
	}
	widths := make([]int, len(t.Columns))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for _, row := range rows {
		b.WriteString(line(row, widths, right))
	}
	return b.String()
}

func line(row []string, widths []int, right []bool) string {
	var b strings.Builder
	for i, cell := range row {
		if i > 0 {
			b.WriteString("  ")
		}
		space := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
		if right[i] {
			cell, space = space, cell
		}
		b.WriteString(cell + space)
	}
	return strings.TrimRight(b.String(), " ") + "\n"
}

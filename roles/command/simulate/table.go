package simulate

import (
	"io"
	"strings"
	"unicode/utf8"
)

// WriteTable writes a section for people: the command that repeats it, a line
// for each metric with a column for each law, and with limits files a table of
// the buckets for each law.
func (s *Section) WriteTable(w io.Writer) error {
	rows := [][]string{append([]string{"", ""}, s.Laws...)}
	for i, m := range Metrics() {
		rows = append(rows, append([]string{m.Name, m.Unit}, s.values(i, m)...))
	}
	text := s.Command + "\n\n" + align(rows, 2)
	if s.Options.Configuration != nil {
		for _, r := range s.Results {
			text += "\n" + s.bucketTable(r)
		}
		text += s.leftOut()
	}
	_, err := io.WriteString(w, text)
	return err
}

// align makes columns of rows of equal length, two spaces apart. The first left
// ones are aligned to the left, the others to the right.
func align(rows [][]string, left int) string {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			if i > 0 {
				line.WriteString("  ")
			}
			if i < left {
				line.WriteString(pad(cell, widths[i]))
			} else {
				line.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)) + cell)
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return b.String()
}

// pad fills s with spaces to width characters.
func pad(s string, width int) string {
	return s + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(s)))
}

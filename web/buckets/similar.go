package buckets

import (
	"strings"

	"grl/web/format"
	"grl/web/page"
)

const (
	longest = 64 // bytes of a search for which something similar is looked for
	apart   = 2  // edits between a search and what is similar to it
)

// similar is what may have been meant by a search that found nothing.
type similar struct {
	Name    string
	Buckets int
	URL     string
}

// findSimilar returns the service, or else the bucket, whose name is nearest to
// text, with the number of its buckets; false: none is near.
func findSimilar(cells []page.Cell, text string) (similar, bool) {
	text = strings.ToLower(text)
	if len(text) < 3 || len(text) > longest {
		return similar{}, false
	}
	of := []func(*page.Cell) string{
		func(c *page.Cell) string { return c.Service },
		func(c *page.Cell) string { return c.Name },
		func(c *page.Cell) string { return c.Caller },
		func(c *page.Cell) string { return c.Owner },
	}
	for _, nameOf := range of {
		if name := nearest(cells, text, nameOf); name != "" {
			return similar{Name: name, Buckets: countBuckets(cells, func(c *page.Cell) bool { return nameOf(c) == name }), URL: query{Text: name}.url()}, true
		}
	}
	return similar{}, false
}

// nearest returns the name that is fewest edits from text, at most apart and less
// than half of it; of several the first in order.
func nearest(cells []page.Cell, text string, nameOf func(*page.Cell) string) string {
	best, least := "", min(apart, (len(text)-1)/2)+1
	last := ""
	for i := range cells {
		name := nameOf(&cells[i])
		lower := strings.ToLower(name)
		if d := len(lower) - len(text); d > apart || d < -apart || name == last {
			continue
		}
		last = name
		if d := edits(lower, text, least); d < least || d == least && best != "" && name < best {
			best, least = name, d
		}
	}
	return best
}

// edits returns how many bytes must be put in, taken out, replaced, or exchanged
// with the next one to make b of a; most+1 if it is more than most. Both have at
// most longest+apart bytes.
func edits(a, b string, most int) int {
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	if most <= 0 || len(a) == 0 || len(b) == 0 {
		return min(max(len(a), len(b)), most+1)
	}
	var rows [3][longest + apart + 1]int // the one before last, the last, this one
	for j := range len(b) + 1 {
		rows[1][j] = j
	}
	for i := 1; i <= len(a); i++ {
		before, last, row := &rows[(i+2)%3], &rows[i%3], &rows[(i+1)%3]
		row[0] = i
		least := i
		for j := 1; j <= len(b); j++ {
			d := last[j-1]
			if a[i-1] != b[j-1] {
				d = 1 + min(d, last[j], row[j-1])
				if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
					d = min(d, before[j-2]+1)
				}
			}
			row[j] = d
			least = min(least, d)
		}
		if least > most {
			return most + 1
		}
	}
	return min(rows[(len(a)+1)%3][len(b)], most+1)
}

// countBuckets counts the buckets, not the cells, that are wanted.
func countBuckets(cells []page.Cell, wanted func(*page.Cell) bool) int {
	type id struct{ service, name string }
	seen := make(map[id]bool)
	for i := range cells {
		if wanted(&cells[i]) {
			seen[id{cells[i].Service, cells[i].Name}] = true
		}
	}
	return len(seen)
}

func (s similar) name() string { return format.Printable(s.Name) }

// count ends the question: " (11 buckets)?".
func (s similar) count() string { return " (" + format.Plural(s.Buckets, "bucket") + ")? " }

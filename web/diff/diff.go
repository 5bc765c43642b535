// Package diff shows how two texts differ, line by line: to a terminal, or on a
// page.
package diff

import (
	"fmt"
	"strings"
)

// context is how many equal lines are shown around those that differ.
const context = 3

// Options say how a difference is shown. The zero value has no names and no
// colours.
type Options struct {
	From, To string // names of the texts
	Colours  bool
}

// Unified returns the unified difference between two texts, as diff -u and git
// print it; empty if they are equal. The work is near linear: lines that occur
// once in both texts hold the two together, and what is between them is shown
// as replaced.
func Unified(before, after string, o Options) string {
	if before == after {
		return ""
	}
	w := writer{colours: o.Colours}
	w.line(bold, "--- "+o.From)
	w.line(bold, "+++ "+o.To)
	for _, l := range Lines(before, after) {
		if l.Mark == At {
			w.line(cyan, l.Text)
			continue
		}
		w.line(colourOf[l.Mark], string(l.Mark)+l.Text)
	}
	return w.String()
}

// Mark says what a line of a difference is.
type Mark rune

// Kinds of lines. The text of an At is where the hunk stands that follows.
const (
	Same Mark = ' '
	Old  Mark = '-'
	New  Mark = '+'
	At   Mark = '@'
)

// Line is one line of a difference, without its line feed.
type Line struct {
	Mark Mark
	Text string
}

// Lines returns what Unified prints, without the names; none if the texts are
// equal. Either may be empty: then all of the other one was added, or removed.
func Lines(before, after string) []Line {
	if before == after {
		return nil
	}
	d := &differ{a: lines(before), b: lines(after)}
	d.compare()
	var out []Line
	for _, h := range d.hunks() {
		out = d.show(out, h)
	}
	return out
}

// lines cuts a text after each line feed; what has none at its end is marked.
func lines(text string) []string {
	list := strings.SplitAfter(text, "\n")
	if last := len(list) - 1; list[last] == "" {
		return list[:last]
	}
	list[len(list)-1] += "\n\\ no line feed at the end\n"
	return list
}

// edit says that lines [a, aEnd) of the one text stand where [b, bEnd) of the
// other do.
type edit struct{ a, aEnd, b, bEnd int }

type differ struct {
	a, b  []string
	edits []edit
}

// compare finds the edits.
func (d *differ) compare() {
	a, b := 0, 0
	for _, m := range append(d.anchors(), [2]int{len(d.a), len(d.b)}) {
		if m[0] < a || m[1] < b {
			continue // the match before reached over it
		}
		// Matches grow both ways from their anchor.
		aEnd, bEnd := m[0], m[1]
		for aEnd > a && bEnd > b && d.a[aEnd-1] == d.b[bEnd-1] {
			aEnd, bEnd = aEnd-1, bEnd-1
		}
		d.replace(a, aEnd, b, bEnd)
		a, b = m[0], m[1]
		for a < len(d.a) && b < len(d.b) && d.a[a] == d.b[b] {
			a, b = a+1, b+1
		}
	}
}

// replace notes an edit without the lines that are equal at its beginning.
func (d *differ) replace(a, aEnd, b, bEnd int) {
	for a < aEnd && b < bEnd && d.a[a] == d.b[b] {
		a, b = a+1, b+1
	}
	if a < aEnd || b < bEnd {
		d.edits = append(d.edits, edit{a, aEnd, b, bEnd})
	}
}

// anchors returns the places of the lines that occur once in each text: of them
// the longest sequence that is in the same order in both.
func (d *differ) anchors() [][2]int {
	type places struct{ inA, inB, a, b int }
	found := make(map[string]*places)
	for i, l := range d.a {
		if found[l] == nil {
			found[l] = &places{}
		}
		found[l].inA++
		found[l].a = i
	}
	for i, l := range d.b {
		if p := found[l]; p != nil {
			p.inB++
			p.b = i
		}
	}
	var pairs [][2]int
	for i, l := range d.a {
		if p := found[l]; p.inA == 1 && p.inB == 1 {
			pairs = append(pairs, [2]int{i, p.b})
		}
	}
	return rising(pairs)
}

// rising returns a longest subsequence of pairs, whose first numbers rise, in
// which the second ones rise too.
func rising(pairs [][2]int) [][2]int {
	var ends []int // by length, less 1: the pair on which the best one ends
	before := make([]int, len(pairs))
	for i, p := range pairs {
		low, high := 0, len(ends)
		for low < high {
			if mid := (low + high) / 2; pairs[ends[mid]][1] < p[1] {
				low = mid + 1
			} else {
				high = mid
			}
		}
		before[i] = -1
		if low > 0 {
			before[i] = ends[low-1]
		}
		if low == len(ends) {
			ends = append(ends, i)
		} else {
			ends[low] = i
		}
	}
	best := make([][2]int, len(ends))
	for i, n := len(ends)-1, -1; i >= 0; i-- {
		if n < 0 {
			n = ends[i]
		} else {
			n = before[n]
		}
		best[i] = pairs[n]
	}
	return best
}

// hunk is edits that are shown together.
type hunk []edit

func (d *differ) hunks() []hunk {
	var out []hunk
	for _, e := range d.edits {
		if n := len(out); n > 0 && e.a-out[n-1][len(out[n-1])-1].aEnd <= 2*context {
			out[n-1] = append(out[n-1], e)
			continue
		}
		out = append(out, hunk{e})
	}
	return out
}

// Colours of a terminal.
const (
	plain = ""
	bold  = "\x1b[1m"
	red   = "\x1b[31m"
	green = "\x1b[32m"
	cyan  = "\x1b[36m"
	reset = "\x1b[0m"
)

var colourOf = map[Mark]string{Same: plain, Old: red, New: green}

type writer struct {
	strings.Builder
	colours bool
}

func (w *writer) line(colour, text string) {
	text = strings.TrimSuffix(text, "\n")
	if w.colours && colour != plain {
		text = colour + text + reset
	}
	w.WriteString(text + "\n")
}

// show adds the lines of a hunk.
func (d *differ) show(out []Line, h hunk) []Line {
	first, last := h[0], h[len(h)-1]
	lead := min(context, first.a)
	tail := min(context, len(d.a)-last.aEnd)
	a, aEnd, b, bEnd := first.a-lead, last.aEnd+tail, first.b-lead, last.bEnd+tail
	out = append(out, Line{At, fmt.Sprintf("@@ -%s +%s @@", span(a, aEnd), span(b, bEnd))})
	add := func(mark Mark, list []string) {
		for _, l := range list {
			out = append(out, Line{mark, strings.TrimSuffix(l, "\n")})
		}
	}
	for _, e := range h {
		add(Same, d.a[a:e.a])
		add(Old, d.a[e.a:e.aEnd])
		add(New, d.b[e.b:e.bEnd])
		a = e.aEnd
	}
	add(Same, d.a[a:aEnd])
	return out
}

// span returns where lines [from, to) are, as unified differences say it.
func span(from, to int) string {
	switch to - from {
	case 0:
		return fmt.Sprintf("%d,0", from)
	case 1:
		return fmt.Sprint(from + 1)
	default:
		return fmt.Sprintf("%d,%d", from+1, to-from)
	}
}

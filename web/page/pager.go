package page

import "grl/web/format"

// Pager leads to the neighbouring pages of a table.
type Pager struct {
	From, To, Of   string
	Previous, Next string // URLs; empty: none
}

// NewPager cuts total rows into pages and returns those of page number (from
// 1; beyond the last: the last) as a range.
func NewPager(total, size, number int, url func(page int) string) (p Pager, from, to int) {
	last := max(1, (total+size-1)/size)
	number = min(max(number, 1), last)
	from = (number - 1) * size
	to = min(from+size, total)
	p = Pager{From: format.Count(min(from+1, total)), To: format.Count(to), Of: format.Count(total)}
	if number > 1 {
		p.Previous = url(number - 1)
	}
	if number < last {
		p.Next = url(number + 1)
	}
	return p, from, to
}

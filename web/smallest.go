package web

import (
	"container/heap"
	"slices"
)

// smallest returns the n smallest of all in order, or all if there are fewer; n
// is positive unless all is empty.
// It reuses the memory of all. To sort 100,000 in order to show 50 would take
// ten times as long.
func smallest(n int, all []int, compare func(i, j int) int) []int {
	if n < len(all)/8 {
		h := largestFirst{all[:n], compare}
		heap.Init(&h)
		for _, i := range all[n:] {
			if compare(i, h.items[0]) < 0 {
				h.items[0] = i
				heap.Fix(&h, 0)
			}
		}
		all = h.items
	}
	slices.SortFunc(all, compare)
	return all[:min(n, len(all))]
}

// largestFirst is a heap of fixed size whose root is the largest item.
type largestFirst struct {
	items   []int
	compare func(i, j int) int
}

func (h *largestFirst) Len() int           { return len(h.items) }
func (h *largestFirst) Less(i, j int) bool { return h.compare(h.items[i], h.items[j]) > 0 }
func (h *largestFirst) Swap(i, j int)      { h.items[i], h.items[j] = h.items[j], h.items[i] }

// Push and Pop make it a heap.Interface; the size does not change.
func (h *largestFirst) Push(any) { panic("web: heap of fixed size") }
func (h *largestFirst) Pop() any { panic("web: heap of fixed size") }

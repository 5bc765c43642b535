package web

import "container/heap"

// smallest returns the n smallest of all, in no order; n must be positive and
// at most len(all). It reuses the memory of all.
func smallest(n int, all []int, compare func(i, j int) int) []int {
	h := largestFirst{all[:n], compare}
	heap.Init(&h)
	for _, i := range all[n:] {
		if compare(i, h.items[0]) < 0 {
			h.items[0] = i
			heap.Fix(&h, 0)
		}
	}
	return h.items
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

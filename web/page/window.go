package page

import (
	"math/rand/v2"
	"slices"
)

// Window returns what stands at from up to, not including, to when all is
// sorted; 0 <= from <= to <= len(all). It reorders all. Sorting 100,000 to
// show 50 would take ten times as long.
func Window(all []int, from, to int, compare func(i, j int) int) []int {
	part(all, from, compare)
	rest := all[from:]
	part(rest, to-from, compare)
	rows := rest[:to-from]
	slices.SortFunc(rows, compare)
	return rows
}

// part moves the k smallest of all to its front, in no order: Hoare's
// selection. The pivot is random, so that no page.Choice of names makes it slow;
// what is selected does not depend on it.
func part(all []int, k int, compare func(i, j int) int) {
	for 0 < k && k < len(all) {
		p := split(all, compare)
		if k < p {
			all = all[:p]
		} else {
			all, k = all[p:], k-p
		}
	}
}

// split reorders all, of at least two, and returns a place between its first
// and its end such that nothing before it is larger than anything after it.
func split(all []int, compare func(i, j int) int) int {
	r := rand.IntN(len(all))
	all[0], all[r] = all[r], all[0]
	pivot := all[0]
	i, j := -1, len(all)
	for {
		for i++; compare(all[i], pivot) < 0; i++ {
		}
		for j--; compare(all[j], pivot) > 0; j-- {
		}
		if i >= j {
			return j + 1
		}
		all[i], all[j] = all[j], all[i]
	}
}

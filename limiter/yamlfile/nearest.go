package yamlfile

import (
	"maps"
	"slices"
	"strings"
)

// nearest returns the key of f that word is probably meant to be, "" if none
// is near.
func nearest(word string, f Fields) string {
	longest := 0
	for key := range f {
		longest = max(longest, len(key))
	}
	if len(word) > 2*longest {
		return "" // more than a third differs from any
	}
	return nearestWord(word, slices.Sorted(maps.Keys(f)))
}

// nearestWord returns the word of words that differs from word by at most a
// third of its letters, "" if none does.
func nearestWord(word string, words []string) string {
	best, least := "", max(1, len(word)/3)+1
	for _, w := range words {
		if n := distance(strings.ToLower(word), w); n < least {
			best, least = w, n
		}
	}
	return best
}

// distance returns how many bytes to insert, delete, replace or swap with
// their neighbour to turn a into b (optimal string alignment).
func distance(a, b string) int {
	rows := [3][]int{make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)}
	for j := range rows[1] {
		rows[1][j] = j
	}
	for i := 1; i <= len(a); i++ {
		before, last, row := rows[0], rows[1], rows[2]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			same := 1
			if a[i-1] == b[j-1] {
				same = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+same)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		rows = [3][]int{last, row, before}
	}
	return rows[1][len(b)]
}

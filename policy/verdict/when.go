package verdict

import (
	"cmp"
	"slices"
	"time"
)

const (
	most  = 0.8 // the share of virtual drops that says when they fall
	alike = 0.5 // from this share of another day's drops on a day is like it
)

// When says on which days of the week, and between which hours of them, most
// virtual drops fall. The zero value is never.
type When struct {
	Days     []time.Weekday // Monday first
	From, To int            // hours of the day, UTC, in [0, 24]; To is not in it
	Share    float64        // of all virtual drops, in [0, 1]
}

// when looks for the fewest days that hold most drops, with those that are like
// them, and in them for the shortest span of hours that does.
func when(byHour *[7][24]Hour) When {
	var ofDay [7]float64
	total := 0.0
	for d := range byHour {
		for h := range byHour[d] {
			ofDay[d] += byHour[d][h].Dropped
			total += byHour[d][h].Dropped
		}
	}
	if total <= 0 {
		return When{}
	}
	days := heaviest(ofDay, most*total)
	var ofHour [24]float64
	held := 0.0
	for _, d := range days {
		for h := range ofHour {
			ofHour[h] += byHour[d][h].Dropped
			held += byHour[d][h].Dropped
		}
	}
	w := When{}
	for _, d := range days {
		w.Days = append(w.Days, time.Weekday((d+1)%7))
	}
	w.From, w.To = shortest(ofHour, most*held)
	for _, part := range dayParts {
		if part.from <= w.From && w.To <= part.to {
			w.From, w.To = part.from, part.to
		}
	}
	for h := w.From; h < w.To; h++ {
		w.Share += ofHour[h] / total
	}
	w.Share = min(w.Share, 1)
	return w
}

// heaviest returns the fewest days that hold at least so much and those that hold
// at least half of what the least of these does, in their order.
func heaviest(ofDay [7]float64, atLeast float64) []int {
	days := []int{0, 1, 2, 3, 4, 5, 6}
	slices.SortStableFunc(days, func(a, b int) int { return cmp.Compare(ofDay[b], ofDay[a]) })
	held, n := 0.0, 0
	for n < len(days) && held < atLeast {
		held += ofDay[days[n]]
		n++
	}
	for least := ofDay[days[n-1]]; n < len(days) && ofDay[days[n]] >= alike*least; {
		n++
	}
	days = days[:n]
	slices.Sort(days)
	return days
}

// shortest returns the shortest span of hours that holds at least so much: of
// several the one that holds most.
func shortest(ofHour [24]float64, atLeast float64) (from, to int) {
	best := 0.0
	from, to = 0, len(ofHour)
	for a := range ofHour {
		held := 0.0
		for b := a + 1; b <= len(ofHour); b++ {
			held += ofHour[b-1]
			if held < atLeast {
				continue
			}
			if b-a < to-from || b-a == to-from && held > best {
				from, to, best = a, b, held
			}
			break
		}
	}
	return from, to
}

// dayParts are parts of a day that have a name.
var dayParts = []struct {
	from, to int
	name     string // of several
}{{0, 6, "nights"}, {6, 12, "mornings"}, {12, 18, "afternoons"}, {18, 24, "evenings"}}

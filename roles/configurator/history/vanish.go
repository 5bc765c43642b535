package history

import "time"

// vanish marks zeros that cannot be true: at the same time a week before and a
// week after, as far as that is known, at least 100 requests came and there was
// no pause half as long. Where no week is known days stand in.
// A source that reports 0 for a live service looks like that; a true outage does
// too, and does not teach either.
func (l *lane) vanish(begin int) {
	for i := begin; i < len(l.rps); i++ {
		if l.rps[i] != 0 {
			continue
		}
		end := i
		for end < len(l.rps) && l.rps[end] == 0 {
			end++
		}
		if l.expectedMore(begin, i, end) {
			for j := i; j < end; j++ {
				l.marks[j] |= vanished
			}
		}
		i = end
	}
}

// expectedMore reports whether requests were expected in steps [from, to).
func (l *lane) expectedMore(begin, from, to int) bool {
	span := time.Duration(to-from) * l.step
	for _, period := range []time.Duration{week, day} {
		shift := int((span + period - 1) / period * period / l.step)
		if shift == 0 {
			continue // a step is longer than the period
		}
		asked, found := 0, 0
		for _, by := range []int{-shift, shift} {
			if from+by < begin || to+by > len(l.rps) {
				continue
			}
			requests, known := l.busy(begin, from+by, to+by)
			if !known {
				continue
			}
			asked++
			if requests {
				found++
			}
		}
		if asked > 0 {
			return found == asked
		}
	}
	return false
}

// busy reports whether steps [from, to) had at least 100 requests, and no pause
// of half their length in them or around them; known is false if the load of
// half of them is not.
func (l *lane) busy(begin, from, to int) (busy, known bool) {
	half := (to - from) / 2
	requests, seen := 0.0, 0
	pause, longest := 0, 0
	for i := max(begin, from-half); i < min(len(l.rps), to+half); i++ {
		if l.rps[i] == 0 {
			pause++
			longest = max(longest, pause)
		} else {
			pause = 0
		}
		if i >= from && i < to && l.teaches(i) {
			seen++
			requests += l.rps[i] * l.step.Seconds()
		}
	}
	return requests >= leastExpected && 2*longest < to-from, 2*seen >= to-from
}

package fleet

import (
	"slices"
	"testing"
	"time"
)

func TestQueueKeepsTheOrderOfTimeAndOfPutting(t *testing.T) {
	const seed = 7
	r := newRandom(seed, 0)
	var q queue
	var want, got []event
	for range 2000 {
		e := event{at: r.below(50), to: int32(len(want))}
		q.put(e)
		want = append(want, e)
		if r.unit() < 0.3 { // taken in between, at no time before the last
			e := q.take()
			want = slices.DeleteFunc(want, func(w event) bool { return w.at == e.at && w.to == e.to })
			want = append(want, event{at: 60, to: int32(len(want))})
			q.put(want[len(want)-1])
		}
	}
	slices.SortStableFunc(want, func(a, b event) int { return int(a.at - b.at) })
	last := event{at: -1}
	for q.len() > 0 {
		if next := q.next(); next < last.at {
			t.Fatalf("seed %d: next is at %v after an event at %v", seed, next, last.at)
		}
		e := q.take()
		if e.before(&last) {
			t.Fatalf("seed %d: event %d at %v came after event %d at %v", seed, e.order, e.at, last.order, last.at)
		}
		last = e
		got = append(got, e)
	}
	if len(got) != len(want) {
		t.Errorf("seed %d: %d events came, want %d", seed, len(got), len(want))
	}
	for i := range want[:100] {
		if got[i].at != want[i].at {
			t.Errorf("seed %d: event %d came at %v, want %v", seed, i, got[i].at, want[i].at)
		}
	}
}

func TestQueueKeepsEventsOfOneTimeInOrder(t *testing.T) {
	var q queue
	for i := range int32(100) {
		q.put(event{at: time.Second, to: i})
	}
	for i := range int32(100) {
		if e := q.take(); e.to != i {
			t.Fatalf("event %d of one time came as number %d", e.to, i)
		}
	}
}

package law

import "time"

// Trail remembers when the last directives of a decider were passed on, so that
// a node can tell how old the one is that a child took last. The zero value is
// empty.
type Trail struct {
	marks [64]mark
	next  int
}

type mark struct {
	stamp Stamp
	at    time.Time
}

// Note says that the directive of a stamp is passed on now. The parts of one
// directive count once.
func (t *Trail) Note(now time.Time, s Stamp) {
	last := t.marks[(t.next+len(t.marks)-1)%len(t.marks)]
	if last.stamp == s {
		return
	}
	t.marks[t.next] = mark{s, now}
	t.next = (t.next + 1) % len(t.marks)
}

// Age returns how long ago the directive of a stamp was passed on, at least: of
// one no longer remembered, since the oldest that is. It is 0 for the zero
// stamp.
func (t *Trail) Age(now time.Time, s Stamp) time.Duration {
	if s == (Stamp{}) {
		return 0
	}
	var oldest time.Time
	for _, m := range t.marks {
		if m.stamp == s {
			return now.Sub(m.at)
		}
		if !m.at.IsZero() && (oldest.IsZero() || m.at.Before(oldest)) {
			oldest = m.at
		}
	}
	if oldest.IsZero() {
		return 0
	}
	return now.Sub(oldest)
}

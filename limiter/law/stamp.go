package law

// Stamp orders the directives of one decider: by epoch, then sequence, then
// step. A receiver refuses what is not after the last it took, so that a paused
// leader does no harm.
type Stamp struct {
	Epoch    uint64 // counts leaders or starts of the decider
	Sequence uint64 // counts the directives of an epoch
	Step     uint64 // counted by a node that decides alone, else 0
}

// After reports whether s is later than t.
func (s Stamp) After(t Stamp) bool {
	if s.Epoch != t.Epoch {
		return s.Epoch > t.Epoch
	}
	if s.Sequence != t.Sequence {
		return s.Sequence > t.Sequence
	}
	return s.Step > t.Step
}

// Salt returns what coherent draws are salted with under the directives of the
// stamp's decider: the same on all hosts that took the same one, and another
// every 1,024 directives, which is a minute at the soonest and mostly a quarter
// of an hour.
func (s Stamp) Salt() uint64 { return s.Epoch<<32 | s.Sequence>>10 }

package wire

import (
	"grl/limiter/law"
	grlv1 "grl/proto/grl/v1"
)

// Stamp returns the stamp of a message that has one, a directive or a Taken.
func Stamp(m interface {
	GetEpoch() uint64
	GetSequence() uint64
	GetStep() uint64
},
) law.Stamp {
	return law.Stamp{Epoch: m.GetEpoch(), Sequence: m.GetSequence(), Step: m.GetStep()}
}

// Taken returns the message that says which directive of a decider was taken
// last.
func Taken(decider string, s law.Stamp) *grlv1.Taken {
	return &grlv1.Taken{Decider: decider, Epoch: s.Epoch, Sequence: s.Sequence, Step: s.Step}
}

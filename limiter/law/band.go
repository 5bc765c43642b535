package law

import (
	"math"
	"time"
)

// Moved says how far a value is from the one last sent.
type Moved uint8

const (
	Still  Moved = iota // within 0.1 %: nothing to send
	Drifts              // to be sent at the next T
	Jumps               // to be sent at once
)

// AdmitMoved compares the admit of a cell with the one last sent.
func AdmitMoved(now, sent float64) Moved {
	d := math.Abs(now - sent)
	if now > 2 && sent > 2 {
		if d > farBand*sent {
			return Jumps
		}
		return Still
	}
	return moved(d, sendBand*sent, quietBand*sent)
}

// RateMoved compares the rate of a cell, in requests per second, with the one
// last sent: it jumps when it leaves 2 % and three deviations of its own noise.
func RateMoved(now, sent float64) Moved {
	return moved(math.Abs(now-sent), max(sendBand*sent, 3*deviation(sent, T)), quietBand*sent)
}

func moved(d, jump, drift float64) Moved {
	switch {
	case d > jump:
		return Jumps
	case d > drift:
		return Drifts
	default:
		return Still
	}
}

// Published is what the children were told of a cell last. The zero value is
// nothing yet.
type Published struct {
	Admit  float64
	Hot    bool
	Excess float64 // Verdict.Excess
	told   bool
}

// Publish returns what the children know once they are told.
func Publish(admit float64, hot bool, excess float64) Published {
	return Published{admit, hot, excess, true}
}

// Moved compares what was decided now with what was told.
func (p Published) Moved(admit float64, hot bool, excess float64) Moved {
	if !p.told {
		return Jumps
	}
	moved := AdmitMoved(admit, p.Admit)
	if excess > 0 { // it gets what the limit leaves: that must be exact
		moved = max(moved, RateMoved(admit, p.Admit))
	}
	if excess != p.Excess {
		moved = max(moved, RateMoved(excess, p.Excess))
	}
	if hot != p.Hot {
		moved = max(moved, Drifts)
	}
	return moved
}

// Moved compares the rate of a cell with the one last sent.
func (r Rate) Moved(sent Rate) Moved {
	moved := RateMoved(r.Offered.RPS(), sent.Offered.RPS())
	if r.Excess != sent.Excess {
		moved = max(moved, RateMoved(r.Excess.RPS(), sent.Excess.RPS()))
	}
	return moved
}

// In a fleet of many services some cell moves all the time. A host hears at
// once of its own cells; a directive without any reaches it only so long after
// the last one it was told.
const (
	// RenewEvery is less than a T, so that those of each T come through.
	RenewEvery = T - 2*Delta
	// RenewAfterCells is more than a T: a cell that drifts is told at each T, and
	// what cells of others do in between is no reason to tell the host as well.
	RenewAfterCells = T + 2*Delta
)

// Renews reports whether a directive without cells of a host is passed on to
// it, so long after the last one; own says whether that one had cells of the
// host, others whether the present one has some of others.
func Renews(since time.Duration, own, others bool) bool {
	if own && others {
		return since >= RenewAfterCells
	}
	return since >= RenewEvery
}

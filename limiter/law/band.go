package law

import "math"

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
	Admit float64
	Hot   bool
	told  bool
}

// Publish returns what the children know once they are told.
func Publish(admit float64, hot bool) Published { return Published{admit, hot, true} }

// Moved compares what was decided now with what was told.
func (p Published) Moved(admit float64, hot bool) Moved {
	switch moved := AdmitMoved(admit, p.Admit); {
	case !p.told:
		return Jumps
	case hot != p.Hot:
		return max(moved, Drifts)
	default:
		return moved
	}
}

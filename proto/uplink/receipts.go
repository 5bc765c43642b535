package uplink

// Receipts remembers, of the last 64 reports on a stream, how many reports the
// node had received in all when each was received, or sent. So a node that
// hears which of its own reports a directive contains can tell each child which
// of the child's it does. The zero value is empty. Not safe for concurrent use.
type Receipts struct {
	ring [64]receipt
	next int
}

// receipt is one report of the stream.
type receipt struct{ sequence, received uint64 }

// Note says that so many reports had been received with the report of that
// sequence, which must be above 0 and higher than the one before.
func (r *Receipts) Note(sequence, received uint64) {
	r.ring[r.next] = receipt{sequence, received}
	r.next = (r.next + 1) % len(r.ring)
}

// Received returns how many reports had been received with the report of a
// sequence, false if it is not remembered.
func (r *Receipts) Received(sequence uint64) (uint64, bool) {
	for _, at := range r.ring {
		if at.sequence == sequence && sequence != 0 {
			return at.received, true
		}
	}
	return 0, false
}

// Contained returns the last report of the stream that is among the first
// received ones; 0: none that is remembered.
func (r *Receipts) Contained(received uint64) uint64 {
	var sequence uint64
	for _, at := range r.ring {
		if at.received <= received {
			sequence = max(sequence, at.sequence)
		}
	}
	return sequence
}

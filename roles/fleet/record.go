package fleet

import "time"

// Slots of the series: the usual one, and that of long runs.
const (
	slot     = 50 * time.Millisecond
	longSlot = time.Second
	longRun  = 10 * time.Minute
)

// recorder writes down what happens.
type recorder struct {
	plan  *Plan
	lay   *layout
	slot  time.Duration
	slots int
	gates []track
	cells []CellInfo
	sent  []float64 // bytes by second
	total Counts
}

// track is what happened at one gate, by slot, in requests.
type track struct {
	offered, dropped, retried []float64
}

func newRecorder(p *Plan, l *layout) *recorder {
	r := &recorder{plan: p, lay: l, slot: slot}
	if p.Length > longRun {
		r.slot = longSlot
	}
	r.slots = int((p.Length + r.slot - 1) / r.slot)
	r.gates = make([]track, len(l.gates))
	for i := range r.gates {
		r.gates[i] = track{offered: make([]float64, r.slots), dropped: make([]float64, r.slots)}
		if p.Retries > 0 {
			r.gates[i].retried = make([]float64, r.slots)
		}
	}
	r.cells = make([]CellInfo, len(l.cells))
	for i := range r.cells {
		r.cells[i] = CellInfo{ID: l.cells[i].id, Bucket: int(l.cells[i].gate)}
	}
	r.sent = make([]float64, int((p.Length+time.Second-1)/time.Second)+1)
	return r
}

// add writes down what came to a cell from a to b, evenly over that time.
func (r *recorder) add(cell int32, a, b time.Duration, c Counts, retried int, steady bool) {
	r.total.add(c)
	r.cells[cell].Counts.add(c)
	if steady {
		r.cells[cell].Steady.add(c)
	}
	g := &r.gates[r.cells[cell].Bucket]
	for at := a; at < b; {
		i := min(int(at/r.slot), r.slots-1)
		end := min(b, time.Duration(i+1)*r.slot)
		if i == r.slots-1 {
			end = b
		}
		share := float64(end-at) / float64(b-a)
		g.offered[i] += share * float64(c.Offered)
		g.dropped[i] += share * float64(c.Dropped)
		if retried > 0 {
			g.retried[i] += share * float64(retried)
		}
		at = end
	}
}

// bytes counts bytes on the links of hosts.
func (r *recorder) bytes(now time.Duration, n int) { r.sent[int(now/time.Second)] += float64(n) }

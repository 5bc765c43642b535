package fleet

import (
	"slices"
	"time"

	"grl/limiter/law"
)

// kid is a child of a node.
type kid struct {
	host     int32 // -1: a node
	node     int32
	group    int32
	stream   uint32
	child    law.Child
	sequence uint32
	heard    time.Duration
	begun    bool // it sent sums
	fresh    bool // but not on this stream
	named    bool // its cells were named to it
	closed   bool
	receipts []receipt
	told     []telling  // by decider
	held     []heldCell // cells of which the host is told by what it claims
}

// hostReceipts is how many reports of a host an aggregator remembers.
const hostReceipts = 32

// keyOf returns the key of the sender of a message among the children.
func keyOf(ev *event) int32 {
	switch ev.kind {
	case hostJoins, hostReports, hostCloses:
		return ev.from
	default:
		return -1 - ev.from
	}
}

// join takes in a child that opened a stream. A node that comes back counts
// with its last sums until it sends new ones.
func (n *node) join(ev *event) {
	key := keyOf(ev)
	k := n.byKid[key]
	if k != nil && k.host >= 0 {
		n.drop(k)
		k = nil
	}
	if k == nil {
		k = n.adopt(ev)
		n.byKid[key] = k
		n.kids = append(n.kids, k)
	}
	k.stream, k.sequence, k.closed, k.fresh, k.named, k.heard = ev.stream, 0, false, true, false, n.now
	clear(k.receipts)
	if n.first < 0 {
		n.first = n.now
	}
	for d := range n.voices {
		if v := &n.voices[d]; v.out != (law.Stamp{}) && v.live() {
			v.speak(v.cells, k)
		}
	}
}

func (n *node) adopt(ev *event) *kid {
	k := &kid{host: -1, node: -1, told: make([]telling, len(n.voices))}
	if ev.kind == hostJoins {
		k.host = ev.from
		k.receipts = make([]receipt, hostReceipts)
		for _, t := range n.hosts[k.host].cells {
			k.child.Name(int(t.cell), law.Counts{})
		}
		return k
	}
	k.node = ev.from
	k.receipts = make([]receipt, len(n.receipts))
	from := n.nodes[k.node]
	k.group = from.zone
	if int(k.node) >= n.aggs {
		k.group = from.region
	}
	for c := range n.cells {
		k.child.Name(c, law.Counts{})
	}
	return k
}

// drop forgets a child.
func (n *node) drop(k *kid) {
	n.groups[k.group].Leave(&k.child)
	n.markAll(k)
	delete(n.byKid, k.host)
	n.kids = slices.DeleteFunc(n.kids, func(other *kid) bool { return other == k })
}

// leave takes in that the stream of a child closed. The last node of its zone
// goes on counting for a while.
func (n *node) leave(ev *event) {
	k := n.byKid[keyOf(ev)]
	if k == nil || k.stream != ev.stream {
		return
	}
	if k.host >= 0 {
		n.drop(k)
		return
	}
	k.closed = true
	for _, other := range n.kids {
		if other != k && other.group == k.group && other.begun && !other.closed {
			n.groups[k.group].Lose(clock(n.now), &k.child, law.Handover)
			k.begun = false
			n.markAll(k)
			return
		}
	}
}

// report takes in a report of a child.
func (n *node) report(ev *event) {
	k := n.byKid[keyOf(ev)]
	if k == nil || k.stream != ev.stream || uint32(ev.number) <= k.sequence {
		return
	}
	k.sequence, k.heard = uint32(ev.number), n.now
	n.received++
	k.receipts[int(k.sequence)%len(k.receipts)] = receipt{k.sequence, n.received}
	if ev.report.warming {
		return
	}
	k.begun = true
	sum := &n.groups[k.group]
	if k.child.Out() {
		sum.Return(&k.child)
		n.markAll(k)
	}
	if k.fresh {
		k.fresh = false
		n.forgetRates(k)
	}
	weight := law.Usual(law.T)
	if ev.report.rates {
		weight = 0
	}
	for _, r := range ev.report.rows {
		if k.host >= 0 {
			r.rate = n.judge(k, r, weight)
		}
		if ev.report.rates {
			sum.FoldRate(&k.child, r.number, r.rate)
		} else {
			sum.Fold(&k.child, r.number, r.rate, r.counts, false)
		}
		n.mark(int32(k.child.Cell(r.number)))
	}
	if len(k.held) > 0 {
		n.tellHeld(k)
	}
}

// forgetRates forgets what a child said on its last stream.
func (n *node) forgetRates(k *kid) {
	for number := range uint32(k.child.Names()) {
		if rate, _ := k.child.Said(number); rate != (law.Rate{}) {
			n.groups[k.group].FoldRate(&k.child, number, law.Rate{})
			n.mark(int32(k.child.Cell(number)))
		}
	}
}

// contained returns the last report of a child that is among the first
// received ones; 0: none that is remembered.
func (k *kid) contained(received uint32) uint32 {
	var sequence uint32
	for _, r := range k.receipts {
		if r.received != 0 && r.received <= received {
			sequence = max(sequence, r.sequence)
		}
	}
	return sequence
}

func (n *node) markAll(k *kid) {
	for number := range k.child.Names() {
		n.mark(int32(k.child.Cell(uint32(number))))
	}
}

// telling is when a child was told of a decider last, and whether of cells.
type telling struct {
	at    time.Duration
	cells bool
}

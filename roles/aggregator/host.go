package aggregator

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	"grl/limiter"
	"grl/limiter/law"
	grlv1 "grl/proto/grl/v1"
	"grl/proto/uplink"
	"grl/proto/wire"
)

// host is one client of the zone, for as long as its stream lives.
type host struct {
	hello   *grlv1.Hello
	proved  bool          // a certificate says that the hello is true
	foreign string        // a bucket of others that it spoke of; "": of none
	wake    chan struct{} // something to send; capacity 1
	child   law.Child
	ids     []limiter.CellID // number → cell it named
	before  map[limiter.CellID]law.Counts
	usual   map[limiter.CellID]float32 // on its last stream, of cells not named yet
	held    map[int]*heldCell          // cells that it claims too much of, or did

	sequence uint64          // of its last report
	heard    time.Time       // its last report
	counted  time.Time       // its last report with counts; zero: none on this stream
	beganAt  time.Time       // its first one with counts on this stream
	said     []bool          // by number: its counts were said on this stream
	rates    uplink.Receipts // of all reports
	counts   uplink.Receipts // of those with counts
	last     *grlv1.Report   // for the fleet's view, and the directives it took

	numbers           wire.Numbers
	told              map[*decider]telling
	config            *limiter.Configuration // that it was sent
	bytesIn, bytesOut uint64
	reports           uint64 // received
}

// superseded reports whether a later stream of the same boot was heard already.
// This one waited while the node stood still: its sender has given it up, and
// what it says was said since.
func (n *node) superseded(hello *grlv1.Hello) bool {
	key := keyOf(hello)
	latest := n.boots[key].stream
	for other := range n.hosts {
		if keyOf(other.hello) == key {
			latest = max(latest, other.hello.GetStream())
		}
	}
	return hello.GetStream() < latest
}

// join takes in a host that said hello; before is what its last parent
// confirmed, and now the node's.
func (n *node) join(now time.Time, hello *grlv1.Hello, before map[limiter.CellID]law.Counts) *host {
	h := &host{
		hello:  hello,
		wake:   make(chan struct{}, 1),
		heard:  now,
		before: before,
		told:   make(map[*decider]telling),
	}
	key := keyOf(hello)
	for other := range n.hosts {
		if keyOf(other.hello) == key {
			n.leave(now, other) // its old stream has not been missed yet
		}
	}
	// It was here before. What this node counted of it is exact, but since then
	// another one may have counted more.
	for id, counts := range n.boots[key].counts {
		if counts.Offered > before[id].Offered {
			before[id] = counts
		}
	}
	h.usual = n.boots[key].usual
	n.forgetBoot(key)
	n.hosts[h] = true
	if n.firstHost.IsZero() {
		n.firstHost = now
	}
	for _, decider := range []string{globalDecider, n.region} { // there are no others here
		// One host's word may not use up all epochs there are.
		epoch := min(wire.HeardEpoch(hello, decider), n.heard[decider]+wire.EpochsAhead)
		n.hostsHeard.raise(decider, epoch)
		n.heard.raise(decider, epoch)
	}
	n.roster++
	return h
}

// leave forgets a host whose stream closed, but not what it counted.
func (n *node) leave(now time.Time, h *host) {
	if !n.hosts[h] {
		return
	}
	n.leaveSum(h)
	counts, usual := h.before, h.usual // of cells that were not named on this stream
	if usual == nil {
		usual = make(map[limiter.CellID]float32, len(h.ids))
	}
	for number, id := range h.ids {
		_, counts[id] = h.child.Said(uint32(number))
		usual[id] = h.child.Usual(uint32(number))
	}
	n.boots[keyOf(h.hello)] = boot{left: now, stream: h.hello.GetStream(), counts: counts, usual: usual}
	n.remembered += len(counts)
	for n.remembered > maxBoots {
		n.forgetBoot(n.oldestBoot())
	}
	delete(n.hosts, h)
	n.roster++
}

func (n *node) forgetBoot(key bootKey) {
	n.remembered -= len(n.boots[key].counts)
	delete(n.boots, key)
}

func (n *node) oldestBoot() bootKey {
	var oldest bootKey
	var left time.Time
	for key, b := range n.boots {
		if left.IsZero() || b.left.Before(left) {
			oldest, left = key, b.left
		}
	}
	return oldest
}

// report takes in a report of a host. It returns an error if the report breaks
// the protocol, and false if it is older than one taken before.
func (n *node) report(now time.Time, h *host, m *grlv1.Report) (bool, error) {
	if m.GetSequence() <= h.sequence || !n.hosts[h] {
		return false, nil // its names too were taken
	}
	if err := n.named(h, m); err != nil {
		return false, fmt.Errorf("report %d of %q: %w", m.GetSequence(), h.hello.GetNode(), err)
	}
	if h.child.Out() {
		n.returnSum(h)
	}
	h.sequence, h.heard = m.GetSequence(), now
	n.received++
	h.rates.Note(h.sequence, n.received)
	if err := n.take(now, h, m); err != nil {
		return false, fmt.Errorf("report %d of %q: %w", m.GetSequence(), h.hello.GetNode(), err)
	}
	m.RefusedReason = wire.Reason(m.GetRefusedReason())
	if changed(h.last, m) {
		n.roster++
	}
	h.last = m
	n.noticeUsedUp(m)
	return true, nil
}

// take takes in the rows of a report.
func (n *node) take(now time.Time, h *host, m *grlv1.Report) error {
	if m.GetRatesOnly() {
		n.foldRates(now, h, m)
		return nil
	}
	// Counts are of the time since the last report that had some.
	span, late := now.Sub(h.counted), false
	if h.counted.IsZero() {
		h.beganAt, span, late = now, 0, true
	}
	h.counted = now
	h.counts.Note(h.sequence, n.received)
	return n.fold(now, h, m, span, late || span > law.HostSilent)
}

// named takes in the cells that a report names, and checks its columns.
func (n *node) named(h *host, m *grlv1.Report) error {
	from := len(h.ids)
	var err error
	if h.ids, err = wire.Named(h.ids, m.GetNames()); err != nil {
		return err
	}
	for _, id := range h.ids[from:] {
		i, _ := n.cellOf(h, id)
		h.child.Name(i, h.before[id])
		if usual := h.usual[id]; usual > 0 {
			h.child.Resume(uint32(h.child.Names()-1), usual)
		}
		h.said = append(h.said, false)
		delete(h.before, id) // named again, it has begun at 0
	}
	return wire.CheckReport(m, len(h.ids))
}

// bound reports whether one of a host's numbers has a cell, of which it may
// speak again although it was forgotten.
func (n *node) bound(h *host, number uint32) bool {
	if h.child.Cell(number) >= 0 {
		return true
	}
	i, ok := n.cellOf(h, h.ids[number])
	if ok { // else its configuration is older or newer than ours
		h.child.Rename(number, i)
	}
	return ok
}

// foldRates takes in the rows of a report of rates only.
func (n *node) foldRates(now time.Time, h *host, m *grlv1.Report) {
	for row, number := range m.GetCell() {
		if n.bound(h, number) {
			rate, _ := wire.Row(m, row)
			n.sum.FoldRate(&h.child, number, n.judge(now, h, number, rate.Offered, 0))
		}
	}
	n.touchNumbers(h, m.GetCell())
}

// fold takes in the rows of a report. It returns an error if no host can have
// counted what a row says.
func (n *node) fold(now time.Time, h *host, m *grlv1.Report, span time.Duration, late bool) error {
	share, weight := n.played.Share(now, span), law.Usual(min(span, law.HostSilent))
	most, unknown := law.MostCounted(max(span, 1)), law.MostCounted(0)
	// All of a stream's first state, in several reports, is from before.
	young := now.Sub(h.beganAt) < law.T
	for row, number := range m.GetCell() {
		if !n.bound(h, number) {
			continue
		}
		rate, counts := wire.Row(m, row)
		late, most := late, most
		if late || young && !h.said[number] {
			late, most = true, unknown
		}
		h.said[number] = true
		if h.child.Exceeds(number, counts, most) {
			return fmt.Errorf("cell %d: %d requests counted, which cannot be", number, counts.Offered)
		}
		more := n.sum.Fold(&h.child, number, n.judge(now, h, number, rate.Offered, weight), counts, late)
		n.played.Add(h.child.Cell(number), more, share)
	}
	n.touchNumbers(h, m.GetCell())
	return nil
}

// changed reports whether a report says something else of the configuration.
func changed(last, now *grlv1.Report) bool {
	return last.GetDisabledHere() != now.GetDisabledHere() || last.GetConfigRevision() != now.GetConfigRevision() || last.GetConfigSerial() != now.GetConfigSerial() ||
		last.GetRefusedRevision() != now.GetRefusedRevision()
}

// size returns the bytes of a message, for the fleet's view.
func size(m proto.Message) uint64 { return uint64(proto.Size(m)) }

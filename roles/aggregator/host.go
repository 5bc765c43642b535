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
	hello  *grlv1.Hello
	wake   chan struct{} // something to send; capacity 1
	child  law.Child
	ids    []limiter.CellID // number → cell it named
	before map[limiter.CellID]law.Counts

	sequence uint64 // of its last report
	heard    time.Time
	begun    bool      // reported on this stream
	beganAt  time.Time // its first report on this stream
	fresh    uint32    // the first number that its last report named
	receipts uplink.Receipts
	last     *grlv1.Report // for the fleet's view: configuration held and refused

	numbers           wire.Numbers
	told              map[string]tellings    // decider → what the host was told last
	config            *limiter.Configuration // that it was sent
	bytesIn, bytesOut uint64
}

// join takes in a host that said hello; before is what its last parent
// confirmed, and now the node's.
func (n *node) join(now time.Time, hello *grlv1.Hello, before map[limiter.CellID]law.Counts) *host {
	h := &host{
		hello:  hello,
		wake:   make(chan struct{}, 1),
		heard:  now,
		before: before,
		told:   make(map[string]tellings),
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
	n.forgetBoot(key)
	n.hosts[h] = true
	if n.firstHost.IsZero() {
		n.firstHost = now
	}
	n.hostsEpoch = max(n.hostsEpoch, wire.HeardEpoch(hello, "global"))
	n.epoch = max(n.epoch, n.hostsEpoch)
	n.roster++
	return h
}

// leave forgets a host whose stream closed, but not what it counted.
func (n *node) leave(now time.Time, h *host) {
	if !n.hosts[h] {
		return
	}
	n.leaveSum(h)
	counts := h.before // of cells that were not named on this stream
	for number, id := range h.ids {
		_, counts[id] = h.child.Said(uint32(number))
	}
	n.boots[keyOf(h.hello)] = boot{left: now, counts: counts}
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
	span := now.Sub(h.heard)
	late := !h.begun || span > law.HostSilent
	if h.child.Out() {
		n.returnSum(h)
	}
	if !h.begun {
		h.begun, h.beganAt = true, now
	}
	h.sequence, h.heard = m.GetSequence(), now
	n.received++
	h.receipts.Note(h.sequence, n.received)
	if err := n.fold(now, h, m, span, late); err != nil {
		return false, fmt.Errorf("report %d of %q: %w", m.GetSequence(), h.hello.GetNode(), err)
	}
	m.RefusedReason = wire.Reason(m.GetRefusedReason())
	if changed(h.last, m) {
		n.roster++
	}
	h.last = m
	return true, nil
}

// named takes in the cells that a report names, and checks its columns.
func (n *node) named(h *host, m *grlv1.Report) error {
	from := len(h.ids)
	h.fresh = uint32(from)
	var err error
	if h.ids, err = wire.Named(h.ids, m.GetNames()); err != nil {
		return err
	}
	for _, id := range h.ids[from:] {
		i, _ := n.cell(id)
		h.child.Name(i, h.before[id])
		delete(h.before, id) // named again, it has begun at 0
	}
	return wire.CheckReport(m, len(h.ids))
}

// fold takes in the rows of a report. It returns an error if no host can have
// counted what a row says.
func (n *node) fold(now time.Time, h *host, m *grlv1.Report, span time.Duration, late bool) error {
	share := n.played.Share(now, span)
	most, unknown := law.MostCounted(max(span, 1)), law.MostCounted(0)
	// All of a stream's first state, in several reports, is from before.
	young := now.Sub(h.beganAt) < law.T
	for row, number := range m.GetCell() {
		if h.child.Cell(number) < 0 {
			i, ok := n.cell(h.ids[number])
			if !ok {
				continue // its configuration is older or newer than ours
			}
			h.child.Rename(number, i)
		}
		rate, counts := wire.Row(m, row)
		rate.Hosts = 0
		if rate.Offered > 0 {
			rate.Hosts = 1
		}
		late, most := late, most
		if late || young && number >= h.fresh {
			late, most = true, unknown
		}
		if h.child.Exceeds(number, counts, most) {
			return fmt.Errorf("cell %d: %d requests counted, which cannot be", number, counts.Offered)
		}
		more := n.sum.Fold(&h.child, number, rate, counts, late)
		n.played.Add(h.child.Cell(number), more, share)
	}
	for p := range n.parents {
		for _, number := range m.GetCell() {
			if i := h.child.Cell(number); i >= 0 {
				p.Touch(i)
			}
		}
	}
	return nil
}

// changed reports whether a report says something else of the configuration.
func changed(last, now *grlv1.Report) bool {
	return last.GetConfigRevision() != now.GetConfigRevision() || last.GetRefusedRevision() != now.GetRefusedRevision()
}

// tellings is what a host was told of one decider.
type tellings struct {
	stamp   law.Stamp
	version uint64 // of the admits
}

// directives returns what the host has not been told yet.
func (n *node) directives(now time.Time, h *host) []*grlv1.Directive {
	var out []*grlv1.Directive
	for name, d := range n.deciders {
		told := h.told[name]
		if !d.live(now) || !d.taken.After(told.stamp) && d.version <= told.version {
			continue
		}
		m := &grlv1.Directive{
			Decider:         name,
			Epoch:           d.taken.Epoch,
			Sequence:        d.taken.Sequence,
			Step:            d.taken.Step,
			ReportSequence:  h.receipts.Contained(d.rates),
			CountedSequence: h.receipts.Contained(d.counts),
		}
		n.fill(m, h, told.version)
		h.told[name] = tellings{d.taken, n.version}
		out = append(out, wire.SplitDirective(m)...)
	}
	return out
}

// fill adds the cells of a directive that moved since a version of the admits.
func (n *node) fill(m *grlv1.Directive, h *host, since uint64) {
	if since == n.version || h.config == nil {
		return
	}
	wanted := make(map[string]bool, len(h.config.Services))
	for i := range h.config.Services {
		wanted[h.config.Services[i].Name] = true
	}
	n.cells.Each(func(i int, id limiter.CellID) {
		a := &n.admits[i]
		if a.version <= since || a.decider != m.GetDecider() || !wanted[n.buckets[id.Bucket].Service] {
			return
		}
		m.Cell = append(m.Cell, h.numbers.Number(i, id, &m.Names))
		m.Admit = append(m.Admit, a.admit)
		m.OfferedMicroRps = append(m.OfferedMicroRps, uint64(a.offered))
		m.Hosts = append(m.Hosts, a.hosts)
	})
}

// size returns the bytes of a message, for the fleet's view.
func size(m proto.Message) uint64 { return uint64(proto.Size(m)) }

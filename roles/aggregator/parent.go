package aggregator

import (
	"time"

	"google.golang.org/protobuf/proto"

	"grl/limiter"
	"grl/limiter/law"
	grlv1 "grl/proto/grl/v1"
	"grl/proto/wire"
)

// parent is the node's side of a stream to one controller.
type parent struct {
	wake chan struct{} // something moved; capacity 1
	beat chan struct{} // T has passed; capacity 1

	// Up: what was sent.
	saidEpoch uint64 // the highest heard, in the hello
	numbers   wire.Numbers
	sent      []sent // by cell
	touched   []bool // by cell: in dirty
	dirty     []int  // cells whose sum may have moved since the last report
	begun     bool   // sums were sent
	sequence  uint64
	reports   [64]receipt // report → count of host reports it contains
	roster    uint64      // version of the roster sent
	rosterAt  time.Time
	confirmed wire.Confirmed
	details   []*grlv1.Detail // to be sent

	// Down: what was received.
	ids []limiter.CellID // number → cell the controller named

	bytesOut uint64
}

// sent is what a parent was told of a cell last.
type sent struct {
	rate   law.Rate
	counts law.Counts
}

func newParent() *parent {
	return &parent{wake: make(chan struct{}, 1), beat: make(chan struct{}, 1)}
}

// reopen begins a new stream, with new numbers and sequences.
func (p *parent) reopen() {
	p.confirmed.Reopen()
	*p = parent{wake: p.wake, beat: p.beat, confirmed: p.confirmed}
}

// rosterEvery is how often the fleet's view is sent if nothing in it changed.
const rosterEvery = 10 * time.Second

// rosterBytes bounds it: a report with more would break its size, and with it
// the stream. Hosts beyond it count, but are not shown.
const rosterBytes = 4 << 20

// contained returns the count of host reports that a report to this parent
// contained, false if it is not remembered.
func (p *parent) contained(sequence uint64) (uint64, bool) {
	r := p.reports[sequence%uint64(len(p.reports))]
	return r.received, sequence != 0 && r.sequence == sequence
}

// named takes in the cells a directive names, and checks its columns.
func (p *parent) named(m *grlv1.Directive) error {
	var err error
	if p.ids, err = wire.Named(p.ids, m.GetNames()); err != nil {
		return err
	}
	return wire.CheckDirective(m, len(p.ids))
}

// touch marks a cell whose sum may have moved.
func (p *parent) touch(i int) {
	if len(p.touched) <= i {
		p.touched = append(p.touched, make([]bool, i+1-len(p.touched))...)
	}
	if !p.touched[i] {
		p.touched[i] = true
		p.dirty = append(p.dirty, i)
	}
}

// look returns the cells touched since the last look.
func (p *parent) look() []int {
	dirty := p.dirty
	for _, i := range dirty {
		p.touched[i] = false
	}
	p.dirty = p.dirty[:0]
	return dirty
}

// jumps returns a report of the cells whose rate moved past the band since the
// parent heard of them, nil if none did.
func (n *node) jumps(p *parent) *grlv1.Report {
	var m *grlv1.Report
	for _, i := range p.look() {
		rate := n.sum.Rate(i)
		if law.RateMoved(rate.Offered.RPS(), p.last(i).rate.Offered.RPS()) != law.Jumps {
			continue
		}
		if m == nil {
			m = &grlv1.Report{}
		}
		if !wire.Full(m) { // the rest goes with the next full one
			n.carry(p, m, i)
		}
	}
	if m == nil {
		return nil
	}
	return n.seal(p, m)
}

// full returns reports of all that differs from what the parent heard; at least
// one, since a report renews all.
func (n *node) full(now time.Time, p *parent) []*grlv1.Report {
	p.look()
	p.begun = true
	var out []*grlv1.Report
	m := &grlv1.Report{}
	n.cells.Each(func(i int, _ limiter.CellID) {
		rate, before := n.sum.Rate(i), p.last(i)
		moved := law.RateMoved(rate.Offered.RPS(), before.rate.Offered.RPS()) != law.Still
		if !moved && rate.Hosts == before.rate.Hosts && n.played.Counts(i) == before.counts {
			return
		}
		if wire.Full(m) {
			out = append(out, n.seal(p, m))
			m = &grlv1.Report{}
		}
		n.carry(p, m, i)
	})
	n.call(now, p, m)
	return append(out, n.seal(p, m))
}

// warming returns the report of an aggregator that may not send sums yet: it
// says that it is there, and who is.
func (n *node) warming(now time.Time, p *parent) *grlv1.Report {
	m := &grlv1.Report{Warming: true}
	n.call(now, p, m)
	m = n.seal(p, m)
	p.reports[p.sequence%uint64(len(p.reports))] = receipt{sequence: p.sequence} // contains no host's report
	return m
}

// call adds the hosts to a report if the parent's view of them may be old.
func (n *node) call(now time.Time, p *parent, m *grlv1.Report) {
	if p.roster != n.roster || now.Sub(p.rosterAt) >= rosterEvery {
		m.Nodes = n.nodes(now)
		p.roster, p.rosterAt = n.roster, now
	}
}

func (n *node) carry(p *parent, m *grlv1.Report, i int) {
	rate, counts := n.sum.Rate(i), n.played.Counts(i)
	wire.AppendRow(m, p.numbers.Number(i, n.cells.ID(i), &m.Names), rate, counts)
	*p.at(i) = sent{rate, counts}
}

// seal gives a report its sequence and says which directives were taken.
func (n *node) seal(p *parent, m *grlv1.Report) *grlv1.Report {
	p.sequence++
	p.reports[p.sequence%uint64(len(p.reports))] = receipt{p.sequence, n.released}
	m.Sequence = p.sequence
	m.ConfigEpoch, m.ConfigRevision = n.config.Epoch, n.config.Revision
	m.RefusedRevision, m.RefusedReason = n.refused.revision, n.refused.reason
	for name, d := range n.deciders {
		m.Taken = append(m.Taken, wire.Taken(name, d.taken))
	}
	p.confirmed.Sent(m)
	p.bytesOut += size(m)
	return m
}

func (p *parent) at(i int) *sent {
	for len(p.sent) <= i {
		p.sent = append(p.sent, sent{})
	}
	return &p.sent[i]
}

func (p *parent) last(i int) sent {
	if i < len(p.sent) {
		return p.sent[i]
	}
	return sent{}
}

// forget frees the indices of dead cells on this stream. Should one of the
// cells come back, its counts begin at 0.
func (p *parent) forget(dead map[int]limiter.CellID) {
	gone := make(map[limiter.CellID]bool, len(dead))
	for i, id := range dead {
		gone[id] = true
		p.numbers.Forget(i)
		if i < len(p.sent) {
			p.sent[i] = sent{}
		}
	}
	p.confirmed.Forget(func(id limiter.CellID) bool { return gone[id] })
}

// nodes returns the hosts for the fleet's view.
func (n *node) nodes(now time.Time) []*grlv1.Node {
	out := make([]*grlv1.Node, 0, len(n.hosts))
	bytes := 0
	for h := range n.hosts {
		node := &grlv1.Node{
			Role:            grlv1.Role_ROLE_CLIENT,
			Name:            h.hello.GetNode(),
			Zone:            n.zone,
			Region:          n.region,
			Version:         h.hello.GetVersion(),
			ConfigRevision:  h.last.GetConfigRevision(),
			RefusedRevision: h.last.GetRefusedRevision(),
			RefusedReason:   h.last.GetRefusedReason(),
			ReportAgeMs:     uint32(now.Sub(h.heard).Milliseconds()),
			DirectiveAgeMs:  uint32(n.directiveAge(h).Milliseconds()),
			BytesReceived:   h.bytesIn,
			BytesSent:       h.bytesOut,
		}
		const tag = 8 // bytes, at most, before each
		if bytes += proto.Size(node) + tag; bytes > rosterBytes {
			break
		}
		out = append(out, node)
	}
	return out
}

// hello returns what the node says of itself on a new stream to a controller.
func (n *node) hello(p *parent, name, version string, bootID uint64) *grlv1.Hello {
	p.saidEpoch = n.epoch
	return &grlv1.Hello{
		Role:        grlv1.Role_ROLE_AGGREGATOR,
		Node:        name,
		Zone:        n.zone,
		Region:      n.region,
		BootId:      bootID,
		Version:     version,
		AllServices: true,
		Heard:       wire.Heard(map[string]uint64{"global": n.epoch}),
		Confirmed:   p.confirmed.Message(false),
	}
}

// directiveAge returns how old the directive was that a host had taken, when it
// reported last; of several deciders, the oldest.
func (n *node) directiveAge(h *host) time.Duration {
	var age time.Duration
	for _, t := range h.last.GetTaken() {
		if d := n.deciders[t.GetDecider()]; d != nil {
			age = max(age, d.trail.Age(h.heard, wire.Stamp(t)))
		}
	}
	return age
}

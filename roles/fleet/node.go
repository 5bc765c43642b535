package fleet

import (
	"time"

	"grl/limiter/law"
)

// node is an aggregator or a controller: it sums what its children offer, says
// so to its parent, and passes on what is decided; or decides itself.
type node struct {
	*tree
	post
	up    bool
	cut   bool // nothing comes through between it and its parent
	began time.Duration
	life  uint32 // counts its starts
	warm  bool   // may publish

	kids   []*kid
	byKid  map[int32]*kid // by host, or -1 - index of the node
	groups []law.Zone     // one for each zone, or region, below a controller
	first  time.Duration  // its first host came; negative: not yet

	// Up.
	stream   uint32 // counts its streams to the parent
	sequence uint64
	receipts [64]receipt
	received uint32 // reports of children
	sent     []law.Rate
	moved    marks

	// Down.
	verdicts []verdict       // by cell
	held     []*law.Held     // by cell: its sum, while hosts claim too much of it
	since    []time.Duration // by cell: when a host first said a rate; 0: none did
	voices   []voice         // by decider
	waking   bool            // a nodeWakes is on its way
	wakes    time.Duration   // the earliest
}

// post is the place of a node, which its processes come and go in.
type post struct {
	index  int32
	name   string
	zone   int32 // of an aggregator
	region int32 // of all but the global controller
	parent int32 // -1: the global controller
}

// receipt says how many reports of its children a report of a node contains;
// or which of them a child's report was.
type receipt struct{ sequence, received uint32 }

// verdict is what a node knows of one cell.
type verdict struct {
	law.Verdict
	share float64
}

// marks is a set of cells, in the order in which they came.
type marks struct {
	list []int32
	in   []bool
}

func (m *marks) add(cell int32) {
	if !m.in[cell] {
		m.in[cell] = true
		m.list = append(m.list, cell)
	}
}

func (m *marks) clear() {
	for _, c := range m.list {
		m.in[c] = false
	}
	m.list = m.list[:0]
}

func newNode(t *tree, p post) *node {
	n := &node{tree: t, post: p, first: -1, byKid: make(map[int32]*kid)}
	cells := len(t.cells)
	n.verdicts = make([]verdict, cells)
	n.since = make([]time.Duration, cells)
	n.held = make([]*law.Held, cells)
	n.sent = make([]law.Rate, cells)
	n.moved.in = make([]bool, cells)
	n.voices = make([]voice, 1+len(t.regions))
	for d := range n.voices {
		n.voices[d].init(n, int8(d))
	}
	groups := 1
	if int(p.index) >= t.aggs {
		groups = max(len(t.zones), len(t.regions))
	}
	n.groups = make([]law.Zone, groups)
	for g := range n.groups {
		n.groups[g].Grow(cells)
	}
	return n
}

// mark says that the sum of a cell may have moved.
func (n *node) mark(cell int32) {
	if n.parent >= 0 {
		n.moved.add(cell)
	}
	if v := &n.voices[n.cells[cell].decider]; v.decides() {
		v.moved.add(cell)
	}
	n.wakeIn(law.Coalesce)
}

func (n *node) wakeIn(d time.Duration) {
	if at := n.now + d; !n.waking || at < n.wakes {
		n.waking, n.wakes = true, at
		n.sure(d, event{kind: nodeWakes, to: n.index, stream: n.life})
	}
}

// wake looks at what moved.
func (n *node) wake(ev *event) {
	if ev.stream != n.life || n.now < n.wakes {
		return
	}
	n.waking = false
	if n.parent >= 0 {
		n.sayJumps()
	}
	for d := range n.voices {
		v := &n.voices[d]
		if !v.decides() || len(v.moved.list) == 0 {
			continue
		}
		if wait := v.published + law.PublishGap - n.now; wait > 0 {
			n.wakeIn(wait)
			continue
		}
		v.decide()
	}
}

// tick ends a T.
func (n *node) tick(ev *event) {
	if ev.stream != n.life {
		return
	}
	n.sure(law.T, *ev)
	for _, k := range n.kids {
		silent := law.HostSilent
		if k.host < 0 {
			silent = law.ZoneKept
		}
		if !k.child.Out() && n.now-k.heard > silent {
			n.groups[k.group].Leave(&k.child)
			n.markAll(k)
		}
	}
	if n.parent >= 0 {
		n.sayAll()
	}
	for d := range n.voices {
		n.voices[d].renew()
	}
}

// rate returns what is offered to a cell below the node.
func (n *node) rate(cell int32) law.Rate {
	var sum law.Rate
	for g := range n.groups {
		n.groups[g].Settle(int(cell), &n.verdicts[cell].Verdict)
		r := n.groups[g].Rate(clock(n.now), int(cell))
		sum.Offered += r.Offered
		sum.Excess += r.Excess
		sum.Hosts += r.Hosts
	}
	return sum
}

// rejoin opens a new stream to the parent, which was told nothing on it.
func (n *node) rejoin(ev *event) {
	if ev.stream != n.life || n.cut || !n.nodes[n.parent].up {
		return
	}
	n.stream++
	n.sequence = 0
	n.receipts = [64]receipt{}
	clear(n.sent)
	n.sure(n.o.Links.Aggregator, event{kind: nodeJoins, to: n.parent, from: n.index, stream: n.stream})
	n.sayAll()
}

// mayReport reports whether the sums are complete enough to be sent.
func (n *node) mayReport() bool {
	if int(n.index) < n.aggs {
		return n.first >= 0 && n.now-n.first >= law.Handover
	}
	return n.mayPublish()
}

// mayPublish reports whether the sums are complete enough to decide on.
func (n *node) mayPublish() bool {
	if int(n.index) < n.aggs {
		return true // alone, it goes on with what it has
	}
	if !n.warm {
		n.warm = law.WarmedUp(n.now-n.began, n.missing())
	}
	return n.warm
}

// missing returns how many zones, or regions, have not sent sums.
func (n *node) missing() int {
	there := make([]bool, len(n.groups))
	for _, k := range n.kids {
		there[k.group] = there[k.group] || k.begun
	}
	missing := 0
	for _, other := range n.nodes {
		g := other.zone
		if int(other.index) >= n.aggs {
			g = other.region
		}
		if other.parent == n.index && !there[g] {
			there[g] = true
			missing++
		}
	}
	return missing
}

// sayJumps sends the sums that moved past the band.
func (n *node) sayJumps() {
	var rows []reportRow
	if n.mayReport() {
		for _, c := range n.moved.list {
			if r := n.rate(c); r.Moved(n.sent[c]) == law.Jumps {
				rows = append(rows, reportRow{number: uint32(c), rate: r})
			}
		}
	}
	n.moved.clear()
	if len(rows) > 0 {
		n.say(&report{rows: rows, rates: true})
	}
}

// sayAll sends all sums. The roles leave out those that stayed as they were;
// but their streams lose nothing.
func (n *node) sayAll() {
	n.moved.clear()
	if !n.mayReport() {
		n.say(&report{warming: true})
		return
	}
	m := &report{rates: true}
	for c := range n.cells {
		if r := n.rate(int32(c)); r != (law.Rate{}) || n.sent[c] != r {
			m.rows = append(m.rows, reportRow{number: uint32(c), rate: r})
		}
	}
	n.say(m)
}

func (n *node) say(m *report) {
	n.sequence++
	received := n.received
	if m.warming {
		received = 0
	}
	n.receipts[n.sequence%uint64(len(n.receipts))] = receipt{uint32(n.sequence), received}
	for _, r := range m.rows {
		n.sent[r.number] = r.rate
	}
	if n.cut {
		return
	}
	n.send(n.o.Links.Aggregator, event{
		kind: nodeReports, to: n.parent, from: n.index, stream: n.stream, number: n.sequence, report: m,
	})
}

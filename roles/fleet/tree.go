package fleet

import "grl/limiter/law"

// tree is the law of grl, and the minimal one: hosts, aggregators and
// controllers as the roles make them of limiter/law.
type tree struct {
	*engine
	minimal bool
	guard   float64
	leaves  []leaf  // by host
	nodes   []*node // children before their parents; the global controller is the last
	aggs    int     // the first so many nodes are aggregators, zone by zone
	epochs  []uint64
}

// report is what a host, or a node, says to the node above it.
type report struct {
	rows    []reportRow
	rates   bool // rates alone, counts stay as they were
	warming bool
}

type reportRow struct {
	number uint32 // index among the host's cells; of a node's report, the cell
	rate   law.Rate
	counts law.Counts
}

// orders is a directive on its way. Hosts of one service share it.
type orders struct {
	decider int8
	stamp   law.Stamp
	rows    []orderRow
}

type orderRow struct {
	number  uint32 // as in reports
	verdict law.Verdict
	share   float64 // the receiving node's, of what is offered
}

func newTree(e *engine, minimal bool) *tree {
	t := &tree{engine: e, minimal: minimal, guard: e.o.Guard, leaves: make([]leaf, len(e.hosts))}
	if minimal {
		t.guard = 0
	}
	t.plant()
	t.epochs = make([]uint64, 1+len(e.regions))
	for i := range t.leaves {
		t.leaves[i].node = e.hosts[i].aggregator
		t.sprout(&e.hosts[i])
	}
	return t
}

// plant makes the nodes.
func (t *tree) plant() {
	e := t.engine
	t.aggs = e.o.Zones * e.o.Aggregators
	regional := len(e.regions) > 1
	global := int32(t.aggs)
	if regional {
		global += int32(len(e.regions))
	}
	for i := range t.aggs {
		zone := int32(i / e.o.Aggregators)
		p := post{index: int32(i), name: e.zones[zone], zone: zone, region: e.region(zone), parent: global}
		if regional {
			p.parent = int32(t.aggs) + p.region
		}
		t.nodes = append(t.nodes, newNode(t, p))
	}
	if regional {
		for r := range e.regions {
			p := post{index: int32(len(t.nodes)), name: e.regions[r], region: int32(r), parent: global}
			t.nodes = append(t.nodes, newNode(t, p))
			t.nodes[p.index].voices[1+r].own = true
		}
	}
	t.nodes = append(t.nodes, newNode(t, post{index: global, name: "global", parent: -1}))
	t.nodes[global].voices[0].own = true
}

func (t *tree) start() {
	for _, n := range t.nodes {
		t.begin(n)
	}
	for i := range t.hosts {
		t.join(&t.hosts[i])
	}
}

func (t *tree) happen(ev *event) {
	switch ev.kind {
	case hostDirected:
		t.direct(&t.hosts[ev.to], ev)
		return
	case hostLost:
		if l := &t.leaves[ev.to]; l.stream == ev.stream {
			t.lose(&t.hosts[ev.to])
		}
		return
	}
	n := t.nodes[ev.to]
	if !n.up {
		if ev.kind == hostJoins {
			t.sure(t.o.Links.Host, event{kind: hostLost, to: ev.from, stream: ev.stream})
		}
		return
	}
	switch ev.kind {
	case hostJoins, nodeJoins:
		n.join(ev)
	case hostReports, nodeReports:
		n.report(ev)
	case hostCloses, nodeLost:
		n.leave(ev)
	case nodeDirected:
		n.take(ev)
	case nodeTicks:
		n.tick(ev)
	case nodeWakes:
		n.wake(ev)
	case nodeListens:
		n.listen(ev)
	case nodeRejoins:
		n.rejoin(ev)
	}
}

// fault breaks something, or makes it whole.
func (t *tree) fault(f Fault, broken bool) {
	for _, n := range t.nodes {
		if !t.hit(f, n) {
			continue
		}
		switch {
		case f.Kind == ZoneCut || f.Kind == RegionCut:
			n.cut = broken
			if !broken {
				t.sure(t.chance.below(2*redial), event{kind: nodeRejoins, to: n.index, stream: n.life})
			}
		case broken:
			t.end(n)
		default:
			t.begin(n)
		}
	}
}

// hit reports whether a fault is of that node.
func (t *tree) hit(f Fault, n *node) bool {
	aggregator := int(n.index) < t.aggs
	switch f.Kind {
	case AllDown:
		return true
	case ControllerDown:
		return n.parent < 0
	case RegionDown, RegionCut:
		return !aggregator && n.parent >= 0 && int(n.region) == f.Index
	case AggregatorDown:
		return int(n.index) == f.Index
	default:
		return aggregator && int(n.zone) == f.Index
	}
}

// end stops the process of a node: its streams close.
func (t *tree) end(n *node) {
	n.up = false
	for _, k := range n.kids {
		if k.host >= 0 {
			t.sure(t.o.Links.Host, event{kind: hostLost, to: k.host, stream: k.stream})
		}
	}
	if n.parent >= 0 {
		t.sure(t.o.Links.Aggregator, event{kind: nodeLost, to: n.parent, from: n.index, stream: n.stream})
	}
}

// begin starts the process of a node, which knows nothing but the names of
// those that were there before.
func (t *tree) begin(n *node) {
	fresh := newNode(t, n.post)
	fresh.stream, fresh.life, fresh.cut = n.stream, n.life+1, n.cut
	fresh.up, fresh.began = true, t.now
	for d := range n.voices {
		if n.voices[d].own {
			t.epochs[d]++
			fresh.voices[d].own = true
			fresh.voices[d].prepare()
			fresh.voices[d].taken = law.Stamp{Epoch: t.epochs[d]}
		}
	}
	t.nodes[n.index] = fresh
	t.sure(t.chance.below(law.T), event{kind: nodeTicks, to: n.index, stream: fresh.life})
	if fresh.parent >= 0 {
		t.sure(0, event{kind: nodeRejoins, to: n.index, stream: fresh.life})
	}
	for _, other := range t.nodes {
		if other.parent == n.index && other.up && t.now > 0 {
			t.sure(t.chance.below(2*redial), event{kind: nodeRejoins, to: other.index, stream: other.life})
		}
	}
}

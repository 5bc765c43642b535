package controller

import (
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"grl/limiter"
	"grl/limiter/law"
	grlv1 "grl/proto/grl/v1"
	"grl/proto/uplink"
	"grl/proto/wire"
)

// child is one aggregator, or one regional controller, for as long as its
// stream lives, and then for as long as its last sums count.
type child struct {
	hello  *grlv1.Hello
	zone   *zone
	detail *grlv1.Detail // its last one; nil: none yet
	wake   chan struct{} // something to send; capacity 1
	sums   law.Child
	ids    []limiter.CellID // number → cell it named
	before map[limiter.CellID]law.Counts

	sequence uint64          // of its last report; 0: none yet
	rates    uplink.Receipts // its reports among those of all
	counts   uplink.Receipts // of them, those that carried counts
	begun    bool            // sent sums
	beganAt  time.Time
	heard    time.Time
	countsAt time.Time   // of its last report that carried counts
	counted  []time.Time // by number: when its counts were last folded
	series   []*series   // by number: where the recorder keeps it
	at       []uint32    // by cell: the number of the child's for it, plus 1
	lost     time.Time   // its stream closed
	detailAt time.Time
	last     *grlv1.Report
	nodes    []*grlv1.Node // those below it
	nodesAt  time.Time

	numbers           wire.Numbers
	told              map[*voice]telling
	shares            []float32 // by cell: of what it is offered, as it was told
	config            *limiter.Configuration
	sizes             uint64 // version of the zones' sizes it was sent
	bytesIn, bytesOut uint64
	reports           uint64 // received
}

// superseded reports whether a later stream of the same boot was heard already.
// This one waited while the node stood still: its sender has given it up, and
// what it says was said since.
func (n *node) superseded(hello *grlv1.Hello) bool {
	key := keyOf(hello)
	latest := n.boots[key].stream
	for other := range n.children {
		if keyOf(other.hello) == key {
			latest = max(latest, other.hello.GetStream())
		}
	}
	return hello.GetStream() < latest
}

// join takes in an aggregator that said hello; before is what its last
// controller confirmed, and now the node's.
func (n *node) join(now time.Time, hello *grlv1.Hello, before map[limiter.CellID]law.Counts) *child {
	regional := hello.GetRole() == grlv1.Role_ROLE_CONTROLLER
	name := hello.GetZone()
	if regional {
		name = regionZone(hello.GetRegion())
	}
	z := n.zones[name]
	if z == nil {
		z = &zone{name: name, region: hello.GetRegion(), regional: regional}
		n.zones[z.name] = z
		n.order = append(n.order, z)
	}
	z.region = hello.GetRegion() // it may have been in another one before; see foreign
	key := keyOf(hello)
	for other := range n.children {
		if keyOf(other.hello) == key {
			n.leave(now, other) // its old stream has not been missed yet
		}
	}
	if b, ok := n.boots[key]; ok {
		before = b.counts // what this controller counted of it is exact
		delete(n.boots, key)
	}
	if !n.warm && z.live == 0 {
		n.missing[z.name] = true // never a sum without a zone that is there
	}
	c := &child{
		hello:  hello,
		zone:   z,
		wake:   make(chan struct{}, 1),
		before: before,
		heard:  now,
		told:   make(map[*voice]telling),
	}
	n.children[c] = true
	n.changed()
	n.heard = max(n.heard, wire.HeardEpoch(hello, n.own.name))
	if r := n.region; r != nil {
		r.below = max(r.below, wire.HeardEpoch(hello, globalDecider))
		r.epoch = max(r.epoch, r.below)
	}
	return c
}

// changed takes in that a child came or went.
func (n *node) changed() {
	n.resize()
	n.rosterChanged()
}

// rosterChanged has the parent told anew which nodes there are, and which zones are
// silent.
func (n *node) rosterChanged() {
	if n.region != nil {
		n.region.roster++
	}
}

// regionZone names a region with a controller of its own among the zones. No
// zone has such a name, since none has a space.
func regionZone(region string) string { return regionPrefix + region }

// isRegion reports whether a zone is a region with a controller of its own.
func isRegion(zone string) bool { return strings.HasPrefix(zone, regionPrefix) }

const regionPrefix = "region "

// hears reports whether the child is told what was decided of a cell: a regional
// controller decides those of its region and its zones itself.
func (c *child) hears(b *limiter.Bucket, id limiter.CellID) bool {
	if c.zone.regional {
		return b.Scope == limiter.Global
	}
	return id.Instance == b.Instance(c.zone.name, c.zone.region)
}

// leave takes in that the stream of an aggregator closed.
func (n *node) leave(now time.Time, c *child) {
	if !n.children[c] {
		return
	}
	delete(n.children, c)
	n.changed()
	counts := c.before // of cells that were not named on this stream
	for number, id := range c.ids {
		_, counts[id] = c.sums.Said(uint32(number))
	}
	n.boots[keyOf(c.hello)] = boot{left: now, stream: c.hello.GetStream(), counts: counts}
	if !c.begun {
		return // it had not sent sums
	}
	c.lost = now
	c.zone.live--
	c.zone.lost = now
	if c.zone.live > 0 {
		n.lose(now, c, law.Handover)
		return
	}
	// The last of its zone: the zone goes on counting with what it said last.
	c.zone.kept = append(c.zone.kept, c)
}

// lose takes an aggregator out of the sums whose hosts go to another one.
func (n *node) lose(now time.Time, c *child, within time.Duration) {
	c.zone.sum.Lose(now, &c.sums, within)
	for number := range c.sums.Names() {
		if i := c.sums.Cell(uint32(number)); i >= 0 {
			n.touch(i)
		}
	}
}

// report takes in a report of an aggregator. It returns an error if the report
// breaks the protocol, and false if it is older than one taken before.
func (n *node) report(now time.Time, c *child, m *grlv1.Report) (bool, error) {
	if m.GetSequence() <= c.sequence || !n.children[c] {
		return false, nil // its names too were taken
	}
	if err := n.named(c, m); err != nil {
		return false, fmt.Errorf("report %d of %q: %w", m.GetSequence(), c.hello.GetNode(), err)
	}
	n.take(now, c, m)
	if m.GetWarming() {
		return true, nil
	}
	if !c.begun {
		n.begin(now, c)
	}
	if c.sums.Out() {
		c.zone.sum.Return(&c.sums)
	}
	if m.GetRatesOnly() {
		n.foldRates(c, m)
		return true, nil
	}
	silent := forever // nothing tells since when it counts
	if !c.countsAt.IsZero() {
		silent = now.Sub(c.countsAt)
	}
	c.countsAt = now
	n.fold(now, c, m, silent)
	return true, nil
}

// directiveAge returns how old the directive was that a child had taken, when
// it reported last; of several deciders, the oldest.
func (n *node) directiveAge(c *child) time.Duration {
	var age time.Duration
	for _, v := range n.voices {
		stamp, _ := c.taken(v.name)
		age = max(age, v.trail.Age(c.heard, stamp))
	}
	return age
}

// taken returns the stamp of the decider's directive that the child took last,
// false if it took none.
func (c *child) taken(decider string) (law.Stamp, bool) {
	for _, t := range c.last.GetTaken() {
		if t.GetDecider() == decider {
			return wire.Stamp(t), true
		}
	}
	return law.Stamp{}, false
}

// take keeps what a report says of its sender.
func (n *node) take(now time.Time, c *child, m *grlv1.Report) {
	m.RefusedReason = wire.Reason(m.GetRefusedReason())
	c.sequence, c.heard, c.last = m.GetSequence(), now, m
	n.noticeUsedUp(c)
	if stamp, ok := c.taken(n.own.name); ok && stamp.Epoch < wire.MaxEpoch {
		n.heard = max(n.heard, stamp.Epoch)
	}
	n.received++
	c.rates.Note(c.sequence, n.received)
	if !m.GetRatesOnly() {
		c.counts.Note(c.sequence, n.received)
	}
	if len(m.GetNodes()) > 0 || m.GetNoNodes() {
		c.nodes, c.nodesAt = m.GetNodes(), now
		if c.zone.regional && !m.GetWarming() {
			n.hearSilences(now, c.zone, m.GetSilences())
		}
		n.resize()
	}
}

// follows returns the epoch of another controller whose directives the child
// takes instead of ours, 0 if it takes ours, or this node does not lead.
func (n *node) follows(c *child) uint64 {
	if !n.leads {
		return 0
	}
	if stamp, ok := c.taken(n.own.name); ok && stamp.Epoch > n.epoch && stamp.Epoch <= wire.MaxEpoch {
		return stamp.Epoch
	}
	return 0
}

// ahead returns this controller's epoch if the child has taken a directive of it
// that was not published yet: a controller whose store was lost, or restored,
// had the same one before. Else 0.
func (n *node) ahead(c *child) uint64 {
	if stamp, ok := c.taken(n.own.name); ok && n.leads && stamp.Epoch == n.epoch && stamp.Sequence > n.own.stamp.Sequence {
		return n.epoch
	}
	return 0
}

// farAhead is how many of the parent's directives a child that was elsewhere may
// know of that have not come here yet.
const farAhead = 100

// noticeUsedUp takes in which of the parent's directives a child has taken. One
// far ahead of what the parent says under the same epoch is of a controller that
// lost its store since: that epoch is used up.
func (n *node) noticeUsedUp(c *child) {
	if n.region == nil {
		return
	}
	r := n.region
	if s, ok := c.taken(globalDecider); ok && s.Epoch == r.taken.Epoch && s.Epoch < wire.MaxEpoch && s.Sequence > r.taken.Sequence+farAhead {
		r.below = max(r.below, s.Epoch+1)
		r.epoch = max(r.epoch, r.below)
	}
}

// usedUp reports whether receivers may refuse directives of this epoch because
// they have heard that one.
func (n *node) usedUp(heard uint64) bool {
	if !n.leads {
		return false // it takes an epoch above all once it leads
	}
	return heard > n.epoch || heard == n.epoch && n.own.stamp == (law.Stamp{})
}

// named takes in the cells that a report names, and checks its columns.
func (n *node) named(c *child, m *grlv1.Report) error {
	from := len(c.ids)
	var err error
	if c.ids, err = wire.Named(c.ids, m.GetNames()); err != nil {
		return err
	}
	for number, id := range c.ids[from:] {
		i, _ := n.cell(id, c.zone)
		c.sums.Name(i, c.before[id])
		delete(c.before, id) // named again, it has begun at 0
		c.counted = append(c.counted, time.Time{})
		c.series = append(c.series, nil)
		c.bind(i, uint32(from+number))
	}
	c.zone.sum.Grow(n.cells.Len())
	return wire.CheckReport(m, len(c.ids))
}

// fold takes in the rows of a report of a child that had been silent for so
// long before it.
func (n *node) fold(now time.Time, c *child, m *grlv1.Report, silent time.Duration) {
	for row, number := range m.GetCell() {
		i, ok := n.known(c, number)
		if !ok {
			continue
		}
		rate, counts := wire.Row(m, row)
		// A cell that a child did not carry for longer had not moved at its
		// last T, so what it now adds was counted since.
		since := min(now.Sub(c.counted[number]), max(silent, law.T))
		if c.counted[number].IsZero() && now.Sub(c.beganAt) < law.T {
			since = forever // all of a stream's first state, in several reports
		}
		more := c.zone.sum.Fold(&c.sums, number, rate, counts, since > law.HostSilent)
		if more != (law.Counts{}) { // a report of a jump carries counts sent before
			c.counted[number] = now
			n.flows[i].add(n.ticks, more)
			if n.stage != nil {
				n.stage.watch.count(c.ids[number].Bucket, n.stage.reached[c.zone.name], more)
			}
			if n.region != nil {
				n.region.played.Add(i, more, n.region.played.Share(now, since))
			}
			if at := c.series[number]; at == nil || at.closed {
				id := c.ids[number]
				id.Class = ""
				c.series[number] = n.recorder.series(place{id, c.zone.name})
				n.judge(c.series[number], n.bucket(id.Bucket, c.zone), id, c.zone)
			}
			c.series[number].add(now, since, more)
		}
		n.touch(i)
	}
}

// foldRates takes in the rows of a report that says rates only. It leaves what
// was counted alone, and with it the flow and the history.
func (n *node) foldRates(c *child, m *grlv1.Report) {
	for row, number := range m.GetCell() {
		i, ok := n.known(c, number)
		if !ok {
			continue
		}
		rate, _ := wire.Row(m, row)
		_, counts := c.sums.Said(number)
		c.zone.sum.Fold(&c.sums, number, rate, counts, false)
		n.touch(i)
	}
}

// known returns the cell behind a number of the child's, false if the child's
// configuration is older or newer than ours.
func (n *node) known(c *child, number uint32) (int, bool) {
	if i := c.sums.Cell(number); i >= 0 {
		return i, true
	}
	i, ok := n.cell(c.ids[number], c.zone)
	if !ok {
		return -1, false
	}
	c.zone.sum.Grow(n.cells.Len())
	c.sums.Rename(number, i)
	c.bind(i, number)
	return i, true
}

// bind remembers under which number the child reports a cell.
func (c *child) bind(cell int, number uint32) {
	if cell < 0 {
		return
	}
	for len(c.at) <= cell {
		c.at = append(c.at, 0)
	}
	c.at[cell] = number + 1
}

// begin takes in that an aggregator sends sums: its zone is there, and if the
// last sums of lost ones still counted, its hosts are coming over.
func (n *node) begin(now time.Time, c *child) {
	c.begun, c.beganAt = true, now
	c.zone.live++
	c.zone.lost = time.Time{}
	delete(n.missing, c.zone.name)
	for _, lost := range c.zone.kept {
		n.lose(now, lost, law.Rejoin)
	}
	c.zone.kept = nil
}

// share returns which share, in [0, 1], the child has of the rate that is
// offered to a cell in all.
func (c *child) share(cell int, offeredRPS float64) float64 {
	if offeredRPS == 0 || cell >= len(c.at) || c.at[cell] == 0 {
		return 0
	}
	number := c.at[cell] - 1
	if c.sums.Cell(number) != cell {
		return 0 // the index went to another cell
	}
	own, _ := c.sums.Said(number)
	return min(1, own.Offered.RPS()/offeredRPS)
}

// forget empties a cell before its index is given to another one.
func (c *child) forget(cell int) {
	c.numbers.Forget(cell)
	if cell < len(c.shares) {
		c.shares[cell] = 0
	}
}

// toldShare returns which share the child was told of a cell last.
func (c *child) toldShare(cell int) *float32 {
	for len(c.shares) <= cell {
		c.shares = append(c.shares, 0)
	}
	return &c.shares[cell]
}

// configurationFor returns the configuration message a child lacks, nil if it
// has all it asked for.
func (n *node) configurationFor(c *child) *grlv1.Configuration {
	next := n.configuration(c.zone)
	held := c.config != nil && !next.Version().After(c.config.Version())
	if !n.leads || !next.Any() || held && c.sizes == n.sizes.version {
		return nil
	}
	wanted := wire.Filter(next, c.hello)
	var m *grlv1.Configuration
	if c.config == nil {
		m = wire.FromConfiguration(wanted)
	} else {
		m = wire.Change(c.config, wanted)
	}
	m.Zones = n.sizes.zones
	c.config, c.sizes = wanted, n.sizes.version
	return m
}

// size returns the bytes of a message, for the fleet's view.
func size(m proto.Message) uint64 { return uint64(proto.Size(m)) }

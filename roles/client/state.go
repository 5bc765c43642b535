package client

import (
	"fmt"
	"slices"
	"time"

	"grl/limiter"
	"grl/limiter/law"
	grlv1 "grl/proto/grl/v1"
	"grl/proto/wire"
)

// state is what the client knows: the estimate of each cell, and what was
// decided of it. It moves only through its methods, each with the time as an
// argument, under the lock of Client.
type state struct {
	limiter     *limiter.Limiter
	hold, decay time.Duration

	zone    string
	region  string
	config  *limiter.Configuration
	buckets map[string]*limiter.Bucket // full name → bucket of config
	shares  bool                       // a bucket divides its limit among callers
	refused refusal

	disabledHere bool // by the switch file

	table    law.Cells
	cells    []cell        // by index of table
	elapsed  time.Duration // of the last interval measured; 0: none yet
	deciders map[string]*decider
	welcomed map[limiter.CellID]float64 // ratios with which new callers begin
	totals   totals
	traffic  traffic
	budget   law.Budget // of event reports

	// Of what was kept on disk last.
	keptDrops bool // something was dropped
	keptAt    time.Time

	// Of the stream.
	answered  bool      // by the aggregator
	hotAt     time.Time // last report of hot cells
	numbers   wire.Numbers
	names     []limiter.CellID // number → cell the aggregator named
	sequence  uint64
	confirmed wire.Confirmed
}

// traffic counts the messages since the start.
type traffic struct{ periodic, sudden, directives uint64 }

// refusal is a configuration that the client could not take.
type refusal struct {
	revision uint64
	reason   string
}

// globalDecider names the decider of the whole fleet.
const globalDecider = "global"

// decider is one controller, or region, whose directives the client takes.
type decider struct {
	taken     law.Stamp
	heard     time.Time // its directives' age counts from here
	contained uint64    // of the last report of this stream that its sums contain; 0: none
}

// cell is one cell of the limiter.
type cell struct {
	host    law.Host
	offered float64        // in the last interval measured
	counts  limiter.Counts // found by the last measure
	sent    limiter.Counts // heard by the aggregator last on this stream
	decider *decider       // nil: nothing decided yet
}

func newState(l *limiter.Limiter, c Config) state {
	return state{
		limiter:  l,
		hold:     c.Hold,
		decay:    c.Decay,
		zone:     c.Zone,
		region:   c.Region,
		config:   &limiter.Configuration{},
		deciders: make(map[string]*decider),
		totals:   newTotals(),
	}
}

// cell returns the index of a cell.
func (s *state) cell(id limiter.CellID) int {
	i := s.table.Index(id)
	for len(s.cells) <= i {
		s.cells = append(s.cells, cell{})
	}
	return i
}

// measure takes in what was counted of each cell since the last call, elapsed
// ago.
func (s *state) measure(now time.Time, elapsed time.Duration) {
	if elapsed <= 0 {
		return
	}
	s.elapsed = elapsed
	s.limiter.Collect(now)
	for c := range s.limiter.Cells() {
		_, known := s.table.Find(c.ID())
		at := &s.cells[s.cell(c.ID())]
		capped := limiter.IsCap(c.ID().Bucket)
		if capped && !known {
			at.host.Begin() // its service is under load already
		}
		counts := c.Counts()
		if counts.Offered < at.counts.Offered {
			at.counts = limiter.Counts{} // the limiter forgot the cell and began anew
		}
		more := limiter.Counts{
			Offered:       counts.Offered - at.counts.Offered,
			Dropped:       counts.Dropped - at.counts.Dropped,
			ShadowDropped: counts.ShadowDropped - at.counts.ShadowDropped,
		}
		at.counts, at.offered = counts, float64(more.Offered)
		if more.Offered > 0 || at.host.Rate() > 0 || capped {
			at.host.Step(at.offered, elapsed)
		}
		if more != (limiter.Counts{}) {
			s.totals.add(c.Bucket(), c.ID(), more)
		}
	}
}

// apply writes the ratio of each cell into the limiter: that of its directive,
// bridged by what the host knows, less what the directive's age takes off.
func (s *state) apply(now time.Time) {
	newcomers := s.welcome(now)
	for c := range s.limiter.Cells() {
		var at *cell
		if i, ok := s.table.Find(c.ID()); ok && s.cells[i].decider != nil {
			at = &s.cells[i]
		}
		switch b := c.Bucket(); {
		case b.Cap != nil && at != nil:
			applyCap(now, c, s.ratio(at), true)
		case b.Cap != nil:
			applyCap(now, c, 0, false)
		case at == nil:
			s.applyNewcomer(c, newcomers)
		default:
			if holds := s.holds(b, now.Sub(at.decider.heard)); holds > 0 {
				c.SetRatio(s.ratio(at) * holds)
			} else {
				c.SetOpen()
			}
		}
	}
}

// ratio returns the drop ratio of a cell of which something is decided, at
// whichever age.
func (s *state) ratio(at *cell) float64 {
	if s.elapsed == 0 {
		return law.Ratio(at.host.Verdict.Admit)
	}
	return at.host.Ratio(at.offered, s.elapsed, at.decider.contained, law.Guard)
}

// holds returns the share of a bucket's ratios that still holds at an age of
// their directive.
func (s *state) holds(b *limiter.Bucket, age time.Duration) float64 {
	if b.HoldOnSilence {
		return 1
	}
	return law.Fading(age, s.hold, s.decay)
}

// install takes a configuration. It reports whether it did; not taking an older
// one is no error.
func (s *state) install(m *grlv1.Configuration) (bool, error) {
	if s.config.Version().After(wire.Version(m)) {
		return false, nil // from an aggregator that is behind
	}
	c, err := wire.ToConfiguration(s.config, m)
	if err == nil {
		err = s.limiter.Install(*c)
	}
	if err != nil {
		s.refused = refusal{m.GetRevision(), wire.Reason(err.Error())}
		return false, err
	}
	s.use(c)
	s.refused = refusal{}
	s.forget()
	return true, nil
}

// use makes c the configuration held.
func (s *state) use(c *limiter.Configuration) {
	s.config, s.buckets, s.shares = c, c.ByName(), false
	for _, b := range s.buckets {
		s.shares = s.shares || b.Share == limiter.MaxMin
	}
}

// forget drops the cells that the configuration no longer has.
func (s *state) forget() {
	s.drop(func(id limiter.CellID, _ *cell) bool { return !s.known(id) })
}

// sweep drops the cells that the limiter has forgotten and of which nothing is
// decided but to admit.
func (s *state) sweep() {
	live := make(map[limiter.CellID]bool)
	for c := range s.limiter.Cells() {
		live[c.ID()] = true
	}
	s.drop(func(id limiter.CellID, at *cell) bool {
		return !live[id] && at.host.Rate() == 0 && (at.decider == nil || law.Ratio(at.host.Verdict.Admit) == 0)
	})
}

// drop forgets cells. Should one come back, its counts begin at 0.
func (s *state) drop(dead func(limiter.CellID, *cell) bool) {
	gone := make(map[limiter.CellID]bool)
	s.table.Each(func(i int, id limiter.CellID) {
		if dead(id, &s.cells[i]) {
			gone[id] = true
			s.table.Forget(i)
			s.numbers.Forget(i)
			s.cells[i] = cell{}
		}
	})
	if len(gone) > 0 {
		s.confirmed.Forget(func(id limiter.CellID) bool { return gone[id] })
	}
}

// has reports whether the configuration has a service.
func (s *state) has(service string) bool {
	return slices.ContainsFunc(s.config.Services, func(c limiter.Service) bool { return c.Name == service })
}

// known reports whether the configuration has the cell.
func (s *state) known(id limiter.CellID) bool {
	b := s.buckets[id.Bucket]
	return b != nil && b.HasCell(id, s.zone, s.region)
}

// direct takes a directive. It returns an error if the directive breaks the
// protocol; one older than the last of its decider changes nothing.
func (s *state) direct(now time.Time, m *grlv1.Directive) error {
	var err error
	if s.names, err = wire.Named(s.names, m.GetNames()); err == nil {
		err = wire.CheckDirective(m, len(s.names))
	}
	if err != nil {
		return fmt.Errorf("directive %d.%d: %w", m.GetEpoch(), m.GetSequence(), err)
	}
	d := s.decider(m.GetDecider())
	if d == nil {
		return nil
	}
	stamp := wire.Stamp(m)
	if d.taken.After(stamp) {
		return nil
	}
	d.taken, d.heard, d.contained = stamp, now, m.GetReportSequence()
	s.traffic.directives++
	if m.GetDecider() == globalDecider {
		s.limiter.SetSalt(stamp.Salt())
	}
	s.confirmed.Confirm(m.GetCountedSequence())
	hot := make(map[uint32]bool, len(m.GetHot()))
	for _, number := range m.GetHot() {
		hot[number] = true
	}
	for row, number := range m.GetCell() {
		id := s.names[number]
		if !s.known(id) {
			continue // of a bucket this client does not have
		}
		at := &s.cells[s.cell(id)]
		at.decider = d
		at.host.Verdict = law.Verdict{
			Admit:   float64(m.GetAdmit()[row]),
			Offered: law.MicroRPS(wire.At(m.GetOfferedMicroRps(), row)).RPS(),
			Hosts:   float64(wire.At(m.GetHosts(), row)),
			Hot:     hot[number],
		}
	}
	return nil
}

// decider returns the decider of a name, nil if none that has it decides here:
// without an end to them they would be kept, and told of in each report.
func (s *state) decider(name string) *decider {
	if name != globalDecider && name != s.region {
		return nil
	}
	d := s.deciders[name]
	if d == nil {
		d = &decider{}
		s.deciders[name] = d
	}
	return d
}

// heard returns the highest epoch heard of each decider.
func (s *state) heard() map[string]uint64 {
	epochs := map[string]uint64{globalDecider: s.config.Epoch}
	for name, d := range s.deciders {
		epochs[name] = max(epochs[name], d.taken.Epoch)
	}
	return epochs
}

// reopen begins a new stream, with new numbers and sequences.
func (s *state) reopen() {
	s.numbers, s.names, s.sequence = wire.Numbers{}, nil, 0
	s.confirmed.Reopen()
	for i := range s.cells {
		s.cells[i].host.Reopen()
		s.cells[i].sent = limiter.Counts{}
	}
	for _, d := range s.deciders {
		d.contained = 0
	}
}

// urgent reports whether some cell's rate must be reported before the next T.
func (s *state) urgent(now time.Time) bool {
	hot := now.Sub(s.hotAt) >= law.HotT
	for i := range s.cells {
		if h := &s.cells[i].host; h.Event() || hot && h.Verdict.Hot && h.Rate() != h.Sent() {
			return true
		}
	}
	return false
}

// sudden returns a report of the rates of the cells that are urgent, nil if
// there is none or the budget does not allow it.
func (s *state) sudden(now time.Time) *grlv1.Report {
	hot := now.Sub(s.hotAt) >= law.HotT-law.Delta/2
	event := s.event() && s.budget.Take(now)
	m := &grlv1.Report{RatesOnly: true}
	s.table.Each(func(i int, id limiter.CellID) {
		h := &s.cells[i].host
		switch {
		case wire.Full(m): // the rest goes with the next one
		case event && h.Event(), hot && h.Verdict.Hot && h.Rate() != h.Sent():
			s.carry(m, i, id, law.Counts{})
		}
	})
	if len(m.Cell) == 0 {
		return nil
	}
	if hot {
		s.hotAt = now
	}
	return s.seal(m)
}

func (s *state) event() bool {
	for i := range s.cells {
		if s.cells[i].host.Event() {
			return true
		}
	}
	return false
}

// carry adds a cell to the report that goes out next.
func (s *state) carry(m *grlv1.Report, i int, id limiter.CellID, counts law.Counts) {
	at := &s.cells[i]
	at.host.Reported(s.sequence + 1)
	rate := law.Rate{Offered: law.Micro(at.host.Rate())} // the aggregator knows it is one host's
	wire.AppendRow(m, s.numbers.Number(i, id, &m.Names), rate, counts)
}

// reports returns reports of all cells whose rate or counts moved; at least
// one, since a report renews all.
func (s *state) reports() []*grlv1.Report {
	var out []*grlv1.Report
	m := &grlv1.Report{}
	s.table.Each(func(i int, id limiter.CellID) {
		at := &s.cells[i]
		if at.counts == at.sent && law.RateMoved(at.host.Rate(), at.host.Sent()) == law.Still {
			return
		}
		if wire.Full(m) {
			out = append(out, s.seal(m))
			m = &grlv1.Report{}
		}
		at.sent = at.counts
		s.carry(m, i, id, law.Counts{
			Offered:       at.counts.Offered,
			Dropped:       at.counts.Dropped,
			ShadowDropped: at.counts.ShadowDropped,
		})
	})
	return append(out, s.seal(m))
}

// seal gives a report its sequence and says what was taken.
func (s *state) seal(m *grlv1.Report) *grlv1.Report {
	s.sequence++
	m.Sequence = s.sequence
	if m.GetRatesOnly() {
		s.traffic.sudden++
	} else {
		s.traffic.periodic++
	}
	m.ConfigEpoch, m.ConfigRevision, m.ConfigSerial = s.config.Epoch, s.config.Revision, s.config.Serial
	m.RefusedRevision, m.RefusedReason = s.refused.revision, s.refused.reason
	m.DisabledHere = s.disabledHere
	for name, d := range s.deciders {
		m.Taken = append(m.Taken, wire.Taken(name, d.taken))
	}
	s.confirmed.Sent(m)
	return m
}

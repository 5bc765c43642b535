package aggregator

import (
	"fmt"
	"time"

	"grl/limiter"
	"grl/limiter/law"
	grlv1 "grl/proto/grl/v1"
	"grl/proto/statefile"
	"grl/proto/uplink"
	"grl/proto/wire"
)

// tester is a test, or a rapid one.
type tester interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

// rig is a node with a parent, in virtual steps.
type rig struct {
	t      tester
	n      *node
	p      *uplink.Parent
	heard  *listener // the parent
	now    time.Time
	stamp  *uint64                   // of the last directive
	number map[limiter.CellID]uint32 // of directives on the parent's stream
}

func newRig(t tester, c *limiter.Configuration) *rig {
	r := &rig{t: t, n: newNode("z1", "r1", law.Autonomy), p: uplink.NewParent(), heard: newListener(), stamp: new(uint64), now: time.Unix(1e9, 0), number: make(map[limiter.CellID]uint32)}
	r.n.parents = append(r.n.parents, r.p)
	if c != nil {
		r.n.install(c)
	}
	return r
}

// up has the node report all to its parent, once all its hosts counted is
// played out.
func (r *rig) up() []*grlv1.Report {
	for range 2 {
		r.pass(law.T)
		r.n.tick(r.now)
	}
	return r.full()
}

// full has the node report all that differs, and jumps what jumped.
func (r *rig) full() []*grlv1.Report  { return r.heard.hear(r.t, r.p.Full(r.now, r.n)) }
func (r *rig) jumps() []*grlv1.Report { return r.heard.hear(r.t, r.p.Jumps(r.n)) }

func (r *rig) pass(d time.Duration) { r.now = r.now.Add(d) }

// revision returns a configuration with so many buckets pay/b0, pay/b1, ...,
// and pay/each, which is per caller.
func revision(number uint64, buckets int) *limiter.Configuration {
	s := limiter.Service{Name: "pay"}
	for i := range buckets {
		s.Buckets = append(s.Buckets, limiter.Bucket{
			Service: "pay", Name: fmt.Sprintf("b%d", i), LimitRPS: 100,
			Match: limiter.Match{Procedure: limiter.Pattern(fmt.Sprintf("p%d", i))},
		})
	}
	s.Buckets = append(s.Buckets, limiter.Bucket{Service: "pay", Name: "each", LimitRPS: 10, PerCaller: true, Match: limiter.Match{Caller: "*"}})
	return &limiter.Configuration{Epoch: 1, Revision: number, Services: []limiter.Service{s}}
}

func cellOf(i int) limiter.CellID { return limiter.CellID{Bucket: fmt.Sprintf("pay/b%d", i)} }

// direct has the parent say what it decided.
func (r *rig) direct(admits map[limiter.CellID]float32) bool {
	*r.stamp++
	return r.directStamped(law.Stamp{Epoch: 1, Sequence: *r.stamp}, admits)
}

func (r *rig) directStamped(s law.Stamp, admits map[limiter.CellID]float32) bool {
	r.t.Helper()
	var rows []statefile.Row
	for id, admit := range admits {
		rows = append(rows, statefile.Row{Cell: id, Verdict: law.Verdict{Admit: float64(admit)}})
	}
	return r.say(globalDecider, s, rows...)
}

// say has the parent say what a decider decided.
func (r *rig) say(decider string, s law.Stamp, rows ...statefile.Row) bool {
	r.t.Helper()
	m := &grlv1.Directive{Decider: decider, Epoch: s.Epoch, Sequence: s.Sequence, Step: s.Step, ReportSequence: r.heard.sequence, CountedSequence: r.heard.counted}
	for _, row := range rows {
		number, ok := r.number[row.Cell]
		if !ok {
			number = uint32(len(r.number))
			r.number[row.Cell] = number
			m.Names = append(m.Names, wire.FromCellID(row.Cell))
		}
		wire.AppendVerdict(m, number, row.Verdict, row.Share)
	}
	if err := r.p.Named(m); err != nil {
		r.t.Fatal(err)
	}
	return r.n.direct(r.now, r.p, m)
}

// listener is what a controller knows from the reports it got.
type listener struct {
	ids      []limiter.CellID
	rates    map[limiter.CellID]law.Rate
	counts   map[limiter.CellID]law.Counts
	sequence uint64
	counted  uint64 // the last one with counts
}

func newListener() *listener {
	return &listener{rates: make(map[limiter.CellID]law.Rate), counts: make(map[limiter.CellID]law.Counts)}
}

func (l *listener) hear(t tester, reports []*grlv1.Report) []*grlv1.Report {
	t.Helper()
	for _, m := range reports {
		if m.GetSequence() != l.sequence+1 {
			t.Fatalf("report %d after %d", m.GetSequence(), l.sequence)
		}
		l.sequence++
		var err error
		if l.ids, err = wire.Named(l.ids, m.GetNames()); err == nil {
			err = wire.CheckReport(m, len(l.ids))
		}
		if err != nil {
			t.Fatalf("report %d: %v", m.GetSequence(), err)
		}
		for row, number := range m.GetCell() {
			rate, counts := wire.Row(m, row)
			l.rates[l.ids[number]] = rate
			if !m.GetRatesOnly() {
				l.counts[l.ids[number]] = counts
			}
		}
		if !m.GetRatesOnly() {
			l.counted = l.sequence
		}
	}
	return reports
}

// speaker says what a client says, as the client role does.
type speaker struct {
	r         *rig
	hello     *grlv1.Hello
	h         *host
	numbers   wire.Numbers
	confirmed wire.Confirmed
	names     []limiter.CellID // of directives
	sequence  uint64
	admits    map[limiter.CellID]float32 // taken
	verdicts  map[limiter.CellID]law.Verdict
	taken     map[string]law.Stamp // decider → its last directive
	refused   int                  // directives that were older
	revision  uint64               // of the configuration it holds
}

func newSpeaker(name string, boot uint64) *speaker {
	return &speaker{
		hello:    &grlv1.Hello{Role: grlv1.Role_ROLE_CLIENT, Node: name, Zone: "z1", Region: "r1", BootId: boot, Services: []string{"pay"}},
		admits:   make(map[limiter.CellID]float32),
		verdicts: make(map[limiter.CellID]law.Verdict),
		taken:    make(map[string]law.Stamp),
	}
}

// join opens a new stream.
func (s *speaker) join(r *rig) {
	r.t.Helper()
	s.confirmed.Reopen()
	s.r, s.numbers, s.names, s.sequence = r, wire.Numbers{}, nil, 0
	s.hello.Confirmed = s.confirmed.Message(true)
	before, err := wire.ConfirmedCounts(s.hello.Confirmed)
	if err != nil {
		r.t.Fatal(err)
	}
	s.h = r.n.join(r.now, s.hello, before)
}

// said is what a host reports of one cell.
type said struct {
	cell   int
	rps    float64
	counts law.Counts
}

func (s *speaker) message(rows ...said) *grlv1.Report { return s.compose(false, rows) }

func (s *speaker) compose(ratesOnly bool, rows []said) *grlv1.Report {
	s.sequence++
	m := &grlv1.Report{Sequence: s.sequence, RatesOnly: ratesOnly}
	for decider, stamp := range s.taken {
		m.Taken = append(m.Taken, wire.Taken(decider, stamp))
	}
	for _, row := range rows {
		rate := law.Rate{Offered: law.Micro(row.rps)}
		wire.AppendRow(m, s.numbers.Number(row.cell, cellOf(row.cell), &m.Names), rate, row.counts)
	}
	s.confirmed.Sent(m)
	return m
}

// report sends a report and fails if it is not taken.
func (s *speaker) report(rows ...said) {
	s.r.t.Helper()
	if taken, err := s.r.n.report(s.r.now, s.h, s.message(rows...)); err != nil || !taken {
		s.r.t.Fatalf("report %d: taken %v, error %v", s.sequence, taken, err)
	}
}

// event sends a report of rates only and fails if it is not taken.
func (s *speaker) event(rows ...said) {
	s.r.t.Helper()
	if taken, err := s.r.n.report(s.r.now, s.h, s.compose(true, rows)); err != nil || !taken {
		s.r.t.Fatalf("event %d: taken %v, error %v", s.sequence, taken, err)
	}
}

// hear takes what the node has for the host.
func (s *speaker) hear() []*grlv1.Directive {
	s.r.t.Helper()
	if c := s.r.n.configurationFor(s.h); c != nil {
		s.revision = c.GetRevision()
	}
	all := s.r.n.directives(s.r.now, s.h)
	for _, m := range all {
		var err error
		if s.names, err = wire.Named(s.names, m.GetNames()); err == nil {
			err = wire.CheckDirective(m, len(s.names))
		}
		if err != nil {
			s.r.t.Fatal(err)
		}
		if stamp := wire.Stamp(m); s.taken[m.GetDecider()].After(stamp) {
			s.refused++
			continue
		} else {
			s.taken[m.GetDecider()] = stamp
		}
		for row, v := range wire.Verdicts(m) {
			id := s.names[m.GetCell()[row]]
			s.admits[id], s.verdicts[id] = m.GetAdmit()[row], v
		}
		s.confirmed.Confirm(m.GetCountedSequence())
	}
	return all
}

func (r *rig) rps(cell int) float64 {
	i, ok := r.n.cells.Find(cellOf(cell))
	if !ok {
		return 0
	}
	return r.n.sum.Rate(i).Offered.RPS()
}

func (r *rig) counts(cell int) law.Counts {
	i, ok := r.n.cells.Find(cellOf(cell))
	if !ok {
		return law.Counts{}
	}
	return r.n.sum.Counts(i)
}

// appendRow adds a row of a cell that is none of pay/b0, pay/b1 … to a report.
func appendRow(s *speaker, m *grlv1.Report, index int, id limiter.CellID, rate law.Rate, counts law.Counts) {
	wire.AppendRow(m, s.numbers.Number(index, id, &m.Names), rate, counts)
}

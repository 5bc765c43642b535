package controller

import (
	"fmt"
	"time"

	"grl/limiter"
	"grl/limiter/law"
	grlv1 "grl/proto/grl/v1"
	"grl/proto/wire"
)

// tester is a test, or a rapid one.
type tester interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

// rig is a node in virtual steps.
type rig struct {
	t   tester
	n   *node
	now time.Time
}

func newRig(t tester, c *limiter.Configuration, zones ...string) *rig {
	r := &rig{t: t, now: time.Unix(1_000_000_000, 0)}
	r.start(1, c, zones...)
	return r
}

// start is a start of the controller.
func (r *rig) start(epoch uint64, c *limiter.Configuration, zones ...string) {
	r.n = newNode(r.now, zones)
	r.n.lead(epoch)
	c.Epoch = epoch
	r.n.install(c, nil, nil)
}

func (r *rig) pass(d time.Duration) { r.now = r.now.Add(d) }

// warm has the controller decide.
func (r *rig) warm() { r.n.warm = true }

func configuration(revision uint64, buckets int) *limiter.Configuration {
	s := limiter.Service{Name: "pay"}
	for i := range buckets {
		s.Buckets = append(s.Buckets, limiter.Bucket{
			Service: "pay", Name: fmt.Sprintf("b%d", i), LimitRPS: 1000,
			Match: limiter.Match{Procedure: limiter.Pattern(fmt.Sprint("p", i))},
		})
	}
	s.Buckets = append(s.Buckets,
		limiter.Bucket{Service: "pay", Name: "each", LimitRPS: 10, PerCaller: true, Match: limiter.Match{Caller: "*"}},
		limiter.Bucket{Service: "pay", Name: "zonal", LimitRPS: 500, Scope: limiter.Zone})
	return &limiter.Configuration{Epoch: 1, Revision: revision, Services: []limiter.Service{s}}
}

func cellOf(i int) limiter.CellID { return limiter.CellID{Bucket: fmt.Sprintf("pay/b%d", i)} }

// speaker says what an aggregator says.
type speaker struct {
	r         *rig
	hello     *grlv1.Hello
	c         *child
	numbers   wire.Numbers
	confirmed wire.Confirmed
	indices   map[limiter.CellID]int
	ids       []limiter.CellID // of directives
	sequence  uint64
	admits    map[limiter.CellID]float32 // taken
	shares    map[limiter.CellID]float32
}

func newSpeaker(name, zone string, boot uint64) *speaker {
	return &speaker{
		hello:   &grlv1.Hello{Role: grlv1.Role_ROLE_AGGREGATOR, Node: name, Zone: zone, Region: "r1", BootId: boot, AllServices: true},
		indices: make(map[limiter.CellID]int),
		admits:  make(map[limiter.CellID]float32),
		shares:  make(map[limiter.CellID]float32),
	}
}

func (s *speaker) join(r *rig) {
	r.t.Helper()
	s.confirmed.Reopen()
	s.r, s.numbers, s.ids, s.sequence = r, wire.Numbers{}, nil, 0
	before, err := wire.ConfirmedCounts(s.confirmed.Message(false))
	if err != nil {
		r.t.Fatal(err)
	}
	s.c = r.n.join(r.now, s.hello, before)
}

// said is what an aggregator reports of one cell.
type said struct {
	id     limiter.CellID
	rps    float64
	counts law.Counts
}

func (s *speaker) message(rows ...said) *grlv1.Report {
	s.sequence++
	m := &grlv1.Report{Sequence: s.sequence}
	for _, row := range rows {
		if _, ok := s.indices[row.id]; !ok {
			s.indices[row.id] = len(s.indices)
		}
		rate := law.Rate{Offered: law.Micro(row.rps), Hosts: 2}
		wire.AppendRow(m, s.numbers.Number(s.indices[row.id], row.id, &m.Names), rate, row.counts)
	}
	s.confirmed.Sent(m)
	return m
}

func (s *speaker) report(rows ...said) {
	s.r.t.Helper()
	if taken, err := s.r.n.report(s.r.now, s.c, s.message(rows...)); err != nil || !taken {
		s.r.t.Fatalf("report %d: taken %v, error %v", s.sequence, taken, err)
	}
}

func (s *speaker) hear() []*grlv1.Directive {
	s.r.t.Helper()
	all := s.r.n.directives(s.c)
	for _, m := range all {
		var err error
		if s.ids, err = wire.Named(s.ids, m.GetNames()); err == nil {
			err = wire.CheckDirective(m, len(s.ids))
		}
		if err != nil {
			s.r.t.Fatal(err)
		}
		for row, number := range m.GetCell() {
			s.admits[s.ids[number]], s.shares[s.ids[number]] = m.GetAdmit()[row], wire.At(m.GetShare(), row)
		}
		s.confirmed.Confirm(m.GetCountedSequence())
	}
	return all
}

// rps is what a cell is offered over all zones.
func (r *rig) rps(id limiter.CellID) float64 {
	i, ok := r.n.cells.Find(id)
	if !ok {
		return 0
	}
	return r.n.offered(r.now, i).Offered.RPS()
}

package uplink

import (
	"time"

	"grl/limiter/law"
	grlv1 "grl/proto/grl/v1"
	"grl/proto/wire"
)

// rosterEvery is how often the fleet's view is sent if nothing in it changed.
const rosterEvery = 10 * time.Second

// Source is the node that reports: an aggregator, or the controller of a
// region.
type Source interface {
	// Cells has the cells it reports.
	Cells() *law.Cells
	// Rate returns what is offered to a cell now.
	Rate(cell int) law.Rate
	// Counts returns what was counted in a cell, as far as it may go up by now.
	Counts(cell int) law.Counts
	// Contains says what Rate and Counts contain now.
	Contains() Contains
	// AddRoster names in a report the node's children, and which of its zones are
	// silent, for the fleet's view. Roster is a number that changes with that.
	AddRoster(now time.Time, m *grlv1.Report)
	Roster() uint64
	// Sign says in a report which configuration and directives the node holds.
	Sign(m *grlv1.Report)
}

// Contains says how many of the reports that a node received, in the order of
// receipt, are contained in its rates, and in its counts.
type Contains struct{ Rates, Counts uint64 }

// Messages returns what the parent lacks. Ready says that the sums are complete
// enough to be sent; full that T has passed, so that all goes that differs, and
// not only what jumped.
func (p *Parent) Messages(now time.Time, s Source, ready, full bool) []*grlv1.JoinRequest {
	var reports []*grlv1.Report
	switch {
	case ready && (full || !p.begun):
		reports = p.Full(now, s)
	case ready:
		reports = p.Jumps(s)
	case full:
		reports = append(reports, p.warming(now, s))
	}
	var out []*grlv1.JoinRequest
	for _, m := range reports {
		out = append(out, &grlv1.JoinRequest{Message: &grlv1.JoinRequest_Report{Report: m}})
	}
	for _, m := range p.details {
		out = append(out, &grlv1.JoinRequest{Message: &grlv1.JoinRequest_Detail{Detail: m}})
	}
	p.details = nil
	return out
}

// Jumps returns reports of the cells whose rate moved past the band since the
// parent heard of them, nil if none did. They say rates only: counts go evenly,
// once each T.
func (p *Parent) Jumps(s Source) []*grlv1.Report {
	var out reports
	for _, i := range p.dirty.Look() {
		rate := s.Rate(i)
		if rate.Moved(p.last(i).rate) != law.Jumps {
			continue
		}
		m := out.room()
		m.RatesOnly = true
		wire.AppendRow(m, p.numbers.Number(i, s.Cells().ID(i), &m.Names), rate, law.Counts{})
		p.at(i).rate = rate
	}
	return p.seal(s, out)
}

// Full returns reports of all that differs from what the parent heard; at least
// one, since a report renews all.
func (p *Parent) Full(now time.Time, s Source) []*grlv1.Report {
	p.dirty.Look()
	p.begun = true
	var out reports
	cells := s.Cells()
	for i := range cells.Len() {
		rate, counts, before := s.Rate(i), s.Counts(i), p.last(i)
		moved := rate.Moved(before.rate) != law.Still
		if !moved && rate.Hosts == before.rate.Hosts && counts == before.counts {
			continue // of a free index too, which has neither
		}
		m := out.room()
		wire.AppendRow(m, p.numbers.Number(i, cells.ID(i), &m.Names), rate, counts)
		*p.at(i) = sent{rate, counts}
	}
	if len(out) == 0 {
		out = append(out, &grlv1.Report{})
	}
	p.call(now, s, out[len(out)-1])
	return p.seal(s, out)
}

// warming returns the report of a node that may not send sums yet: it says that
// it is there, and who is.
func (p *Parent) warming(now time.Time, s Source) *grlv1.Report {
	m := &grlv1.Report{Warming: true}
	p.call(now, s, m)
	p.sequence++
	m.Sequence = p.sequence
	s.Sign(m)
	return m
}

// call adds the roster to a report if the parent's view of them may be old.
func (p *Parent) call(now time.Time, s Source, m *grlv1.Report) {
	if p.roster != s.Roster() || now.Sub(p.rosterAt) >= rosterEvery {
		s.AddRoster(now, m)
		m.NoNodes = len(m.GetNodes()) == 0
		p.roster, p.rosterAt = s.Roster(), now
	}
}

// seal gives reports their sequences and says which directives were taken. Only
// the last one contains all that was received: until then, the parent knows
// some cells as they were.
func (p *Parent) seal(s Source, out reports) []*grlv1.Report {
	for i, m := range out {
		if i == len(out)-1 {
			now := s.Contains()
			p.contains.Rates = now.Rates
			if !m.RatesOnly {
				p.contains.Counts = now.Counts
			}
		}
		p.sequence++
		m.Sequence = p.sequence
		p.rates.Note(p.sequence, p.contains.Rates)
		if !m.RatesOnly {
			p.counts.Note(p.sequence, p.contains.Counts)
		}
		s.Sign(m)
		p.confirmed.Sent(m)
	}
	return out
}

func (p *Parent) at(cell int) *sent {
	for len(p.sent) <= cell {
		p.sent = append(p.sent, sent{})
	}
	return &p.sent[cell]
}

func (p *Parent) last(cell int) sent {
	if cell < len(p.sent) {
		return p.sent[cell]
	}
	return sent{}
}

// reports are to be sent together; only the last one has room.
type reports []*grlv1.Report

// room returns a report with room for another cell.
func (r *reports) room() *grlv1.Report {
	if last := len(*r) - 1; last < 0 || wire.Full((*r)[last]) {
		*r = append(*r, &grlv1.Report{})
	}
	return (*r)[len(*r)-1]
}

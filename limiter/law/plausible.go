package law

import "time"

// A host says what it is offered, and nobody can check it. One that says far too
// much, by mistake or on purpose, would take the limit from all others. So of
// what a host claims only a multiple counts of what it, or a mean one of the
// others, is offered otherwise: the others lose at most about one host's share.
// The excess over that is not lost either, since it may be true: it gets what
// the others leave of the limit, and it becomes usual within minutes.
const (
	plausibleTimes = 2               // what is usual, or that of a mean host
	plausibleShare = 0.04            // of what the others are offered, on top: chance where hosts have little
	usualOver      = 2 * time.Minute // what is usual is a mean over so long
	settleRounds   = 8               // in which hosts that rise together vouch for each other
)

// Usual returns the weight that a report has in what is usual for a host, which
// stands for a span of time; 0 for one of rates only.
func Usual(span time.Duration) float32 {
	return float32(min(1, span.Seconds()/usualOver.Seconds()))
}

// Usually reports whether what a host claims of one of its numbers is plausible
// by what is usual for it, and then takes it in by the weight of its report.
func (c *Child) Usually(number uint32, claim MicroRPS, weight float32) bool {
	at := &c.slots[number]
	rate := float32(int64(claim))
	if rate > plausibleTimes*at.usual {
		return false
	}
	at.usual += weight * (rate - at.usual)
	return true
}

// Claim is what a host says of one cell that is not Usually so.
type Claim struct {
	Offered MicroRPS
	Weight  float32 // as Usual returns it
	// First says that nobody knows yet what is usual in the cell: what each host
	// says is.
	First bool
	// Told is what was decided of the cell last: it tells of the hosts that are
	// not in the sum. nil: nothing was.
	Told *Verdict
}

// holder is a number of a child that has an excess.
type holder struct {
	child  *Child
	number uint32
}

// Judge returns what counts of a host's claim, for FoldRate or Fold. The child
// must be a host whose rates are in the sum, its number be named and its cell
// known.
func (s *Sum) Judge(c *Child, number uint32, claim Claim) Rate {
	at := &c.slots[number]
	rps := claim.Offered.RPS()
	usual := at.usualRPS()
	if claim.First {
		at.usual = float32(1e6 * max(usual, rps))
		return split(claim.Offered, 0, 0, 0)
	}
	mean, all := s.others(at, claim.Told)
	r := split(claim.Offered, usual, mean, all)
	if r.Excess > 0 && at.rate.Excess == 0 {
		s.hold(c, number)
	}
	if usual == 0 { // a new host is a mean one, or all there is
		usual = rps
		if mean > 0 {
			usual = min(rps, mean)
		}
	}
	rps = min(rps, plausibleTimes*max(usual, mean)) // what nobody vouches for is not usual soon
	at.usual = float32(1e6 * (usual + float64(claim.Weight)*(rps-usual)))
	return r
}

// split parts a claim into what is plausible and the excess, by what is usual for
// the host and what a mean one of the others and all of them are offered, in
// requests per second. A host that is alone, whose mean of the others is 0, harms
// nobody.
func split(claim MicroRPS, usual, mean, all float64) Rate {
	if claim == 0 {
		return Rate{}
	}
	if mean > 0 {
		base := max(usual, mean)
		slack := max(eventSigmas*deviation(base, T), plausibleShare*all)
		if most := Micro(plausibleTimes*base + slack); claim > most {
			return Rate{Offered: most, Excess: claim - most, Hosts: 1}
		}
	}
	return Rate{Offered: claim, Hosts: 1}
}

// others returns what a mean one of the other hosts of a cell is offered, in
// requests per second, as far as that counts: of the sum, or of the whole cell if
// nobody else is in the sum; 0 if there is nobody. All is that of all others, as
// far as is known.
func (s *Sum) others(at *slot, told *Verdict) (mean, all float64) {
	hosts := 0.0
	if told != nil {
		all, hosts = max(0, told.Offered-at.rate.Offered.RPS()), told.Hosts-float64(at.rate.Hosts)
	}
	if sum := s.rates[at.cell]; sum.Hosts > at.rate.Hosts {
		here := (sum.Offered - at.rate.Offered).RPS()
		return here / float64(sum.Hosts-at.rate.Hosts), max(all, here)
	}
	if hosts <= 0 {
		return 0, 0
	}
	return all / hosts, all
}

func (s *Sum) hold(c *Child, number uint32) {
	if s.held == nil {
		s.held = make(map[int32][]holder)
	}
	cell := c.slots[number].cell
	s.held[cell] = append(s.held[cell], holder{c, number})
}

// Settle judges again the hosts of a cell that have an excess, by what the others
// have said since; told is as in Claim. Call it before the cell's rate is used:
// in a surge on all hosts the first to say so are believed with the others.
func (s *Sum) Settle(cell int, told *Verdict) {
	held := s.held[int32(cell)]
	if len(held) == 0 {
		return
	}
	for range settleRounds {
		before, kept := s.rates[cell].Offered, held[:0]
		for _, h := range held {
			at := &h.child.slots[h.number]
			if int(at.cell) != cell || at.rate.Excess == 0 || h.child.out {
				continue
			}
			mean, all := s.others(at, told)
			r := split(at.rate.Offered+at.rate.Excess, at.usualRPS(), mean, all)
			s.FoldRate(h.child, h.number, r)
			if r.Excess > 0 {
				kept = append(kept, h)
			}
		}
		held = kept
		if len(held) == 0 || s.rates[cell].Offered <= before {
			break
		}
	}
	if len(held) == 0 {
		delete(s.held, int32(cell))
		return
	}
	s.held[int32(cell)] = held
}

// Rate returns what the child has in the sum of a cell.
func (c *Child) Rate(cell int) Rate {
	number, ok := c.bound[int32(cell)]
	if !ok {
		return Rate{}
	}
	return c.slots[number].rate
}

// Usual returns what is usual for one of a host's numbers, for Resume.
func (c *Child) Usual(number uint32) float32 { return c.slots[number].usual }

// Resume says what Usual was for a number of a host on its last stream.
func (c *Child) Resume(number uint32, usual float32) { c.slots[number].usual = usual }

func (at *slot) usualRPS() float64 { return float64(at.usual) / 1e6 }

// Held is a cell of a host that claims, or claimed, more than is plausible, or
// the sum of a cell with such hosts, by what its decider knows. In a surge hosts
// are believed one after the other: each goes on as if it were not until the
// decider's sums have what it is offered. The zero value knows of nothing.
type Held struct {
	known MicroRPS // that the decider counts
	next  MicroRPS // that counts since
	at    uint64   // reports that sums have which have next; 0: known is all
}

// HoldAt returns a cell of which so much counted until now.
func HoldAt(counted MicroRPS) Held { return Held{known: counted} }

// Known parts what counts now, after so many reports of hosts, into what the
// decider counts and the rest, of which it knows as an excess or not at all;
// contained is how many reports the decider's sums have.
func (h *Held) Known(now Rate, received, contained uint64) Rate {
	if h.at != 0 && contained >= h.at {
		h.known, h.at = h.next, 0
	}
	if h.at == 0 && now.Offered != h.known {
		h.next, h.at = now.Offered, received
	}
	known := min(h.known, now.Offered)
	return Rate{Offered: known, Excess: now.Excess + now.Offered - known, Hosts: now.Hosts}
}

// For returns what a host is told whose rate in the cell is r, as Held knows it,
// where the excess of all hosts of the node is here: of its excess only what the others leave of
// the limit, in requests per second, is admitted, in proportion to that of all
// who have some. Until the decider knows of an excess the guard has to do.
func (v Verdict) For(r Rate, here MicroRPS, limit float64) Verdict {
	known, all := v.Excess, max(v.Excess, here.RPS(), r.Excess.RPS()) // it may not know of all of the node's
	v.Excess = 0
	// Admit is of a mean, which may be less than what is offered now.
	room := max(0, v.Admit-1) * min(v.Offered, limit/max(v.Admit, 1))
	if r.Excess == 0 || v.Admit == 0 || known == 0 || room >= all {
		return v
	}
	counted, excess := r.Offered.RPS(), r.Excess.RPS()
	return Verdict{
		Admit: (counted*min(1, v.Admit) + excess*room/all) / (counted + excess),
		// Its guard goes by its own rate, not by that of a mean host.
		Offered: counted + excess,
		Hosts:   1,
		Hot:     v.Hot,
	}
}

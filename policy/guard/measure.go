package guard

import (
	"cmp"
	"slices"

	"grl/limiter"
)

// measured is what the past says of a pair. Shares are of what was offered.
type measured struct {
	known bool // there are minutes
	now   bool // there are none, but a rate of now
	// before and after are the shares that the bucket as it is, and as it shall
	// be, would have dropped; shadowed what it counted as dropped in shadow.
	before, after, shadowed float64
	nowRPS                  float64
	// tightest is the gate with the least limit for its peak, loosest the one
	// whose peak is the most for its present limit.
	tightest, loosest gate
}

// gate is what shares one limit of a bucket: its cells in one instance and, if
// each caller has the limit, of one caller; where limits change by the hour, in
// one hour of the day.
type gate struct {
	where          string // " in eu", " of web", " at 14:00 UTC"
	highest        string // of which minutes peak is the highest
	peak           float64
	limit, present float64 // as it shall be, as it is; 0: none
}

func newMeasured(p Pair, past Past) measured {
	if len(past.Cells) == 0 {
		return measuredNow(p, past.NowRPS)
	}
	m := measured{known: true}
	h := newHours(p)
	var offered, dropsBefore, dropsAfter, shadow float64
	for _, cells := range gates(p, past.Cells) {
		id := cells[0].ID
		byMoment := map[*moment]*gate{}
		for _, minute := range sum(cells) {
			at := h.at(minute.Start)
			g := byMoment[at]
			if g == nil {
				g = newGate(at, id)
				byMoment[at] = g
			}
			offered += minute.Offered
			shadow += minute.ShadowRPS
			dropsBefore += drops(p.Before, g.present, minute.Offered)
			dropsAfter += drops(p.After, g.limit, minute.Offered)
			g.peak = max(g.peak, minute.Offered)
		}
		for _, at := range h.order {
			if g := byMoment[at]; g != nil {
				m.take(*g, at.lowers(g))
			}
		}
	}
	m.before, m.after, m.shadowed = share(dropsBefore, offered), share(dropsAfter, offered), share(shadow, offered)
	return m
}

func newGate(at *moment, id limiter.CellID) *gate {
	g := &gate{where: in(id.Instance), highest: at.highest()}
	if at.some().PerCaller && id.Caller != "" {
		g.where += " of " + id.Caller
	}
	g.where += at.label
	g.limit, g.present = limitOf(at.After, id), limitOf(at.Before, id)
	return g
}

// lowers reports whether the limit of a gate may drop what was not dropped
// before: one hour that is low as it was says nothing against another.
func (m *moment) lowers(g *gate) bool {
	return m.label == "" || !m.keeps() || g.limit < g.present
}

// take remembers a gate if it is the tightest one, of those that are lowered, or
// the loosest.
func (m *measured) take(g gate, lowered bool) {
	if lowered && (m.tightest.peak == 0 || g.peak*m.tightest.limit > m.tightest.peak*g.limit) {
		m.tightest = g
	}
	if m.loosest.peak == 0 || g.peak*m.loosest.present > m.loosest.peak*g.present {
		m.loosest = g
	}
}

// measuredNow judges by what is offered at the moment. Where each caller or
// instance has the limit, the sum over them says nothing, and one hour says
// nothing of the others.
func measuredNow(p Pair, rps float64) measured {
	if rps <= 0 || p.After == nil || !p.After.Block && (p.After.PerCaller || p.After.Scope != limiter.Global || p.After.HasHours()) {
		return measured{}
	}
	return measured{now: true, nowRPS: rps, after: share(drops(p.After, p.After.LimitRPS, rps), rps)}
}

func (p Pair) some() *limiter.Bucket {
	if p.After != nil {
		return p.After
	}
	return p.Before
}

// gates gathers the cells that share a limit.
func gates(p Pair, cells []Cell) [][]Cell {
	index := map[limiter.CellID]int{}
	var groups [][]Cell
	for _, c := range cells {
		id := limiter.CellID{Instance: c.ID.Instance}
		if p.some().PerCaller {
			id.Caller = c.ID.Caller
		}
		i, ok := index[id]
		if !ok {
			i = len(groups)
			index[id] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], c)
	}
	return groups
}

// sum adds up the minutes of cells.
func sum(cells []Cell) []Minute {
	if len(cells) == 1 {
		return cells[0].Minutes
	}
	byStart := map[int64]Minute{}
	for _, c := range cells {
		for _, m := range c.Minutes {
			s := byStart[m.Start]
			byStart[m.Start] = Minute{m.Start, s.Offered + m.Offered, s.ShadowRPS + m.ShadowRPS}
		}
	}
	minutes := make([]Minute, 0, len(byStart))
	for _, m := range byStart {
		minutes = append(minutes, m)
	}
	slices.SortFunc(minutes, func(a, b Minute) int { return cmp.Compare(a.Start, b.Start) })
	return minutes
}

func limitOf(b *limiter.Bucket, id limiter.CellID) float64 {
	if b == nil || b.Block {
		return 0
	}
	return b.Limit(id.Instance)
}

// drops returns how much of a rate a bucket drops, both in requests per second.
func drops(b *limiter.Bucket, limit, offered float64) float64 {
	switch {
	case b == nil || b.Behavior == limiter.Allow:
		return 0
	case b.Block:
		return offered
	default:
		return max(0, offered-limit)
	}
}

func share(part, whole float64) float64 {
	if whole <= 0 {
		return 0
	}
	return part / whole
}

func in(instance string) string {
	if instance == "" {
		return ""
	}
	return " in " + instance
}

package fleet

import (
	"math/bits"

	"grl/limiter"
	"grl/limiter/law"
)

// The sizes of the messages between a host and its aggregator, as protobuf
// encodes them: JoinRequest with a Report, JoinResponse with a Directive. A
// test compares them with the real ones.

// varint returns the size of a number.
func varint(v uint64) int { return (bits.Len64(v|1) + 6) / 7 }

// number returns the size of a field with a number; 0 is left out.
func number(v uint64) int {
	if v == 0 {
		return 0
	}
	return 1 + varint(v)
}

// bytesOf returns the size of a field with so many bytes.
func bytesOf(n int) int { return 1 + varint(uint64(n)) + n }

// text returns the size of a field with a text; "" is left out.
func text(s string) int {
	if s == "" {
		return 0
	}
	return bytesOf(len(s))
}

// column is the packed column of a message: the bytes, and whether any row is
// not 0. A column of zeros is left out.
type column struct {
	bytes int
	any   bool
}

func (c *column) add(v uint64) {
	c.bytes += varint(v)
	c.any = c.any || v != 0
}

func (c *column) size() int {
	if !c.any {
		return 0
	}
	return bytesOf(c.bytes)
}

// stampSize is the size of a decider and a stamp, in a directive or a Taken.
func stampSize(decider string, s law.Stamp) int {
	return text(decider) + number(s.Epoch) + number(s.Sequence) + number(s.Step)
}

func nameSize(id limiter.CellID) int {
	return bytesOf(text(id.Bucket) + text(id.Instance) + text(id.Caller) + text(id.Class))
}

// deciderName returns the name of a decider.
func (t *tree) deciderName(decider int) string {
	if decider == 0 {
		return "global"
	}
	return t.regions[decider-1]
}

// configSize is the size of the epoch and the revision of a configuration.
const configSize = 2 + 2

// reportSize returns the size of a report of a host. Its first one names the
// cells.
func (t *tree) reportSize(h *host, l *leaf, m *report) int {
	n := number(l.sequence) + configSize
	for d := range l.deciders {
		if s := l.deciders[d].stamp; s != (law.Stamp{}) {
			n += bytesOf(stampSize(t.deciderName(d), s))
		}
	}
	if l.sequence == 1 {
		for k := range h.cells {
			n += nameSize(t.cells[h.cells[k].cell].id)
		}
	}
	return bytesOf(n + rowsSize(m))
}

func rowsSize(m *report) int {
	var cell, rate, offered, dropped column
	for _, r := range m.rows {
		cell.add(uint64(r.number))
		rate.add(uint64(r.rate.Offered))
		offered.add(r.counts.Offered)
		dropped.add(r.counts.Dropped)
	}
	cell.any = len(m.rows) > 0
	n := cell.size() + rate.size()
	if m.rates {
		return n + 3 // rates_only is true
	}
	return n + offered.size() + dropped.size()
}

// ordersSize returns the size of a directive to a host.
func (t *tree) ordersSize(h *host, k *kid, contained uint32, m *orders) int {
	n := stampSize(t.deciderName(int(m.decider)), m.stamp) + number(uint64(contained)) + number(uint64(contained))
	if !k.named && len(m.rows) > 0 {
		k.named = true
		for _, r := range m.rows {
			n += nameSize(t.cells[h.cells[r.number].cell].id)
		}
	}
	var cell, rate, hosts, hot column
	for _, r := range m.rows {
		cell.add(uint64(r.number))
		rate.add(uint64(law.Micro(r.verdict.Offered)))
		hosts.add(uint64(r.verdict.Hosts))
		if r.verdict.Hot {
			hot.add(uint64(r.number))
			hot.any = true
		}
	}
	cell.any = len(m.rows) > 0
	n += cell.size() + rate.size() + hosts.size() + hot.size()
	if len(m.rows) > 0 {
		n += bytesOf(4 * len(m.rows)) // admit
	}
	return bytesOf(n)
}

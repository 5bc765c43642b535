package wire

import (
	"maps"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"grl/limiter"
	"grl/limiter/law"
	grlv1 "grl/proto/grl/v1"
)

// all are the confirmed counts as the next parent reads them.
func all(t interface{ Fatal(...any) }, c *Confirmed) map[limiter.CellID]law.Counts {
	got, err := ConfirmedCounts(c.Message(false))
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// sentReport is what the model keeps of a report.
type sentReport struct {
	sequence uint64
	counts   map[limiter.CellID]law.Counts
}

// Against a model that keeps every report. Merging when many wait may confirm
// later than the model does, but never what was not confirmed.
func TestConfirmedAgainstAModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c Confirmed
		var numbers Numbers
		want := make(map[limiter.CellID]law.Counts)
		var waiting []sentReport
		counters := make(map[int]uint64)
		sequence, merged := uint64(0), false
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0:
				c.Reopen()
				numbers, waiting, sequence, merged = Numbers{}, nil, 0, false
			case 1:
				index := rapid.IntRange(0, 3).Draw(t, "forgotten")
				c.Forget(func(x limiter.CellID) bool { return x == id(index) })
				numbers.Forget(index)
				counters[index] = 0
				delete(want, id(index))
				for _, w := range waiting {
					delete(w.counts, id(index))
				}
			case 2, 3:
				upTo := rapid.Uint64Range(0, sequence+1).Draw(t, "confirmed")
				c.Confirm(upTo)
				for len(waiting) > 0 && waiting[0].sequence <= upTo {
					maps.Copy(want, waiting[0].counts)
					waiting = waiting[1:]
				}
			default:
				sequence++
				m, w := &grlv1.Report{Sequence: sequence}, sentReport{sequence, make(map[limiter.CellID]law.Counts)}
				if m.RatesOnly = rapid.Bool().Draw(t, "rates only"); m.RatesOnly {
					index := rapid.IntRange(0, 3).Draw(t, "carried")
					AppendRow(m, numbers.Number(index, id(index), &m.Names), law.Rate{Offered: 1}, law.Counts{})
					c.Sent(m)
					continue
				}
				for index := range 4 {
					if rapid.Bool().Draw(t, "carried") {
						counters[index] += rapid.Uint64Range(1, 5).Draw(t, "more")
						w.counts[id(index)] = law.Counts{Offered: counters[index]}
						AppendRow(m, numbers.Number(index, id(index), &m.Names), law.Rate{}, w.counts[id(index)])
					}
				}
				c.Sent(m)
				if len(w.counts) > 0 {
					waiting = append(waiting, w)
				}
				merged = merged || len(waiting) > maxPending
			}
			got := all(t, &c)
			if !merged {
				if !maps.Equal(got, want) {
					t.Fatalf("confirmed %v, want %v", got, want)
				}
				continue
			}
			for x, n := range got {
				if n.Offered > want[x].Offered {
					t.Fatalf("%v: confirmed %d, want at most %d", x, n.Offered, want[x].Offered)
				}
			}
		}
		c.Confirm(sequence)
		for _, w := range waiting {
			maps.Copy(want, w.counts)
		}
		if got := all(t, &c); !maps.Equal(got, want) {
			t.Fatalf("after all was confirmed: %v, want %v", got, want)
		}
	})
}

func TestConfirmedIsBounded(t *testing.T) {
	var c Confirmed
	var numbers Numbers
	const cells = 100
	for sequence := range uint64(10_000) {
		m := &grlv1.Report{Sequence: sequence + 1}
		for i := range cells {
			AppendRow(m, numbers.Number(i, id(i), &m.Names), law.Rate{}, law.Counts{Offered: sequence})
		}
		c.Sent(m)
	}
	rows := 0
	for _, p := range c.pending {
		rows += len(p.numbers)
	}
	if rows > maxPending*cells {
		t.Errorf("%d rows wait for a parent that never confirms, want at most %d", rows, maxPending*cells)
	}
	c.Confirm(9990)
	if got := all(t, &c)[id(3)].Offered; got > 9989 || got == 0 {
		t.Errorf("confirmed %d of a report that counted 9989", got)
	}
}

// A hello that is too large would be refused at each dial.
func TestConfirmedFitsIntoAHello(t *testing.T) {
	var c Confirmed
	var numbers Numbers
	long := strings.Repeat("x", maxName)
	const cells = 40_000
	for from := 0; from < cells; from += MaxNew {
		m := &grlv1.Report{Sequence: uint64(from + 1)}
		for i := from; i < from+MaxNew; i++ {
			n := numbers.Number(i, limiter.CellID{Bucket: id(i).Bucket, Instance: long, Caller: long}, &m.Names)
			AppendRow(m, n, law.Rate{}, law.Counts{Offered: 1 << 60, Dropped: 1 << 60, ShadowDropped: 1 << 60, Late: 1 << 60})
		}
		c.Sent(m)
		c.Confirm(m.GetSequence())
	}
	for few, most := range map[bool]int{true: MaxReport, false: MaxDown} {
		m := &grlv1.Hello{Confirmed: c.Message(few)}
		if got := proto.Size(m); got > most || got < most*3/4 {
			t.Errorf("hello of %d bytes, few %v: want as much as fits into %d", got, few, most)
		}
	}
}

func TestConfirmedCountsRefuses(t *testing.T) {
	for name, m := range map[string]*grlv1.Report{
		"a name too few":  {Cell: []uint32{0}},
		"a name too many": {Names: []*grlv1.CellName{{}}},
		"too long":        {Cell: []uint32{0}, Names: []*grlv1.CellName{{Caller: strings.Repeat("x", 1000)}}},
	} {
		if got, err := ConfirmedCounts(m); err == nil {
			t.Errorf("%s: taken as %v", name, got)
		}
	}
	if got, err := ConfirmedCounts(nil); err != nil || len(got) != 0 {
		t.Errorf("none: %v, %v", got, err)
	}
}

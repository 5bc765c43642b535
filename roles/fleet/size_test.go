package fleet

import (
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"grl/limiter/law"
	grlv1 "grl/proto/grl/v1"
)

// sized is a fleet of one service whose second bucket tells classes apart.
func sized(t *testing.T) *tree {
	t.Helper()
	o := Options{Hosts: 4, Zones: 2, Regions: 2, Configuration: divided()}.withDefaults()
	p, err := planFor(&o)
	if err != nil {
		t.Fatal(err)
	}
	e, err := newEngine(o, p)
	if err != nil {
		t.Fatal(err)
	}
	return e.law.(*tree)
}

func (t *tree) cellNames(h *host, numbers []uint32) []*grlv1.CellName {
	var out []*grlv1.CellName
	for _, k := range numbers {
		id := t.cells[h.cells[k].cell].id
		out = append(out, &grlv1.CellName{Bucket: id.Bucket, Instance: id.Instance, Caller: id.Caller, Class: id.Class})
	}
	return out
}

func TestReportSize(t *testing.T) {
	f := sized(t)
	h := &f.hosts[0]
	l := &f.leaves[0]
	for _, rates := range []bool{false, true} {
		for _, sequence := range []uint64{1, 2, 127, 128, 70000} {
			l.sequence = sequence
			l.deciders[0].stamp = law.Stamp{Epoch: 3, Sequence: 300 * sequence, Step: 2}
			l.deciders[1].stamp = law.Stamp{Epoch: 1, Sequence: sequence}
			m := &report{rates: rates}
			real := &grlv1.Report{
				Sequence:       sequence,
				Taken:          []*grlv1.Taken{{Decider: "global", Epoch: 3, Sequence: 300 * sequence, Step: 2}, {Decider: f.regions[0], Epoch: 1, Sequence: sequence}},
				ConfigEpoch:    1,
				ConfigRevision: 1,
				RatesOnly:      rates,
			}
			for k := range h.cells {
				row := reportRow{number: uint32(k), rate: law.Rate{Offered: law.Micro(float64(k) * 183.5)}}
				row.counts = law.Counts{Offered: sequence * 1000, Dropped: uint64(k) * 99}
				m.rows = append(m.rows, row)
				real.Cell = append(real.Cell, row.number)
				real.OfferedMicroRps = append(real.OfferedMicroRps, uint64(row.rate.Offered))
				if !rates {
					real.Offered = append(real.Offered, row.counts.Offered)
					real.Dropped = append(real.Dropped, row.counts.Dropped)
				}
				if sequence == 1 {
					real.Names = append(real.Names, f.cellNames(h, []uint32{uint32(k)})...)
				}
			}
			want := proto.Size(&grlv1.JoinRequest{Message: &grlv1.JoinRequest_Report{Report: real}})
			if got := f.reportSize(h, l, m); got != want {
				t.Errorf("sequence %d, rates alone %v: %d bytes, want %d", sequence, rates, got, want)
			}
		}
	}
}

func TestEmptyReportSize(t *testing.T) {
	f := sized(t)
	f.leaves[0].sequence = 9
	real := &grlv1.Report{Sequence: 9, ConfigEpoch: 1, ConfigRevision: 1}
	want := proto.Size(&grlv1.JoinRequest{Message: &grlv1.JoinRequest_Report{Report: real}})
	if got := f.reportSize(&f.hosts[0], &f.leaves[0], &report{}); got != want {
		t.Errorf("%d bytes, want %d", got, want)
	}
}

func TestOrdersSize(t *testing.T) {
	f := sized(t)
	h := &f.hosts[0]
	for _, named := range []bool{false, true} {
		for rows := range 3 {
			m := &orders{stamp: law.Stamp{Epoch: 2, Sequence: 1 << 20}}
			real := &grlv1.Directive{Decider: "global", Epoch: 2, Sequence: 1 << 20, ReportSequence: 400, CountedSequence: 400}
			var numbers []uint32
			for k := range uint32(rows) {
				v := law.Verdict{Admit: 0.25, Offered: 176_000, Hosts: 200, Hot: k == 1}
				m.rows = append(m.rows, orderRow{number: k, verdict: v})
				numbers = append(numbers, k)
				real.Cell = append(real.Cell, k)
				real.Admit = append(real.Admit, 0.25)
				real.OfferedMicroRps = append(real.OfferedMicroRps, uint64(law.Micro(v.Offered)))
				real.Hosts = append(real.Hosts, 200)
				if v.Hot {
					real.Hot = append(real.Hot, k)
				}
			}
			if !named {
				real.Names = f.cellNames(h, numbers)
			}
			want := proto.Size(&grlv1.JoinResponse{Message: &grlv1.JoinResponse_Directive{Directive: real}})
			if got := f.ordersSize(h, &kid{named: named}, 400, m); got != want {
				t.Errorf("%d rows, named before %v: %d bytes, want %d", rows, named, got, want)
			}
		}
	}
}

func TestBytesAreCountedInTheirSecond(t *testing.T) {
	r := newRecorder(&Plan{Length: 3 * time.Second}, &layout{})
	r.bytes(1500*time.Millisecond, 40)
	r.bytes(1999*time.Millisecond, 2)
	var m Metrics
	r.bytesPerHost(&m, 2)
	if m.BytesPerHostSecond != 7 || m.WorstBytesPerHostSecond != 21 {
		t.Errorf("%v bytes per host and second, worst %v; want 7 and 21", m.BytesPerHostSecond, m.WorstBytesPerHostSecond)
	}
}

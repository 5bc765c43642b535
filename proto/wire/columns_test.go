package wire

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	"grl/limiter"
	"grl/limiter/law"
	grlv1 "grl/proto/grl/v1"
)

func id(i int) limiter.CellID { return limiter.CellID{Bucket: fmt.Sprintf("pay/b%d", i)} }

func TestNumbers(t *testing.T) {
	var n Numbers
	var names []*grlv1.CellName
	for _, index := range []int{5, 0, 5, 9} {
		n.Number(index, id(index), &names)
	}
	if len(names) != 3 {
		t.Fatalf("%d names, want one for each of 3 cells", len(names))
	}
	if got := n.Number(9, id(9), &names); got != 2 {
		t.Errorf("cell 9 has number %d, want 2", got)
	}
	n.Forget(5)
	n.Forget(1000)
	if got := n.Number(5, id(77), &names); got != 3 {
		t.Errorf("another cell under index 5 has number %d, want a new one, 3", got)
	}
	if last := names[len(names)-1].GetBucket(); last != "pay/b77" {
		t.Errorf("it goes by the name %q", last)
	}
}

func TestNamed(t *testing.T) {
	long := strings.Repeat("x", maxName+1)
	many := make([]*grlv1.CellName, MaxCells+1)
	for i := range many {
		many[i] = &grlv1.CellName{Bucket: fmt.Sprint("pay/b", i)}
	}
	tests := []struct {
		name   string
		before int
		names  []*grlv1.CellName
		ok     bool
	}{
		{"none", 0, nil, true},
		{"longest", 0, []*grlv1.CellName{{Bucket: long[1:] + "/" + long[1:], Instance: long[1:], Caller: long[1:]}}, true},
		{"bucket too long", 0, []*grlv1.CellName{{Bucket: long + "/" + long}}, false},
		{"instance too long", 0, []*grlv1.CellName{{Instance: long}}, false},
		{"caller too long", 0, []*grlv1.CellName{{Caller: long}}, false},
		{"one that is too long after others", 2, []*grlv1.CellName{many[0], many[1], {Caller: long}}, false},
		{"one twice", 2, []*grlv1.CellName{many[0], many[1], many[0]}, false},
		{"many", 0, many[1:], true},
		{"too many in a message", 0, many, false},
		{"the last of a stream", MaxNames - 1, many[:1], true},
		{"too many of a stream", MaxNames, many[:1], false},
		{"a missing one", 0, []*grlv1.CellName{nil}, true}, // of an unknown bucket, then
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Named(make([]limiter.CellID, tt.before), tt.names)
			if (err == nil) != tt.ok {
				t.Fatalf("error %v, want ok %v", err, tt.ok)
			}
			want := tt.before
			if tt.ok {
				want += len(tt.names)
			}
			if len(got) != want { // on an error too: the stream's numbers must stay those that are known
				t.Errorf("%d cells, want %d", len(got), want)
			}
		})
	}
}

// A report of the longest names and the highest numbers is one that the
// receiver takes.
func TestFullReportFitsIntoAMessage(t *testing.T) {
	long := strings.Repeat("x", maxName)
	m := &grlv1.Report{Sequence: math.MaxUint64, RefusedReason: strings.Repeat("r", 1<<10)}
	for i := 0; !Full(m); i++ {
		m.Names = append(m.Names, FromCellID(limiter.CellID{Bucket: long + "/" + long, Instance: long, Caller: long}))
		AppendRow(m, uint32(i), law.Rate{Offered: law.MaxRPS * 1e6, Hosts: 1, Excess: law.MaxRPS * 1e6}, law.Counts{Offered: 1 << 62, Dropped: 1 << 62, ShadowDropped: 1 << 62, Late: 1 << 62})
	}
	for i := 0; len(m.Cell) < MaxCells; i++ {
		AppendRow(m, uint32(i), law.Rate{Offered: law.MaxRPS * 1e6, Hosts: 1, Excess: law.MaxRPS * 1e6}, law.Counts{Offered: 1 << 62, Dropped: 1 << 62, ShadowDropped: 1 << 62, Late: 1 << 62})
	}
	if got := proto.Size(m); got > MaxReport {
		t.Errorf("%d bytes, at most %d", got, MaxReport)
	}
}

func TestCheckReport(t *testing.T) {
	tests := []struct {
		name  string
		m     *grlv1.Report
		names int
		ok    bool
	}{
		{"nothing", nil, 0, true},
		{"empty columns are zeros", &grlv1.Report{Cell: []uint32{0, 1}}, 2, true},
		{"full columns", &grlv1.Report{Cell: []uint32{0}, OfferedMicroRps: []uint64{1}, Hosts: []uint32{1}, Offered: []uint64{1}, Dropped: []uint64{1}, ShadowDropped: []uint64{0}, Late: []uint64{0}}, 1, true},
		{"rates only", &grlv1.Report{RatesOnly: true, Cell: []uint32{0}, OfferedMicroRps: []uint64{1}, Hosts: []uint32{1}}, 1, true},
		{"rates only, with counts", &grlv1.Report{RatesOnly: true, Cell: []uint32{0}, Offered: []uint64{1}}, 1, false},
		{"rates only, with late counts", &grlv1.Report{RatesOnly: true, Cell: []uint32{0}, Late: []uint64{1}}, 1, false},
		{"a rate too few", &grlv1.Report{Cell: []uint32{0, 1}, OfferedMicroRps: []uint64{1}}, 2, false},
		{"an excess too few", &grlv1.Report{Cell: []uint32{0, 1}, ExcessMicroRps: []uint64{1}}, 2, false},
		{"a host too many", &grlv1.Report{Cell: []uint32{0}, Hosts: []uint32{1, 1}}, 1, false},
		{"counts without cells", &grlv1.Report{Offered: []uint64{1}}, 1, false},
		{"drops too few", &grlv1.Report{Cell: []uint32{0, 1}, Dropped: []uint64{1}}, 2, false},
		{"shadow drops too few", &grlv1.Report{Cell: []uint32{0, 1}, ShadowDropped: []uint64{1}}, 2, false},
		{"late too few", &grlv1.Report{Cell: []uint32{0, 1}, Late: []uint64{1}}, 2, false},
		{"a cell nobody named", &grlv1.Report{Cell: []uint32{2}}, 2, false},
		{"the highest number", &grlv1.Report{Cell: []uint32{math.MaxUint32}}, 2, false},
		{"in any order", &grlv1.Report{Cell: []uint32{2, 0, 1}}, 3, true},
		{"a cell twice", &grlv1.Report{Cell: []uint32{1, 1}}, 3, false},
		{"a cell twice, apart", &grlv1.Report{Cell: []uint32{1, 2, 0, 1}}, 3, false},
		{"as many as allowed", &grlv1.Report{Cell: numbers(MaxCells)}, MaxCells, true},
		{"one more", &grlv1.Report{Cell: numbers(MaxCells + 1)}, MaxCells + 1, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if err := CheckReport(tt.m, tt.names); (err == nil) != tt.ok {
				t.Errorf("error %v, want ok %v", err, tt.ok)
			}
		})
	}
}

// numbers returns the numbers below n.
func numbers(n int) []uint32 {
	all := make([]uint32, n)
	for i := range all {
		all[i] = uint32(i)
	}
	return all
}

func TestRowBelievesNoImpossibleRate(t *testing.T) {
	m := &grlv1.Report{Cell: []uint32{0}, OfferedMicroRps: []uint64{math.MaxUint64}, ExcessMicroRps: []uint64{math.MaxUint64}, Hosts: []uint32{math.MaxUint32}}
	rate, _ := Row(m, 0)
	if rate.Offered != law.MaxRPS*1e6 || rate.Excess != law.MaxRPS*1e6 || rate.Hosts != maxHosts {
		t.Errorf("%+v of the highest numbers there are", rate)
	}
}

func TestAppendRow(t *testing.T) {
	rates := []law.Rate{{Offered: 5, Hosts: 1}, {Offered: 0, Hosts: 0}, {Offered: 7, Hosts: 3, Excess: 11}}
	counts := []law.Counts{{Offered: 9, Late: 2}, {}, {Offered: 8, ShadowDropped: 1}}
	m := &grlv1.Report{}
	for i := range rates {
		AppendRow(m, uint32(i), rates[i], counts[i])
	}
	if m.Dropped != nil {
		t.Errorf("column of zeros %v is sent", m.Dropped)
	}
	if err := CheckReport(m, 3); err != nil {
		t.Fatal(err)
	}
	for i := range rates {
		if r, n := Row(m, i); r != rates[i] || n != counts[i] {
			t.Errorf("row %d: %+v %+v, want %+v %+v", i, r, n, rates[i], counts[i])
		}
	}
}

// A caller may call itself anything; one such must not stop all reports.
func TestNamesThatAreNoText(t *testing.T) {
	name := FromCellID(limiter.CellID{Bucket: "pay/b", Caller: "web\xff\xc0"})
	if !utf8.ValidString(name.GetCaller()) {
		t.Errorf("caller %q", name.GetCaller())
	}
	if _, err := proto.Marshal(&grlv1.Report{Names: []*grlv1.CellName{name}}); err != nil {
		t.Error(err)
	}
}

func TestHeardEpoch(t *testing.T) {
	for _, tt := range []struct{ says, want uint64 }{{0, 0}, {81, 81}, {MaxEpoch - 1, MaxEpoch - 1}, {MaxEpoch, 0}, {math.MaxUint64, 0}} {
		if got := HeardEpoch(&grlv1.Hello{Heard: Heard(map[string]uint64{"global": tt.says})}, "global"); got != tt.want {
			t.Errorf("epoch %d of a hello that says %d, want %d", got, tt.says, tt.want)
		}
	}
}

func FuzzReport(f *testing.F) {
	m := &grlv1.Report{Sequence: 1, Names: []*grlv1.CellName{{Bucket: "pay/b"}}}
	AppendRow(m, 0, law.Rate{Offered: 5, Hosts: 1}, law.Counts{Offered: 9})
	data, err := proto.Marshal(m)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		m := &grlv1.Report{}
		if proto.Unmarshal(data, m) != nil {
			return
		}
		ids, err := Named(nil, m.GetNames())
		if err != nil || CheckReport(m, len(ids)) != nil {
			return
		}
		for i, number := range m.GetCell() {
			_ = ids[number]
			if r, _ := Row(m, i); r.Offered > law.MaxRPS*1e6 || r.Hosts > maxHosts {
				t.Fatalf("row %d: %+v", i, r)
			}
		}
		m.Names = nil
		for _, id := range ids {
			m.Names = append(m.Names, FromCellID(id))
		}
		if _, err := proto.Marshal(m); err != nil {
			t.Fatalf("cannot be passed on: %v", err)
		}
	})
}

func FuzzHello(f *testing.F) {
	m := &grlv1.Hello{Confirmed: &grlv1.Report{Names: []*grlv1.CellName{{Bucket: "pay/b"}}, Cell: []uint32{0}, Offered: []uint64{9}}}
	data, err := proto.Marshal(m)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		m := &grlv1.Hello{}
		if proto.Unmarshal(data, m) != nil {
			return
		}
		counts, err := ConfirmedCounts(m.GetConfirmed())
		if err == nil && len(counts) > len(m.GetConfirmed().GetNames()) {
			t.Fatalf("%d cells of %d names", len(counts), len(m.GetConfirmed().GetNames()))
		}
		if HeardEpoch(m, "global") > MaxEpoch {
			t.Fatalf("heard epoch %d", HeardEpoch(m, "global"))
		}
		Filter(&limiter.Configuration{Services: []limiter.Service{{Name: "pay"}}}, m)
	})
}

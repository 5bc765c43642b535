package wire

import (
	"fmt"
	"math"
	"testing"

	"google.golang.org/protobuf/proto"

	"grl/limiter/law"
	grlv1 "grl/proto/grl/v1"
)

func TestCheckDirective(t *testing.T) {
	tests := []struct {
		name string
		m    *grlv1.Directive
		ok   bool
	}{
		{"nothing", nil, true},
		{"only admits", &grlv1.Directive{Cell: []uint32{0, 1}, Admit: []float32{1, 1}}, true},
		{"no admits", &grlv1.Directive{Cell: []uint32{0, 1}}, false},
		{"an admit too few", &grlv1.Directive{Cell: []uint32{0, 1}, Admit: []float32{1}}, false},
		{"admits without cells", &grlv1.Directive{Admit: []float32{1}}, false},
		{"a rate too few", &grlv1.Directive{Cell: []uint32{0, 1}, Admit: []float32{1, 1}, OfferedMicroRps: []uint64{1}}, false},
		{"an excess too few", &grlv1.Directive{Cell: []uint32{0, 1}, Admit: []float32{1, 1}, ExcessMicroRps: []uint64{1}}, false},
		{"hosts too few", &grlv1.Directive{Cell: []uint32{0, 1}, Admit: []float32{1, 1}, Hosts: []uint32{1}}, false},
		{"a share too few", &grlv1.Directive{Cell: []uint32{0, 1}, Admit: []float32{1, 1}, Share: []float32{1}}, false},
		{"all hot", &grlv1.Directive{Cell: []uint32{0, 1}, Admit: []float32{1, 1}, Hot: []uint32{1, 0}}, true},
		{"more hot ones than cells", &grlv1.Directive{Cell: []uint32{0}, Admit: []float32{1}, Hot: []uint32{0, 0}}, false},
		{"a cell nobody named", &grlv1.Directive{Cell: []uint32{2}, Admit: []float32{1}}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if err := CheckDirective(tt.m, 2); (err == nil) != tt.ok {
				t.Errorf("error %v, want ok %v", err, tt.ok)
			}
		})
	}
}

// What one node appends the other one reads, whatever is 0 in it.
func TestVerdicts(t *testing.T) {
	type row struct {
		v     law.Verdict
		share float64
	}
	rows := []row{
		{law.Verdict{Admit: 0.5}, 0},
		{law.Verdict{Admit: 2, Offered: 1.5, Hosts: 3}, 0.25},
		{law.Verdict{}, 1},
		{law.Verdict{Admit: 1e6, Offered: 1e9, Hosts: 1e5, Excess: 2.5, Hot: true}, 0},
	}
	for n := range len(rows) + 1 {
		m := &grlv1.Directive{}
		for i, r := range rows[:n] {
			AppendVerdict(m, uint32(10*i), r.v, r.share)
		}
		if err := CheckDirective(m, 1000); err != nil {
			t.Fatalf("%d rows: %v", n, err)
		}
		got := Verdicts(m)
		if len(got) != n {
			t.Fatalf("%d rows: %v", n, got)
		}
		for i, r := range rows[:n] {
			if got[i] != r.v || float64(At(m.GetShare(), i)) != r.share || m.GetCell()[i] != uint32(10*i) {
				t.Errorf("%d rows: row %d is %+v with share %v, want %+v", n, i, got[i], At(m.GetShare(), i), r)
			}
		}
	}
}

// What no decider computes does not make a message that cannot be read.
func TestVerdictsThatCannotBe(t *testing.T) {
	m := &grlv1.Directive{}
	AppendVerdict(m, 0, law.Verdict{Admit: math.NaN(), Offered: math.Inf(1), Hosts: -1}, 0)
	AppendVerdict(m, 1, law.Verdict{Admit: -1, Offered: math.NaN(), Hosts: math.Inf(1)}, 0)
	got := Verdicts(m)
	if got[0].Offered != law.MaxRPS || got[0].Hosts != 0 || got[1].Offered != 0 || got[1].Hosts != math.MaxUint32 {
		t.Errorf("read as %+v", got)
	}
}

func TestSplitDirective(t *testing.T) {
	for _, size := range []int{0, 1, MaxCells, MaxCells + 1, 3*MaxCells + 7} {
		for _, known := range []int{0, 1, 4000} { // named before on the stream
			t.Run(fmt.Sprintf("%d cells after %d", size, known), func(t *testing.T) {
				var n Numbers
				var before []*grlv1.CellName
				for i := range known {
					n.Number(i, id(i), &before)
				}
				m := &grlv1.Directive{Decider: "global", Epoch: 1, Sequence: 2, Step: 3, ReportSequence: 4, CountedSequence: 5}
				for i := range size {
					m.Cell = append(m.Cell, n.Number(size-i, id(size-i), &m.Names)) // old and new mixed
					m.Admit = append(m.Admit, float32(size-i))
					m.Share = append(m.Share, float32(size-i))
					if (size-i)%3 == 0 {
						m.Hot = append(m.Hot, m.Cell[i])
					}
				}
				names, err := Named(nil, before)
				if err != nil {
					t.Fatal(err)
				}
				at := 0
				for _, part := range SplitDirective(m) {
					if part.Decider != "global" || part.Epoch != 1 || part.Sequence != 2 || part.Step != 3 || part.ReportSequence != 4 || part.CountedSequence != 5 {
						t.Fatalf("stamp %v", part)
					}
					if names, err = Named(names, part.Names); err != nil {
						t.Fatal(err)
					}
					if err := CheckDirective(part, len(names)); err != nil {
						t.Fatal(err)
					}
					verdicts := Verdicts(part)
					for row, number := range part.Cell {
						if want := size - at; names[number] != id(want) || part.Admit[row] != float32(want) || part.Share[row] != float32(want) {
							t.Fatalf("cell %d is %v with %v and %v", want, names[number], part.Admit[row], part.Share[row])
						} else if verdicts[row].Hot != (want%3 == 0) {
							t.Fatalf("cell %d is hot: %v", want, verdicts[row].Hot)
						}
						at++
					}
				}
				if at != size {
					t.Errorf("%d cells arrived, want %d", at, size)
				}
			})
		}
	}
}

func FuzzDirective(f *testing.F) {
	data, err := proto.Marshal(&grlv1.Directive{Epoch: 1, Sequence: 1, Names: []*grlv1.CellName{{Bucket: "pay/b"}}, Cell: []uint32{0}, Admit: []float32{0.5}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		m := &grlv1.Directive{}
		if proto.Unmarshal(data, m) != nil {
			return
		}
		ids, err := Named(nil, m.GetNames())
		if err != nil || CheckDirective(m, len(ids)) != nil {
			return
		}
		for i, v := range Verdicts(m) {
			if r := law.Ratio(v.Admit); !(r >= 0 && r < 1) {
				t.Fatalf("cell %v drops %v", ids[m.GetCell()[i]], r)
			}
			if !(v.Offered >= 0 && v.Hosts >= 0) {
				t.Fatalf("cell %v is offered %v by %v hosts", ids[m.GetCell()[i]], v.Offered, v.Hosts)
			}
		}
	})
}

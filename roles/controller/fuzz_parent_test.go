package controller

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"grl/limiter/law"
	grlv1 "grl/proto/grl/v1"
)

// Whatever a parent sends, it neither stops the node of a region nor touches
// what that decides itself; and what children hear of it is what they can take.
func FuzzDirective(f *testing.F) {
	for _, m := range []*grlv1.Directive{
		{Decider: globalDecider, Epoch: 2, Sequence: 1, Names: []*grlv1.CellName{{Bucket: "pay/b0"}}, Cell: []uint32{0}, Admit: []float32{0.5}, OfferedMicroRps: []uint64{2000e6}, Hosts: []uint32{2}, Share: []float32{0.5}, Hot: []uint32{0}},
		{Decider: globalDecider, Epoch: 2, Sequence: 2, Step: 1 << 63, ReportSequence: 1 << 63, CountedSequence: 9, Names: []*grlv1.CellName{{Bucket: "pay/regional", Instance: "eu"}, {Bucket: "pay/b0", Caller: "x"}}, Cell: []uint32{1, 0}, Admit: []float32{-1, 0}, Share: []float32{7, -1}},
		{Decider: globalDecider, Epoch: 3, Sequence: 1, Names: []*grlv1.CellName{{Bucket: "pay/b0"}}, Cell: []uint32{0}, Admit: []float32{0.5}, OfferedMicroRps: []uint64{1<<64 - 1}, Share: []float32{7}},
		{Decider: "eu", Epoch: 1 << 40, Sequence: 1, Names: []*grlv1.CellName{{Bucket: "pay/regional", Instance: "eu"}}, Cell: []uint32{0}, Admit: []float32{1e-9}},
	} {
		data, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, data)
	}
	f.Fuzz(func(t *testing.T, first, second []byte) {
		w := newWorld(t)
		w.a.report(said{global, 3000, law.Counts{Offered: 7}}, said{ofEU, 400, law.Counts{}})
		w.round()
		for _, data := range [][]byte{first, second} {
			m := &grlv1.Directive{}
			if proto.Unmarshal(data, m) != nil || w.eu.p.Named(m) != nil {
				break // as the stream then does
			}
			w.eu.n.direct(w.eu.now, w.eu.p, m)
			w.a.hear()
		}
		for range 5 {
			w.eu.pass(law.T)
			w.a.report()
			w.eu.n.renew(w.eu.now)
			w.a.hear()
		}
		for id, admit := range w.a.admits {
			if id == ofEU && admit != 0.25 {
				t.Fatalf("%v: admits %v, want 0.25 as the region decided", id, admit)
			}
			if ratio := law.Ratio(float64(admit)); !(ratio >= 0 && ratio < 1) {
				t.Fatalf("%v: ratio %v of %v", id, ratio, admit)
			}
			if share := w.a.shares[id]; !(share >= 0 && share <= 1) {
				t.Fatalf("%v: share %v", id, share)
			}
		}
		s, held := w.eu.n.state(w.eu.now), w.eu.n.config
		w.eu.restart()
		w.eu.n.takeConfiguration(held, nil)
		w.eu.n.resume(w.eu.now, s)
	})
}

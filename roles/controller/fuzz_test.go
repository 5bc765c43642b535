package controller

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"grl/limiter/law"
	grlv1 "grl/proto/grl/v1"
	"grl/proto/wire"
)

// Whatever an aggregator sends, it neither stops the node nor takes another
// zone's rates out of the sum.
func FuzzReport(f *testing.F) {
	var seeds [][]byte
	for _, m := range []proto.Message{
		&grlv1.Hello{Role: grlv1.Role_ROLE_AGGREGATOR, Node: "evil", Zone: "z1", Region: "r1", BootId: 2, Confirmed: &grlv1.Report{
			Names: []*grlv1.CellName{{Bucket: "pay/b0"}}, Cell: []uint32{0}, Offered: []uint64{1 << 63},
		}},
		&grlv1.Report{
			Sequence: 1, Names: []*grlv1.CellName{{Bucket: "pay/b0"}, {Bucket: "pay/zonal", Instance: "z1"}},
			Cell: []uint32{0, 1}, OfferedMicroRps: []uint64{5e6, 1 << 63}, Hosts: []uint32{1, 1 << 31}, Offered: []uint64{7, 1<<64 - 1}, Late: []uint64{9, 1},
		},
		&grlv1.Report{Sequence: 1<<64 - 1, Names: []*grlv1.CellName{{}}, Cell: []uint32{0, 0, 2}, Offered: []uint64{3, 9, 1}},
	} {
		data, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		seeds = append(seeds, data)
	}
	f.Add(seeds[0], seeds[1], seeds[2])
	f.Fuzz(func(t *testing.T, helloBytes, firstBytes, secondBytes []byte) {
		hello, first, second := &grlv1.Hello{}, &grlv1.Report{}, &grlv1.Report{}
		if proto.Unmarshal(helloBytes, hello) != nil || proto.Unmarshal(firstBytes, first) != nil || proto.Unmarshal(secondBytes, second) != nil {
			return
		}
		before, err := wire.ConfirmedCounts(hello.GetConfirmed())
		if err != nil || checkHello(hello, Default()) != nil || hello.GetNode() == "honest" {
			return
		}
		r := newRig(t, configuration(1, 2))
		r.warm()
		honest := newSpeaker("honest", "z0", 1)
		honest.join(r)
		honest.report(said{cellOf(0), 10, law.Counts{Offered: 5}}, said{cellOf(1), 20, law.Counts{Offered: 6}})
		c := r.n.join(r.now, hello, before)
		for _, m := range []*grlv1.Report{first, second, first} {
			r.pass(law.T)
			if _, err := r.n.report(r.now, c, m); err != nil {
				break
			}
			honest.report()
			r.n.decide(r.now)
			r.n.configurationFor(c)
			r.n.directives(c)
			r.n.renew(r.now)
			honest.hear()
			for _, minutes := range r.n.recorder.take(r.now, false) {
				_ = minutes
			}
		}
		for cell, least := range []float64{10, 20} {
			if got := r.rps(cellOf(cell)); got < least {
				t.Fatalf("cell %d: %v rps, of which another zone offers %v", cell, got, least)
			}
		}
		for id, admit := range honest.admits {
			if !(admit > 0) {
				t.Fatalf("%v: admits %v", id, admit)
			}
		}
		r.n.install(configuration(2, 1), nil, nil)
		r.n.leave(r.now, c)
		r.pass(law.ZoneKept)
		honest.report()
		r.n.renew(r.now)
		if got := r.rps(cellOf(0)); hello.GetZone() != "z0" && got != 10 {
			t.Fatalf("%v rps after it left, want 10", got)
		}
	})
}

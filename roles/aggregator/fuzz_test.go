package aggregator

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"grl/limiter/law"
	grlv1 "grl/proto/grl/v1"
	"grl/proto/wire"
)

// bytesOf returns messages as they are on the wire.
func bytesOf(f *testing.F, messages ...proto.Message) [][]byte {
	f.Helper()
	var out [][]byte
	for _, m := range messages {
		data, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		out = append(out, data)
	}
	return out
}

// Whatever a host sends, it neither stops the node nor takes another host's
// rates out of the sum.
func FuzzReport(f *testing.F) {
	hello := &grlv1.Hello{Role: grlv1.Role_ROLE_CLIENT, Node: "evil", BootId: 2, Confirmed: &grlv1.Report{
		Names: []*grlv1.CellName{{Bucket: "pay/b0"}}, Cell: []uint32{0}, Offered: []uint64{1 << 63},
	}}
	first := &grlv1.Report{
		Sequence: 1, Names: []*grlv1.CellName{{Bucket: "pay/b0"}, {Bucket: "pay/each", Caller: "web"}},
		Cell: []uint32{0, 1}, OfferedMicroRps: []uint64{5e6, 1 << 63}, Hosts: []uint32{1, 1 << 31}, Offered: []uint64{7, 1<<64 - 1},
	}
	second := &grlv1.Report{Sequence: 1<<64 - 1, Names: []*grlv1.CellName{{}}, Cell: []uint32{0, 0, 2}, Offered: []uint64{3, 9, 1}}
	rates := &grlv1.Report{Sequence: 2, RatesOnly: true, Cell: []uint32{1, 0}, OfferedMicroRps: []uint64{1 << 40, 3}}
	seeds := bytesOf(f, hello, first, second, rates)
	f.Add(seeds[0], seeds[1], seeds[2])
	f.Add(seeds[0], seeds[1], seeds[3])
	f.Fuzz(func(t *testing.T, helloBytes, firstBytes, secondBytes []byte) {
		hello, first, second := &grlv1.Hello{}, &grlv1.Report{}, &grlv1.Report{}
		if proto.Unmarshal(helloBytes, hello) != nil || proto.Unmarshal(firstBytes, first) != nil || proto.Unmarshal(secondBytes, second) != nil {
			return
		}
		before, err := wire.ConfirmedCounts(hello.GetConfirmed())
		if err != nil {
			return
		}
		r := newRig(t, revision(1, 2))
		honest := newSpeaker("honest", 1)
		honest.join(r)
		honest.report(said{0, 10, law.Counts{Offered: 5}}, said{1, 20, law.Counts{Offered: 6}})
		r.say(globalDecider, seq(1), row(cellOf(0), 100, 400, 0.5))
		if hello.GetNode() == "honest" {
			hello.Node = "evil" // the certificate names it
		}
		h := r.n.join(r.now, hello, before)
		for _, m := range []*grlv1.Report{first, second, first} {
			r.pass(law.T)
			if _, err := r.n.report(r.now, h, m); err != nil {
				break
			}
			honest.report()
			r.n.silence(r.now)
			r.jumps()
			r.n.configurationFor(h)
			r.n.decideAlone(r.now, true)
			r.n.directives(r.now, h)
		}
		for cell, least := range []float64{10, 20} {
			if got := r.rps(cell); got < least {
				t.Fatalf("cell %d: %v rps, of which another host offers %v", cell, got, least)
			}
		}
		for _, m := range r.up() {
			if _, err := proto.Marshal(m); err != nil {
				t.Fatalf("cannot report: %v", err)
			}
		}
		r.n.install(revision(2, 1))
		r.n.leave(r.now, h)
		if got := r.rps(0); got != 10 {
			t.Fatalf("%v rps after it left, want 10", got)
		}
		r.n.sweep(r.now.Add(idleCell))
	})
}

// Whatever a controller sends, the node does not stop.
func FuzzDirective(f *testing.F) {
	first := &grlv1.Directive{
		Decider: "global", Epoch: 1, Sequence: 1, ReportSequence: 1,
		Names: []*grlv1.CellName{{Bucket: "pay/b0"}, {Bucket: "no/such"}}, Cell: []uint32{0, 1}, Admit: []float32{0.5, 0}, OfferedMicroRps: []uint64{4e8, 0}, Share: []float32{0.5, -1},
	}
	second := &grlv1.Directive{Decider: "global", Epoch: 1 << 63, ReportSequence: 1 << 63, Cell: []uint32{0}, Admit: []float32{2}, Hosts: []uint32{1 << 31}}
	seeds := bytesOf(f, first, second)
	f.Add(seeds[0], seeds[1])
	f.Fuzz(func(t *testing.T, firstBytes, secondBytes []byte) {
		r := newRig(t, revision(1, 2))
		s := newSpeaker("a", 1)
		s.join(r)
		s.report(said{0, 10, law.Counts{Offered: 5}})
		r.up()
		for _, data := range [][]byte{firstBytes, secondBytes, firstBytes} {
			m := &grlv1.Directive{}
			if proto.Unmarshal(data, m) != nil {
				return
			}
			if r.p.Named(m) != nil {
				return
			}
			r.n.direct(r.now, r.p, m)
			s.hear()
			r.up()
			r.pass(law.T) // with the two of up, for so long that the decider is silent
			s.report()
			r.n.decideAlone(r.now, true)
			s.hear()
		}
		if state, ok := r.n.save(r.now); ok {
			restarted := newRig(t, nil)
			restarted.resume(r, state)
		}
		r.n.install(revision(2, 1))
		s.hear()
	})
}

package client

import (
	"fmt"
	"testing"
	"time"

	"grl/limiter"
	"grl/limiter/law"
	grlv1 "grl/proto/grl/v1"
)

// Callers that come with a new name each time are held to what those get that
// are known, until something is decided of them.
func TestNewcomersToASharedLimit(t *testing.T) {
	r := newRig(t)
	m := configuration(1, 0)
	m.GetServices()[0].GetBuckets()[0].PerCaller = false
	m.GetServices()[0].GetBuckets()[0].Share = grlv1.Share_SHARE_MAX_MIN
	r.install(m)
	each := func(caller string) limiter.CellID { return limiter.CellID{Bucket: "pay/each", Caller: caller} }
	send := func(from, to int) (dropped int) {
		for i := from; i < to; i++ {
			dropped += r.request(fmt.Sprint("new-", i), "each", 1)
		}
		return dropped
	}
	r.request("a", "each", 1)
	r.request("b", "each", 1)
	r.pass(law.Delta)
	send(0, 100)
	r.pass(law.Delta)
	if dropped := send(0, 100); dropped > 0 {
		t.Errorf("%d of 100 newcomers dropped before anything was decided, want none", dropped)
	}

	directive := r.directive(law.Stamp{Epoch: 1, Sequence: 1}, map[limiter.CellID]float32{each("a"): 0.1})
	directive.OfferedMicroRps, directive.Hosts = []uint64{uint64(law.Micro(300))}, []uint32{1}
	if err := r.s.direct(r.now, directive); err != nil {
		t.Fatal(err)
	}
	other := r.directive(law.Stamp{Epoch: 1, Sequence: 2}, map[limiter.CellID]float32{each("b"): 5})
	other.OfferedMicroRps, other.Hosts = []uint64{uint64(law.Micro(100))}, []uint32{1}
	if err := r.s.direct(r.now, other); err != nil {
		t.Fatal(err)
	}
	r.pass(law.Delta)
	total := 0
	for range 50 {
		total += send(0, 100) // known by name, undecided
		r.pass(law.Delta)
	}
	// 30 of 300 and 100 of 100 are admitted: 32.5 %.
	if share := float64(total) / 5000; share < 0.6 || share > 0.75 {
		t.Errorf("%.3f of the newcomers' requests dropped, want 0.675", share)
	}
	r.now = r.now.Add(time.Minute)
	r.pass(law.Delta)
	if dropped := send(0, 100); dropped > 0 {
		t.Errorf("%d of 100 dropped a minute after the last directive, want none", dropped)
	}
}

package client

import (
	"testing"
	"testing/synctest"
	"time"

	"grl/limiter"
	"grl/limiter/law"
	"grl/proto/wire"
)

// capRig is a rig in virtual time, since a cap that comes in ends by the clock.
func capRig(t *testing.T) *rig {
	r := newRig(t)
	r.now = time.Now()
	return r
}

// wait passes d on both clocks.
func (r *rig) wait(d time.Duration) {
	r.pass(d)
	time.Sleep(d)
}

// cap installs configuration r1 with these caps beside it.
func (r *rig) cap(serial uint64, caps ...limiter.Cap) {
	r.t.Helper()
	m := configuration(1, 1)
	c, err := wire.ToConfiguration(&limiter.Configuration{}, m)
	if err != nil {
		r.t.Fatal(err)
	}
	c.Serial, c.Caps = serial, caps
	r.install(wire.FromConfiguration(c))
	r.s.apply(r.now)
}

func capFor(d time.Duration) limiter.Cap {
	return limiter.Cap{ID: "1", Service: "pay", LimitRPS: 10, Ends: time.Now().Add(d)}
}

func blockFor(d time.Duration) limiter.Cap {
	c := capFor(d)
	c.Block, c.LimitRPS = true, 0
	return c
}

// dropped checks how many of 1000 requests are dropped.
func (r *rig) dropped(what string, want, tolerance int) {
	r.t.Helper()
	if got := r.request("web", "p0", 1000); got < want-tolerance || got > want+tolerance {
		r.t.Errorf("%s: %d of 1000 dropped, want %d", what, got, want)
	}
}

// A cap that blocks needs nobody: it drops at once, does not fade in silence,
// and ramps out from 1 % by this host's clock.
func TestACapThatBlocksEndsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := capRig(t)
		r.cap(1, blockFor(2*time.Minute))
		r.dropped("at once", 1000, 0)
		r.wait(time.Minute) // hold and decay are 20 s
		r.dropped("in silence", 1000, 0)
		r.wait(time.Minute - law.Delta)
		r.dropped("just before the end", 1000, 0)
		r.wait(law.Delta)
		for _, step := range []struct {
			after time.Duration
			want  int
		}{{0, 990}, {15 * time.Second, 980}, {15 * time.Second, 960}, {30 * time.Second, 840}, {30 * time.Second, 360}, {15 * time.Second, 0}, {15 * time.Second, 0}} {
			r.wait(step.after)
			r.dropped("after the end", step.want, 12)
		}
	})
}

// A cap with a limit holds what was decided until it ends, whatever its age, and
// then doubles what it admits each 15 s.
func TestACapHoldsUntilItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := capRig(t)
		r.cap(1, capFor(time.Minute))
		r.dropped("before anything is decided", 0, 0)
		id := limiter.CellID{Bucket: "pay/_cap-1"}
		r.direct(map[limiter.CellID]float32{id: 0.25, bucketCell(0): 0.5})
		busy := func(d time.Duration) { // so that the host does not know of less load
			for ; d > 0; d -= law.Delta {
				r.request("web", "p0", 20)
				r.wait(law.Delta)
			}
		}
		busy(law.Delta)
		r.dropped("by the cap and the bucket", 875, 25)
		busy(40 * time.Second)
		r.dropped("in silence, when the bucket is open", 750, 20)
		busy(20 * time.Second)
		r.dropped("when it ends", 750, 20)
		busy(15 * time.Second)
		r.dropped("after 15 s", 500, 25)
		busy(15 * time.Second)
		r.dropped("after 30 s", 0, 5)
		r.direct(map[limiter.CellID]float32{id: 0.25})
		r.wait(law.RampFor - 30*time.Second)
		r.dropped("directives do not bring it back", 0, 5)
	})
}

func TestALiftedCapIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := capRig(t)
		r.cap(1, blockFor(time.Hour))
		r.dropped("capped", 1000, 0)
		r.cap(2)
		r.dropped("lifted", 0, 0)
		if ok, err := r.s.install(wire.FromConfiguration(&limiter.Configuration{Epoch: 1, Revision: 1, Serial: 1, Caps: []limiter.Cap{blockFor(time.Hour)}})); ok || err != nil {
			t.Errorf("install of an older serial: %v, %v, want not taken", ok, err)
		}
		r.dropped("after one that is behind", 0, 0)
		if got := r.s.reports()[0].GetConfigSerial(); got != 2 {
			t.Errorf("reports serial %d, want 2", got)
		}
	})
}

// Caps come and go with new names: their series do not.
func TestCapsShareASeries(t *testing.T) {
	all := newTotals()
	for _, id := range []string{"1", "2"} {
		c := limiter.Cap{ID: id, Service: "pay", Block: true}
		b := c.Bucket()
		all.add(&b, limiter.CellID{Bucket: b.FullName()}, limiter.Counts{Offered: 3, Dropped: 3})
	}
	if got := all.counts[series{service: "pay", bucket: "pay/_cap"}]; len(all.counts) != 1 || got == nil || *got != (limiter.Counts{Offered: 6, Dropped: 6}) {
		t.Errorf("series %v, want one of both caps", all.counts)
	}
}

package controller

import (
	"path/filepath"
	"testing"
	"time"

	"pgregory.net/rapid"

	"grl/limiter/law"
	grlv1 "grl/proto/grl/v1"
	"grl/proto/statefile"
)

// I8: what aggregators counted is at the parent once, over streams that close on
// either side of the region, zones that are forgotten, and aggregators that come
// back. Only what a region that restarted had not had confirmed may be missing
// or there twice; none restarts here.
func TestRegionCountsGoUpOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		type member struct {
			*speaker
			r      *regional
			counts law.Counts
		}
		h := make(recorded)
		round := func(d time.Duration) {
			w.pass(d)
			w.round()
			h.take(w.up, false)
		}
		members := []*member{{w.a, w.eu, law.Counts{}}, {w.b, w.us, law.Counts{}}}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			m := members[rapid.IntRange(0, 1).Draw(t, "aggregator")]
			switch rapid.SampledFrom([]string{"count", "count", "report", "rates", "round", "round", "reconnect below", "reconnect above", "away", "pass"}).Draw(t, "what") {
			case "count":
				m.counts.Offered += rapid.Uint64Range(1, 100).Draw(t, "offered")
			case "report":
				m.report(said{global, 5, m.counts})
			case "rates":
				m.rates(said{global, 50, m.counts})
			case "round":
				round(law.T)
			case "reconnect below":
				m.r.n.leave(m.r.now, m.c)
				m.join(m.r.rig)
			case "reconnect above":
				m.r.join()
			case "away": // until its zone is forgotten
				m.r.n.leave(m.r.now, m.c)
				round(law.ZoneKept)
				round(law.T)
				m.join(m.r.rig)
			case "pass":
				w.pass(time.Duration(rapid.Int64Range(0, int64(3*time.Second)).Draw(t, "time")))
			}
		}
		var want uint64
		for _, m := range members {
			m.report(said{global, 5, m.counts})
			want += m.counts.Offered
		}
		for range 4 { // until all that goes on evenly has gone
			round(law.T)
		}
		h.take(w.up, true)
		if got := h[global].offered; got != want {
			t.Fatalf("%d requests at the parent, want %d", got, want)
		}
	})
}

// A stream of an aggregator that waited while the controller stood still is heard
// after a later one: what it says was said since.
func TestStreamThatWaitedIsRefused(t *testing.T) {
	r := newRig(t, configuration(1, 1))
	s := newSpeaker("a", "z1", 1)
	superseded := func(what string, stream uint64, want bool) {
		t.Helper()
		if got := r.n.superseded(&grlv1.Hello{Node: "a", Zone: "z1", BootId: 1, Stream: stream}); got != want {
			t.Errorf("%s: stream %d is refused: %v, want %v", what, stream, got, want)
		}
	}
	superseded("nothing was heard", 1, false)
	s.hello.Stream = 3
	s.join(r)
	for _, when := range []string{"while the later one is open", "after it closed"} {
		superseded(when, 2, true)
		superseded(when, 4, false)
		r.n.leave(r.now, s.c)
	}
}

// A region that restarts while its parent is away goes on from its copy: with a
// configuration that was good whatever its age, with the parent's decisions for
// what is left of the autonomy.
func TestCopy(t *testing.T) {
	w := newWorld(t)
	w.a.report(said{global, 3000, law.Counts{}})
	w.b.report(said{global, 1000, law.Counts{}})
	w.round()
	w.eu.pass(4 * law.T)
	w.a.report(said{global, 6000, law.Counts{}})
	w.eu.n.renew(w.eu.now)
	w.a.hear()
	before, held := w.eu.n.region.global.stamp, w.eu.n.config
	dir := filepath.Join(t.TempDir(), "db")
	file := statefile.New(dir, "controller", "eu")
	if err := file.Save(w.eu.n.state(w.eu.now)); err != nil {
		t.Fatal(err)
	}
	resume := func(after time.Duration) {
		t.Helper()
		w.up.now = w.eu.now.Add(after)
		s, err := statefile.New(dir, "controller", "eu").Load()
		if err != nil {
			t.Fatal(err)
		}
		w.eu.restart()
		w.eu.n.warm = false
		w.eu.n.takeConfiguration(held, nil)
		w.eu.n.resume(w.eu.now, s)
		w.a.join(w.eu.rig)
		w.a.report(said{global, 6000, law.Counts{}})
	}
	resume(5 * law.T)
	if w.eu.n.config.Revision != 1 {
		t.Fatalf("resumed with revision %d, want 1", w.eu.n.config.Revision)
	}
	w.eu.n.renew(w.eu.now)
	if m := w.a.hear(); m != nil {
		t.Errorf("heard %v before the region warmed up", m)
	}
	w.eu.pass(law.Handover)
	w.a.report()
	w.eu.n.renew(w.eu.now)
	var heard law.Stamp
	for _, m := range w.a.hear() {
		if m.GetDecider() == globalDecider {
			heard = law.Stamp{Epoch: m.GetEpoch(), Sequence: m.GetSequence(), Step: m.GetStep()}
		}
	}
	if !heard.After(before) {
		t.Errorf("heard %v after the restart, %v before it", heard, before)
	}
	if w.a.admits[global] != 0.125 || w.a.shares[global] != 0.75 {
		t.Errorf("admits %v with a share of %v, want 0.125 and 0.75", w.a.admits[global], w.a.shares[global])
	}
	// The parent's next word is after all of that.
	w.up.now = w.eu.now
	w.eu.join()
	w.eu.tell(true)
	w.up.n.renew(w.up.now)
	w.eu.hear()
	if m := w.a.hear(); len(m) != 1 || m[0].GetSequence() <= heard.Sequence || m[0].GetStep() != 0 {
		t.Errorf("heard %v from the parent, want one after %v", m, heard)
	}

	resume(law.Autonomy + law.DeciderSilent)
	w.eu.pass(law.Handover)
	w.eu.n.renew(w.eu.now)
	for _, m := range w.a.hear() {
		if m.GetDecider() == globalDecider {
			t.Errorf("heard %v of a copy that is too old", m)
		}
	}
	if w.eu.n.config.Revision != 1 {
		t.Errorf("revision %d of an old copy, want 1", w.eu.n.config.Revision)
	}
}

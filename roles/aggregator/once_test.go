package aggregator

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"grl/limiter/law"
	grlv1 "grl/proto/grl/v1"
)

func TestReconnectCountsOnce(t *testing.T) {
	r := newRig(t, revision(1, 1))
	s := newSpeaker("a", 1)
	s.join(r)
	s.report(said{0, 10, law.Counts{Offered: 100, Dropped: 10}})
	r.n.leave(r.now, s.h)
	s.join(r)
	r.pass(law.T)
	s.report(said{0, 10, law.Counts{Offered: 130, Dropped: 11}})
	if got := r.counts(0); got.Offered != 130 || got.Dropped != 11 {
		t.Errorf("counted %+v, want 130 and 11", got)
	}
	// The next stream is here before the last one is missed.
	s.join(r)
	r.pass(law.T)
	s.report(said{0, 10, law.Counts{Offered: 140, Dropped: 11}})
	if got := r.counts(0); got.Offered != 140 || len(r.n.hosts) != 1 || r.rps(0) != 10 {
		t.Errorf("counted %+v of %d hosts at %v rps, want 140 of 1 at 10", got, len(r.n.hosts), r.rps(0))
	}
}

// The first state of a stream comes in several reports; none of it is a burst.
func TestFirstReportsAreLate(t *testing.T) {
	r := newRig(t, revision(1, 2))
	s := newSpeaker("a", 1)
	s.join(r)
	s.report(said{0, 10, law.Counts{Offered: 100}})
	r.pass(time.Millisecond)
	s.report(said{1, 10, law.Counts{Offered: 100}}, said{0, 10, law.Counts{Offered: 101}})
	for cell, want := range []law.Counts{{Offered: 101, Late: 100}, {Offered: 100, Late: 100}} {
		if got := r.counts(cell); got != want {
			t.Errorf("cell %d: counted %+v, want %+v", cell, got, want)
		}
	}
}

func TestRestartOfAHostCountsAnew(t *testing.T) {
	r := newRig(t, revision(1, 1))
	s := newSpeaker("a", 1)
	s.join(r)
	s.report(said{0, 10, law.Counts{Offered: 100}})
	r.n.leave(r.now, s.h)
	again := newSpeaker("a", 2)
	again.join(r)
	again.report(said{0, 10, law.Counts{Offered: 120}})
	if got := r.counts(0).Offered; got != 220 {
		t.Errorf("counted %d, want 220", got)
	}
}

// Two hosts that draw, or say, the same boot id keep their places and counts.
func TestBootIDOfAnotherHost(t *testing.T) {
	r := newRig(t, revision(1, 1))
	a, b := newSpeaker("a", 7), newSpeaker("b", 7)
	a.join(r)
	a.report(said{0, 10, law.Counts{Offered: 100}})
	b.join(r)
	b.report(said{0, 20, law.Counts{Offered: 40}})
	r.pass(law.T)
	a.report(said{0, 10, law.Counts{Offered: 110}})
	if got := r.counts(0).Offered; got != 150 || r.rps(0) != 30 {
		t.Errorf("counted %d at %v rps, want 150 at 30", got, r.rps(0))
	}
}

// A stream that waited while the aggregator stood still is heard after a later one
// of the same host: what it says was said since, and counting it would take all
// that the host ever counted for new.
func TestStreamThatWaitedIsRefused(t *testing.T) {
	r := newRig(t, revision(1, 1))
	s := newSpeaker("a", 1)
	hello := func(stream uint64) *grlv1.Hello {
		return &grlv1.Hello{Role: grlv1.Role_ROLE_CLIENT, Node: "a", BootId: 1, Stream: stream}
	}
	superseded := func(what string, stream uint64, want bool) {
		t.Helper()
		if got := r.n.superseded(hello(stream)); got != want {
			t.Errorf("%s: stream %d is refused: %v, want %v", what, stream, got, want)
		}
	}
	superseded("nothing was heard", 1, false)
	s.hello.Stream = 3
	s.join(r)
	s.report(said{0, 10, law.Counts{Offered: 1000}})
	for _, when := range []string{"while the later one is open", "after it closed"} {
		superseded(when, 2, true)
		superseded(when, 4, false)
		r.n.leave(r.now, s.h)
	}
	other := hello(1)
	other.BootId = 2
	if r.n.superseded(other) {
		t.Error("the first stream of another boot is refused")
	}
	s.hello.Stream = 0 // it is of a version that does not say
	s.hello.BootId = 3
	s.join(r)
	other.BootId, other.Stream = 3, 0
	if r.n.superseded(other) {
		t.Error("a stream without a number is refused")
	}
}

// A host counted elsewhere in between.
func TestReturnToAnAggregator(t *testing.T) {
	a, b := newRig(t, revision(1, 1)), newRig(t, revision(1, 1))
	b.stamp = a.stamp // of one controller
	s := newSpeaker("h", 1)
	round := func(r *rig, offered uint64) {
		s.report(said{0, 10, law.Counts{Offered: offered}})
		r.up()
		r.direct(nil)
		s.hear()
	}
	s.join(a)
	round(a, 100)
	a.n.leave(a.now, s.h)
	s.join(b)
	round(b, 150)
	b.n.leave(b.now, s.h)
	s.join(a)
	round(a, 170)
	if got := a.counts(0).Offered + b.counts(0).Offered; got != 170 {
		t.Errorf("counted %d at both, want 170", got)
	}
}

// I8: requests are counted once, over streams that close, hosts that move and
// aggregators that restart. Only what a lost aggregator has counted and no
// directive has confirmed may count twice; nothing is ever lost.
func TestRequestsAreCountedOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const cells = 3
		f := &fleet{t: t}
		for range 2 {
			r := newRig(t, revision(1, cells))
			r.stamp = &f.stamp
			f.rigs = append(f.rigs, r)
		}
		for i := range 2 {
			m := &member{s: newSpeaker(string(rune('a'+i)), uint64(i+1)), at: -1}
			f.members = append(f.members, m)
			f.move(m, i)
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			m := f.members[rapid.IntRange(0, len(f.members)-1).Draw(t, "host")]
			switch rapid.SampledFrom([]string{"count", "report", "report", "report", "confirm", "confirm", "reconnect", "move", "restart", "pass"}).Draw(t, "what") {
			case "count":
				offered := rapid.Uint64Range(1, 50).Draw(t, "offered")
				n := &m.counts[rapid.IntRange(0, cells-1).Draw(t, "cell")]
				n.Offered += offered
				n.Dropped += rapid.Uint64Range(0, offered).Draw(t, "dropped")
			case "report":
				f.report(m)
			case "confirm":
				f.confirm(m.at)
			case "reconnect":
				f.rigs[m.at].n.leave(f.rigs[m.at].now, m.s.h)
				f.join(m)
			case "move":
				f.move(m, 1-m.at)
			case "restart":
				f.restart(m.at)
			case "pass":
				f.pass(time.Duration(rapid.Int64Range(0, int64(5*law.T)).Draw(t, "time")))
			}
			f.check(false)
		}
		for _, m := range f.members {
			f.report(m)
		}
		f.check(true)
	})
}

// member is a host of the model, with what it counted.
type member struct {
	s        *speaker
	at       int // rig
	counts   [3]law.Counts
	reported [3]uint64 // offered
	known    [3]uint64 // offered, of what a directive confirmed
	begun    bool      // reported on this stream
}

// fleet is two aggregators of a zone and the hosts between them.
type fleet struct {
	t       *rapid.T
	rigs    []*rig
	members []*member
	stamp   uint64 // of the controller's last directive
	heard   uint64 // sent up by aggregators that restarted
	twice   uint64 // that may have been counted twice
}

func (f *fleet) pass(d time.Duration) {
	for _, r := range f.rigs {
		r.pass(d)
		r.n.silence(r.now)
		r.n.sweep(r.now)
	}
}

func (f *fleet) report(m *member) {
	var rows []said
	for cell, n := range m.counts {
		rows = append(rows, said{cell, float64(cell + 1), n})
		m.reported[cell] = n.Offered
	}
	m.begun = true
	m.s.report(rows...)
}

// confirm has the controller hear of all that a rig counted, and say so.
func (f *fleet) confirm(at int) {
	r := f.rigs[at]
	r.up()
	r.direct(nil)
	for _, m := range f.members {
		if m.at == at {
			m.s.hear()
			if m.begun {
				m.known = m.reported
			}
		}
	}
}

// unconfirmed notes what a host reported that its next aggregator will not
// know of.
func (f *fleet) unconfirmed(m *member) {
	for cell := range m.reported {
		f.twice += m.reported[cell] - m.known[cell]
	}
}

func (f *fleet) move(m *member, to int) {
	if m.at >= 0 {
		f.rigs[m.at].n.leave(f.rigs[m.at].now, m.s.h)
		f.unconfirmed(m)
	}
	m.at = to
	f.join(m)
}

func (f *fleet) join(m *member) {
	m.s.join(f.rigs[m.at])
	m.begun = false
}

// restart ends an aggregator; its hosts find the next one at its address.
func (f *fleet) restart(at int) {
	old := f.rigs[at]
	for cell := range 3 { // what it had not sent up is lost with it
		f.heard += old.heard.counts[cellOf(cell)].Offered
	}
	f.rigs[at] = newRig(f.t, revision(1, 3))
	f.rigs[at].now, f.rigs[at].stamp = old.now, old.stamp
	for _, m := range f.members {
		if m.at == at {
			f.unconfirmed(m)
			f.join(m)
		}
	}
}

// check compares what was counted with what was reported; all says that each
// host has reported since it joined.
func (f *fleet) check(all bool) {
	counted, reported := f.heard, uint64(0)
	for _, r := range f.rigs {
		for cell := range 3 {
			counted += r.counts(cell).Offered
		}
	}
	for _, m := range f.members {
		for _, n := range m.reported {
			reported += n
		}
	}
	if all && counted < reported || counted > reported+f.twice {
		f.t.Fatalf("counted %d of %d requests, of which %d were not confirmed before a move", counted, reported, f.twice)
	}
}

// M7, M8: hosts that come and go leave nothing behind.
func TestChurnIsBounded(t *testing.T) {
	r := newRig(t, revision(1, 2))
	for i := range 10_000 {
		s := newSpeaker("h", uint64(i))
		s.join(r)
		s.report(said{0, 1, law.Counts{Offered: 1}}, said{1, 1, law.Counts{Offered: 1}})
		r.n.leave(r.now, s.h)
		r.pass(time.Second)
		if i%60 == 0 {
			r.n.sweep(r.now)
		}
	}
	if got, most := len(r.n.boots), int((keepBoots+time.Minute)/time.Second)+1; got > most || len(r.n.hosts) != 0 {
		t.Errorf("%d boots remembered of %d hosts, want at most %d of none", got, len(r.n.hosts), most)
	}
	if got := r.rps(0); got != 0 {
		t.Errorf("%v rps after all left", got)
	}
	r.pass(keepBoots + time.Second)
	r.n.sweep(r.now)
	if len(r.n.boots) != 0 || r.n.remembered != 0 {
		t.Errorf("%d boots of %d cells remembered for ever", len(r.n.boots), r.n.remembered)
	}
}

// A host that draws a new boot id at each dial, with all the cells it can name.
func TestRememberedBootsAreBounded(t *testing.T) {
	r := newRig(t, revision(1, 200))
	var rows []said
	for cell := range 200 {
		rows = append(rows, said{cell, 1, law.Counts{Offered: 1}})
	}
	for i := range 2 * maxBoots / len(rows) {
		s := newSpeaker("h", uint64(i))
		s.join(r)
		s.report(rows...)
		r.n.leave(r.now, s.h)
		r.pass(time.Millisecond)
	}
	cells := 0
	for _, b := range r.n.boots {
		cells += len(b.counts)
	}
	if cells > maxBoots || cells != r.n.remembered || cells < maxBoots/2 {
		t.Errorf("%d cells remembered, counted as %d, want at most %d", cells, r.n.remembered, maxBoots)
	}
}

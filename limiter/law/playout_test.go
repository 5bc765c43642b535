package law

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Whatever is played out adds up, never runs ahead of what came in, and is out
// after two ticks.
func TestPlayoutIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p Playout
		p.Grow(1)
		now := time.Unix(1_000_000_000, 0)
		tick := now.Add(T)
		p.Tick(now)
		var in, last Counts
		for range rapid.IntRange(1, 50).Draw(t, "steps") {
			if rapid.IntRange(0, 2).Draw(t, "tick") == 0 {
				now = tick.Add(time.Duration(rapid.Int64Range(0, int64(T/4)).Draw(t, "tick is late")))
				p.Tick(now)
				tick = now.Add(T)
			} else {
				now = now.Add(time.Duration(rapid.Int64Range(0, int64(tick.Sub(now))).Draw(t, "time")))
				more := Counts{Offered: rapid.Uint64Range(0, 1000).Draw(t, "offered")}
				more.Dropped = rapid.Uint64Range(0, more.Offered).Draw(t, "dropped")
				more.ShadowDropped = rapid.Uint64Range(0, more.Offered-more.Dropped).Draw(t, "shadow")
				if rapid.IntRange(0, 4).Draw(t, "late") == 0 {
					more.Late = more.Offered
				}
				span := time.Duration(rapid.Int64Range(1, int64(HostSilent)).Draw(t, "span"))
				p.Add(0, more, p.Share(now, span))
				in.add(more)
			}
			out := p.Counts(0)
			if out.Offered < last.Offered || out.Dropped < last.Dropped || out.Late < last.Late {
				t.Fatalf("%+v after %+v", out, last)
			}
			if out.Offered > in.Offered || out.Dropped > out.Offered {
				t.Fatalf("%+v of %+v that came in", out, in)
			}
			last = out
		}
		for range 2 {
			now = now.Add(T)
			p.Tick(now)
		}
		if got := p.Counts(0); got != in {
			t.Fatalf("%+v after two ticks, want all of %+v", got, in)
		}
	})
}

// A child that reports at each T, at any phase of the node's, is played out
// evenly although two reports may come in one T and none in the next.
func TestPlayoutIsEven(t *testing.T) {
	for _, phase := range []time.Duration{0, T / 10, T / 2, T - 1} {
		var p Playout
		p.Grow(1)
		start := time.Unix(1_000_000_000, 0)
		p.Tick(start)
		var last uint64
		for i := range 60 {
			jitter := time.Duration(i%3-1) * 5 * time.Millisecond
			p.Add(0, Counts{Offered: 1000}, p.Share(start.Add(phase+max(0, jitter)), T))
			start = start.Add(T)
			p.Tick(start)
			got := p.Counts(0).Offered
			if more := got - last; i > 1 && (more < 980 || more > 1020) {
				t.Errorf("phase %v: %d released in a T of 1000", phase, more)
			}
			last = got
		}
	}
}

func TestPlayoutForgets(t *testing.T) {
	var p Playout
	p.Grow(2)
	p.Add(1, Counts{Offered: 5}, 0.5)
	p.Forget(1)
	p.Forget(9)
	p.Tick(time.Unix(1_000_000_000, 0))
	if got := p.Counts(1); got != (Counts{}) {
		t.Errorf("%+v of a cell that was forgotten", got)
	}
	if got := p.Counts(9); got != (Counts{}) {
		t.Errorf("%+v of a cell nobody named", got)
	}
}

func TestTrail(t *testing.T) {
	var tr Trail
	now := time.Unix(1_000_000_000, 0)
	if got := tr.Age(now, Stamp{Epoch: 1}); got != 0 {
		t.Errorf("age %v before anything was passed on", got)
	}
	for i := range uint64(100) {
		at := now.Add(time.Duration(i) * T)
		tr.Note(at, Stamp{Epoch: 1, Sequence: i + 1})
		tr.Note(at.Add(T/2), Stamp{Epoch: 1, Sequence: i + 1}) // another part
	}
	end := now.Add(99 * T)
	for _, tt := range []struct {
		name  string
		stamp Stamp
		want  time.Duration
	}{
		{"none taken", Stamp{}, 0},
		{"the last", Stamp{Epoch: 1, Sequence: 100}, 0},
		{"ten before it", Stamp{Epoch: 1, Sequence: 90}, 10 * T},
		{"the oldest that is remembered", Stamp{Epoch: 1, Sequence: 37}, 63 * T},
		{"an older one", Stamp{Epoch: 1, Sequence: 2}, 63 * T},
		{"of another epoch", Stamp{Epoch: 9, Sequence: 90}, 63 * T},
	} {
		if got := tr.Age(end, tt.stamp); got != tt.want {
			t.Errorf("%s: age %v, want %v", tt.name, got, tt.want)
		}
	}
}

// AddRates is Rate of each cell.
func TestZoneAddRates(t *testing.T) {
	for _, after := range []time.Duration{0, T, Handover} {
		z, a, b, now := newZone()
		z.Grow(3)
		z.Lose(now, a, Handover)
		z.Grow(5)
		b.Name(4, Counts{})
		z.Fold(b, 1, Rate{Offered: 7, Hosts: 1}, Counts{}, false)
		sums := make([]Rate, 6)
		sums[0] = Rate{Offered: 1, Hosts: 1}
		z.AddRates(now.Add(after), sums)
		for cell := range sums {
			want := z.Rate(now.Add(after), cell)
			if cell == 0 {
				want.Offered, want.Hosts = want.Offered+1, want.Hosts+1
			}
			if sums[cell] != want {
				t.Errorf("%v after a loss, cell %d: %+v, want %+v", after, cell, sums[cell], want)
			}
		}
	}
}

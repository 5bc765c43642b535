package law

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// newZone returns a zone of two aggregators that say 60 and 40 rps of a cell.
func newZone() (z *Zone, a, b *Child, now time.Time) {
	z, a, b = &Zone{}, &Child{}, &Child{}
	z.Grow(1)
	a.Name(0, Counts{})
	b.Name(0, Counts{})
	z.Fold(a, 0, Rate{Offered: 60, Hosts: 6}, Counts{}, false)
	z.Fold(b, 0, Rate{Offered: 40, Hosts: 4}, Counts{}, false)
	return z, a, b, time.Unix(1e9, 0)
}

func TestZoneHandsOver(t *testing.T) {
	z, a, b, now := newZone()
	z.Lose(now, a, Handover)
	steps := []struct {
		name string
		at   time.Duration
		b    Rate // what the other aggregator says
		want Rate
	}{
		{"at the loss", 0, Rate{Offered: 40, Hosts: 4}, Rate{Offered: 100, Hosts: 10}},
		{"half of the hosts moved", T / 2, Rate{Offered: 70, Hosts: 7}, Rate{Offered: 100, Hosts: 10}},
		{"all moved, and load rose", T, Rate{Offered: 120, Hosts: 12}, Rate{Offered: 120, Hosts: 12}},
		{"load fell again", T + T/10, Rate{Offered: 80, Hosts: 8}, Rate{Offered: 100, Hosts: 10}},
		{"the hosts had time to move", Handover, Rate{Offered: 80, Hosts: 8}, Rate{Offered: 80, Hosts: 8}},
		{"and later", 2 * Handover, Rate{Offered: 10, Hosts: 1}, Rate{Offered: 10, Hosts: 1}},
	}
	for _, s := range steps {
		z.Fold(b, 0, s.b, Counts{}, false)
		if got := z.Rate(now.Add(s.at), 0); got != s.want {
			t.Errorf("%s: %+v, want %+v", s.name, got, s.want)
		}
	}
}

func TestZoneLosesOneAfterAnother(t *testing.T) {
	z, a, b, now := newZone()
	z.Lose(now, a, Handover)
	z.Lose(now.Add(T), b, Handover)
	z.Lose(now.Add(2*T), b, Handover) // it is out already: nothing begins anew
	if got, want := z.Rate(now.Add(T+Handover-1), 0), (Rate{Offered: 100, Hosts: 10}); got != want {
		t.Errorf("while hosts move: %+v, want %+v", got, want)
	}
	if got := z.Rate(now.Add(T+Handover), 0); got != (Rate{}) {
		t.Errorf("after that: %+v, want nothing", got)
	}
}

func TestZoneForgetsWhatWasBefore(t *testing.T) {
	z, a, _, now := newZone()
	z.Lose(now, a, Handover)
	z.Forget(0)
	if got := z.Rate(now, 0); got != (Rate{}) {
		t.Errorf("%+v of a cell that was forgotten, want nothing", got)
	}
}

func TestWarmedUp(t *testing.T) {
	tests := []struct {
		since   time.Duration
		missing int
		want    bool
	}{
		{0, 0, false},
		{Handover - 1, 0, false},
		{Handover, 0, true},
		{Handover, 1, false},
		{WarmUpMost - 1, 1, false},
		{WarmUpMost, 1, true},
		{WarmUpMost, 30, true},
	}
	for _, tt := range tests {
		if got := WarmedUp(tt.since, tt.missing); got != tt.want {
			t.Errorf("WarmedUp(%v, %d) = %v, want %v", tt.since, tt.missing, got, tt.want)
		}
	}
}

func TestStampOrdersByEpochSequenceStep(t *testing.T) {
	draw := rapid.Custom(func(t *rapid.T) Stamp {
		n := rapid.Uint64Range(0, 2)
		return Stamp{n.Draw(t, "epoch"), n.Draw(t, "sequence"), n.Draw(t, "step")}
	})
	number := func(s Stamp) uint64 { return s.Epoch*9 + s.Sequence*3 + s.Step }
	rapid.Check(t, func(t *rapid.T) {
		a, b := draw.Draw(t, "a"), draw.Draw(t, "b")
		if got, want := a.After(b), number(a) > number(b); got != want {
			t.Fatalf("%v after %v: %v, want %v", a, b, got, want)
		}
	})
}

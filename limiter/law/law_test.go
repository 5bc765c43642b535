package law

import (
	"math"
	"testing"
	"time"
)

func TestDropRatio(t *testing.T) {
	tests := []struct {
		name           string
		offered, limit float64 // requests per second
		want           float64
	}{
		{"under the limit", 80, 100, 0},
		{"at the limit", 100, 100, 0},
		{"published: 1.5 times the limit drops a third", 150, 100, 1.0 / 3},
		{"a thousand times the limit lets one in a thousand pass", 1000, 1, 0.999},
		{"idle", 0, 5, 0},
		{"the smallest limit, a load no limit was made for", 1e12, 0.001, 1 - 1e-15},
		{"no load is infinite", math.Inf(1), 5, 0},
		{"no load is negative", -7, 5, 0},
		{"no load is not a number", math.NaN(), 5, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := DropRatio(tt.offered, tt.limit); math.IsNaN(got) || math.Abs(got-tt.want) > 1e-15 {
				t.Errorf("DropRatio(%v, %v) = %v, want %v", tt.offered, tt.limit, got, tt.want)
			}
		})
	}
}

func FuzzDropRatio(f *testing.F) {
	f.Add(150.0, 100.0)
	f.Add(1e11, 0.002)
	f.Fuzz(func(t *testing.T, offered, limit float64) {
		if !(offered >= 0 && offered < 1e12 && limit > 1e-3 && limit < 1e12) {
			return // not a load
		}
		r := DropRatio(offered, limit)
		if !(r >= 0 && r < 1) {
			t.Fatalf("DropRatio(%v, %v) = %v, out of [0, 1)", offered, limit, r)
		}
		if admitted := offered * (1 - r); admitted > limit*(1+1e-9)+offered*4e-16 {
			t.Fatalf("admits %v rps of %v over a limit of %v", admitted, offered, limit)
		}
		if offered <= limit && r != 0 {
			t.Fatalf("DropRatio(%v, %v) = %v within the limit", offered, limit, r)
		}
	})
}

// A ratio comes from a number in a message, so from any number.
func FuzzRatio(f *testing.F) {
	for _, admit := range []float64{0, 1, -1, 0.5, 2, math.NaN(), math.Inf(1), math.Inf(-1), math.SmallestNonzeroFloat64, math.MaxFloat64} {
		f.Add(admit)
	}
	f.Fuzz(func(t *testing.T, admit float64) {
		r := Ratio(admit)
		if !(r >= 0 && r < 1) {
			t.Fatalf("Ratio(%v) = %v, out of [0, 1)", admit, r)
		}
		if admit > 0 && admit < 1 && math.Abs(r-(1-admit)) > 0x1p-52 {
			t.Fatalf("Ratio(%v) = %v, want %v", admit, r, 1-admit)
		}
		if !(admit > 0 && admit < 1) && r != 0 {
			t.Fatalf("Ratio(%v) = %v, want 0", admit, r)
		}
	})
}

func TestAdmitStaysInItsRange(t *testing.T) {
	for _, offered := range []float64{0, 1e-300, 0.5, 1, 1e9, 1e13} {
		for _, limit := range []float64{0.001, 1, 1e9} {
			if a := Admit(offered, limit); !(a > 0 && a <= 1e6*(1+1e-12)) {
				t.Errorf("Admit(%v, %v) = %v, out of (0, 1e6]", offered, limit, a)
			}
		}
	}
}

func TestFading(t *testing.T) {
	const s = time.Second
	tests := []struct {
		name             string
		age, hold, decay time.Duration
		want             float64
	}{
		{"just renewed", 0, 10 * s, 10 * s, 1},
		{"held to the end", 10 * s, 10 * s, 10 * s, 1},
		{"half way", 15 * s, 10 * s, 10 * s, 0.5},
		{"nearly open", 19900 * time.Millisecond, 10 * s, 10 * s, 0.01},
		{"open", 20 * s, 10 * s, 10 * s, 0},
		{"open for long", 1000 * s, 10 * s, 10 * s, 0},
		{"open at once", 1, 0, 0, 0},
		{"held, then open without decay", 11 * s, 10 * s, 0, 0},
		{"decays at once", 5 * s, 0, 10 * s, 0.5},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := Fading(tt.age, tt.hold, tt.decay); math.Abs(got-tt.want) > 1e-9 {
				t.Errorf("Fading(%v, %v, %v) = %v, want %v", tt.age, tt.hold, tt.decay, got, tt.want)
			}
		})
	}
}

func TestFadingNeverRises(t *testing.T) {
	last := 1.0
	for age := time.Duration(0); age < 25*time.Second; age += 50 * time.Millisecond {
		got := Fading(age, 10*time.Second, 10*time.Second)
		if got > last {
			t.Fatalf("Fading(%v) = %v after %v", age, got, last)
		}
		last = got
	}
}

func TestMoved(t *testing.T) {
	tests := []struct {
		name      string
		f         func(now, sent float64) Moved
		now, sent float64
		want      Moved
	}{
		{"admit as it was", AdmitMoved, 0.5, 0.5, Still},
		{"admit within a thousandth", AdmitMoved, 0.50049, 0.5, Still},
		{"admit within 2 %", AdmitMoved, 0.505, 0.5, Drifts},
		{"admit beyond 2 %", AdmitMoved, 0.5101, 0.5, Jumps},
		{"admit far from dropping", AdmitMoved, 2.4, 2.1, Still},
		{"admit far from dropping, and far", AdmitMoved, 2.7, 2.1, Jumps},
		{"admit comes near", AdmitMoved, 1.99, 2.1, Jumps},
		{"rate as it was", RateMoved, 100, 100, Still},
		{"the first rate", RateMoved, 0.1, 0, Jumps},
		{"the last one", RateMoved, 0, 0.0011, Drifts},
		{"gone", RateMoved, 0, 50, Jumps},
		{"rate within its noise", RateMoved, 120, 100, Drifts},
		{"rate beyond its noise", RateMoved, 122, 100, Jumps},
		{"large rate beyond 2 %", RateMoved, 1.021e6, 1e6, Jumps},
		{"large rate within 2 %", RateMoved, 1.019e6, 1e6, Drifts},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.f(tt.now, tt.sent); got != tt.want {
				t.Errorf("moved from %v to %v = %v, want %v", tt.sent, tt.now, got, tt.want)
			}
		})
	}
}

func TestMicro(t *testing.T) {
	tests := []struct {
		rps  float64
		want MicroRPS
	}{
		{0, 0},
		{-1, 0},
		{math.NaN(), 0},
		{math.Inf(-1), 0},
		{1, 1e6},
		{0.0000004, 0},
		{0.0000006, 1},
		{MaxRPS, MaxRPS * 1e6},
		{1e300, MaxRPS * 1e6},
		{math.Inf(1), MaxRPS * 1e6},
	}
	for _, tt := range tests {
		if got := Micro(tt.rps); got != tt.want {
			t.Errorf("Micro(%v) = %d, want %d", tt.rps, got, tt.want)
		}
	}
	if most := uint64(MaxRPS * 1e6); most*10_000/10_000 != most {
		t.Errorf("ten thousand children at %v rps overflow", float64(MaxRPS))
	}
}

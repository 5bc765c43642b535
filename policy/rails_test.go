package policy

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestBound(t *testing.T) {
	at := monday
	tests := []struct {
		name string
		spec Spec
		in   BoundInput
		want float64
		rule string
	}{
		{"as computed", Spec{}, BoundInput{LimitRPS: 1234.5, PresentRPS: 1000}, 1234.5, ""},
		{"two digits", Spec{Digits: 2}, BoundInput{LimitRPS: 12345, PresentRPS: 10000}, 12000, ""},
		{"two digits of little", Spec{Digits: 2}, BoundInput{LimitRPS: 0.2961, PresentRPS: 0.2}, 0.3, ""},
		{"the first", Spec{Digits: 2}, BoundInput{LimitRPS: 12345}, 12000, ""},
		{"floor", Spec{Digits: 2, Floor: 105}, BoundInput{LimitRPS: 50, PresentRPS: 120}, 105, "floor"},
		{"rounding stays above the floor", Spec{Digits: 1, Floor: 105}, BoundInput{LimitRPS: 110, PresentRPS: 200, DownFromRPS: 110}, 105, ""},
		{"ceiling", Spec{Digits: 2, Ceiling: 1999}, BoundInput{LimitRPS: 3000, PresentRPS: 1500}, 1999, "ceiling"},
		{
			"planned capacity",
			Spec{Capacity: []Capacity{{at.Add(-day), 700}, {at.Add(-time.Hour), 900}, {at.Add(time.Hour), 800}}},
			BoundInput{LimitRPS: 3000, PresentRPS: 850},
			900, "capacity",
		},
		{"capacity that is there already", Spec{Capacity: []Capacity{{at, 900}}}, BoundInput{LimitRPS: 3000, PresentRPS: 850}, 900, "capacity"},
		{"capacity of later", Spec{Capacity: []Capacity{{at.Add(1), 900}}}, BoundInput{LimitRPS: 2000, PresentRPS: 850}, 2000, ""},
		{"below the floor: capacity", Spec{Floor: 100, Capacity: []Capacity{{at, 90}}}, BoundInput{LimitRPS: 95, PresentRPS: 92}, 90, "capacity"},
		{"dead band", Spec{Digits: 3}, BoundInput{LimitRPS: 1014, PresentRPS: 1000}, 1000, "dead_band"},
		{"beyond the dead band", Spec{Digits: 3}, BoundInput{LimitRPS: 1024, PresentRPS: 1000}, 1020, ""},
		{"nothing moves", Spec{Digits: 3}, BoundInput{LimitRPS: 1000, PresentRPS: 1000}, 1000, ""},
		{"no dead band above the ceiling", Spec{Ceiling: 1000}, BoundInput{LimitRPS: 1000, PresentRPS: 1010}, 1000, ""},
		{"down by a fifth", Spec{Digits: 2, MaxStep: 0.2}, BoundInput{LimitRPS: 100, PresentRPS: 10000}, 8000, "step"},
		{"towards where it may be", Spec{Digits: 2, MaxStep: 0.2}, BoundInput{LimitRPS: 100, PresentRPS: 6144}, 4920, "step"},
		{"at the rail where rounding were no move", Spec{Digits: 1, MaxStep: 0.003}, BoundInput{LimitRPS: 500, PresentRPS: 1000}, 997, "step"},
		{"slower than the dead band", Spec{Digits: 2, MaxStep: 0.01}, BoundInput{LimitRPS: 500, PresentRPS: 1000}, 990, "step"},
		{"rounding does not pass the rail", Spec{Digits: 1, MaxStep: 0.2}, BoundInput{LimitRPS: 84, PresentRPS: 104}, 84, "step"},
		{"against the same hour yesterday", Spec{MaxStep: 0.2}, BoundInput{LimitRPS: 100, PresentRPS: 500, DownFromRPS: 1000}, 800, "step"},
		{"half of the peak", Spec{Digits: 2, MaxStep: 1}, BoundInput{LimitRPS: 100, PresentRPS: 1000, PeakRPS: 800}, 400, "half_peak"},
		{"half of the peak raises nothing", Spec{MaxStep: 0.2}, BoundInput{LimitRPS: 100, PresentRPS: 200, PeakRPS: 8000}, 200, "half_peak"},
		{"the first at half of the peak", Spec{}, BoundInput{LimitRPS: 100, PeakRPS: 800}, 400, "half_peak"},
		{"but not above a ceiling", Spec{Ceiling: 300}, BoundInput{LimitRPS: 300, PeakRPS: 800}, 300, ""},
		{"up by three", Spec{Digits: 2}, BoundInput{LimitRPS: 1e6, PresentRPS: 111}, 333, "triple"},
		{"a ceiling lowers no faster", Spec{Ceiling: 100, MaxStep: 0.2}, BoundInput{LimitRPS: 900, PresentRPS: 1000}, 800, "step"},
		{"not lowered", Spec{MaxStep: 0.2}, BoundInput{LimitRPS: 900, PresentRPS: 1000, NoLower: "own_drops"}, 1000, "no_lower"},
		{"but raised", Spec{MaxStep: 0.2}, BoundInput{LimitRPS: 1900, PresentRPS: 1000, NoLower: "own_drops"}, 1900, ""},
		{"below nothing", Spec{MaxStep: 1}, BoundInput{LimitRPS: -7, PresentRPS: 1000}, 0.001, "range"},
		{"no number", Spec{MaxStep: 0.2}, BoundInput{LimitRPS: math.NaN(), PresentRPS: 1000}, 1000, ""},
		{"no number, and no limit yet", Spec{MaxStep: 0.2}, BoundInput{LimitRPS: math.NaN()}, 1e9, ""},
		{"infinite", Spec{Digits: 2}, BoundInput{LimitRPS: math.Inf(1), PresentRPS: 1000}, 3000, "triple"},
		{"infinite, and no limit yet", Spec{Digits: 2}, BoundInput{LimitRPS: math.Inf(1)}, 1e9, "range"},
		{"agreed: as it is", Spec{Kind: "quota", Digits: 2, MaxStep: 0.2}, BoundInput{LimitRPS: 1009, PresentRPS: 1000}, 1009, ""},
		{"agreed: as slowly as others", Spec{Kind: "quota", MaxStep: 0.2}, BoundInput{LimitRPS: 100, PresentRPS: 1000}, 800, "step"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.in.At = at
			if tt.spec.MaxStep == 0 {
				tt.spec.MaxStep = 0.5
			}
			got := Bound(&tt.spec, tt.in)
			if got.LimitRPS != tt.want || got.Rule != tt.rule {
				t.Errorf("Bound = %v by %q (%s), want %v by %q", got.LimitRPS, got.Rule, got.Words, tt.want, tt.rule)
			}
			if (got.Rule == "") != (got.Words == "") {
				t.Errorf("rule %q with words %q", got.Rule, got.Words)
			}
		})
	}
}

// drawBound draws specs and inputs, hostile ones too.
func drawBound(t *rapid.T) (*Spec, BoundInput) {
	rate := rapid.OneOf(rapid.Float64Range(0.001, 1e9), rapid.Float64Range(0.01, 10_000))
	maybe := rapid.OneOf(rapid.Just(0.0), rate)
	s := &Spec{
		Kind:    rapid.SampledFrom([]string{"peak", "quota", "forecast"}).Draw(t, "kind"),
		Digits:  rapid.IntRange(0, 4).Draw(t, "digits"),
		MaxStep: rapid.Float64Range(0.001, 1).Draw(t, "step"),
		Floor:   maybe.Draw(t, "floor"),
	}
	if rapid.Bool().Draw(t, "ceiling") {
		s.Ceiling = max(s.Floor, rate.Draw(t, "most"))
	}
	return s, BoundInput{
		At:          monday,
		LimitRPS:    rapid.OneOf(rate, rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), math.Inf(-1), 0, -1, 1e300, 1e-300})).Draw(t, "limit"),
		PresentRPS:  maybe.Draw(t, "present"),
		DownFromRPS: maybe.Draw(t, "down from"),
		PeakRPS:     maybe.Draw(t, "peak"),
		NoLower:     rapid.SampledFrom([]string{"", "", "own_drops"}).Draw(t, "no lower"),
	}
}

func TestNothingPassesTheRails(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, in := drawBound(t)
		got := Bound(s, in).LimitRPS
		if !(got >= LeastRPS && got <= MostRPS) {
			t.Fatalf("limit %v", got)
		}
		if in.PresentRPS == 0 {
			return
		}
		from := in.DownFromRPS
		if from == 0 {
			from = in.PresentRPS
			if got > 3*in.PresentRPS && got != LeastRPS {
				t.Fatalf("%v is more than three times %v", got, in.PresentRPS)
			}
		}
		if least := min((1-s.MaxStep)*from, MostRPS); got < least {
			t.Fatalf("%v is less than %v, the lowest step", got, least)
		}
		if got < in.PresentRPS && got < in.PeakRPS/2 {
			t.Fatalf("lowered to %v, below half of the peak %v", got, in.PeakRPS)
		}
		if in.NoLower != "" && got < in.PresentRPS {
			t.Fatalf("lowered to %v on history that must not", got)
		}
	})
}

func TestBoundIsSettled(t *testing.T) {
	// What a cycle set, the next one with the same figures keeps or goes on from,
	// never back and forth.
	rapid.Check(t, func(t *rapid.T) {
		s, in := drawBound(t)
		in.DownFromRPS, in.NoLower = 0, ""
		if !(in.LimitRPS > 0) {
			return
		}
		way := 0.0
		for range 60 {
			got := Bound(s, in).LimitRPS
			if in.PresentRPS > 0 {
				if (got-in.PresentRPS)*way < 0 {
					t.Fatalf("turned at %v → %v", in.PresentRPS, got)
				}
				way += got - in.PresentRPS
			}
			in.PresentRPS = got
		}
	})
}

func TestSentence(t *testing.T) {
	s := &Spec{Kind: "peak", Digits: 2, MaxStep: 0.2}
	sentence := func(present, computed float64, noLower string) string {
		b := Bound(s, BoundInput{LimitRPS: computed, PresentRPS: present, NoLower: noLower})
		return Sentence(present, b, "the peak of the last 4 weeks")
	}
	tests := []struct{ name, got, want string }{
		{"moved", sentence(12000, 14049, ""), "12,000 → 14,000 rps: the peak of the last 4 weeks"},
		{"bounded", sentence(12000, 1, ""), "12,000 → 9,600 rps: the peak of the last 4 weeks; kept within 20 % a day"},
		{"stays", sentence(12000, 12000, ""), "12,000 rps stays: the peak of the last 4 weeks"},
		{"nearly the same", sentence(12000, 12111, ""), "12,000 rps stays: the peak of the last 4 weeks"},
		{"first", sentence(0, 0.3333, ""), "0.33 rps: the peak of the last 4 weeks"},
		{
			"not lowered", sentence(12000, 11000, "own_drops"),
			"12,000 rps stays: the peak of the last 4 weeks; not lowered, since grl itself dropped some of it in the last 7 days",
		},
		{"no reason", Sentence(1000, Bounded{LimitRPS: 1e6}, ""), "1,000 → 1,000,000 rps"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.got != tt.want {
				t.Errorf("%s\nwant\n%s", tt.got, tt.want)
			}
		})
	}
}

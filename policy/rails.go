package policy

import (
	"math"
	"time"
)

// The rails. No policy can pass them; larger moves wait for a person.
const (
	// LeastRPS and MostRPS are between which every limit lies.
	LeastRPS, MostRPS = 0.001, 1e9
	// leastOfPeak is the share of the highest step of the last 7 days below which
	// no limit is lowered.
	leastOfPeak = 0.5
	// mostOfPresent is how many times the present limit a new one may be.
	mostOfPresent = 3
	// deadBand is the share of the present limit by which one must move at least.
	deadBand = 0.02
)

// BoundInput is a computed limit and what bounds it. All rates are in requests
// per second.
type BoundInput struct {
	// At is when the limit holds: the cycle, or the hour of an hourly limit.
	At time.Time
	// LimitRPS is what the policy computed.
	LimitRPS float64
	// PresentRPS is the limit that it replaces, of an hourly one that of the same
	// hour; 0: there is none.
	PresentRPS float64
	// DownFromRPS is what Spec.MaxStep is a share of: of an hourly limit that of
	// the same hour yesterday, of one computed every few minutes that of an hour
	// ago. 0: PresentRPS.
	DownFromRPS float64
	// PeakRPS is the highest step of the last 7 days, of an hourly limit that of
	// the hour's own; 0: unknown.
	PeakRPS float64
	// NoLower is why the limit must not fall, a word of Refusals; "": it may.
	NoLower string
}

// Bounded is a limit within all bounds.
type Bounded struct {
	// LimitRPS is in [LeastRPS, MostRPS]; PresentRPS where nothing is to change.
	LimitRPS float64
	// Rule is what moved the limit away from the one computed, a word of Rules;
	// "": rounding at most.
	Rule string
	// Words say so, such as "kept within 20 % a day"; "": nothing did.
	Words string
}

// rules is what may keep a limit from being the one computed.
var rules = []Word{
	{"floor", "the floor of the policy"},
	{"ceiling", "the ceiling of the policy"},
	{"capacity", "the planned capacity"},
	{"dead_band", "a move of less than 2 % is none"},
	{"step", "down at most a share of the limit a day, of a live one an hour"},
	{"half_peak", "not below half of the highest minute of the last 7 days"},
	{"triple", "up at most to three times the present limit"},
	{"range", "a limit lies between 0.001 and 1,000,000,000 rps"},
	{"no_lower", "not lowered on such history"},
}

// Rules returns the words of Bounded.Rule. It is not changed.
func Rules() []Word { return rules }

// Bound holds a computed limit to what its policy and the rails allow: floor,
// ceiling and planned capacity, rounding, the dead band, then the rails, which
// nothing before them passes. It is pure.
// Source: docs/rlc.md, "Rails".
func Bound(s *Spec, in BoundInput) Bounded {
	b := bounding{spec: s, in: in, limit: in.LimitRPS}
	if math.IsNaN(b.limit) {
		// Nothing was computed. Present stays; else what drops nothing.
		b.limit = MostRPS
		if in.PresentRPS > 0 {
			b.limit = in.PresentRPS
		}
	}
	b.wishes()
	b.rails()
	return Bounded{LimitRPS: b.limit, Rule: b.rule, Words: b.words}
}

// bounding is a limit on its way through the bounds.
type bounding struct {
	spec        *Spec
	in          BoundInput
	limit       float64
	rule, words string
}

// to moves the limit, and says why if that is not what it was rounded to.
func (b *bounding) to(limit float64, rule, words string) {
	b.limit, b.rule, b.words = limit, rule, words
}

// wishes applies what people ask for: bounds, round figures, few changes.
func (b *bounding) wishes() {
	s := b.spec
	least, most := s.Floor, math.Inf(1)
	mostRule, mostWords := "ceiling", "the ceiling of the policy"
	if s.Ceiling > 0 {
		most = s.Ceiling
	}
	if planned := s.capacityAt(b.in.At); planned < most {
		most, mostRule, mostWords = planned, "capacity", "the planned capacity"
	}
	if b.limit < least {
		b.to(least, "floor", "the floor of the policy")
	}
	if b.limit > most { // beyond the floor too: it would protect nothing
		b.to(most, mostRule, mostWords)
	}
	if kindOf(s.Kind).Exact {
		return
	}
	if b.rule == "" { // a bound that people gave has as many digits as they wrote
		// To the nearest. Upwards costs headroom (docs/rlc.md: a median of 1.26 peaks
		// instead of 1.19) and keeps no more series within a tenth of a percent.
		b.limit = min(max(roundDigits(b.limit, s.Digits, math.Round), least), most)
	}
	present := b.in.PresentRPS
	if present >= least && present <= most && math.Abs(b.limit-present) < deadBand*present {
		moved := b.limit != present
		b.limit = present
		if moved && b.rule == "" {
			b.to(present, "dead_band", "a move of less than 2 %")
		}
	}
}

// rails bounds how fast a limit moves.
func (b *bounding) rails() {
	in := b.in
	if in.PresentRPS > 0 && b.limit > mostOfPresent*in.PresentRPS {
		b.to(b.within(mostOfPresent*in.PresentRPS, math.Floor), "triple", "kept within three times the present limit")
	}
	// The rail on halves keeps a limit from being lowered and raises none that
	// people set, or bound by a ceiling.
	half := leastOfPeak * in.PeakRPS
	if in.PresentRPS > 0 {
		half = min(half, in.PresentRPS)
	} else if b.spec.Ceiling > 0 {
		half = min(half, b.spec.Ceiling)
	}
	if b.limit < half {
		b.to(b.within(half, math.Ceil), "half_peak", "kept at half of the last 7 days' peak")
	}
	from := in.DownFromRPS
	if !(from > 0) {
		from = in.PresentRPS
	}
	if least := (1 - b.spec.MaxStep) * from; from > 0 && b.limit < least {
		b.to(b.within(least, math.Ceil), "step", "kept within "+percent(b.spec.MaxStep)+b.pace())
	}
	if in.NoLower != "" && b.limit < in.PresentRPS {
		b.to(in.PresentRPS, "no_lower", "not lowered, since "+textOf(refusals, in.NoLower))
	}
	if !(b.limit >= LeastRPS && b.limit <= MostRPS) {
		b.to(clamp(b.limit, LeastRPS, MostRPS), "range", "kept between 0.001 and 1,000,000,000 rps")
	}
}

// pace returns in what time a limit is lowered by one step.
func (b *bounding) pace() string {
	switch kindOf(b.spec.Kind).Step {
	case time.Hour:
		return " an hour"
	case day:
		return " a day"
	default:
		return " a cycle"
	}
}

// within returns a limit at a rail: rounded to one digit more than others towards
// where it may be, or the rail itself where that would be no move at all.
func (b *bounding) within(rail float64, inwards func(float64) float64) float64 {
	if b.spec.Digits == 0 {
		return rail
	}
	rounded := roundDigits(rail, b.spec.Digits+1, inwards)
	if present := b.in.PresentRPS; present > 0 && (rounded-present)*(rail-present) <= 0 {
		return rail
	}
	return rounded
}

// roundDigits rounds x to so many significant digits; 0: not at all.
func roundDigits(x float64, digits int, round func(float64) float64) float64 {
	if digits == 0 || !(x > 0) || math.IsInf(x, 0) {
		return x
	}
	exponent := digits - 1 - int(math.Floor(math.Log10(x)))
	// A power below one is no exact number: divide by the whole one instead, or
	// 0.3 becomes 0.30000000000000004.
	if exponent < 0 {
		unit := math.Pow10(-exponent)
		return round(x/unit) * unit
	}
	unit := math.Pow10(exponent)
	return round(x*unit) / unit
}

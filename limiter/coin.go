package limiter

// One is the drop ratio 1 in the fixed point of Coin.
const One uint64 = 1 << 32

// Coin selects requests to drop so that their share is the drop ratio: it
// carries what it still owes, or has dropped too much, from one request to the
// next, with a jitter of ±0.05 that keeps it from falling into step with
// periodic traffic. After n requests at ratio p the count of drops is within
// 1 + 0.12*sqrt(n) of n*p (four standard deviations).
//
// Its value is the debt in units of 1/One. The zero value is ready.
// Source: docs/architecture.md, "The coin".
type Coin int64

// jitterSpan is the width of the jitter, 0.1, in units of 1/One.
const jitterSpan = One / 10

// Flip says whether to drop a request at ratio p, and returns the coin for the
// next request. p is in [0, One]; random is uniform. At 0 and One the coin
// stays as it is.
func (c Coin) Flip(p, random uint64) (drop bool, next Coin) {
	if p == 0 || p >= One {
		return p != 0, c
	}
	x := c + Coin(p)
	drop = Coin(random>>32) < x
	if drop {
		x -= Coin(One)
	}
	// The low half of the draw is independent of the half that decided.
	jitter := Coin((random & (One - 1)) * jitterSpan >> 32)
	return drop, x + jitter - Coin(jitterSpan/2)
}

// A coin whose draws come from traces keeps to the ratio while its debt is what
// chance explains, and moves the threshold by 1/tracePull of what is beyond:
// little enough that one journey of many requests hardly matters to others.
const (
	traceSlack = 128 * Coin(One) // requests
	tracePull  = 1 << 14
)

// FlipTrace is Flip for draws that belong to journeys, in [0, One): it drops
// what draws below the ratio. So all coins with the same draws drop the same
// journeys, and those dropped at a ratio are dropped at any higher one too.
//
// Where the draws are not uniform, since a hop before this one dropped the
// lowest, that alone would drop too little. The debt shows it: once it is
// beyond 128 requests, the threshold moves, within some 10,000 requests, until
// the share is the ratio again. After n requests with uniform draws, the count of drops is within
// 4*sqrt(n*p*(1-p)) of n*p (four standard deviations), as of a coin without
// memory.
func (c Coin) FlipTrace(p, draw uint64) (drop bool, next Coin) {
	if p == 0 || p >= One {
		return p != 0, c
	}
	threshold := Coin(p) + (c-min(max(c, -traceSlack), traceSlack))/tracePull
	next = c + Coin(p)
	if drop = Coin(draw) < threshold; drop {
		next -= Coin(One)
	}
	return drop, next
}

// FixedRatio converts a drop ratio in [0, 1] for Coin.Flip; anything else, NaN
// too, counts as 0. Only 1 itself becomes One: below it a few requests pass.
func FixedRatio(p float64) uint64 {
	switch {
	case p == 1:
		return One
	case p > 0 && p < 1:
		return min(uint64(p*float64(One)+0.5), One-1)
	default:
		return 0
	}
}

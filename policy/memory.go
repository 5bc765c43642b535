package policy

import "time"

// Memory is what the past cycles of one unit taught: see peak. The zero value is
// nothing.
type Memory struct {
	// Cycles are in the order of time, at most MaxCycles.
	Cycles []Cycle
	// Open is the cycle that is not over; nil: none.
	Open *Cycle
}

// Cycle is what one past cycle of peak taught.
type Cycle struct {
	From, To time.Time
	// BaseRPS is the robust peak times growth as the cycle used them, before the
	// factor of seconds over minutes.
	BaseRPS float64
	// Volume is what was offered in it, in requests; Dropped what limits of
	// BaseRPS times 1.00, 1.02, … 1.28 would have dropped of that. Both are 0 and
	// nil while the cycle is not over.
	Volume  float64
	Dropped []float64
}

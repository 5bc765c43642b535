package policy

import "time"

// Cycle is what one past cycle of peak taught.
type Cycle struct {
	From, To time.Time
	// BaseRPS is G times g as the cycle used them.
	BaseRPS float64
	// Volume is what was offered in it, in requests; Dropped what limits of
	// BaseRPS times each of Buffers would have dropped of that.
	Volume  float64
	Dropped []float64
}

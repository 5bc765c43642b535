package law

import (
	"math"
	"time"
)

const (
	// RampFor is how long a cap takes to end.
	RampFor = 2 * time.Minute
	// rampDoubles is how often what a cap admits doubles meanwhile.
	rampDoubles = 15 * time.Second
	// rampBlocked is the share of what is offered that a cap which blocks
	// admits when it begins to end.
	rampBlocked = 0.01
)

// RampOut returns the drop ratio of a cap that ended so long ago: what it admits
// doubles each 15 s, and after 2 minutes it drops nothing. ratio, in [0, 1], is
// what it would drop in force. Before the end, past < 0, it is that.
func RampOut(ratio float64, past time.Duration) float64 {
	switch {
	case past < 0:
		return ratio
	case past >= RampFor:
		return 0
	}
	admit := max(1-ratio, rampBlocked)
	return max(0, 1-admit*math.Exp2(past.Seconds()/rampDoubles.Seconds()))
}

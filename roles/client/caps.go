package client

import (
	"time"

	"grl/limiter"
	"grl/limiter/law"
)

// applyCap writes the ratio of a cap that would drop that share in force; live
// says that a directive spoke for it. From its end on it ramps out by this
// host's clock, whoever is silent.
func applyCap(now time.Time, c *limiter.Cell, ratio float64, live bool) {
	bucket := c.Bucket()
	past := now.Sub(bucket.Cap.Ends)
	if bucket.Block {
		ratio = 1
	}
	switch {
	case past >= 0:
		c.SetRamp(law.RampOut(ratio, past))
	case live:
		c.SetRatio(ratio)
	default:
		c.SetOpen() // one that blocks drops everything nevertheless
	}
}

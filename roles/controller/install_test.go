package controller

import (
	"testing"
	"time"

	"grl/limiter"
	"grl/store/ledger"
)

// TestClockSetBack sets the clock back after a cap was placed: receivers would
// refuse a configuration whose cap has more time left than any may.
func TestClockSetBack(t *testing.T) {
	placed := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name string
		now  time.Time
		left time.Duration
	}{
		{"as it was placed", placed, 24 * time.Hour},
		{"an hour later", placed.Add(time.Hour), 23 * time.Hour},
		{"ten days before", placed.AddDate(0, 0, -10), 24 * time.Hour},
		{"ten days later", placed.AddDate(0, 0, 10), -9 * 24 * time.Hour},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var c limiter.Configuration
			takeIncident(&c, ledger.Incident{Caps: []ledger.Cap{{ID: "1", PlacedAt: placed, EndsAt: placed.Add(24 * time.Hour)}}}, tt.now)
			if got := c.Caps[0].Ends.Sub(tt.now); got != tt.left {
				t.Errorf("%v left, want %v", got, tt.left)
			}
		})
	}
}

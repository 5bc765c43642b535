package history

import (
	"context"
	"math/rand/v2"
	"time"
)

// firstWait is how long the second try of a call waits; each further one waits
// twice as long, and up to half of that by chance.
const firstWait = 500 * time.Millisecond

// wait returns before the given try, counted from 0, may be made.
func wait(ctx context.Context, try int) error {
	if try == 0 {
		return ctx.Err()
	}
	pause := firstWait << (try - 1)
	timer := time.NewTimer(pause + rand.N(pause/2))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

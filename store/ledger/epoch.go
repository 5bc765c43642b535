package ledger

import (
	"context"
	"fmt"
	"math"

	"grl/store"
)

const keyEpoch = "epoch"

// maxLeap is how far above the last epoch one that was heard is believed. Epochs
// count leaders, so a store that was lost, or restored, is behind by less; and
// what one host claims to have heard cannot use up those there are.
const maxLeap = 1 << 20

// NextEpoch returns an epoch above every one that this ledger gave out and above
// heard, the highest that a receiver of directives knows, so that a lost or
// restored store does not silence a controller. At least 1, and at most 1,048,577
// above the last one.
func (l *Ledger) NextEpoch(ctx context.Context, heard uint64) (uint64, error) {
	var epoch uint64
	err := l.change(ctx, []string{keyEpoch}, func(_ context.Context, records []store.Record) (*plan, error) {
		epoch = 0
		if err := decode(records[0], &epoch); err != nil {
			return nil, err
		}
		epoch = max(epoch, min(heard, epoch+maxLeap))
		if epoch >= math.MaxInt64 {
			return nil, fmt.Errorf("no epoch is left above %d", epoch)
		}
		epoch++
		return &plan{writes: []store.Write{put(keyEpoch, epoch)}}, nil
	})
	if err != nil {
		return 0, fmt.Errorf("take epoch: %w", err)
	}
	return epoch, nil
}

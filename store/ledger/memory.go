package ledger

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"grl/store"
)

// MaxMemory bounds what is remembered of one bucket, in bytes.
const MaxMemory = 512 << 10

const keyMemory = "rlc-memory/"

// memoryKey returns the key of what is remembered of a bucket: by the hash of
// its full name, which may be longer than a key.
func memoryKey(bucket string) string { return keyMemory + hashOf([]byte(bucket)).String() }

// Memory returns what was remembered of buckets, by their full names; those of
// which nothing was are left out.
func (l *Ledger) Memory(ctx context.Context, buckets []string) (map[string][]byte, error) {
	memories := make(map[string][]byte)
	for chunk := range slices.Chunk(buckets, getKeys) {
		keys := make([]string, len(chunk))
		for i, bucket := range chunk {
			keys[i] = memoryKey(bucket)
		}
		records, err := l.engine.Get(ctx, keys...)
		if err != nil {
			return nil, fmt.Errorf("read memory of buckets: %w", err)
		}
		for i, r := range records {
			if r.Version != 0 {
				memories[chunk[i]] = r.Value
			}
		}
	}
	return memories, nil
}

// PutMemory remembers something of each of these buckets in place of what was
// remembered; nothing of one whose memory is empty. ErrTooMany if one exceeds
// MaxMemory. After an error some may be written, each of them whole.
func (l *Ledger) PutMemory(ctx context.Context, memories map[string][]byte) error {
	var writes []store.Write
	for _, bucket := range slices.Sorted(maps.Keys(memories)) {
		data := memories[bucket]
		if len(data) > MaxMemory {
			return fmt.Errorf("put memory of %q: %w: %d bytes, at most %d", bucket, ErrTooMany, len(data), MaxMemory)
		}
		writes = append(writes, store.Write{Key: memoryKey(bucket), Value: data, Delete: len(data) == 0})
	}
	if err := l.write(ctx, writes); err != nil {
		return fmt.Errorf("put memory of buckets: %w", err)
	}
	return nil
}

// PruneMemory forgets what was remembered of buckets other than these.
func (l *Ledger) PruneMemory(ctx context.Context, keep []string) error {
	if err := l.pruneMemory(ctx, keep); err != nil {
		return fmt.Errorf("prune memory of buckets: %w", err)
	}
	return nil
}

func (l *Ledger) pruneMemory(ctx context.Context, keep []string) error {
	kept := make(map[string]bool, len(keep))
	for _, bucket := range keep {
		kept[memoryKey(bucket)] = true
	}
	after := ""
	for {
		records, err := l.engine.List(ctx, keyMemory, after, getKeys)
		if err != nil || len(records) == 0 {
			return err
		}
		after = records[len(records)-1].Key
		var writes []store.Write
		for _, r := range records {
			if !kept[r.Key] {
				writes = append(writes, store.Write{Key: r.Key, Delete: true})
			}
		}
		if err := l.write(ctx, writes); err != nil {
			return err
		}
	}
}

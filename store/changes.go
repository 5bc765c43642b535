package store

import (
	"context"
	"strings"
	"sync"
)

// changes tells who watches a prefix that a record below it was written.
type changes struct {
	mu       sync.Mutex               // guards watchers, and sending against closing
	watchers map[chan struct{}]string // → prefix
}

// Changed implements Engine.
func (s *Store) Changed(ctx context.Context, prefix string) <-chan struct{} {
	ch := make(chan struct{}, 1)
	ch <- struct{}{}
	c := &s.changes
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.watchers == nil {
		c.watchers = make(map[chan struct{}]string)
	}
	c.watchers[ch] = prefix
	context.AfterFunc(ctx, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.watchers, ch)
		close(ch)
	})
	return ch
}

func (c *changes) notify(writes []Write) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for ch, prefix := range c.watchers {
		for _, w := range writes {
			if !strings.HasPrefix(w.Key, prefix) {
				continue
			}
			select {
			case ch <- struct{}{}:
			default: // one waits already
			}
			break
		}
	}
}

// Campaign implements Engine: at once, since the lock of the directory keeps
// every other process out. Lost never closes.
func (s *Store) Campaign(ctx context.Context, _, _ string) (Leadership, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return sole{}, nil
}

// sole is the leadership of the only process.
type sole struct{}

func (sole) Lost() <-chan struct{}        { return nil }
func (sole) Resign(context.Context) error { return nil }

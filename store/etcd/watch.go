package etcd

import (
	"context"
	"math/rand/v2"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// rewatch is the longest wait before a watch that ended begins anew.
const rewatch = 500 * time.Millisecond

// Changed implements store.Engine. It also closes the channel when the engine is
// closed.
func (e *Engine) Changed(ctx context.Context, prefix string) <-chan struct{} {
	changed := make(chan struct{}, 1)
	changed <- struct{}{}
	ctx, cancel := e.withEngine(ctx)
	e.running.Go(func() {
		defer close(changed)
		defer cancel()
		for ctx.Err() == nil {
			e.watch(ctx, prefix, func() {
				select {
				case changed <- struct{}{}:
				default: // one waits already
				}
			})
			pause(ctx, rewatch)
		}
	})
	return changed
}

// watch tells of changes until it cannot any more. It also tells when it has
// begun, of what happened before: so nothing is missed between two watches.
func (e *Engine) watch(ctx context.Context, prefix string, tell func()) {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	for answer := range e.client.Watch(ctx, e.prefix+prefix, clientv3.WithPrefix(), clientv3.WithCreatedNotify(), clientv3.WithKeysOnly()) {
		tell()
		if answer.Err() != nil {
			return
		}
	}
}

// withEngine returns a context that ends with ctx, or when the engine is closed.
func (e *Engine) withEngine(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(e.client.Ctx(), cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}

// pause waits, at most so long.
func pause(ctx context.Context, longest time.Duration) {
	select {
	case <-time.After(rand.N(longest)):
	case <-ctx.Done():
	}
}

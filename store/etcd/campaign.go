package etcd

import (
	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"grl/store"
)

const (
	// leaseTTL is how long a leader that died stays one. etcd's default election
	// timeout allows no shorter one.
	leaseTTL = 2 * time.Second
	// retry is the longest wait before a failed campaign goes on.
	retry = 500 * time.Millisecond
)

// Campaign implements store.Engine: who leads has a key that lives as long as a
// lease, which it renews.
func (e *Engine) Campaign(ctx context.Context, name, who string) (store.Leadership, error) {
	key := "leader/" + name
	if err := store.CheckKey(key); err != nil {
		return nil, fmt.Errorf("campaign for %q: %w", name, err)
	}
	within, cancel := e.withEngine(ctx)
	defer cancel()
	for within.Err() == nil {
		l, err := e.tryLead(within, e.prefix+key, who)
		if l != nil {
			return l, nil
		}
		if err != nil {
			pause(within, retry)
		}
	}
	err := ctx.Err()
	if err == nil {
		err = fmt.Errorf("%w: closed", store.ErrUnavailable)
	}
	return nil, fmt.Errorf("campaign for %q: %w", name, err)
}

// tryLead waits until nobody leads, and then leads unless another one is faster.
func (e *Engine) tryLead(ctx context.Context, key, who string) (*leadership, error) {
	if err := e.awaitNoLeader(ctx, key); err != nil {
		return nil, err
	}
	asked := time.Now()
	within, cancel := request(ctx)
	defer cancel()
	lease, err := e.client.Grant(within, int64(leaseTTL/time.Second))
	if err != nil {
		return nil, err
	}
	free := clientv3.Compare(clientv3.CreateRevision(key), "=", 0)
	answer, err := e.txn(ctx, []clientv3.Cmp{free}, []clientv3.Op{clientv3.OpPut(key, who, clientv3.WithLease(lease.ID))})
	if err != nil || !answer.Succeeded {
		// Even if the answer got lost the key is gone with the lease, at once or
		// when it runs out.
		within, cancel := request(context.WithoutCancel(ctx))
		defer cancel()
		_, revokeErr := e.client.Revoke(within, lease.ID)
		return nil, errors.Join(err, revokeErr)
	}
	return e.lead(lease, asked), nil
}

// awaitNoLeader returns when there is no such key.
func (e *Engine) awaitNoLeader(ctx context.Context, key string) error {
	within, cancel := request(ctx)
	defer cancel()
	answer, err := e.client.Get(within, key, clientv3.WithKeysOnly())
	if err != nil || len(answer.Kvs) == 0 {
		return err
	}
	ctx, stop := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer stop()
	for watched := range e.client.Watch(ctx, key, clientv3.WithRev(answer.Header.Revision+1), clientv3.WithFilterPut()) {
		if err := watched.Err(); err != nil {
			return err
		}
		if len(watched.Events) > 0 {
			return nil
		}
	}
	return errors.New("watch ended")
}

package etcd

import (
	"context"
	"errors"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// leadership is a lease that is renewed until it is lost or given up.
type leadership struct {
	engine *Engine
	lease  clientv3.LeaseID
	term   *term
	cancel context.CancelFunc
	ended  chan struct{} // closed when nothing renews it any more
}

// lead renews a lease that was asked for then.
func (e *Engine) lead(lease *clientv3.LeaseGrantResponse, asked time.Time) *leadership {
	ctx, cancel := e.withEngine(context.Background())
	l := &leadership{
		engine: e, lease: lease.ID, cancel: cancel, ended: make(chan struct{}),
		term: newTerm(asked.Add(safe(lease.TTL))),
	}
	e.running.Go(func() {
		defer close(l.ended)
		defer cancel()
		defer l.term.end()
		l.renew(ctx)
	})
	return l
}

// safe returns how long after we asked for it a lease of so many seconds surely
// lasts, even if etcd's clock is faster than ours.
func safe(seconds int64) time.Duration { return time.Duration(seconds) * time.Second * 9 / 10 }

// Lost implements store.Leadership. It looks at the clock: after a pause of the
// whole process, what it returns is closed though nothing else has run yet.
func (l *leadership) Lost() <-chan struct{} { return l.term.over() }

// Resign implements store.Leadership.
func (l *leadership) Resign(ctx context.Context) error {
	l.term.end()
	l.cancel()
	<-l.ended
	within, cancel := request(ctx)
	defer cancel()
	_, err := l.engine.client.Revoke(within, l.lease)
	return classify(ctx, err)
}

// renew extends the lease until it is over or ctx ends.
func (l *leadership) renew(ctx context.Context) {
	tick := time.NewTicker(leaseTTL / 5)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.Lost():
			return
		case <-tick.C:
		}
		asked := time.Now()
		seconds, err := l.engine.keepAlive(ctx, l.lease)
		if err == nil && seconds <= 0 {
			return // it ran out
		}
		if err == nil { // after an error the next tick tries again
			l.term.extend(asked.Add(safe(seconds)))
		}
	}
}

// keepAlive renews a lease once and returns how many seconds it lasts; 0: there
// is none. The client's own keep-alive will not do: it does not say when it
// asked, and an answer may have lain in a buffer while the process was frozen.
func (e *Engine) keepAlive(ctx context.Context, lease clientv3.LeaseID) (seconds int64, err error) {
	ctx, cancel := context.WithTimeout(clientv3.WithRequireLeader(ctx), leaseTTL/2)
	defer cancel()
	stream, err := pb.NewLeaseClient(e.client.ActiveConnection()).LeaseKeepAlive(ctx)
	if err != nil {
		return 0, err
	}
	err = stream.Send(&pb.LeaseKeepAliveRequest{ID: int64(lease)})
	answer, recvErr := stream.Recv()
	if err = errors.Join(err, recvErr, stream.CloseSend()); err != nil {
		return 0, err
	}
	return answer.TTL, nil
}

// term is a time in office: it ends at a moment, which may be moved as long as
// it has not come. All is measured on the monotonic clock.
type term struct {
	mu    sync.Mutex // guards all
	until time.Time
	timer *time.Timer
	ended bool
	lost  chan struct{} // closed when it ended
}

func newTerm(until time.Time) *term {
	t := &term{until: until, lost: make(chan struct{})}
	t.timer = time.AfterFunc(time.Until(until), func() { t.over() })
	return t
}

// over returns what is closed once the term has ended, and ends it if it is time.
func (t *term) over() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !time.Now().Before(t.until) {
		t.endLocked()
	}
	return t.lost
}

// extend moves the end, unless it has come.
func (t *term) extend(until time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended || !time.Now().Before(t.until) {
		t.endLocked()
		return
	}
	if until.After(t.until) {
		t.until = until
		t.timer.Reset(time.Until(until))
	}
}

func (t *term) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.endLocked()
}

func (t *term) endLocked() {
	if !t.ended {
		t.ended = true
		t.timer.Stop()
		close(t.lost)
	}
}

// Package etcd keeps the records of a store.Engine in etcd, for several
// controllers: from version 3.4 on, one node or more, with etcd's default
// limits.
package etcd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"grl/store"
)

const (
	// requestTimeout bounds each request, as long as a loaded cluster takes to
	// elect a new leader.
	requestTimeout = 5 * time.Second
	dialTimeout    = 5 * time.Second
	// A connection that is silent for so long is closed. gRPC allows no shorter
	// time, etcd's servers ask for at least 5 s.
	keepAlive        = 10 * time.Second
	keepAliveTimeout = 2 * time.Second
	// opsPerTxn is how many keys are read in a request; etcd takes 128.
	opsPerTxn = 100
)

// reconnect is how an endpoint that does not answer is tried again. gRPC would
// come to wait two minutes.
var reconnect = backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 2 * time.Second}

// Options says which etcd.
type Options struct {
	Endpoints []string // URLs; required
	// Prefix begins the names of all keys in etcd; "": "grl/".
	Prefix string
	// TLS is how to reach it; nil: in plain text.
	TLS                *tls.Config
	Username, Password string // of etcd's own accounts; "": none
}

// Engine is a store.Engine. Create it with Open.
type Engine struct {
	client *clientv3.Client
	prefix string

	running sync.WaitGroup // goroutines of watches and leases
}

var _ store.Engine = (*Engine)(nil)

// Open connects to etcd, and returns store.ErrUnavailable if it does not answer
// or does not let us in. Call Close when done.
func Open(ctx context.Context, o Options) (*Engine, error) {
	if o.Prefix == "" {
		o.Prefix = "grl/"
	}
	client, err := clientv3.New(clientv3.Config{
		Endpoints:            o.Endpoints,
		DialTimeout:          dialTimeout,
		DialKeepAliveTime:    keepAlive,
		DialKeepAliveTimeout: keepAliveTimeout,
		TLS:                  o.TLS,
		Username:             o.Username,
		Password:             o.Password,
		DialOptions:          []grpc.DialOption{grpc.WithConnectParams(grpc.ConnectParams{Backoff: reconnect, MinConnectTimeout: dialTimeout})},
		Logger:               zap.NewNop(), // what goes wrong is returned
	})
	if err != nil {
		return nil, fmt.Errorf("open etcd: %w", classify(ctx, err))
	}
	e := &Engine{client: client, prefix: o.Prefix}
	if err := e.check(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open etcd: %w", err), e.Close())
	}
	return e, nil
}

// check asks a member whether it is there, which without a connection says why
// there is none, and then all for a record, which needs permission.
func (e *Engine) check(ctx context.Context) error {
	within, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	if _, err := pb.NewMaintenanceClient(e.client.ActiveConnection()).Status(within, &pb.StatusRequest{}); err != nil {
		return classify(ctx, err)
	}
	_, err := e.Get(ctx, "epoch")
	return err
}

// Close ends watches and leaderships, whose leases run out, and closes the
// connections. No other method may be called afterwards.
func (e *Engine) Close() error {
	err := e.client.Close()
	e.running.Wait()
	if errors.Is(err, context.Canceled) {
		return nil // of the client's own context
	}
	return err
}

// Warnings returns nil: what etcd has to say it says to those who run it.
func (e *Engine) Warnings() []string { return nil }

// request bounds a request, which then fails at a member without a leader.
func request(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(clientv3.WithRequireLeader(ctx), requestTimeout)
}

// classify returns err as callers of store.Engine know it. The end of their own
// context is no failure of etcd.
func classify(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, rpctypes.ErrNoSpace):
		return fmt.Errorf("%w: etcd: %w", store.ErrFull, err)
	default:
		return fmt.Errorf("%w: etcd: %w", store.ErrUnavailable, err)
	}
}

// Package configurator is the RLC: it reads weeks of history, computes limits by
// the policies that people wrote, writes them to the limits repository and to
// the controller, and keeps the two in step. Of several configurators one is at
// work, by a lease at the controller. docs/rlc.md explains what it computes.
package configurator

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	grlv1 "grl/proto/grl/v1"
	"grl/proto/uplink"
	"grl/roles/configurator/history"
	"grl/roles/configurator/repository"
	"grl/roles/configurator/webhook"
)

// Options says how a configurator runs.
type Options struct {
	Config  Config
	Log     *slog.Logger
	Version string
	// Registry takes the configurator's metrics.
	Registry prometheus.Registerer
	// HTTP dials the controllers; nil means uplink.HTTPClient().
	HTTP *http.Client
	// Own proves this configurator to a controller of the same process; empty:
	// there is none.
	Own string
}

// Configurator is one configurator. Create it with New, mount Handler, call Run.
type Configurator struct {
	opts       Options
	holder     string // names this process
	group      *group
	source     history.Source
	repository *repository.Repository // nil: there is none
	metrics    metrics
	wake       chan struct{} // there may be something to compute; capacity 1
	resync     chan struct{} // the repository may have changed; capacity 1

	turn  chan struct{} // has room for one: whoever brings repository and controller into step
	drift []string      // services whose files lack what cycles changed; of whoever has the turn

	mu     sync.Mutex // guards all below
	told   *grlv1.AttendResponse
	heard  time.Time          // when that was
	silent bool               // no controller answered the last call
	lead   context.Context    // lasts as long as the lease; nil: another one has it
	lose   context.CancelFunc // of lead
	turned chan struct{}      // closed, and replaced, when the lease was taken
	status *grlv1.ConfiguratorStatus
	// inStepAt is the revision that the commit of status was in step with; 0: none
	// since the lease was taken.
	inStepAt uint64
}

// New opens the limits repository, if there is one, and reaches for nothing
// else.
func New(ctx context.Context, o Options) (*Configurator, error) {
	if err := o.Config.Validate(); err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	if o.HTTP == nil {
		o.HTTP = uplink.HTTPClient()
	}
	c := &Configurator{
		opts:   o,
		holder: host + "/" + strconv.Itoa(os.Getpid()) + "/" + strconv.FormatUint(rand.Uint64(), 36),
		group:  newGroup(o.Config.Controller, o.HTTP, bearer{o.Config.TokenFile, o.Own}),
		wake:   make(chan struct{}, 1),
		resync: make(chan struct{}, 1),
		turn:   make(chan struct{}, 1),
		told:   &grlv1.AttendResponse{},
		turned: make(chan struct{}),
	}
	if c.source, err = c.openSource(); err != nil {
		return nil, err
	}
	if o.Config.Repository != "" {
		c.repository, err = repository.Open(ctx, repository.Options{Path: o.Config.Repository, Branch: o.Config.Branch, Log: o.Log})
		if err != nil {
			return nil, fmt.Errorf("configurator.repository: %w", err)
		}
	}
	c.status = &grlv1.ConfiguratorStatus{Version: o.Version, Source: c.sourceShown(), Repository: o.Config.Repository}
	c.metrics = newMetrics(o.Registry, c)
	return c, nil
}

// Close gives the limits repository free, after Run.
func (c *Configurator) Close() error {
	if c.repository == nil {
		return nil
	}
	return c.repository.Close()
}

// Handler serves the webhook of the limits repository.
func (c *Configurator) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle(webhook.Path, webhook.New(webhook.Options{
		SecretFile: c.opts.Config.WebhookSecretFile, Log: c.opts.Log, Notify: func() { wake(c.resync) },
	}))
	return mux
}

// Ready returns why the configurator cannot work, nil if it can, or another one
// does.
func (c *Configurator) Ready() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if since := time.Since(c.heard); since > leaseTTL {
		return fmt.Errorf("no controller has answered in the last %v", leaseTTL)
	}
	return nil
}

// Run works until ctx ends.
func (c *Configurator) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return c.attend(ctx) })
	g.Go(func() error { return c.whileLeading(ctx, c.compute) })
	if c.repository != nil {
		g.Go(func() error { return c.whileLeading(ctx, c.keepInStep) })
	}
	return g.Wait()
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // it has been told
	}
}

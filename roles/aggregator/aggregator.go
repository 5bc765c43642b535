// Package aggregator is the node of a zone: it keeps the last report of each
// client, sums them, passes the sums up to the controllers at once, and passes
// configuration and directives down.
package aggregator

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"connectrpc.com/connect"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"grl/limiter/law"
	grlv1 "grl/proto/grl/v1"
	"grl/proto/grl/v1/grlv1connect"
	"grl/proto/statefile"
	"grl/proto/uplink"
	"grl/proto/wire"
)

// Options says how an aggregator runs.
type Options struct {
	Config  Config
	Log     *slog.Logger
	Version string
	// Registry takes the aggregator's metrics.
	Registry prometheus.Registerer
	// HTTP dials the controllers; nil means uplink.HTTPClient().
	HTTP *http.Client
}

// Aggregator is one aggregator. Create it with New, mount Handler, call Run.
type Aggregator struct {
	opts    Options
	name    string
	bootID  uint64
	metrics metrics
	moved   chan struct{}   // sums did while a decider is silent; capacity 1
	stop    chan struct{}   // closed when Run ends: streams must end
	state   *statefile.File // of directives; nil: nothing is kept
	good    *statefile.Good // configurations; nil with state
	streams sync.WaitGroup

	mu      sync.Mutex // guards all below
	node    *node
	ended   bool
	ticked  time.Time // last; zero before the first
	details details
	alone   map[string]bool // deciders that the node was seen to stand in for
}

// New returns an aggregator that does nothing until Run.
func New(o Options) (*Aggregator, error) {
	if err := o.Config.Validate(); err != nil {
		return nil, err
	}
	if o.HTTP == nil {
		o.HTTP = uplink.HTTPClient()
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	a := &Aggregator{
		opts:   o,
		name:   host + "/" + strconv.Itoa(os.Getpid()),
		bootID: rand.Uint64(),
		moved:  make(chan struct{}, 1),
		stop:   make(chan struct{}),
		node:   newNode(o.Config.Zone, o.Config.Region, o.Config.Autonomy),
		alone:  make(map[string]bool),
	}
	if o.Config.StateDir != "" {
		a.load()
	}
	a.metrics = newMetrics(o.Registry, a)
	return a, nil
}

// Handler serves the streams of the zone's clients.
func (a *Aggregator) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle(grlv1connect.NewTreeServiceHandler(a, connect.WithReadMaxBytes(wire.MaxReport)))
	return mux
}

// Ready returns nil: an aggregator without a controller still takes reports.
func (a *Aggregator) Ready() error { return nil }

// Run works until ctx ends, and returns when all streams have ended.
func (a *Aggregator) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, address := range a.opts.Config.Controllers {
		g.Go(func() error {
			a.follow(ctx, address)
			return nil
		})
	}
	g.Go(func() error { return a.tick(ctx) })
	g.Go(func() error { return a.sendDetails(ctx) })
	g.Go(func() error { return a.standIn(ctx) })
	if a.state != nil {
		g.Go(func() error {
			a.state.Keep(ctx, a.opts.Log, a.save)
			return nil
		})
		g.Go(func() error {
			a.good.Keep(ctx, a.opts.Log, a.held)
			return nil
		})
	}
	err := g.Wait()
	a.mu.Lock()
	a.ended = true
	close(a.stop)
	a.mu.Unlock()
	a.streams.Wait()
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// tick turns the clock of T: the sums go up, silent hosts and idle cells go.
func (a *Aggregator) tick(ctx context.Context) error {
	tick := time.NewTicker(law.T)
	defer tick.Stop()
	for swept := time.Now(); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			a.mu.Lock()
			now := time.Now()
			a.noticeHang(ctx, now)
			a.ticked = now
			a.node.silence(now)
			a.node.tick(now)
			for _, o := range a.node.outliers(now) {
				a.opts.Log.WarnContext(ctx, "host claims far more than it and the others are offered: the excess has only what is left of the limit",
					"node", o.node, "bucket", o.bucket, "counted_rps", o.rate.Offered.RPS(), "excess_rps", o.rate.Excess.RPS())
			}
			if now.Sub(swept) > time.Minute {
				swept = now
				a.node.sweep(now)
			}
			for _, p := range a.node.parents {
				p.Beat()
			}
			a.mu.Unlock()
		}
	}
}

// noticeHang makes all hosts join anew if the process stood still so long that
// they may have gone to another aggregator. What they sent here meanwhile is
// unread, and counted there. The caller holds mu.
func (a *Aggregator) noticeHang(ctx context.Context, now time.Time) {
	stood := now.Sub(a.ticked)
	if a.ticked.IsZero() || stood <= law.HostSilent {
		return
	}
	a.ticked = now
	a.opts.Log.WarnContext(ctx, "stood still, hosts must join anew", "seconds", stood.Seconds(), "hosts", len(a.node.hosts))
	a.node.empty(now)
}

// wakeParents tells the streams up that sums moved. The caller holds mu.
func (a *Aggregator) wakeParents() {
	for _, p := range a.node.parents {
		p.Wake()
	}
}

// wakeHosts tells the streams down that there is something to pass on. The
// caller holds mu.
func (a *Aggregator) wakeHosts() {
	for h := range a.node.hosts {
		wake(h.wake)
	}
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // it has been told
	}
}

// rpcError returns err as a peer may see it.
func rpcError(code connect.Code, err error) error { return connect.NewError(code, err) }

// install takes a configuration from a controller, or refuses it. It returns an
// error if the stream must begin anew.
func (a *Aggregator) install(ctx context.Context, m *grlv1.Configuration) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := a.node
	held := n.config
	if held.Version().After(wire.Version(m)) {
		return nil // from a controller that is behind
	}
	if len(m.GetZones()) > 0 {
		n.resize(m.GetZones())
	}
	if !m.GetWhole() && wire.Version(m) == held.Version() {
		return nil // it was only the zones
	}
	c, err := wire.ToConfiguration(held, m)
	if wire.NeedsWhole(err) {
		return err
	}
	if err != nil {
		if n.refused.revision != m.GetRevision() {
			a.opts.Log.ErrorContext(ctx, "refused configuration", "revision", m.GetRevision(), "held", held.Revision, "err", err)
		}
		n.refused = refusal{m.GetRevision(), wire.Reason(err.Error())}
		return nil
	}
	n.refused = refusal{}
	if c.Version() != held.Version() {
		a.opts.Log.InfoContext(ctx, "installed configuration", "revision", c.Revision, "serial", c.Serial, "epoch", c.Epoch, "services", len(c.Services), "caps", len(c.Caps))
	}
	n.install(c)
	a.wakeHosts()
	return nil
}

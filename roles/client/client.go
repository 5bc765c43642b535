// Package client is the node beside a workload: it measures what a limiter
// counts, reports it to an aggregator of its zone, and writes what comes back,
// configuration and drop ratios, into the limiter. The limiter decides alone;
// nothing here is on the path of a request.
package client

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"grl/limiter"
	"grl/limiter/law"
	grlv1 "grl/proto/grl/v1"
	"grl/proto/statefile"
	"grl/proto/uplink"
	"grl/proto/wire"
)

// Options says how a client runs.
type Options struct {
	Config Config
	// Limiter is fed and read by this client alone.
	Limiter *limiter.Limiter
	Log     *slog.Logger
	Version string
	// Registry takes the client's metrics.
	Registry prometheus.Registerer
	// HTTP dials the aggregators; nil means uplink.HTTPClient().
	HTTP *http.Client
	// Node names the client in its zone; "" means host name and process number.
	Node string
}

// Client is one client. Create it with New, call Run.
type Client struct {
	opts   Options
	name   string
	bootID uint64
	due    chan struct{}   // a report is; capacity 1
	sudden chan struct{}   // rates must be told at once; capacity 1
	file   *statefile.File // of directives; nil: nothing is kept on disk
	good   *statefile.Good // configurations; nil with file

	mu    sync.Mutex // guards all below
	state state
}

// New returns a client that does nothing until Run.
func New(o Options) (*Client, error) {
	if err := o.Config.Validate(); err != nil {
		return nil, err
	}
	if o.HTTP == nil {
		o.HTTP = uplink.HTTPClient()
	}
	name := o.Node
	if name == "" {
		host, err := os.Hostname()
		if err != nil {
			return nil, err
		}
		name = host + "/" + strconv.Itoa(os.Getpid())
	}
	c := &Client{opts: o, name: name, bootID: rand.Uint64(), due: make(chan struct{}, 1), sudden: make(chan struct{}, 1)}
	c.state = newState(o.Limiter, o.Config)
	if dir := o.Config.StateDir; dir != "" {
		node := o.Config.Zone + " " + o.Config.Service + " " + o.Config.Caller
		c.file, c.good = statefile.New(dir, "client", node), statefile.NewGood(dir, "client", node)
		c.restore()
	}
	registerMetrics(o.Registry, c)
	return c, nil
}

// Ready returns nil: a client decides, and admits, without a control plane.
func (c *Client) Ready() error { return nil }

// Run works until ctx ends.
func (c *Client) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		uplink.Run(ctx, uplink.Options{
			Addresses:  c.opts.Config.Aggregators,
			HTTP:       c.opts.HTTP,
			Log:        c.opts.Log,
			MostRedial: law.Rejoin,
			Hello:      c.hello,
			Take:       c.take,
			Feed:       c.report,
		})
		return nil
	})
	g.Go(func() error { return c.tick(ctx) })
	g.Go(func() error {
		c.watchSwitch(ctx)
		return nil
	})
	if c.file != nil {
		g.Go(func() error {
			c.file.Keep(ctx, c.opts.Log, c.kept)
			return nil
		})
		g.Go(func() error {
			c.good.Keep(ctx, c.opts.Log, c.held)
			return nil
		})
	}
	return g.Wait()
}

// held returns the configuration held, none before the first.
func (c *Client) held() statefile.State {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.state.config.Any() {
		return statefile.State{}
	}
	return statefile.State{Configuration: c.state.config}
}

// kept returns what to keep on disk, false if nothing changed.
func (c *Client) kept(now time.Time) (statefile.State, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state.kept(now)
}

// tick turns the timer: estimates from counts, ratios from directives and age,
// and at each T a report, right after a measurement so that its counts are as
// old as those of the one before were.
func (c *Client) tick(ctx context.Context) error {
	t := time.NewTicker(law.Delta)
	defer t.Stop()
	last := time.Now()
	reported, swept, held := last, last, false
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
			now := time.Now() // the tick itself may be older
			// What held up the timer held up requests too: they come in the next
			// turn, which is short. Only both together say what was offered.
			if held = !held && now.Sub(last) > law.Delta*6/5; held {
				continue
			}
			urgent := c.turn(now, now.Sub(last))
			last = now
			if now.Sub(swept) > time.Minute {
				swept = now
				c.sweep()
			}
			switch {
			case now.Sub(reported) >= law.T-law.Delta/2:
				reported = now
				wake(c.due)
			case urgent:
				wake(c.sudden)
			}
		}
	}
}

// turn is one turn of the timer. It reports whether a rate must be told at once.
func (c *Client) turn(now time.Time, elapsed time.Duration) (urgent bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state.measure(now, elapsed)
	c.state.apply(now)
	return c.state.urgent(now)
}

func (c *Client) sweep() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state.sweep()
}

// wake tells the stream that there is something to send.
func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // there is no stream, or it is slow
	}
}

// hello begins a new stream and returns what the client says of itself on it.
func (c *Client) hello() *grlv1.Hello {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state.reopen()
	m := &grlv1.Hello{
		Role:      grlv1.Role_ROLE_CLIENT,
		Node:      c.name,
		Zone:      c.opts.Config.Zone,
		Region:    c.opts.Config.Region,
		BootId:    c.bootID,
		Version:   c.opts.Version,
		Heard:     wire.Heard(c.state.heard()),
		Confirmed: c.state.confirmed.Message(true),
	}
	if c.opts.Config.Service != "" {
		m.Services = []string{c.opts.Config.Service}
	}
	if c.opts.Config.Caller != "" {
		m.Callers = []string{c.opts.Config.Caller}
	}
	return m
}

// take takes in one message of an aggregator.
func (c *Client) take(ctx context.Context, m *grlv1.JoinResponse) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	c.state.answered = true
	switch {
	case m.GetConfiguration() != nil:
		revision, serial := m.GetConfiguration().GetRevision(), m.GetConfiguration().GetSerial()
		installed, err := c.state.install(m.GetConfiguration())
		switch {
		case installed:
			c.opts.Log.InfoContext(ctx, "installed configuration", "revision", revision, "serial", serial,
				"services", len(c.state.config.Services), "caps", len(c.state.config.Caps))
			if name := c.opts.Config.Service; name != "" && !c.state.has(name) {
				c.opts.Log.WarnContext(ctx, "nothing limits this service: no limits file has its name", "service", name)
			}
			c.state.apply(now)
		case err != nil && wire.NeedsWhole(err):
			return err // a new stream begins with a whole one
		case err != nil:
			c.opts.Log.ErrorContext(ctx, "refused configuration", "revision", revision, "serial", serial, "held", c.state.config.Revision, "err", err)
		}
	case m.GetDirective() != nil:
		if err := c.state.direct(now, m.GetDirective()); err != nil {
			return err
		}
		c.state.apply(now)
	}
	return nil
}

// report sends a report at each T, what cannot wait for it at once, and every
// ten seconds who sent.
func (c *Client) report(ctx context.Context, send func(*grlv1.JoinRequest) error) error {
	defer func() {
		c.mu.Lock()
		c.state.answered = false
		c.mu.Unlock()
	}()
	detail := time.NewTicker(detailEvery)
	defer detail.Stop()
	for {
		var messages []*grlv1.JoinRequest
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-c.due:
			c.mu.Lock()
			for _, m := range c.state.reports() {
				messages = append(messages, &grlv1.JoinRequest{Message: &grlv1.JoinRequest_Report{Report: m}})
			}
			c.mu.Unlock()
		case <-c.sudden:
			c.mu.Lock()
			if m := c.state.sudden(time.Now()); m != nil {
				messages = append(messages, &grlv1.JoinRequest{Message: &grlv1.JoinRequest_Report{Report: m}})
			}
			c.mu.Unlock()
		case <-detail.C:
			if m := fromDetail(c.opts.Limiter.Detail()); m != nil {
				messages = append(messages, &grlv1.JoinRequest{Message: &grlv1.JoinRequest_Detail{Detail: m}})
			}
		}
		for _, m := range messages {
			if err := send(m); err != nil {
				return err
			}
		}
	}
}

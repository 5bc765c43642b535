package rolestest

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"grl/limiter"
	"grl/limiter/limitsfile"
	"grl/roles/aggregator"
	"grl/roles/client"
	"grl/roles/controller"
	"grl/store"
)

// Plane is a control plane on a Network: one controller, and what Aggregator
// and Host add. All of it ends with the test.
type Plane struct {
	Network Network
	t       testing.TB
	dir     string
	limits  string
	running map[string]*process // by name
	// Log receives what the roles say; nil discards it.
	Log *slog.Logger
}

// process is a role that runs.
type process struct {
	cancel context.CancelFunc
	done   chan struct{}
}

// NewPlane returns a plane whose controller serves the limits file text. Call
// it inside synctest.Test.
func NewPlane(t testing.TB, limits string) *Plane {
	t.Helper()
	p := &Plane{t: t, dir: t.TempDir(), limits: limits, running: make(map[string]*process), Log: slog.New(slog.DiscardHandler)}
	t.Cleanup(func() {
		for name := range p.running {
			p.Stop(name)
		}
	})
	return p
}

// Controller starts the controller, on the same store each time.
func (p *Plane) Controller() {
	p.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	st, err := store.Open(ctx, p.dir)
	if err != nil {
		p.t.Fatal(err)
	}
	p.Apply(st, p.limits)
	c, err := controller.New(ctx, controller.Options{
		Config:   controller.Default(),
		Log:      p.Log.With("role", "controller"),
		Version:  "test",
		Registry: prometheus.NewRegistry(),
		Store:    st,
	})
	if err != nil {
		p.t.Fatal(err)
	}
	p.Network.Serve(p.t, "controller", c.Handler())
	p.start("controller", cancel, func() error {
		defer st.Close()
		return c.Run(ctx)
	})
}

// Apply makes a limits file the whole configuration of a store.
func (p *Plane) Apply(st *store.Store, limits string) {
	p.t.Helper()
	file, err := limitsfile.Parse("limits.yaml", []byte(limits))
	if err != nil {
		p.t.Fatal(err)
	}
	ctx := context.Background()
	head, err := st.Head(ctx)
	if err != nil {
		p.t.Fatal(err)
	}
	_, err = st.Apply(ctx, head.Number, store.Change{
		Documents: map[string][]byte{file.Service.Name: limitsfile.Normalize(file.Service)},
		Author:    "test",
		At:        time.Now(),
	})
	if err != nil {
		p.t.Fatal(err)
	}
}

// Aggregator starts an aggregator under a name.
func (p *Plane) Aggregator(name, zone, region string) {
	p.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	config := aggregator.Default()
	config.Zone, config.Region = zone, region
	config.Controllers = []string{"http://controller"}
	a, err := aggregator.New(aggregator.Options{
		Config:   config,
		Log:      p.Log.With("role", "aggregator", "node", name),
		Version:  "test",
		Registry: prometheus.NewRegistry(),
		HTTP:     p.Network.Client(p.t),
	})
	if err != nil {
		p.t.Fatal(err)
	}
	p.Network.Serve(p.t, name, a.Handler())
	p.start(name, cancel, func() error { return a.Run(ctx) })
}

// Host starts a client of service under a name and returns its limiter.
func (p *Plane) Host(name, zone, region, service string, aggregators ...string) *limiter.Limiter {
	p.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	config := client.Default()
	config.Service, config.Zone, config.Region = service, zone, region
	config.Aggregators = nil
	for _, a := range aggregators {
		config.Aggregators = append(config.Aggregators, "http://"+a)
	}
	l := limiter.New(limiter.Options{Zone: zone, Region: region})
	c, err := client.New(client.Options{
		Config:   config,
		Limiter:  l,
		Log:      p.Log.With("role", "client", "node", name),
		Version:  "test",
		Registry: prometheus.NewRegistry(),
		HTTP:     p.Network.Client(p.t),
		Node:     name,
	})
	if err != nil {
		p.t.Fatal(err)
	}
	p.start(name, cancel, func() error { return c.Run(ctx) })
	return l
}

func (p *Plane) start(name string, cancel context.CancelFunc, run func() error) {
	if p.running[name] != nil {
		p.t.Fatalf("%s runs already", name)
	}
	pr := &process{cancel, make(chan struct{})}
	p.running[name] = pr
	go func() {
		defer close(pr.done)
		if err := run(); err != nil {
			p.t.Errorf("run %s: %v", name, err)
		}
	}()
}

// Stop cuts a role off, as kill -9 does, and waits until it has ended.
func (p *Plane) Stop(name string) {
	p.Network.Cut(name)
	pr := p.running[name]
	if pr == nil {
		p.t.Fatal(fmt.Errorf("%s does not run", name))
	}
	delete(p.running, name)
	pr.cancel()
	<-pr.done
}

package rolestest

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"grl/limiter"
	"grl/roles/aggregator"
	"grl/roles/client"
	"grl/roles/controller"
	"grl/store"
)

// Plane is a control plane on a Network: one controller, and what Aggregator
// and Host add. All of it ends with the test.
type Plane struct {
	Network    Network
	t          testing.TB
	dir        string // of the store
	limits     string // directory of limits files
	controller *controller.Controller
	running    map[string]*process // by name
	// Log receives what the roles say; nil discards it.
	Log *slog.Logger
}

// process is a role that runs.
type process struct {
	cancel context.CancelFunc
	done   chan struct{}
}

// NewPlane returns a plane whose controller has one limits file. Call it inside
// synctest.Test.
func NewPlane(t testing.TB, limits string) *Plane {
	t.Helper()
	p := &Plane{t: t, dir: t.TempDir(), limits: t.TempDir(), running: make(map[string]*process), Log: slog.New(slog.DiscardHandler)}
	p.Limits(limits)
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
	config := controller.Default()
	config.Limits = p.limits
	c, err := controller.New(ctx, controller.Options{
		Config:   config,
		Log:      p.Log.With("role", "controller"),
		Version:  "test",
		Registry: prometheus.NewRegistry(),
		Store:    st,
		AnyHost:  true, // the network has names of its own
	})
	if err != nil {
		p.t.Fatal(err)
	}
	p.controller = c
	p.Network.Serve(p.t, "controller", c.Handler())
	p.start("controller", cancel, func() error {
		defer st.Close()
		return c.Run(ctx)
	})
}

// Limits makes text the one limits file.
func (p *Plane) Limits(text string) {
	p.t.Helper()
	if err := os.WriteFile(filepath.Join(p.limits, "limits.yaml"), []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
	if p.controller != nil {
		p.controller.Reload()
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
	pr := p.running[name]
	if pr == nil {
		p.t.Fatal(fmt.Errorf("%s does not run", name))
	}
	delete(p.running, name)
	pr.cancel() // before the cut: a node that dies does not report that its children left
	p.Network.Cut(name)
	<-pr.done
}

package rolestest

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
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

// global is the name of the controller without a parent.
const global = "controller"

// Plane is a control plane on a Network: one controller, and what Region,
// Aggregator and Host add. All of it ends with the test.
type Plane struct {
	Network    Network
	t          testing.TB
	dir        string // of the controllers' directories, by name
	limits     string // directory of limits files
	controller *controller.Controller
	pages      http.Handler                    // of the controller without a parent
	running    map[string]*process             // by name
	registries map[string]*prometheus.Registry // of hosts, by name
	// Log receives what the roles say; nil discards it.
	Log *slog.Logger
	// Keeps says that aggregators and hosts keep their state on disk, each in a
	// directory of its own.
	Keeps bool
	// PublicURL is that of the controller without a parent; empty: none.
	PublicURL string
}

// process is a role that runs.
type process struct {
	cancel context.CancelFunc
	done   chan struct{}
}

// NewPlane returns a plane whose controller has these limits files. Call it
// inside synctest.Test.
func NewPlane(t testing.TB, limits ...string) *Plane {
	t.Helper()
	p := &Plane{
		t:          t,
		dir:        t.TempDir(),
		limits:     t.TempDir(),
		running:    make(map[string]*process),
		registries: make(map[string]*prometheus.Registry),
		Log:        slog.New(slog.DiscardHandler),
	}
	p.Limits(limits...)
	t.Cleanup(func() {
		for name := range p.running {
			p.Stop(name)
		}
	})
	return p
}

// Controller starts the controller that has the limits files, on the same store
// each time. Its name is "controller".
func (p *Plane) Controller() {
	p.t.Helper()
	config := controller.Default()
	config.Limits, config.PublicURL = p.limits, p.PublicURL
	p.controller = p.runController(global, config)
}

// Region starts the controller of a region below Controller's, on the same store
// each time. The region and the controller have the same name.
func (p *Plane) Region(name string) {
	p.t.Helper()
	config := controller.Default()
	config.Region = name
	config.Parent = []string{"http://" + global}
	p.runController(name, config)
}

// Forget deletes the store of a controller that does not run.
func (p *Plane) Forget(name string) {
	p.t.Helper()
	if err := os.RemoveAll(filepath.Join(p.dir, name)); err != nil {
		p.t.Fatal(err)
	}
}

func (p *Plane) runController(name string, config controller.Config) *controller.Controller {
	p.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	config.DB = filepath.Join(p.dir, name)
	st, err := store.Open(ctx, config.DB)
	if err != nil {
		p.t.Fatal(err)
	}
	c, err := controller.New(ctx, controller.Options{
		Config:   config,
		Log:      p.Log.With("role", "controller", "node", name),
		Version:  "test",
		Registry: prometheus.NewRegistry(),
		Store:    st,
		HTTP:     p.Network.Client(p.t),
		AnyHost:  true, // the network has names of its own
	})
	if err != nil {
		p.t.Fatal(err)
	}
	handler := c.Handler()
	if name == global {
		p.pages = handler
	}
	p.Network.Serve(p.t, name, AsAdmin(handler))
	p.start(name, cancel, func() error {
		defer st.Close()
		return c.Run(ctx)
	})
	return c
}

// Pages returns the dashboard and API of the controller without a parent, for a
// request whose context says who asks.
func (p *Plane) Pages() http.Handler { return p.pages }

// Limits writes the limits files, as many as NewPlane did.
func (p *Plane) Limits(texts ...string) {
	p.t.Helper()
	for i, text := range texts {
		if err := os.WriteFile(filepath.Join(p.limits, fmt.Sprintf("limits-%d.yaml", i)), []byte(text), 0o600); err != nil {
			p.t.Fatal(err)
		}
	}
	if p.controller != nil {
		p.controller.Reload()
	}
}

// Aggregator starts an aggregator under a name. Its controllers are those named,
// or the one without a parent if none is.
func (p *Plane) Aggregator(name, zone, region string, controllers ...string) {
	p.t.Helper()
	if len(controllers) == 0 {
		controllers = []string{global}
	}
	ctx, cancel := context.WithCancel(context.Background())
	config := aggregator.Default()
	config.Zone, config.Region, config.StateDir = zone, region, p.state(name)
	config.Controllers = nil
	for _, c := range controllers {
		config.Controllers = append(config.Controllers, "http://"+c)
	}
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
	config.Service, config.Zone, config.Region, config.StateDir = service, zone, region, p.state(name)
	config.Aggregators = nil
	for _, a := range aggregators {
		config.Aggregators = append(config.Aggregators, "http://"+a)
	}
	l, registry := limiter.New(limiter.Options{Zone: zone, Region: region}), prometheus.NewRegistry()
	p.registries[name] = registry
	c, err := client.New(client.Options{
		Config:   config,
		Limiter:  l,
		Log:      p.Log.With("role", "client", "node", name),
		Version:  "test",
		Registry: registry,
		HTTP:     p.Network.Client(p.t),
		Node:     name,
	})
	if err != nil {
		p.t.Fatal(err)
	}
	p.start(name, cancel, func() error { return c.Run(ctx) })
	return l
}

// state returns the directory in which a node keeps its state, "" if it does not.
func (p *Plane) state(name string) string {
	if !p.Keeps {
		return ""
	}
	return filepath.Join(p.dir, "state", name)
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

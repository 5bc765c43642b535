package demo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"grl/proto/access"
	"grl/proto/uplink"
	"grl/roles/aggregator"
	"grl/roles/controller"
	"grl/roles/controller/people"
	"grl/store"
	"grl/store/ledger"
)

const (
	region           = "demo"
	sidecarsPerZone  = 3
	dashboardAddress = "127.0.0.1:7070" // if it is free
	anyPort          = "127.0.0.1:0"
	stopTimeout      = 5 * time.Second
)

var zones = [...]string{"zone-a", "zone-b"}

// plane is a controller, two zones with an aggregator and three sidecars each,
// and the upstream they stand in front of, on real sockets of this machine.
type plane struct {
	log       *slog.Logger
	version   string
	dashboard string // URL of the controller
	sidecars  []*sidecar

	dial   *http.Client   // between the roles
	failed chan error     // the first role or server that failed; capacity 1
	undo   []func() error // what stop does, last first
}

// startPlane starts all of it. An error undoes what had been started.
func startPlane(ctx context.Context, l limits, log *slog.Logger, version string) (_ *plane, err error) {
	p := &plane{log: log, version: version, dial: uplink.HTTPClient(), failed: make(chan error, 1)}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("start demo: %w", err), p.stop())
		}
	}()
	p.undo = append(p.undo, func() error { p.dial.CloseIdleConnections(); return nil })
	dir, err := os.MkdirTemp("", "grl-demo-")
	if err != nil {
		return nil, err
	}
	p.undo = append(p.undo, func() error { return os.RemoveAll(dir) })
	if err := p.startController(ctx, dir, l); err != nil {
		return nil, err
	}
	upstream, err := p.serve(ctx, "upstream", anyPort, upstreamServer())
	if err != nil {
		return nil, err
	}
	for z, zone := range zones {
		address, err := p.startAggregator(ctx, zone)
		if err != nil {
			return nil, err
		}
		for range sidecarsPerZone {
			if err := p.startSidecar(ctx, z, address, upstream); err != nil {
				return nil, err
			}
		}
	}
	return p, nil
}

// stop ends everything, in the reverse order of the start, and removes what was
// written.
func (p *plane) stop() error {
	var errs []error
	for len(p.undo) > 0 {
		last := len(p.undo) - 1
		errs = append(errs, p.undo[last]())
		p.undo = p.undo[:last]
	}
	return errors.Join(errs...)
}

func (p *plane) startController(ctx context.Context, dir string, l limits) error {
	files := filepath.Join(dir, "limits")
	if err := os.Mkdir(files, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(files, service+".yaml"), []byte(l.file()), 0o600); err != nil {
		return err
	}
	st, err := store.Open(ctx, filepath.Join(dir, "store"))
	if err != nil {
		return err
	}
	p.undo = append(p.undo, st.Close)
	who, err := people.New(people.Options{Ledger: ledger.New(st), Log: p.log})
	if err != nil {
		return err
	}
	config := controller.Default()
	config.Region, config.Limits = region, files
	registry := prometheus.NewRegistry()
	c, err := controller.New(ctx, controller.Options{
		Config:   config,
		Log:      p.log.With("role", "controller"),
		Version:  p.version,
		Registry: registry,
		Store:    st,
		People:   who,
	})
	if err != nil {
		return err
	}
	// As on loopback: everyone is admin as long as there is no account.
	gate := access.NewGate(access.Options{Role: access.Controller, Anonymous: access.Admin, People: who, Registry: registry})
	handler := gate.Handler(c.Handler())
	address, err := p.serve(ctx, "controller", dashboardAddress, plainServer(handler))
	if err != nil {
		address, err = p.serve(ctx, "controller", anyPort, plainServer(handler))
	}
	if err != nil {
		return err
	}
	p.dashboard = "http://" + address
	p.run(ctx, "controller", c.Run)
	return nil
}

func (p *plane) startAggregator(ctx context.Context, zone string) (url string, err error) {
	config := aggregator.Default()
	config.Zone, config.Region, config.Controllers = zone, region, []string{p.dashboard}
	a, err := aggregator.New(aggregator.Options{
		Config:   config,
		Log:      p.log.With("role", "aggregator", "zone", zone),
		Version:  p.version,
		Registry: prometheus.NewRegistry(),
		HTTP:     p.dial,
	})
	if err != nil {
		return "", err
	}
	address, err := p.serve(ctx, "aggregator of "+zone, anyPort, plainServer(a.Handler()))
	if err != nil {
		return "", err
	}
	p.run(ctx, "aggregator of "+zone, a.Run)
	return "http://" + address, nil
}

// plainServer returns a server for HTTP/1.1, and for HTTP/2 without TLS: streams
// between roles, the dashboard, upstream.
func plainServer(h http.Handler) *http.Server {
	s := &http.Server{
		Handler:           h,
		Protocols:         new(http.Protocols),
		HTTP2:             uplink.Pings(),
		ReadHeaderTimeout: stopTimeout,
		ErrorLog:          slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug),
	}
	s.Protocols.SetHTTP1(true)
	s.Protocols.SetUnencryptedHTTP2(true)
	return s
}

// upstreamServer returns the shop itself, which answers everything at once.
func upstreamServer() *http.Server {
	return plainServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte("{}")) // an error means that the sidecar has gone
	}))
}

// serve opens an address and answers there until stop; it returns the address.
func (p *plane) serve(ctx context.Context, name, address string, s *http.Server) (string, error) {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return "", err
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			p.fail(fmt.Errorf("serve %s: %w", name, err))
		}
	})
	p.undo = append(p.undo, func() error {
		p.dial.CloseIdleConnections() // HTTP/2 would say goodbye for a second
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()
		err := s.Shutdown(ctx)
		if errors.Is(err, context.DeadlineExceeded) {
			err = s.Close() // a browser that holds on to the dashboard
		}
		serving.Wait()
		return err
	})
	return l.Addr().String(), nil
}

// run runs a role until stop. Ctrl-C ends the load first, so ctx does not end
// the roles.
func (p *plane) run(ctx context.Context, name string, run func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	running.Go(func() {
		if err := run(ctx); err != nil && ctx.Err() == nil {
			p.fail(fmt.Errorf("run %s: %w", name, err))
		}
	})
	p.undo = append(p.undo, func() error {
		cancel()
		running.Wait()
		return nil
	})
}

func (p *plane) fail(err error) {
	select {
	case p.failed <- err:
	default: // the first one ends the demo
	}
}

package roles

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"grl/proto/tlsfiles"
)

const (
	// drainTimeout bounds the drain; below the 30 s after which Kubernetes
	// kills.
	drainTimeout = 25 * time.Second
	// controlGrace is how long calls on a control port may take to finish after
	// their role has ended its streams.
	controlGrace = 5 * time.Second
	// filePoll is how often grl.toml is read for a change. Reading, not
	// watching, follows the symlink swaps of Kubernetes.
	filePoll = time.Second
	// insecureReminder is how often an open control port is complained about.
	insecureReminder = time.Minute
)

// Options says how Serve runs.
type Options struct {
	Roles   []string       // from ParseRoles; at least one
	Log     *slog.Logger   // required
	Level   *slog.LevelVar // the level of Log, set again on a reload; required
	Version string         // told to peers

	// InsecureIKnow allows control addresses beyond loopback without TLS.
	InsecureIKnow bool
	// Out receives the link for the first account; nil discards it.
	Out io.Writer

	// File is the grl.toml that is watched; empty: none.
	File string
	// Load reads and validates the configuration again; nil: never.
	Load func() (Config, error)
	// Hangup tells to read everything again; nil: never.
	Hangup <-chan os.Signal
}

// Serve runs the roles in this process until ctx ends, then drains: readiness
// turns 503, listeners close, requests in flight finish, roles stop in the
// order of the table. It returns nil after a drain; else why it could not start
// or what failed. Addresses are taken before anything is written, so a taken port
// changes nothing. c must be valid for the roles.
func Serve(ctx context.Context, c Config, opts Options) error {
	exposed := plainExposed(c, opts.Roles)
	if len(exposed) > 0 && !opts.InsecureIKnow {
		return usage(refuseExposed(exposed))
	}
	p, err := start(ctx, c, opts)
	if err != nil {
		return err
	}
	err = p.wait(ctx, exposed)
	return errors.Join(err, p.drain())
}

func refuseExposed(exposed []listener) error {
	var errs []error
	for _, l := range exposed {
		errs = append(errs, fmt.Errorf("%s: others can reach %s in plain text; set cert, key and ca in [tls], bind 127.0.0.1, or say --insecure-i-know", l.key, l.address))
	}
	return errors.Join(errs...)
}

// A process is the roles that run.
type process struct {
	opts      Options
	config    Config          // as started with; the log level as it is now
	tls       *tlsfiles.Files // nil: control ports speak plain text
	own       string          // by which its configurator proves itself to its controller
	stopFiles func()          // ends the reading of its files
	nodes     []*running
	failed    chan error     // first failures of roles and servers
	serving   sync.WaitGroup // servers that accept
	draining  atomic.Bool
}

// A running is a node with its servers.
type running struct {
	*node
	name    string
	servers []*server
	stop    context.CancelFunc // ends run
	done    chan struct{}      // closed after run has returned
}

// start opens all listeners, builds the roles from the top of the tree down,
// and starts them.
func start(ctx context.Context, c Config, opts Options) (*process, error) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewBuildInfoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	files, err := openTLS(c, opts.Roles, opts.Log, registry)
	if err != nil {
		return nil, err
	}
	open, err := openAll(ctx, listeners(c, opts.Roles))
	if err != nil {
		return nil, err
	}

	p := &process{opts: opts, config: c, tls: files}
	if slices.Contains(opts.Roles, "controller") {
		p.own = rand.Text()
	}
	for _, r := range slices.Backward(table) {
		if !slices.Contains(opts.Roles, r.name) {
			continue
		}
		log := opts.Log.With("role", r.name)
		n, err := r.build(ctx, c, parts{log: log, registry: registry, version: opts.Version, tls: files, own: p.own})
		if err != nil {
			for _, l := range open {
				_ = l.Close() // nothing was served
			}
			return nil, errors.Join(fmt.Errorf("build %s: %w", r.name, err), p.close())
		}
		node := &running{node: n, name: r.name, done: make(chan struct{})}
		for _, l := range r.listeners(c) {
			node.servers = append(node.servers, p.newServer(node, l, open[l.key], registry, log))
		}
		p.nodes = append(p.nodes, node)
	}
	slices.Reverse(p.nodes) // as in the table: the order of stopping
	p.run(ctx)
	if err := p.printLinks(ctx); err != nil {
		return nil, errors.Join(err, p.drain())
	}
	return p, nil
}

// openAll opens all listeners or none.
func openAll(ctx context.Context, all []listener) (map[string]net.Listener, error) {
	open := map[string]net.Listener{}
	var errs []error
	for _, l := range all {
		o, err := l.listen(ctx)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		open[l.key] = o
	}
	if len(errs) > 0 {
		for _, o := range open {
			_ = o.Close() // nothing was accepted
		}
	}
	return open, errors.Join(errs...)
}

// run starts all roles and servers.
func (p *process) run(ctx context.Context) {
	starts := 0
	for _, n := range p.nodes {
		starts += 1 + len(n.servers)
	}
	p.failed = make(chan error, starts) // so that no failure waits for a reader
	stopFiles := func() {}
	if p.tls != nil {
		var filesCtx context.Context
		filesCtx, stopFiles = context.WithCancel(context.WithoutCancel(ctx))
		p.serving.Go(func() { _ = p.tls.Run(filesCtx) }) // it ends with its context
	}
	p.stopFiles = stopFiles
	for _, n := range slices.Backward(p.nodes) {
		// ctx starts the drain; roles end within it, one after the other.
		roleCtx, stop := context.WithCancel(context.WithoutCancel(ctx))
		n.stop = stop
		go func() {
			defer close(n.done)
			if err := n.run(roleCtx); err != nil && roleCtx.Err() == nil {
				p.failed <- fmt.Errorf("run %s: %w", n.name, err)
			}
		}()
		for _, s := range n.servers {
			p.serving.Go(func() {
				if err := s.serve(); err != nil {
					p.failed <- fmt.Errorf("serve %s: %w", s.key, err)
				}
			})
			p.opts.Log.Info("listening", "role", n.name, "key", s.key, "address", s.open.Addr().String())
			if n.people != nil && s.control {
				p.opts.Log.Info("serving the dashboard", "role", n.name, "url", p.baseURL(s)+"/")
			}
		}
	}
}

// wait returns when ctx ends, with nil, or with the first failure. Until then
// it reloads what changed.
func (p *process) wait(ctx context.Context, exposed []listener) error {
	p.opts.Log.Info("serving", "roles", p.opts.Roles, "version", p.opts.Version, "not_default", changes(Default(), p.config))
	reminder := time.NewTicker(insecureReminder)
	defer reminder.Stop()
	poll := time.NewTicker(filePoll)
	defer poll.Stop()
	p.warnExposed(exposed)
	var text []byte // empty, so that the first poll finds what changed since Load
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-p.failed:
			return err
		case <-reminder.C:
			p.warnExposed(exposed)
		case <-poll.C:
			if now := p.readFile(text); !bytes.Equal(now, text) {
				text = now
				p.reloadConfig()
			}
		case <-p.opts.Hangup:
			p.opts.Log.Info("reloading on SIGHUP")
			p.reloadConfig()
			if p.tls != nil {
				p.tls.Reload(ctx)
			}
			for _, n := range p.nodes {
				if n.reload != nil {
					n.reload()
				}
			}
		}
	}
}

func (p *process) warnExposed(exposed []listener) {
	for _, l := range exposed {
		p.opts.Log.Warn("control port is open to other machines, without TLS", "key", l.key, "address", l.address)
	}
}

// readFile returns the text of grl.toml, or last when it cannot be read: a file
// may be away for a moment while it is replaced.
func (p *process) readFile(last []byte) []byte {
	if p.opts.File == "" {
		return last
	}
	text, err := os.ReadFile(p.opts.File)
	if err != nil {
		return last
	}
	return text
}

// reloadConfig applies the log level of the configuration as it is now, and
// says which other changes wait for a restart. A wrong file changes nothing.
func (p *process) reloadConfig() {
	if p.opts.Load == nil {
		return
	}
	c, err := p.opts.Load()
	if err != nil {
		p.opts.Log.Error("configuration not reloaded; the old one stays", "err", err)
		return
	}
	if c.Log.Level != p.config.Log.Level {
		level, _ := c.Log.level() // validated by Load
		p.opts.Level.Set(level)
		p.config.Log.Level = c.Log.Level
		p.opts.Log.Info("changed log level", "log_level", c.Log.Level)
	}
	if pending := changes(p.config, c); len(pending) > 0 {
		p.opts.Log.Warn("changed keys need a restart", "keys", pending)
	}
}

// drain stops everything within drainTimeout: first the proxies, whose requests
// are the workload's, then each role with its control port.
func (p *process) drain() error {
	p.draining.Store(true)
	began := time.Now()
	p.opts.Log.Info("draining", "timeout", drainTimeout.String())
	ctx, cancel := context.WithTimeout(context.Background(), drainTimeout)
	defer cancel()

	for _, n := range p.nodes {
		p.shutdown(ctx, n, false)
	}
	for _, n := range p.nodes {
		p.stopRole(ctx, n)
	}
	p.stopFiles()
	p.serving.Wait()
	err := p.close()
	p.opts.Log.Info("stopped", "drain_seconds", time.Since(began).Seconds())
	return err
}

// stopRole ends the role, which ends its streams, and its control servers, which
// finish other calls meanwhile.
func (p *process) stopRole(ctx context.Context, n *running) {
	n.stop()
	grace, cancel := context.WithTimeout(ctx, controlGrace)
	defer cancel()
	p.shutdown(grace, n, true)
	select {
	case <-n.done:
	case <-ctx.Done():
		p.opts.Log.Error("role did not stop in time", "role", n.name)
	}
}

// shutdown ends the control servers of n, or its proxies, all at a time.
func (p *process) shutdown(ctx context.Context, n *running, control bool) {
	var ended sync.WaitGroup
	for _, s := range n.servers {
		if s.control != control {
			continue
		}
		ended.Go(func() {
			if !s.shutdown(ctx) {
				p.opts.Log.Warn("requests in flight were cut at the end of the drain", "key", s.key)
			}
		})
	}
	ended.Wait()
}

// close closes what the roles hold open, after all of them ended.
func (p *process) close() error {
	var errs []error
	for _, n := range p.nodes {
		if n.close == nil {
			continue
		}
		if err := n.close(); err != nil {
			errs = append(errs, fmt.Errorf("close %s: %w", n.name, err))
		}
	}
	return errors.Join(errs...)
}

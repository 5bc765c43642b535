// Package controller is the node at the top of the tree, or of a region: it sums
// what the zones offer, decides the ratio of each cell, versions directives,
// holds the configuration, records history, and serves the API and the
// dashboard. One with a parent takes the configuration and what is decided of
// global cells from there.
package controller

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"grl/limiter"
	"grl/limiter/law"
	"grl/proto/uplink"
	"grl/roles/controller/api"
	"grl/roles/controller/desk"
	"grl/roles/controller/people"
	"grl/store"
	"grl/store/ledger"
	"grl/web/page"
)

// Options says how a controller runs.
type Options struct {
	Config  Config
	Log     *slog.Logger
	Version string
	// Registry takes the controller's metrics.
	Registry prometheus.Registerer
	// Store keeps the history, and the ledger unless there is an Engine. It is
	// open and stays the caller's to close, after Run.
	Store *store.Store
	// Engine keeps the ledger of a group of controllers, who elect one that leads;
	// nil: the Store does, and this controller is alone. It stays the caller's to
	// close.
	Engine store.Engine
	// People signs people in; nil: nobody can.
	People *people.People
	// HTTP dials the parent; nil means uplink.HTTPClient().
	HTTP *http.Client
	// AnyHost says that the listener is reachable under names that are not
	// known here; see web.Options.
	AnyHost bool
}

// Controller is one controller. Create it with New, mount Handler, call Run.
type Controller struct {
	opts    Options
	name    string
	bootID  uint64
	metrics metrics
	engine  store.Engine
	ledger  *ledger.Ledger
	desk    *desk.Desk
	api     *api.API                  // nil at a regional controller
	figures atomic.Pointer[page.Past] // of the past weeks; nil: not computed yet
	moved   chan struct{}             // sums moved: decide soon; capacity 1
	reread  chan struct{}             // read the limits directory now; capacity 1
	stop    chan struct{}             // closed when Run ends: streams must end
	streams sync.WaitGroup
	alerts  alerts

	sights     sights
	sparks     sparks
	limitLines limitLines
	lines      lines
	decided    atomic.Pointer[page.Counts] // policies and proposals; nil: not counted yet

	reloading sync.Mutex // serialises reload; taken before mu
	shelf     shelf      // guarded by reloading

	mu    sync.Mutex // guards all below
	node  *node
	ended bool

	kept kept

	leadership store.Leadership  // nil: it does not lead
	state      ledger.State      // that is installed
	hourly     []*limiter.Bucket // of it, and of what it is rolled out from: with limits by the hour
	hour       time.Time         // whose limits they have
	installed  chan struct{}     // closed, and replaced, when another one is
	loaded     time.Time         // the revision was made, or taken from the parent
	refused    string            // why the limits directory was
	traffic    traffic
}

// New reads the configuration and the epoch from the store and, if the store
// has no configuration, the limits directory. It returns an error if that
// directory does not hold: a controller that would enforce nothing must not
// start quietly.
func New(ctx context.Context, o Options) (*Controller, error) {
	if err := o.Config.Validate(); err != nil {
		return nil, err
	}
	zones, err := o.Store.Zones(ctx)
	if err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	now := time.Now()
	var recent []string
	before := make(map[string]*zone)
	for _, z := range zones {
		if now.Sub(z.Seen) < law.ZoneKept {
			recent = append(recent, z.Name)
		}
		if now.Sub(z.Seen) < forgetZone {
			before[z.Name] = &zone{name: z.Name, region: z.Region, regional: isRegion(z.Name), lost: z.Seen}
		}
	}
	if o.HTTP == nil {
		o.HTTP = uplink.HTTPClient()
	}
	c := &Controller{
		opts:   o,
		name:   host + "/" + strconv.Itoa(os.Getpid()),
		bootID: rand.Uint64(),
		engine: o.Engine,
		moved:  make(chan struct{}, 1),
		reread: make(chan struct{}, 1),
		stop:   make(chan struct{}),
		node:   newNode(now, recent),

		installed: make(chan struct{}),
	}
	c.node.before, c.kept.since = before, now
	if c.engine == nil {
		c.engine = o.Store
	}
	c.ledger = ledger.New(c.engine)
	c.desk = desk.New(desk.Options{Ledger: c.ledger, Traffic: load{c}, Log: o.Log})
	if o.Config.Regional() {
		c.node.regional(o.Config.Region, o.Config.Autonomy)
	}
	c.metrics = newMetrics(o.Registry, c)
	c.newAlerts()
	for _, w := range o.Store.Warnings() {
		o.Log.ErrorContext(ctx, "store was damaged", "warning", w)
	}
	if o.Config.Regional() {
		c.loadCopy(ctx)
		return c, nil
	}
	c.api = api.New(api.Options{
		Desk: c.desk, Ledger: c.ledger, History: o.Store, Limits: o.Config.Limits, Log: o.Log, Alert: alertService{c},
	})
	if err := c.loadFirst(ctx); err != nil {
		return nil, err
	}
	return c, nil
}

// Ready returns why the controller cannot decide yet, nil once it can.
func (c *Controller) Ready() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.node.complete(time.Now()) {
		return fmt.Errorf("warming up: %d zones have not reported since the start", len(c.node.missing))
	}
	if c.opts.Config.Regional() && c.node.config.Revision == 0 {
		return fmt.Errorf("no configuration yet: the parent has not answered, and there is no copy")
	}
	for child := range c.node.children { // not rival: it may be gone
		if epoch := c.node.follows(child); epoch != 0 {
			return fmt.Errorf("another controller decides, at epoch %d; this one is at %d", epoch, c.node.epoch)
		}
	}
	return nil
}

// Reload reads the limits directory now instead of at its next change.
func (c *Controller) Reload() { wake(c.reread) }

// Run works until ctx ends, and returns when all streams have ended and what
// was counted is in the history.
func (c *Controller) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return c.campaign(ctx) })
	g.Go(func() error { return c.decide(ctx) })
	g.Go(func() error { return c.watchLimits(ctx) })
	g.Go(func() error { return c.rollOut(ctx) })
	g.Go(func() error { return c.followLedger(ctx) })
	g.Go(func() error { return c.watchOver(ctx) })
	if c.opts.People != nil {
		g.Go(func() error { return c.opts.People.Run(ctx) })
	}
	g.Go(func() error { return c.record(ctx) })
	if !c.opts.Config.Regional() {
		g.Go(func() error { return c.keepCounts(ctx) })
	}
	g.Go(func() error { return c.keepPast(ctx) })
	if c.opts.Config.Regional() {
		for _, address := range c.opts.Config.Parent {
			g.Go(func() error {
				c.follow(ctx, address)
				return nil
			})
		}
		g.Go(func() error { return c.keepCopy(ctx) })
	}
	err := g.Wait()
	c.mu.Lock()
	c.ended = true
	close(c.stop)
	c.mu.Unlock()
	c.streams.Wait()
	c.flush(context.WithoutCancel(ctx), time.Now(), true)
	return err
}

// decide decides on receipt of sums that moved, and at each T.
func (c *Controller) decide(ctx context.Context) error {
	tick := time.NewTicker(law.T)
	defer tick.Stop()
	var published time.Time
	for {
		publish, full := c.node.decide, false
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			publish, full = c.node.renew, true
		case <-c.moved:
			wait := max(law.Coalesce, law.PublishGap-time.Since(published))
			select { // more of the same surge is under way
			case <-ctx.Done():
				return nil
			case <-time.After(wait):
			}
		}
		c.mu.Lock()
		c.checkLead()
		began, wasAlone := time.Now(), c.node.alone()
		publishing := publish(began)
		if c.node.alone() && !wasAlone {
			c.opts.Log.WarnContext(ctx, "parent is silent: deciding this region's part of global limits alone", "autonomy", c.opts.Config.Autonomy)
		}
		if publishing {
			published = began
			c.wakeChildren()
		}
		if full {
			c.beatParents()
		}
		c.metrics.decide.Observe(time.Since(began).Seconds())
		c.mu.Unlock()
	}
}

// wakeChildren tells the streams that there is something to send. The caller
// holds mu.
func (c *Controller) wakeChildren() {
	for child := range c.node.children {
		wake(child.wake)
	}
}

// raise makes the epoch higher than one that is used up, 0 for none, so that
// receivers take this controller's directives although its store was lost or
// restored.
func (c *Controller) raise(ctx context.Context, heard uint64) {
	if heard == 0 {
		return
	}
	epoch, err := c.ledger.NextEpoch(ctx, heard)
	if err != nil {
		c.opts.Log.ErrorContext(ctx, "cannot raise the epoch: nodes will refuse directives", "heard", heard, "err", err)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if epoch > c.node.epoch {
		c.opts.Log.WarnContext(ctx, "raised epoch above one that was heard", "heard", heard, "epoch", epoch)
		c.node.raise(epoch)
		c.wakeChildren()
	}
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // it has been told
	}
}

package controller

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"grl/limiter"
	"grl/limiter/limitsfile"
	"grl/store/ledger"
)

// followLedger installs what the ledger says whenever it changes, until ctx ends.
func (c *Controller) followLedger(ctx context.Context) error {
	for range c.ledger.Changed(ctx) {
		for {
			err := c.reload(ctx)
			if err == nil || ctx.Err() != nil {
				break
			}
			c.opts.Log.ErrorContext(ctx, "cannot install what the store says; trying again", "err", err)
			pause(ctx, retryCampaign)
		}
	}
	return nil
}

// reload installs what the ledger says, unless it is installed.
func (c *Controller) reload(ctx context.Context) error {
	if c.opts.Config.Regional() {
		return nil // the parent says it
	}
	c.reloading.Lock()
	defer c.reloading.Unlock()
	state, err := c.ledger.State(ctx)
	if err != nil {
		return err
	}
	services, err := c.shelf.services(ctx, c.ledger, state.Head.Number)
	if err != nil {
		return err
	}
	now := time.Now()
	hour := hourOf(state, now)
	at := newClock(hour)
	services, hourly := at.limits(services)
	next := &limiter.Configuration{Revision: state.Head.Number, Services: services, PublicURL: c.opts.Config.PublicURL}
	takeIncident(next, state.Incident, now)
	var from *limiter.Configuration
	if r := state.Rollout; r.State == ledger.RolloutRunning && r.Revision == state.Head.Number {
		before := *next
		before.Revision = r.From
		if before.Services, err = c.shelf.services(ctx, c.ledger, r.From); err != nil {
			return err
		}
		var more []*limiter.Bucket
		before.Services, more = at.limits(before.Services)
		hourly = append(hourly, more...)
		from = &before
	}
	c.shelf.keep(state.Head.Number, state.Rollout.From)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.install(ctx, state, next, from) {
		c.hourly, c.hour = hourly, hour
	}
	return nil
}

// install makes a configuration the active one, unless it is. The caller holds
// mu.
func (c *Controller) install(ctx context.Context, state ledger.State, next, from *limiter.Configuration) (changed bool) {
	n := c.node
	held := n.config.Version()
	next.Epoch = n.epoch
	if from != nil {
		from.Epoch = n.epoch
	}
	if next.Version() == held && (from == nil) == (n.stage == nil) && (from == nil || slices.Equal(state.Rollout.Reached, c.state.Rollout.Reached)) {
		c.state = state
		return false
	}
	n.install(next, from, state.Rollout.Reached)
	c.state, c.loaded = state, state.Head.At
	close(c.installed)
	c.installed = make(chan struct{})
	c.wakeChildren()
	wake(c.moved)
	c.opts.Log.InfoContext(ctx, "installed configuration", "revision", next.Revision, "serial", next.Serial,
		"services", len(next.Services), "buckets", len(n.buckets), "caps", len(next.Caps))
	return true
}

// Active returns once this controller has installed a revision and serial, or
// later ones.
func (l load) Active(ctx context.Context, revision, serial uint64) error {
	c := l.Controller
	if err := c.reload(ctx); err != nil {
		return err
	}
	for {
		c.mu.Lock()
		held, installed := c.node.config, c.installed
		c.mu.Unlock()
		if held.Revision >= revision && held.Serial >= serial {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for r%d to be active, r%d is: %w", revision, held.Revision, ctx.Err())
		case <-installed:
		}
	}
}

// takeIncident adds what holds beside the revisions.
func takeIncident(c *limiter.Configuration, i ledger.Incident, now time.Time) {
	c.Serial, c.AllDisabled, c.Disabled = i.Serial, i.AllDisabled, i.Disabled
	for _, placed := range i.Caps {
		c.Caps = append(c.Caps, limiter.Cap{
			ID:       placed.ID,
			Service:  placed.Service,
			Match:    limiter.Match{Caller: limiter.Pattern(placed.Caller), Procedure: limiter.Pattern(placed.Procedure)},
			LimitRPS: placed.RPS,
			Block:    placed.Block,
			Author:   placed.Author,
			Reason:   placed.Reason,
			Ends:     now.Add(capLeft(placed, now)),
		})
	}
}

// capLeft returns how long a cap has left, by wall time, as it was placed or
// extended. If the clock was set back since it has no more than it may have had:
// what no cap may have, receivers refuse together with all else.
func capLeft(placed ledger.Cap, now time.Time) time.Duration {
	return min(placed.EndsAt.Sub(now.Round(0)), placed.EndsAt.Sub(placed.PlacedAt), ledger.MaxCapLife)
}

// shelf holds the services of the revisions in use as they were read, so that a
// change reads only what it changed, and what did not change is the same memory.
type shelf struct {
	revisions map[uint64]map[string]shelved
}

// shelved is a service as of the hash of its text.
type shelved struct {
	hash    ledger.Hash
	service limiter.Service
}

// services returns those of a revision, by name.
func (s *shelf) services(ctx context.Context, l *ledger.Ledger, revision uint64) ([]limiter.Service, error) {
	held, ok := s.revisions[revision]
	if !ok {
		var err error
		if held, err = s.read(ctx, l, revision); err != nil {
			return nil, fmt.Errorf("read configuration r%d: %w", revision, err)
		}
		if s.revisions == nil {
			s.revisions = make(map[uint64]map[string]shelved)
		}
		s.revisions[revision] = held
	}
	services := make([]limiter.Service, 0, len(held))
	for _, name := range slices.Sorted(maps.Keys(held)) {
		services = append(services, held[name].service)
	}
	return services, nil
}

func (s *shelf) read(ctx context.Context, l *ledger.Ledger, revision uint64) (map[string]shelved, error) {
	manifest, err := l.Manifest(ctx, revision)
	if err != nil {
		return nil, err
	}
	read := make(map[string]shelved, len(manifest))
	var unread []ledger.Document
	for name, document := range manifest {
		if at, ok := s.find(name, document.Hash); ok {
			read[name] = at
		} else {
			unread = append(unread, document)
		}
	}
	texts, err := l.Bodies(ctx, unread...)
	if err != nil {
		return nil, err
	}
	for name, document := range manifest {
		if _, ok := read[name]; ok {
			continue
		}
		hash := document.Hash
		services, err := limitsfile.Load([]limitsfile.Source{{Name: fmt.Sprintf("r%d/%s", revision, name), Data: texts[hash]}})
		if err != nil {
			return nil, err
		}
		for _, service := range services {
			read[name] = shelved{hash, service}
		}
	}
	return read, nil
}

func (s *shelf) find(name string, hash ledger.Hash) (shelved, bool) {
	for _, services := range s.revisions {
		if at, ok := services[name]; ok && at.hash == hash {
			return at, true
		}
	}
	return shelved{}, false
}

// keep forgets all revisions but these.
func (s *shelf) keep(revisions ...uint64) {
	maps.DeleteFunc(s.revisions, func(revision uint64, _ map[string]shelved) bool {
		return !slices.Contains(revisions, revision)
	})
}

package controller

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	"grl/limiter"
	"grl/limiter/limitsfile"
	"grl/proto/wire"
	"grl/store"
)

const (
	// limitsSource names the watched directory in the store.
	limitsSource = "limits directory"
	// watchEvery is how often the directory is read: by content, since edits
	// behind symlinks (Kubernetes) and within one clock tick escape other ways.
	watchEvery = 2 * time.Second
)

// loadFirst installs what the store has. If that is nothing, the limits
// directory must hold; if the directory changed while no controller ran, it is
// applied, and a fault in it only reported.
func (c *Controller) loadFirst(ctx context.Context) error {
	head, err := c.opts.Store.Head(ctx)
	if err != nil {
		return err
	}
	if head.Number > 0 {
		if err := c.installStored(ctx, head); err != nil {
			return err
		}
	}
	if c.opts.Config.Limits == "" {
		return nil
	}
	err = c.loadLimits(ctx)
	if head.Number == 0 {
		return err
	}
	c.note(ctx, err)
	return nil
}

// installStored makes a revision of the store the active one.
func (c *Controller) installStored(ctx context.Context, revision store.Revision) error {
	documents, err := c.opts.Store.Documents(ctx, revision.Number)
	if err != nil {
		return err
	}
	sources := make([]limitsfile.Source, 0, len(documents))
	for service, text := range documents {
		sources = append(sources, limitsfile.Source{Name: fmt.Sprintf("r%d/%s", revision.Number, service), Data: text})
	}
	services, err := limitsfile.Load(sources)
	if err != nil {
		return fmt.Errorf("read stored configuration r%d: %w", revision.Number, err)
	}
	c.install(ctx, revision, services)
	return nil
}

// loadLimits applies the limits directory if it changed since it was last
// loaded. The whole directory holds or nothing of it is taken.
func (c *Controller) loadLimits(ctx context.Context) error {
	sources, err := limitsfile.ReadDir(c.opts.Config.Limits)
	if err != nil {
		return fmt.Errorf("controller.limits: %w", err)
	}
	last, base, err := c.opts.Store.LastSource(ctx, limitsSource)
	if err != nil {
		return err
	}
	hash := hashSources(sources)
	if hash == last {
		return nil
	}
	if len(sources) == 0 && c.limited() {
		return fmt.Errorf("limits directory %q has no limits files any more: to remove all limits, leave a file with a service and no buckets", c.opts.Config.Limits)
	}
	services, err := limitsfile.Load(sources)
	if err != nil {
		return err
	}
	documents := make(map[string][]byte, len(services))
	for _, s := range services {
		documents[s.Name] = limitsfile.Normalize(s)
	}
	if err := c.validate(services); err != nil {
		return err
	}
	revision, err := c.opts.Store.Apply(ctx, base, store.Change{
		Documents:  documents,
		Author:     limitsSource,
		Reason:     "files changed",
		Source:     limitsSource,
		SourceHash: hash,
		At:         time.Now(),
	})
	if err != nil {
		return err
	}
	c.mu.Lock()
	active := c.node.config.Revision
	c.mu.Unlock()
	if revision.Number != active {
		c.install(ctx, revision, services)
	}
	return nil
}

// limited reports whether the active configuration has a service: an empty
// directory in its place is more likely a mount that went away than a wish.
func (c *Controller) limited() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.node.config.Services) > 0
}

// validate checks what a receiver will check, so that nothing is saved that
// they refuse.
func (c *Controller) validate(services []limiter.Service) error {
	config := limiter.Configuration{Services: services, PublicURL: c.opts.Config.PublicURL}
	if err := config.Validate(); err != nil {
		return err
	}
	if n := proto.Size(wire.FromConfiguration(&config)); n > wire.MaxDown-1024 {
		return fmt.Errorf("limits of %d bytes as a message, at most %d: no node would take them", n, wire.MaxDown-1024)
	}
	return nil
}

func hashSources(sources []limitsfile.Source) string {
	h := sha256.New()
	for _, s := range sources {
		fmt.Fprintf(h, "%d %s %d ", len(s.Name), s.Name, len(s.Data))
		h.Write(s.Data)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// watchLimits applies changes of the limits directory.
func (c *Controller) watchLimits(ctx context.Context) error {
	if c.opts.Config.Limits == "" {
		return nil
	}
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case <-c.reload:
		}
		c.note(ctx, c.loadLimits(ctx))
	}
}

// note remembers, and once logs, why the limits directory was refused; nil: it
// was not. The active configuration stays.
func (c *Controller) note(ctx context.Context, err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	c.mu.Lock()
	changed := text != c.refused
	c.refused = text
	revision := c.node.config.Revision
	c.mu.Unlock()
	switch {
	case !changed:
	case err != nil:
		c.opts.Log.ErrorContext(ctx, "refused limits directory, the active configuration stays", "revision", revision, "err", err)
	default:
		c.opts.Log.InfoContext(ctx, "limits directory holds again", "revision", revision)
	}
}

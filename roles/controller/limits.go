package controller

import (
	"context"
	"fmt"
	"strings"
	"time"

	"grl/limiter/limitsfile"
	"grl/proto/access"
	"grl/roles/controller/desk"
	"grl/store"
)

const (
	// limitsSource names the watched directory in the store.
	limitsSource = "limits directory"
	// watchEvery is how often the directory is read: by content, since edits
	// behind symlinks (Kubernetes) and within one clock tick escape other ways.
	watchEvery = 2 * time.Second
)

// loadFirst installs what the store has. If that is nothing because it was
// damaged, there must be a limits directory. If it is nothing, that directory
// must hold; if the directory changed while no controller ran, it is
// applied, and a fault in it only reported.
func (c *Controller) loadFirst(ctx context.Context) error {
	if err := c.reload(ctx); err != nil {
		return err
	}
	first := c.state.Head.Number == 0
	if c.opts.Config.Limits == "" {
		if aside := c.opts.Store.SetAside(); first && len(aside) > 0 && c.engine == store.Engine(c.opts.Store) {
			return fmt.Errorf("controller.db: the limits were in %s, which is damaged: restore a backup of grl.db, set controller.limits, or take that file away to begin without limits", strings.Join(aside, " or "))
		}
		return nil
	}
	err := c.loadLimits(ctx)
	if first {
		return err
	}
	c.note(ctx, err)
	return nil
}

// loadLimits applies the limits directory, if it changed since it was last
// applied. The whole directory holds or nothing of it is taken.
func (c *Controller) loadLimits(ctx context.Context) error {
	sources, err := limitsfile.ReadDir(c.opts.Config.Limits)
	if err != nil {
		return fmt.Errorf("controller.limits: %w", err)
	}
	if len(sources) == 0 && c.limited() {
		return fmt.Errorf("limits directory %q has no limits files any more: to remove all limits, leave a file with a service and no buckets", c.opts.Config.Limits)
	}
	_, err = c.desk.Apply(ctx, desk.ApplyRequest{
		By: desk.By{
			Person: access.Person{Name: limitsSource, Level: access.Admin, By: limitsSource},
			From:   c.opts.Config.Limits,
		},
		Files:  sources,
		Source: limitsSource,
		Prune:  true,
		Reason: "files changed",
	})
	return err
}

// limited reports whether the active configuration has a service: an empty
// directory in its place is more likely a mount that went away than a wish.
func (c *Controller) limited() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.node.config.Services) > 0
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
		case <-c.reread:
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

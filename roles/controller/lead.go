package controller

import (
	"context"
	"sync"
	"time"

	"grl/store"
)

const (
	// retryCampaign is how long to wait before the next try to lead, or to read
	// the ledger, after one that failed.
	retryCampaign = time.Second
	// resignWithin bounds how long the end of a controller waits for the store to
	// hear that it resigns.
	resignWithin = 2 * time.Second
	// askWithin bounds how long to wait for a store that may be gone, and askAgain
	// is how long to wait before it is asked the next time.
	askWithin = time.Second
	askAgain  = 200 * time.Millisecond
)

// campaign has the controller lead its group whenever it can, until ctx ends. The
// others only listen, so that any can take over at once.
func (c *Controller) campaign(ctx context.Context) error {
	for ctx.Err() == nil {
		leadership, err := c.engine.Campaign(ctx, c.election(), c.name)
		if err == nil {
			err = c.lead(ctx, leadership)
		}
		if err != nil && ctx.Err() == nil {
			c.opts.Log.ErrorContext(ctx, "cannot lead; trying again", "err", err)
			pause(ctx, retryCampaign)
		}
	}
	return nil
}

// election names what the controllers of one group compete for.
func (c *Controller) election() string {
	if c.opts.Config.Regional() {
		return "controller of region " + c.opts.Config.Region
	}
	return "controller"
}

// lead leads until the leadership is lost, or ctx ends. The epoch is taken after
// the leadership was won, so it is above that of every leader before.
func (c *Controller) lead(ctx context.Context, leadership store.Leadership) error {
	defer func() {
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), resignWithin)
		defer cancel()
		if err := leadership.Resign(bounded); err != nil {
			c.opts.Log.WarnContext(ctx, "cannot resign; another one leads once the lease has ended", "err", err)
		}
	}()
	c.mu.Lock()
	heard := c.node.heard
	c.mu.Unlock()
	epoch, err := c.ledger.NextEpoch(ctx, heard)
	if err != nil {
		return err
	}
	if err := c.reload(ctx); err != nil {
		return err
	}
	if err := c.setHour(ctx, time.Now()); err != nil {
		return err
	}
	c.mu.Lock()
	c.leadership = leadership
	c.node.lead(epoch)
	heard = c.node.heard // a child may have joined since
	c.wakeChildren()
	wake(c.moved)
	c.mu.Unlock()
	c.opts.Log.InfoContext(ctx, "leads", "epoch", epoch)
	if heard >= epoch {
		c.raise(ctx, heard)
	}
	var hours sync.WaitGroup
	defer hours.Wait()
	leading, cancel := context.WithCancel(ctx)
	defer cancel()
	hours.Go(func() { c.keepHours(leading) })
	select {
	case <-ctx.Done():
	case <-leadership.Lost():
		cancel()
		c.holdOver(ctx, epoch)
		c.opts.Log.WarnContext(ctx, "lost the lead; listening", "epoch", epoch)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leadership = nil
	c.node.listen()
	return nil
}

// checkLead has the controller listen at once if it has lost the lead: one that
// was frozen must not say a word before it has asked who leads; see holdOver. The
// caller holds mu.
func (c *Controller) checkLead() {
	if c.leadership == nil {
		return
	}
	select {
	case <-c.leadership.Lost():
		c.node.listen()
	default:
	}
}

// holdOver goes on leading while the store cannot say who leads: without a store
// nobody is elected, and in the end all hosts would open. It returns once the
// store answers, or a child has taken a directive of a later leader; from that
// one on receivers refuse what this one still says.
func (c *Controller) holdOver(ctx context.Context, epoch uint64) {
	for told := false; ctx.Err() == nil && !c.succeeded(); told = true {
		bounded, cancel := context.WithTimeout(ctx, askWithin)
		_, err := c.ledger.Head(bounded)
		cancel()
		if err == nil {
			return
		}
		if !told {
			c.opts.Log.WarnContext(ctx, "the store cannot say who leads; leading on", "epoch", epoch, "err", err)
		}
		c.leadOn()
		pause(ctx, askAgain)
	}
}

// leadOn has the controller speak again after checkLead.
func (c *Controller) leadOn() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leadership = nil
	c.node.leads = true
}

// succeeded reports whether a child has taken a directive of a later leader.
func (c *Controller) succeeded() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for child := range c.node.children {
		if c.node.follows(child) != 0 {
			return true
		}
	}
	return false
}

// pause waits, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

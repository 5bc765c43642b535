package configurator

import (
	"context"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	grlv1 "grl/proto/grl/v1"
)

const (
	// attendEvery is how often the lease is renewed: the controller gives it for
	// leaseTTL.
	attendEvery = 2 * time.Second
	leaseTTL    = 20 * time.Second
	// leaveWithin is how long giving it up may take.
	leaveWithin = 2 * time.Second
)

// attend takes the lease, keeps it, and hears what there is to do, until ctx
// ends.
func (c *Configurator) attend(ctx context.Context) error {
	tick := time.NewTicker(attendEvery)
	defer tick.Stop()
	for {
		c.renew(ctx)
		select {
		case <-ctx.Done():
			c.leave(ctx)
			return nil
		case <-tick.C:
		}
	}
}

// renew asks for the lease once.
func (c *Configurator) renew(ctx context.Context) {
	c.mu.Lock()
	request := &grlv1.AttendRequest{Holder: c.holder, Status: proto.CloneOf(c.status)}
	c.mu.Unlock()
	call, cancel := context.WithTimeout(ctx, leaseTTL/2)
	defer cancel()
	began := time.Now()
	var answer *grlv1.AttendResponse
	err := c.group.do(call, func(ctx context.Context, to conn) (err error) {
		answer, err = to.Attend(ctx, request)
		return err
	})
	if ctx.Err() != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		c.heard, c.silent = began, false
		c.follow(ctx, answer)
		return
	}
	if !c.silent {
		c.silent = true
		text := "no controller answers; limits stay as they are"
		if code := connect.CodeOf(err); code == connect.CodeUnauthenticated || code == connect.CodePermissionDenied {
			text = "the controller takes this for no configurator; it needs a certificate as one, or configurator.token_file; limits stay as they are"
		}
		c.opts.Log.WarnContext(ctx, text, "err", err)
	}
	if time.Since(c.heard) >= leaseTTL {
		c.follow(ctx, &grlv1.AttendResponse{})
	}
}

// follow takes in what a controller said. The caller holds mu.
func (c *Configurator) follow(ctx context.Context, answer *grlv1.AttendResponse) {
	before := c.told
	c.told = answer
	switch leads := answer.GetLeads(); {
	case leads && !before.GetLeads():
		c.opts.Log.InfoContext(ctx, "this configurator is at work: it has the lease")
		c.lead, c.lose = context.WithCancel(ctx)
		c.inStepAt = 0
		close(c.turned)
		c.turned = make(chan struct{})
	case !leads && before.GetLeads():
		c.opts.Log.InfoContext(ctx, "this configurator waits: another one is at work, or no controller answers", "at_work", answer.GetHolder())
		c.lose()
		c.lead = nil
	}
	wake(c.wake)
	if before.GetRevision() != answer.GetRevision() {
		wake(c.resync)
	}
}

// whileLeading calls work whenever the lease was taken, with a context that ends
// with it, until ctx ends.
func (c *Configurator) whileLeading(ctx context.Context, work func(context.Context)) error {
	for {
		c.mu.Lock()
		lead, turned := c.lead, c.turned
		c.mu.Unlock()
		if lead != nil && lead.Err() == nil {
			work(lead)
			continue
		}
		select {
		case <-ctx.Done():
			return nil
		case <-turned:
		}
	}
}

// leave gives the lease up, so that another one need not wait.
func (c *Configurator) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveWithin)
	defer cancel()
	_ = c.group.do(ctx, func(ctx context.Context, to conn) error { // else it runs out
		_, err := to.Attend(ctx, &grlv1.AttendRequest{Holder: c.holder, Leave: true})
		return err
	})
}

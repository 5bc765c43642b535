// Package demo runs a whole grl in one process, on real sockets: a controller,
// two zones with an aggregator and three sidecars each, and an upstream. It
// replays a minute of a real trace through the sidecars, lets the load surge,
// and judges from the senders' side whether the limit held.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"
)

const (
	// MinSeconds is the shortest demo: its surge must outlast the settling.
	MinSeconds = 12
	// MaxSeconds is the longest one.
	MaxSeconds = 3600
	// MinSurge is the smallest surge; the limit is twice what is offered before.
	MinSurge = 3
	// MaxSurge is the largest one; no machine of today keeps up with more.
	MaxSurge = 100

	// drawDelay is how long after a second it is shown, so that its requests are
	// answered.
	drawDelay = 100 * time.Millisecond
	// countTimeout is how long the sidecars have to count the last requests.
	countTimeout = time.Second
)

// Options says what to show.
type Options struct {
	Seconds int          // from MinSeconds to MaxSeconds
	Surge   float64      // how much faster the trace plays then; from MinSurge to MaxSurge
	Version string       // of grl
	Log     *slog.Logger // of the roles; required
	// Progress takes the live table: in place if it is a terminal, else a line
	// a second. Required. If it is also where Log writes, it must allow
	// concurrent writes.
	Progress io.Writer
	// Limits is told the limits file before anything starts; nil: nobody is.
	Limits func(file string)
}

// Run runs the demo to its end, or that of ctx: then the result is about what
// happened until then, and says so. An error means that something did not
// start, or failed on the way. All that Run started has ended and all that it
// wrote is removed when it returns.
func Run(ctx context.Context, o Options) (_ *Result, err error) {
	calls, err := readTrace(excerpt)
	if err != nil {
		return nil, err
	}
	p := newPlan(calls, o.Seconds, o.Surge)
	if o.Limits != nil {
		o.Limits(p.limits.file())
	}
	pl, err := startPlane(ctx, p.limits, o.Log, o.Version)
	if err != nil {
		return nil, err
	}
	defer func() {
		if stopErr := pl.stop(); stopErr != nil {
			err = errors.Join(err, fmt.Errorf("stop demo: %w", stopErr))
		}
	}()
	if _, err := fmt.Fprintf(o.Progress, "dashboard %s\n", pl.dashboard); err != nil {
		return nil, fmt.Errorf("write progress: %w", err)
	}
	if err := pl.waitReady(ctx); err != nil && ctx.Err() == nil {
		return nil, err
	}
	return pl.play(ctx, p, o.Progress)
}

// play sends what the plan says and shows it.
func (p *plane) play(ctx context.Context, plan plan, progress io.Writer) (*Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	t := &tally{}
	l := newLoad(plan, p.sidecars, t)
	l.start = time.Now()
	screen := newScreen(progress, p, plan, t)
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		l.run(ctx)
	}()
	tick := time.NewTimer(time.Second + drawDelay)
	defer tick.Stop()
	var failure error
	for playing := true; playing; {
		select {
		case <-sent:
			playing = false
		case failure = <-p.failed:
			cancel()
			<-sent
			playing = false
		case <-tick.C:
			elapsed := time.Since(l.start)
			screen.draw(ctx, elapsed)
			tick.Reset(time.Until(l.start.Add(elapsed.Truncate(time.Second) + time.Second + drawDelay)))
		}
	}
	if failure != nil {
		return nil, failure
	}
	elapsed := time.Since(l.start)
	if ctx.Err() == nil {
		elapsed = plan.total // the last request is before the end
		screen.draw(ctx, elapsed)
	}
	c, err := p.settledCounts(t)
	if err != nil {
		return nil, err
	}
	r := newResult(plan, t.all(), c, elapsed)
	return &r, nil
}

// settledCounts returns the sidecars' counts once they contain all that was
// decided: the clients collect on a timer.
func (p *plane) settledCounts(t *tally) (counted, error) {
	var decided uint64
	for _, r := range t.all() {
		if r.outcome != failed {
			decided++
		}
	}
	for deadline := time.Now().Add(countTimeout); ; time.Sleep(readyPoll) {
		c, err := p.counted()
		if err != nil || c.decisions >= decided || time.Now().After(deadline) {
			return c, err
		}
	}
}

package policies

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"grl/limiter"
	"grl/policy"
	"grl/policy/backtest"
	"grl/policy/policyfile"
	"grl/web/page"
)

const (
	// trialSpan is how far back a trial looks: what a controller keeps.
	trialSpan = 5 * 7 * 24 * time.Hour
	// leastSpan is the least history that leaves something to test: what Lengths
	// needs to learn from, and a day.
	leastSpan = 8 * 24 * time.Hour
	// trialTime bounds one trial, with all that it waits for.
	trialTime = 2 * time.Second
	// mostTrials is how many of all people run at a time.
	mostTrials = 2
	// sampleCells is how many cells a policy is tried on at most besides the one
	// that is shown.
	sampleCells = 24
	// keptTrials is how many results are remembered.
	keptTrials = 64
)

// trials runs policies on the past: one at a time for each asker, a few for all,
// and each only once. It may be used concurrently.
type trials struct {
	slots chan struct{} // one for each that may run

	mu     sync.Mutex        // guards all below
	under  map[string]*turn  // asker → the one under way
	done   map[string]*trial // by what was tried
	oldest []string          // keys of done, in the order they came
}

// turn is a trial under way.
type turn struct{ give context.CancelCauseFunc }

func newTrials() *trials {
	return &trials{slots: make(chan struct{}, mostTrials), under: make(map[string]*turn), done: make(map[string]*trial)}
}

// errSuperseded says that the same asker asked for something else meanwhile.
var errSuperseded = errors.New("another preview was asked for")

// begin waits for a turn; a trial of the same asker that is under way is given
// up. The context ends after trialTime, and end must be called.
func (t *trials) begin(ctx context.Context, asker string) (_ context.Context, end func(), _ error) {
	ctx, cancel := context.WithTimeout(ctx, trialTime)
	ctx, give := context.WithCancelCause(ctx)
	own := &turn{give}
	t.mu.Lock()
	if before := t.under[asker]; before != nil {
		before.give(errSuperseded)
	}
	t.under[asker] = own
	t.mu.Unlock()
	leave := func() {
		t.mu.Lock()
		if t.under[asker] == own {
			delete(t.under, asker)
		}
		t.mu.Unlock()
		give(nil)
		cancel()
	}
	select {
	case t.slots <- struct{}{}:
		return ctx, func() { <-t.slots; leave() }, nil
	case <-ctx.Done():
		cause := context.Cause(ctx)
		leave()
		return nil, nil, cause
	}
}

// known returns a result that is remembered; nil: there is none.
func (t *trials) known(key string) *trial {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.done[key]
}

func (t *trials) keep(key string, result *trial) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.done[key] == nil {
		t.oldest = append(t.oldest, key)
	}
	t.done[key] = result
	if len(t.oldest) > keptTrials {
		delete(t.done, t.oldest[0])
		t.oldest = slices.Delete(t.oldest, 0, 1)
	}
}

// trial is what a policy would have done in the past. It is not changed once it
// is made.
type trial struct {
	Cell page.Cell
	// Days is how much history there is of the cell.
	Days float64
	// TooLittle says that this is too little to try anything on; the rest is
	// empty.
	TooLittle bool
	// Ignored is how many minutes do not teach: grl dropped something then, or the
	// policy says so.
	Ignored int
	Step    time.Duration
	After   *backtest.Result
	// Before is what the policy that computes the bucket now would have done; nil:
	// none does.
	Before     *backtest.Result
	BeforeName string // of that policy
	Sample     []sampled
	// Cut says that there was no time for the whole sample.
	Cut bool
	// Cells is how many cells the policy computes, of so many buckets.
	Cells, Buckets int
}

// sampled is what came of one cell of the sample.
type sampled struct {
	Cell            page.Cell
	FD, H           float64
	dropped, volume float64
}

// share returns the share of the normal volume of the sample that would have been
// falsely dropped; NaN of nothing.
func (t *trial) share() float64 {
	dropped, volume := 0.0, 0.0
	for _, s := range t.Sample {
		dropped, volume = dropped+s.dropped, volume+s.volume
	}
	return dropped / volume
}

// keyOf names a trial by all that it depends on.
func keyOf(text []byte, before *policy.Spec, cell limiter.CellID, cells int, now time.Time) string {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %d %d", text, cell, cells, now.Truncate(time.Hour).Unix())
	if before != nil {
		fmt.Fprintf(h, " %+v", *before)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// try runs a policy on the past of a cell, and on that of a sample of all that it
// computes; before is what it is compared with, nil: the limit of today.
func (s site) try(ctx context.Context, asker string, text []byte, spec, before *policy.Spec, found matched, cell page.Cell) (*trial, error) {
	now := time.Now()
	key := keyOf(text, before, cell.ID(), len(found.cells), now)
	if known := s.trials.known(key); known != nil {
		return known, nil
	}
	ctx, end, err := s.trials.begin(ctx, asker)
	if err != nil {
		return nil, err
	}
	defer end()
	t := &trial{Cell: cell, Step: stepOf(spec), Cells: len(found.cells), Buckets: found.buckets}
	if err := s.tryOne(ctx, t, spec, before); err != nil {
		return nil, causeOf(ctx, err)
	}
	if !t.TooLittle {
		if err := s.trySample(ctx, t, spec, found.cells); err != nil {
			return nil, causeOf(ctx, err)
		}
	}
	s.trials.keep(key, t)
	return t, nil
}

// causeOf returns why a context ended, where that is why there is an error.
func causeOf(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// stepOf returns the step of the history that a policy is tried on: a minute, but
// for one that runs every few minutes, whose trial would take too long.
func stepOf(spec *policy.Spec) time.Duration {
	if every, err := policyfile.Every(spec); err == nil && every < time.Hour {
		return 10 * time.Minute
	}
	return time.Minute
}

func (s site) tryOne(ctx context.Context, t *trial, spec, before *policy.Spec) error {
	line, err := s.past(ctx, t.Cell.ID(), t.Step)
	if err != nil {
		return err
	}
	taught, ignored := line.teaches(spec, t.Cell.Service)
	t.Ignored = ignored
	length := taught.length()
	if t.Days = length.Hours() / 24; length < leastSpan {
		t.TooLittle = true
		return nil
	}
	if t.After, err = run(ctx, taught, spec); err != nil || before == nil {
		return err
	}
	t.BeforeName = before.Name
	taught, _ = line.teaches(before, t.Cell.Service)
	t.Before, err = run(ctx, taught, before)
	return err
}

// trySample runs the policy on some of its cells, evenly over all, as far as
// there is time.
func (s site) trySample(ctx context.Context, t *trial, spec *policy.Spec, cells []page.Cell) error {
	t.Sample = []sampled{newSampled(t.Cell, t.After)}
	for i := range min(sampleCells, len(cells)) {
		c := cells[i*len(cells)/min(sampleCells, len(cells))]
		if c.ID() == t.Cell.ID() {
			continue
		}
		result, err := s.trySampled(ctx, t, spec, &c)
		switch {
		case errors.Is(context.Cause(ctx), context.DeadlineExceeded):
			t.Cut = true
			return nil
		case err != nil:
			return err
		case result != nil:
			t.Sample = append(t.Sample, newSampled(c, result))
		}
	}
	return nil
}

// trySampled runs the policy on one cell; nil: it has too little history.
func (s site) trySampled(ctx context.Context, t *trial, spec *policy.Spec, c *page.Cell) (*backtest.Result, error) {
	line, err := s.past(ctx, c.ID(), t.Step)
	if err != nil {
		return nil, err
	}
	taught, _ := line.teaches(spec, c.Service)
	if taught.length() < leastSpan {
		return nil, nil
	}
	return run(ctx, taught, spec)
}

func newSampled(c page.Cell, r *backtest.Result) sampled {
	s := sampled{Cell: c, FD: r.FD, H: r.H}
	for i, x := range r.Series.RPS {
		if policy.Known(x) && r.Limits[i] > 0 {
			s.volume += x
			s.dropped += max(0, x-r.Limits[i])
		}
	}
	return s
}

// line is what a cell was offered, with the requests in the highest second of each
// step, and in which steps grl dropped something.
type line struct {
	policy.Series
	highest []float64
	dropped []bool
}

func (l line) length() time.Duration { return time.Duration(len(l.RPS)) * l.Step }

// mostSteps is how many steps of a history are read at once.
const mostSteps = 6 * 24 * 60

// past reads what a cell was offered up to the last full hour.
func (s site) past(ctx context.Context, cell limiter.CellID, step time.Duration) (line, error) {
	to := time.Now().Truncate(time.Hour)
	from := to.Add(-trialSpan)
	l := line{Series: policy.Series{Start: from, Step: step}}
	for at := from; at.Before(to); at = at.Add(mostSteps * step) {
		until := at.Add(mostSteps * step)
		if until.After(to) {
			until = to
		}
		read, err := s.Backend.Series(ctx, page.SeriesQuery{
			Bucket: cell.Bucket, Instance: cell.Instance, Caller: cell.Caller, From: at, To: until, Step: step,
		})
		if err != nil {
			return line{}, fmt.Errorf("read history of %q: %w", cell.Bucket, err)
		}
		l.RPS = append(l.RPS, read.Offered...)
		l.highest = append(l.highest, read.HighestSecond...)
		for _, rps := range read.Dropped {
			l.dropped = append(l.dropped, rps > 0)
		}
	}
	return l, nil
}

// teaches returns what of a line teaches a policy, from the first step that does
// to the last, and how many minutes of it do not: where grl dropped something, and
// what the policy ignores.
func (l line) teaches(spec *policy.Spec, service string) (taught line, ignored int) {
	taught.Series = l.Series
	taught.RPS = slices.Clone(l.RPS)
	for i, rps := range taught.RPS {
		if policy.Known(rps) && (l.dropped[i] || spec.Ignores(service, taught.Time(i))) {
			taught.RPS[i] = policy.Unknown
			ignored += int(taught.Step / time.Minute)
		}
	}
	first, after := taught.Trimmed()
	taught.Start, taught.RPS, taught.highest = taught.Time(first), taught.RPS[first:after], l.highest[first:after]
	return taught, ignored
}

// run holds a policy against what teaches it, with all that a cycle of the
// configurator applies.
func run(ctx context.Context, taught line, spec *policy.Spec) (*backtest.Result, error) {
	every, err := policyfile.Every(spec)
	if err != nil {
		return nil, err
	}
	kinds := policy.Kinds()
	kind := kinds[slices.IndexFunc(kinds, func(k policy.Kind) bool { return k.Name == spec.Kind })]
	return backtest.Run(ctx, backtest.Options{
		Name: spec.Name, Series: taught.Series, Highest: taught.highest, Spec: spec, Policy: kind.New(spec), Every: every, Bounds: backtest.Live,
	})
}

// changes counts how often a limit changes.
func changes(r *backtest.Result) int {
	n, last := 0, math.NaN()
	for _, limit := range r.Limits {
		if policy.Known(limit) {
			if policy.Known(last) && limit != last {
				n++
			}
			last = limit
		}
	}
	return n
}

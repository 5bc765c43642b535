package configurator

import (
	"context"
	"errors"
	"time"

	"grl/policy"
	"grl/policy/policyfile"
	grlv1 "grl/proto/grl/v1"
	"grl/roles/configurator/compute"
)

const (
	// A cycle that failed is tried again after firstRetry, then after twice that
	// and so on up to mostRetry.
	firstRetry = 30 * time.Second
	mostRetry  = 10 * time.Minute
)

// compute runs cycles as they are due, until ctx ends.
func (c *Configurator) compute(ctx context.Context) {
	d := diary{Configurator: c}
	for {
		wait := d.step(ctx)
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-c.wake:
			timer.Stop()
		case <-timer.C:
		}
	}
}

// diary says what is due.
type diary struct {
	*Configurator
	content content
	known   bool                 // content was read
	next    time.Time            // of the next scheduled cycle; zero: none
	looked  map[string]time.Time // policy → when it looked for services without limits
	asked   map[string]bool      // requests that were run, as far as a controller may still name them
	retry   time.Duration        // after a failure
	again   time.Time            // not before then
}

// step does what is due, and returns how long nothing else is.
func (d *diary) step(ctx context.Context) time.Duration {
	d.mu.Lock()
	told := d.told
	d.mu.Unlock()
	now := time.Now()
	if ctx.Err() != nil || now.Before(d.again) {
		return d.again.Sub(now)
	}
	err := d.requests(ctx, told.GetRequests())
	changed := !d.known || told.GetPolicyRevision() != d.content.policies || len(d.content.specs) > 0 && told.GetRevision() != d.content.revision
	if err == nil && (changed || !d.next.IsZero() && !now.Before(d.next)) {
		err = d.due(ctx)
	}
	if err == nil || ctx.Err() != nil {
		d.retry, d.again = 0, time.Time{}
		return mostRetry
	}
	d.retry = min(max(2*d.retry, firstRetry), mostRetry)
	d.again = time.Now().Add(d.retry)
	d.opts.Log.ErrorContext(ctx, "cannot compute limits now; trying again", "after", d.retry, "err", err)
	return d.retry
}

// requests runs the cycles that people asked for, each once: what a controller
// said last may be older than the run.
func (d *diary) requests(ctx context.Context, requests []*grlv1.RunRequest) error {
	before := d.asked
	d.asked = make(map[string]bool, len(requests))
	var errs []error
	for _, r := range requests {
		d.asked[r.GetId()] = true
		if !before[r.GetId()] {
			errs = append(errs, d.requested(ctx, r))
		}
	}
	return errors.Join(errs...)
}

// requested runs the cycle that a person asked for.
func (d *diary) requested(ctx context.Context, request *grlv1.RunRequest) error {
	now, err := d.read(ctx)
	if err != nil {
		return err
	}
	of := func(s *policy.Spec) bool { return request.GetPolicy() == "" || s.Name == request.GetPolicy() }
	_, err = d.cycle(ctx, now, selection{
		trigger: "request", request: request,
		wanted: func(w compute.Work, _ compute.Memory) bool {
			return of(w.Spec) && (request.GetService() == "" || w.Bucket.Service == request.GetService())
		},
		discovers: func(s *policy.Spec) bool { return of(s) && request.GetService() == "" },
	})
	return err
}

// due computes the buckets whose cycle is due, among them all that are new, and
// those of which a policy, or which requests they have, has changed.
func (d *diary) due(ctx context.Context) error {
	now, err := d.read(ctx)
	if err != nil {
		return err
	}
	before, known := d.content, d.known
	trigger := "schedule"
	switch {
	case known && now.policies != before.policies:
		trigger = "policies"
	case known && now.revision != before.revision:
		trigger = "configuration"
	}
	at := time.Now().UTC()
	edited := func(s *policy.Spec) bool { return known && before.texts[s.Name] != now.texts[s.Name] }
	looked := make(map[string]time.Time)
	_, err = d.cycle(ctx, now, selection{
		trigger: trigger,
		wanted: func(w compute.Work, m compute.Memory) bool {
			return m.PolicyText != now.texts[w.Spec.Name] || m.Stale(w) || !nextCycle(w.Spec, m.ComputedAt).After(at)
		},
		discovers: func(s *policy.Spec) bool {
			last, ok := d.looked[s.Name]
			due := edited(s) || !ok || !nextCycle(s, last).After(at)
			if due {
				last = at
			}
			looked[s.Name] = last
			return due
		},
	})
	if err != nil {
		return err
	}
	d.content, d.known, d.looked = now, true, looked
	d.plan(at)
	return nil
}

// plan finds out when the next cycle is due.
func (d *diary) plan(at time.Time) {
	d.next = time.Time{}
	for i := range d.content.specs {
		s := &d.content.specs[i]
		if next := nextCycle(s, at); !next.IsZero() && (d.next.IsZero() || next.Before(d.next)) {
			d.next = next
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.status.NextAtMs = 0
	if !d.next.IsZero() {
		d.status.NextAtMs = d.next.UnixMilli()
	}
}

// nextCycle returns when a policy's cycle is due after a time; zero: never.
func nextCycle(s *policy.Spec, after time.Time) time.Time {
	schedule, err := policyfile.ParseSchedule(s.Cycle, s.Location)
	if err != nil {
		return time.Time{} // the reader of policy files refuses it
	}
	return schedule.Jittered(s.Name).Next(after)
}

// period returns how long a cycle of a policy lasts: from the next one to the
// one after that.
func period(s *policy.Spec) time.Duration {
	first := nextCycle(s, time.Now())
	return nextCycle(s, first).Sub(first)
}

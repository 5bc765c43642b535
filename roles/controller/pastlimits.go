package controller

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"grl/limiter"
	"grl/limiter/limitsfile"
	"grl/store"
	"grl/store/ledger"
)

const (
	// limitsKept is how long the limits of all buckets are kept: a week is looked
	// at.
	limitsKept = 8 * 24 * time.Hour
	// mostRevisions bounds those that are read at the start: what is older counts
	// as of the first of them.
	mostRevisions = 10_000
	revisionPage  = 100
)

// pastLimits knows which limits buckets had, and since when those that are judged
// are. Create it with newPastLimits. It is not for concurrent use.
type pastLimits struct {
	revision uint64             // up to which it knows
	held     map[string]shelved // the services of it
	buckets  map[string]*limiter.Bucket
	changes  map[string][]limitChange // bucket → its limits, the oldest first
	judged   map[string]judgement     // bucket in shadow, or with a candidate
	zones    map[string]*time.Location
}

// limitChange is a bucket as it was from a time on.
type limitChange struct {
	at     time.Time
	bucket *limiter.Bucket // nil: there was none
}

// judgement is what is judged of a bucket, and since when.
type judgement struct {
	since time.Time
	text  string
}

func newPastLimits() *pastLimits {
	return &pastLimits{
		buckets: make(map[string]*limiter.Bucket), changes: make(map[string][]limitChange),
		judged: make(map[string]judgement), zones: make(map[string]*time.Location),
	}
}

// take takes in the configuration as it was from a time on.
func (p *pastLimits) take(at time.Time, revision uint64, services map[string]shelved) {
	for name, s := range services {
		if was, ok := p.held[name]; ok && was.hash == s.hash {
			continue
		}
		p.takeService(at, p.held[name].service.Buckets, s.service.Buckets)
	}
	for name, s := range p.held {
		if _, ok := services[name]; !ok {
			p.takeService(at, s.service.Buckets, nil)
		}
	}
	p.revision, p.held = revision, services
}

// takeService takes in the buckets of one service.
func (p *pastLimits) takeService(at time.Time, were, are []limiter.Bucket) {
	stay := make(map[string]bool, len(are))
	for i := range are {
		b := &are[i]
		name := b.FullName()
		stay[name] = true
		if was := p.buckets[name]; was == nil || !sameLimits(was, b) {
			p.changes[name] = append(p.changes[name], limitChange{at, b})
		}
		p.buckets[name] = b
		p.judge(at, b)
	}
	for i := range were {
		name := were[i].FullName()
		if !stay[name] && p.buckets[name] != nil {
			p.changes[name] = append(p.changes[name], limitChange{at, nil})
			delete(p.buckets, name)
			delete(p.judged, name)
		}
	}
}

// judge notes since when what is judged of a bucket is.
func (p *pastLimits) judge(at time.Time, b *limiter.Bucket) {
	text := judgedText(b)
	switch was, ok := p.judged[b.FullName()]; {
	case text == "":
		delete(p.judged, b.FullName())
	case !ok || was.text != text:
		p.judged[b.FullName()] = judgement{at, text}
	}
}

// judgedText returns what decides what a limit that is not enforced would do; ""
// if there is none.
func judgedText(b *limiter.Bucket) string {
	switch {
	case b.Behavior != limiter.Deny:
		return limitsfile.BucketText(b)
	case b.CandidateRPS > 0: // whatever limit is enforced beside
		c := *b
		c.LimitRPS, c.Regions, c.Hourly, c.RegionHourly, c.TimeZone = c.CandidateRPS, nil, nil, nil, ""
		return limitsfile.BucketText(&c)
	}
	return ""
}

// sameLimits reports whether two buckets admit the same.
func sameLimits(a, b *limiter.Bucket) bool {
	return a.LimitRPS == b.LimitRPS && a.Block == b.Block && a.Scope == b.Scope && a.TimeZone == b.TimeZone &&
		maps.Equal(a.Regions, b.Regions) && slices.Equal(a.Hourly, b.Hourly) && maps.EqualFunc(a.RegionHourly, b.RegionHourly, slices.Equal)
}

// forget forgets the limits that ended before a time.
func (p *pastLimits) forget(before time.Time) {
	for name, list := range p.changes {
		first := 0
		for first+1 < len(list) && !list[first+1].at.After(before) {
			first++
		}
		list = list[first:]
		if list[0].bucket == nil && !list[0].at.After(before) {
			list = list[1:]
		}
		if len(list) == 0 {
			delete(p.changes, name)
		} else if first > 0 {
			p.changes[name] = slices.Clone(list)
		}
	}
}

// at returns the limit of a bucket's instance in the hour that starts at a time:
// that at its start or, if the bucket came to be within it, the first one. NaN:
// there was none, or it blocked.
func (p *pastLimits) at(bucket, instance string, hour time.Time) float64 {
	list := p.changes[bucket]
	i, exact := slices.BinarySearchFunc(list, hour, func(c limitChange, at time.Time) int { return c.at.Compare(at) })
	if !exact {
		i--
	}
	if (i < 0 || list[i].bucket == nil) && i+1 < len(list) && list[i+1].at.Before(hour.Add(time.Hour)) {
		i++
	}
	if i < 0 || list[i].bucket == nil || list[i].bucket.Block {
		return math.NaN()
	}
	return p.inHour(list[i].bucket, instance, hour)
}

// inHour returns the limit of a bucket's instance at a time.
func (p *pastLimits) inHour(b *limiter.Bucket, instance string, at time.Time) float64 {
	if !b.HasHours() {
		return b.Limit(instance)
	}
	zone := p.zones[b.TimeZone]
	if zone == nil {
		zone = b.Location() // which reads a file
		p.zones[b.TimeZone] = zone
	}
	held := b.AtHour(at.In(zone).Hour())
	return held.Limit(instance)
}

// followLimits takes in the revisions that were made since the last one taken,
// and rests between two of them. At the start it reads as many weeks of them as
// there is history.
func (c *Controller) followLimits(ctx context.Context, p *pastLimits, now time.Time, rest func(context.Context)) error {
	if c.opts.Config.Regional() {
		c.takeInstalled(p, now)
		return nil
	}
	list, err := c.revisionsSince(ctx, p.revision, now.Add(-store.Keep))
	if err != nil {
		return err
	}
	var s shelf
	if p.held != nil {
		s.revisions = map[uint64]map[string]shelved{p.revision: p.held}
	}
	for _, r := range list {
		if _, err := s.services(ctx, c.ledger, r.Number); err != nil {
			return fmt.Errorf("read r%d: %w", r.Number, err)
		}
		p.take(r.At, r.Number, s.revisions[r.Number])
		s.keep(r.Number)
		rest(ctx)
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	p.forget(now.Add(-limitsKept))
	return nil
}

// revisionsSince returns the revisions after one, the oldest first; if that is 0,
// those that held since a time.
func (c *Controller) revisionsSince(ctx context.Context, after uint64, since time.Time) ([]ledger.Revision, error) {
	var list []ledger.Revision
	for before := uint64(0); len(list) < mostRevisions; {
		page, err := c.ledger.Revisions(ctx, before, revisionPage)
		if err != nil {
			return nil, err
		}
		for _, r := range page {
			if r.Number <= after {
				page = nil
				break
			}
			list = append(list, r)
			if after == 0 && r.At.Before(since) {
				page = nil
				break
			}
		}
		if len(page) < revisionPage {
			break
		}
		before = page[len(page)-1].Number
	}
	slices.Reverse(list)
	return list, nil
}

// takeInstalled takes in what is installed, where there is no ledger: what was
// before the start is not known.
func (c *Controller) takeInstalled(p *pastLimits, now time.Time) {
	c.mu.Lock()
	config := c.node.config
	c.mu.Unlock()
	if config.Revision == p.revision {
		return
	}
	services := make(map[string]shelved, len(config.Services))
	for _, s := range config.Services {
		services[s.Name] = shelved{sha256.Sum256(limitsfile.Normalize(s)), s}
	}
	p.take(now, config.Revision, services)
}

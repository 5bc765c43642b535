package controller

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"grl/limiter"
	"grl/roles/controller/digest"
	"grl/store"
	"grl/web/page"
)

const (
	// pastCells bounds the cells whose hours are kept in memory.
	pastCells = 20_000
	// pastEvery is how often the figures are computed anew, and pastLate how long
	// after a minute: then it is in the history.
	pastEvery = time.Minute
	pastLate  = 10 * time.Second
	pastLeast = 2 * time.Second // between two times
	// pastChunk is how many cells are read at once, and pastSpan how many weeks of
	// them: 0.4 MB each.
	pastChunk = 64
	pastSpan  = 7 * 24 * time.Hour
	// pastWork is how long is worked before as long a rest.
	pastWork = 20 * time.Millisecond
)

// past computes, from the history, what is said of weeks.
type past struct {
	*Controller
	digest *digest.Digest
	limits *pastLimits
	loaded map[string]bool // buckets whose history was read
	last   time.Time       // the history was read up to here; zero: not yet
	worked time.Time       // since then without a rest
}

// keepPast computes the figures at once, then each minute and when limits change,
// until ctx ends.
func (c *Controller) keepPast(ctx context.Context) error {
	p := &past{Controller: c, digest: digest.New(pastCells), limits: newPastLimits(), loaded: make(map[string]bool)}
	for told := false; ; {
		c.mu.Lock()
		installed := c.installed
		c.mu.Unlock()
		switch err := p.refresh(ctx, time.Now()); {
		case ctx.Err() != nil:
			return nil
		case err != nil && !told:
			told = true
			c.opts.Log.ErrorContext(ctx, "cannot compute the figures of the past weeks; trying again", "err", err)
		case err == nil:
			told = false
		}
		c.awaitPast(ctx, installed)
	}
}

// awaitPast waits for the next minute, or until another configuration is
// installed: what is judged of a limit that was changed is not to be seen for
// long.
func (c *Controller) awaitPast(ctx context.Context, installed <-chan struct{}) {
	if pause(ctx, pastLeast); ctx.Err() != nil {
		return
	}
	select {
	case <-ctx.Done():
	case <-installed:
	case <-time.After(time.Until(time.Now().Add(-pastLate).Truncate(pastEvery).Add(pastEvery + pastLate))):
	}
}

// rest pauses for as long as it was worked, so that this takes half of a
// processor at most, and others get to the store.
func (p *past) rest(ctx context.Context) {
	if took := time.Since(p.worked); took >= pastWork {
		pause(ctx, took)
		p.worked = time.Now()
	}
}

// refresh reads what is new and computes the figures as of now.
func (p *past) refresh(ctx context.Context, now time.Time) error {
	p.worked = time.Now()
	if err := p.followLimits(ctx, p.limits, now, p.rest); err != nil {
		return err
	}
	p.digest.Retain(func(bucket string) bool { return p.limits.buckets[bucket] != nil })
	maps.DeleteFunc(p.loaded, func(bucket string, _ bool) bool { return p.limits.buckets[bucket] == nil })
	from := now.Add(-store.Keep)
	p.digest.Forget(from)
	if err := p.load(ctx, from, now); err != nil {
		return err
	}
	// What is new of all and, at the start, of which hours there is history at all.
	q := store.SeriesQuery{Buckets: []string{store.FleetBucket}, From: from, To: now}
	if !p.last.IsZero() {
		q.Prefixes, q.From = []string{""}, p.last
	}
	if err := p.read(ctx, q); err != nil {
		return err
	}
	p.last = now.Truncate(time.Hour)
	p.figures.Store(p.compute(ctx, now))
	return ctx.Err()
}

// load reads the history of the buckets of which it was not read yet: first of
// those that are judged.
func (p *past) load(ctx context.Context, from, now time.Time) error {
	var missing []string
	for name := range p.limits.buckets {
		if !p.loaded[name] {
			missing = append(missing, name)
		}
	}
	judged := func(name string) int {
		if _, ok := p.limits.judged[name]; ok {
			return 0
		}
		return 1
	}
	slices.SortFunc(missing, func(a, b string) int { return cmp.Or(cmp.Compare(judged(a), judged(b)), strings.Compare(a, b)) })
	var chunk []string
	cells := 0
	for i, name := range missing {
		if n := len(p.opts.Store.CellsOf(name)); n > 0 {
			chunk, cells = append(chunk, name), cells+n
		} else {
			p.loaded[name] = true
		}
		if cells < pastChunk && i < len(missing)-1 || cells == 0 {
			continue
		}
		if err := p.read(ctx, store.SeriesQuery{Buckets: chunk, From: from, To: now}); err != nil {
			return err
		}
		for _, read := range chunk {
			p.loaded[read] = true
		}
		chunk, cells = nil, 0
		if p.last.IsZero() {
			p.figures.Store(&page.Past{Read: float64(i+1) / float64(len(missing))})
		}
	}
	return nil
}

// read takes in hours of cells of buckets that there are, one span after the
// other.
func (p *past) read(ctx context.Context, q store.SeriesQuery) error {
	for end := q.To; q.From.Before(end); q.From = q.To {
		q.To = q.From.Truncate(time.Hour).Add(pastSpan)
		if q.To.After(end) {
			q.To = end
		}
		first := q.From.Truncate(time.Hour)
		err := p.opts.Store.ReadSeries(ctx, q, func(s store.CellSeries) error {
			if p.limits.buckets[s.Cell.Bucket] != nil {
				p.digest.Put(s, first, p.limits.judged[s.Cell.Bucket].since)
			} else {
				p.digest.Know(s, first)
			}
			p.rest(ctx)
			return ctx.Err()
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// compute returns the figures.
func (p *past) compute(ctx context.Context, now time.Time) *page.Past {
	out := &page.Past{At: now, Read: 1}
	_, out.LeftOut = p.digest.Len()
	for _, name := range slices.Sorted(maps.Keys(p.limits.buckets)) {
		b := p.limits.buckets[name]
		if j, ok := p.limits.judged[name]; ok {
			evidence := p.digest.Evidence(b, j.since, now)
			p.hit(evidence)
			out.Evidence = append(out.Evidence, evidence...)
		}
		if b.Behavior == limiter.Deny && !b.Block {
			out.Headroom = append(out.Headroom, p.digest.Headroom(b, now, func(instance string, hour time.Time) float64 {
				return p.limits.at(name, instance, hour)
			})...)
		}
		p.rest(ctx)
	}
	nearest := make(map[limiter.CellID]float64, len(out.Headroom))
	for _, h := range out.Headroom {
		nearest[h.Cell] = highest(h.Days)
	}
	slices.SortStableFunc(out.Headroom, func(a, b page.Headroom) int { return cmp.Compare(nearest[b.Cell], nearest[a.Cell]) })
	return out
}

// highest returns the highest of what is known, -1 if nothing is.
func highest(days [7]float64) float64 {
	most := -1.0
	for _, d := range days {
		if d > most {
			most = d
		}
	}
	return most
}

// hit names who would have lost most in the last day, of cells that belong to no
// caller: by virtual drops or, of a candidate, whose drops are not counted by
// caller, by what was offered.
func (p *past) hit(evidence []page.Evidence) {
	for i := range evidence {
		e := &evidence[i]
		if e.HitCaller != "" || e.Cell.Caller != "" || e.Dropped <= 0 {
			continue
		}
		p.mu.Lock()
		e.HitCaller, e.HitShare = p.traffic.hit(e.Cell.Bucket, e.Since, e.Candidate)
		p.mu.Unlock()
	}
}

// hit returns the caller who had most of the virtual drops of a bucket, or of
// what was offered to it, since a time, and how much of them that was; "": not
// known.
func (t *traffic) hit(bucket string, since time.Time, offered bool) (caller string, share float64) {
	sums := make(map[string]uint64)
	total := uint64(0)
	for _, h := range t.hours {
		if h.start.Before(since) {
			continue // in part, under another limit
		}
		for name, c := range h.buckets[bucket] {
			n := c.GetShadowDropped()
			if offered {
				n = c.GetOffered()
			}
			sums[name] += n
			total += n
		}
	}
	most := uint64(0)
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		if n := sums[name]; name != "" && n > most {
			caller, most = name, n
		}
	}
	if most == 0 {
		return "", 0
	}
	return caller, float64(most) / float64(total)
}

// Past returns what was last computed from the history.
func (v view) Past() *page.Past {
	if p := v.figures.Load(); p != nil {
		return p
	}
	return &page.Past{}
}

const (
	usualDays  = 28
	usualCells = 200 // of a bucket, at most: each is read
)

// Usual returns the median of the highest minute at this hour of the day, in
// UTC, over the last 4 weeks, of requests to a service that match, in requests
// per second. false: no bucket counts just these, or nothing was counted yet.
func (v view) Usual(ctx context.Context, service string, match limiter.Match) (float64, bool, error) {
	cells := v.counting(service, match)
	if len(cells) == 0 || len(cells) > usualCells {
		return 0, false, nil
	}
	hour := time.Now().Truncate(time.Hour)
	var peaks []float64
	for day := 1; day <= usualDays; day++ {
		from := hour.AddDate(0, 0, -day)
		peak, any := [60]uint64{}, false
		for _, id := range cells {
			minutes, err := v.opts.Store.Minutes(ctx, id, from, from.Add(time.Hour))
			if err != nil {
				return 0, false, err
			}
			for _, m := range minutes {
				peak[m.Start.Sub(from)/time.Minute] += m.Offered
				any = true
			}
		}
		if any {
			peaks = append(peaks, float64(slices.Max(peak[:]))/60)
		}
	}
	if len(peaks) == 0 {
		return 0, false, nil
	}
	slices.Sort(peaks)
	n := len(peaks)
	return (peaks[(n-1)/2] + peaks[n/2]) / 2, true, nil
}

// counting returns the cells that together count the requests to a service that
// match, and no others.
func (v view) counting(service string, match limiter.Match) []limiter.CellID {
	v.mu.Lock()
	var whole, each string // buckets: whose match is the same, with a cell for the caller
	for name, b := range v.node.buckets {
		if b.Service != service || b.Cap != nil || !same(b.Match.Procedure, match.Procedure) {
			continue
		}
		switch {
		case same(b.Match.Caller, match.Caller) && (whole == "" || name < whole):
			whole = name
		case b.HasCallers() && single(match.Caller) && matches(b.Match.Caller, string(match.Caller)) && (each == "" || name < each):
			each = name
		}
	}
	v.mu.Unlock()
	if whole != "" {
		return v.opts.Store.CellsOf(whole)
	}
	return slices.DeleteFunc(v.opts.Store.CellsOf(each), func(id limiter.CellID) bool { return id.Caller != string(match.Caller) })
}

// single reports whether a pattern selects one name.
func single(p limiter.Pattern) bool { return !anyOf(p) && !strings.HasSuffix(string(p), "*") }

package history

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/common/model"

	"grl/limiter"
)

const (
	// shortest is the shortest time that a query is cut into, and maxSplits how
	// often the queries of one batch are cut: who answers without end must not be
	// asked without end.
	shortest  = 12 * time.Hour
	maxSplits = 64
	// maxParts is how many regions or zones a bucket may be found in.
	maxParts = 256
)

// promReader reads batches.
type promReader struct {
	*Prometheus
	query  Query
	splits int // of the batch
}

// read reads all that is wanted of a batch. What concerns one bucket is in it.
func (r *promReader) read(ctx context.Context, b batch) error {
	r.splits = 0
	for from := r.query.From; from.Before(r.query.To); from = from.Add(pointsAtOnce * r.step) {
		to := from.Add(pointsAtOnce * r.step)
		if to.After(r.query.To) {
			to = r.query.To
		}
		if err := r.readSpan(ctx, b, from, to); err != nil {
			return err
		}
	}
	return nil
}

// readSpan reads a part of the time, in halves where it is too large.
func (r *promReader) readSpan(ctx context.Context, b batch, from, to time.Time) error {
	err := r.askAll(ctx, b, from, to)
	if !errors.Is(err, errSplit) {
		return err
	}
	if r.splits++; r.splits > maxSplits {
		return err
	}
	if n := len(b.buckets) / 2; n > 0 {
		if err := r.readSpan(ctx, batch{b.kind, b.buckets[:n]}, from, to); err != nil {
			return err
		}
		return r.readSpan(ctx, batch{b.kind, b.buckets[n:]}, from, to)
	}
	if to.Sub(from) <= max(shortest, 2*r.step) {
		b.buckets[0].err = err
		return nil
	}
	middle := from.Add(to.Sub(from) / 2).Truncate(r.step)
	if err := r.readSpan(ctx, b, from, middle); err != nil {
		return err
	}
	return r.readSpan(ctx, b, middle, to)
}

// askAll asks what was offered, what was dropped, and where caps were, and only
// then takes it in, since it may be asked again in halves.
func (r *promReader) askAll(ctx context.Context, b batch, from, to time.Time) error {
	var names, services []string
	byName := make(map[string]*promBucket)
	for _, bucket := range b.buckets {
		if bucket.err != nil {
			continue
		}
		names = append(names, bucket.name())
		byName[bucket.name()] = bucket
		if !slices.Contains(services, bucket.wanted.Bucket.Service) {
			services = append(services, bucket.wanted.Bucket.Service)
		}
	}
	if len(names) == 0 {
		return nil
	}
	offered, err := r.ask(ctx, r.offered(b.kind, names), from, to)
	if err != nil {
		return err
	}
	dropped, err := r.ask(ctx, r.dropped(b.kind, names), from, to)
	if err != nil {
		return err
	}
	caps, err := r.ask(ctx, r.capped(services), from, to)
	if err != nil {
		return err
	}
	t := taking{r, from, int(to.Sub(from) / r.step), byName}
	t.offered(offered.series)
	t.dropped(dropped.series)
	t.caps(caps.series)
	for _, bucket := range byName {
		bucket.warning = cmp.Or(bucket.warning, offered.warning, dropped.warning, caps.warning)
	}
	return nil
}

// taking is answers of one span that are taken in.
type taking struct {
	*promReader
	from   time.Time
	steps  int
	byName map[string]*promBucket
}

// lane returns the values of a series as a lane of the span.
func (t *taking) lane(s *model.SampleStream) *lane {
	rows := make([]row, len(s.Values))
	for i, v := range s.Values {
		// A value is of the step that ends at its time.
		rows[i] = row{v.Timestamp.Time().Add(-t.step), float64(v.Value)}
	}
	l := newLane(t.from, t.step, t.steps)
	l.put(rows)
	return l
}

// offset is the step of the query that the span begins with.
func (t *taking) offset() int { return int(t.from.Sub(t.query.From) / t.step) }

// part returns the part of a bucket that a series belongs to; nil: of none that
// was asked for, or that fits.
func (t *taking) part(s *model.SampleStream) *lane {
	b := t.byName[string(s.Metric[bucketName])]
	if b == nil || b.err != nil {
		return nil
	}
	p := ""
	if label := b.kind().label; label != "" {
		p = string(s.Metric[model.LabelName(label)])
	}
	l := b.parts[p]
	if l != nil {
		return l
	}
	if len(b.parts) == maxParts {
		b.err = fmt.Errorf("more than %d values of label %q", maxParts, b.kind().label)
		return nil
	}
	if b.err = b.wanted.checkInstance(p, maps.Keys(b.parts)); b.err != nil {
		return nil
	}
	n := int(t.query.To.Sub(t.query.From) / t.step)
	l = newLane(t.query.From, t.step, n)
	l.total, l.dropped = make([]float64, n), make([]float64, n)
	b.parts[p] = l
	return l
}

func (t *taking) offered(series model.Matrix) {
	for _, s := range series {
		if part := t.part(s); part != nil {
			part.fold(t.lane(s), t.offset(), true) // there is one of each part
		}
	}
}

// dropped marks steps in which something was dropped of a part.
func (t *taking) dropped(series model.Matrix) {
	for _, s := range series {
		part := t.part(s)
		if part == nil {
			continue
		}
		for i, rps := range t.lane(s).rps {
			if rps > 0 {
				part.marks[t.offset()+i] |= ownDrops
				part.dropped[t.offset()+i] += rps * t.step.Seconds()
			}
		}
	}
}

func (t *taking) caps(series model.Matrix) {
	for _, s := range series {
		l := t.lane(s)
		for _, b := range t.byName {
			if string(s.Metric[bucketName]) != b.wanted.Bucket.Service+capsBucket {
				continue
			}
			for i, rps := range l.rps {
				if rps > 0 {
					b.capped = append(b.capped, t.offset()+i)
				}
			}
		}
	}
}

// promBucket is one bucket that is being read.
type promBucket struct {
	wanted  *Wanted
	parts   map[string]*lane // region or zone → its load, of callers the highest
	capped  []int            // steps
	warning string
	err     error
}

func (b *promBucket) name() string { return b.wanted.Bucket.FullName() }

// kind says how the series of a bucket are asked for.
type kind struct {
	// label is by what they are told apart: regions too where they are summed, to
	// see when one of them is missing. "": nothing.
	label string
	// callers says that the highest caller counts.
	callers bool
}

func (b *promBucket) kind() kind {
	switch w := &b.wanted.Bucket; {
	case w.Scope == limiter.Zone:
		return kind{zoneName, w.PerCaller}
	case w.Scope == limiter.Global && w.PerCaller:
		return kind{"", true} // a caller's requests in all regions
	default:
		return kind{regionName, w.PerCaller}
	}
}

// bucket returns what was read.
func (b *promBucket) bucket(q Query, step time.Duration) Bucket {
	scope := b.wanted.Bucket.Scope
	if b.err == nil && scope != limiter.Global && b.parts[""] != nil {
		b.err = fmt.Errorf("series without label %q: the scrape has to add it", b.kind().label)
	}
	if b.err != nil {
		return Bucket{Name: b.name(), Err: b.err}
	}
	if len(b.parts) == 0 {
		return b.wanted.none(q, step)
	}
	out := Bucket{Name: b.name()}
	if scope == limiter.Region {
		for _, region := range b.wanted.instances(maps.Keys(b.parts)) {
			out.Units = append(out.Units, b.unit(q, step, region, b.parts[region]))
		}
		return out
	}
	var parts []*lane
	for _, name := range slices.Sorted(maps.Keys(b.parts)) {
		parts = append(parts, b.parts[name])
	}
	whole := parts[0]
	if len(parts) > 1 {
		n := len(whole.rps)
		whole = newLane(whole.start, step, n)
		whole.total, whole.dropped = make([]float64, n), make([]float64, n)
		for _, part := range parts {
			whole.fold(part, 0, scope == limiter.Zone)
		}
		silences(whole, parts)
	}
	out.Units = []Unit{b.unit(q, step, "", whole)}
	return out
}

// unit judges one limit; of a nil lane nothing is known.
func (b *promBucket) unit(q Query, step time.Duration, instance string, l *lane) Unit {
	if l == nil {
		l = newLane(q.From, step, int(q.To.Sub(q.From)/step))
	}
	for _, i := range b.capped {
		l.marks[i] |= capped
	}
	n := len(l.rps)
	for n > 0 && l.missing(n-1) && len(l.rps)-n < uningested {
		n--
	}
	l.cut(n)
	return l.unit(b.wanted.claim(q, instance, b.warning))
}

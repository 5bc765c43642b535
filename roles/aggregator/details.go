package aggregator

import (
	"cmp"
	"context"
	"slices"
	"time"

	grlv1 "grl/proto/grl/v1"
)

const (
	detailEvery = 10 * time.Second
	detailTop   = 50      // callers of a bucket, pairs of a service
	detailNames = 10000   // kept apart between two details, of each bucket or service
	detailMost  = 8 << 20 // bytes kept apart between two details, as a message; a parent takes twice that
	detailBytes = 513     // of a name: hosts know no longer ones
	detailEach  = 48      // bytes of counts, at most, and of what a name needs besides
)

// details adds up the details of the zone's hosts.
type details struct {
	buckets  map[string]map[string]*grlv1.CallerCounts // bucket → caller → counts; "": the rest
	services map[string]map[pair]*grlv1.PairCounts     // service → pair → count; zero pair: the rest
	bytes    int                                       // of what is kept apart, as a message
}

type pair struct{ caller, procedure string }

func (d *details) add(m *grlv1.Detail) {
	if d.buckets == nil {
		d.buckets = make(map[string]map[string]*grlv1.CallerCounts)
		d.services = make(map[string]map[pair]*grlv1.PairCounts)
	}
	for _, b := range m.GetBuckets() {
		callers := room(d, d.buckets, b.GetBucket())
		if callers == nil {
			continue
		}
		for _, c := range append(b.GetCallers(), b.GetRest()) {
			sum := slot(d, callers, c.GetCaller(), c.GetCaller())
			sum.Offered += c.GetOffered()
			sum.Dropped += c.GetDropped()
			sum.ShadowDropped += c.GetShadowDropped()
		}
	}
	for _, s := range m.GetServices() {
		pairs := room(d, d.services, s.GetService())
		if pairs == nil {
			continue
		}
		for _, c := range s.GetPairs() {
			name := pair{c.GetCaller(), c.GetProcedure()}
			slot(d, pairs, name, name.caller, name.procedure).Offered += c.GetOffered()
		}
		slot(d, pairs, pair{}).Offered += s.GetRestOffered()
	}
}

// room returns the inner map of a name, nil if there are too many names.
func room[K comparable, V any](d *details, m map[string]map[K]V, name string) map[K]V {
	inner := m[name]
	if inner == nil && len(m) < detailNames && d.fits(name) {
		inner = make(map[K]V)
		m[name] = inner
		d.keep(name)
	}
	return inner
}

// slot returns the counts of a key with these names, of the zero key if there
// are too many.
func slot[K comparable, V any](d *details, m map[K]*V, key K, names ...string) *V {
	if m[key] == nil && (len(m) >= detailNames || !d.fits(names...)) {
		var rest K
		key, names = rest, nil
	}
	if m[key] == nil {
		m[key] = new(V)
		d.keep(names...)
	}
	return m[key]
}

// fits reports whether there is room for something with these names.
func (d *details) fits(names ...string) bool {
	for _, name := range names {
		if len(name) > detailBytes {
			return false
		}
	}
	return d.bytes < detailMost
}

// keep counts what is kept under these names.
func (d *details) keep(names ...string) {
	d.bytes += detailEach
	for _, name := range names {
		d.bytes += len(name)
	}
}

// take returns what was added up over window, nil if nothing was, and begins
// anew.
func (d *details) take(window time.Duration) *grlv1.Detail {
	if len(d.buckets)+len(d.services) == 0 {
		return nil
	}
	m := &grlv1.Detail{WindowMs: uint32(window.Milliseconds())}
	for bucket, callers := range d.buckets {
		b := &grlv1.BucketCallers{Bucket: bucket, Rest: callers[""]}
		if b.Rest == nil {
			b.Rest = &grlv1.CallerCounts{}
		}
		delete(callers, "")
		for caller, c := range callers {
			c.Caller = caller
			b.Callers = append(b.Callers, c)
		}
		slices.SortFunc(b.Callers, func(x, y *grlv1.CallerCounts) int {
			return cmp.Or(cmp.Compare(y.Offered, x.Offered), cmp.Compare(x.Caller, y.Caller))
		})
		for _, c := range b.Callers[min(detailTop, len(b.Callers)):] {
			b.Rest.Offered += c.Offered
			b.Rest.Dropped += c.Dropped
			b.Rest.ShadowDropped += c.ShadowDropped
		}
		b.Callers = b.Callers[:min(detailTop, len(b.Callers))]
		m.Buckets = append(m.Buckets, b)
	}
	for service, pairs := range d.services {
		s := &grlv1.ServicePairs{Service: service, RestOffered: pairs[pair{}].GetOffered()}
		delete(pairs, pair{})
		for name, c := range pairs {
			c.Caller, c.Procedure = name.caller, name.procedure
			s.Pairs = append(s.Pairs, c)
		}
		slices.SortFunc(s.Pairs, func(x, y *grlv1.PairCounts) int {
			return cmp.Or(cmp.Compare(y.Offered, x.Offered), cmp.Compare(x.Caller, y.Caller), cmp.Compare(x.Procedure, y.Procedure))
		})
		for _, c := range s.Pairs[min(detailTop, len(s.Pairs)):] {
			s.RestOffered += c.Offered
		}
		s.Pairs = s.Pairs[:min(detailTop, len(s.Pairs))]
		m.Services = append(m.Services, s)
	}
	*d = details{}
	return m
}

// sendDetails passes the details of the zone up every ten seconds.
func (a *Aggregator) sendDetails(ctx context.Context) error {
	tick := time.NewTicker(detailEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			a.mu.Lock()
			if m := a.details.take(detailEvery); m != nil {
				for _, p := range a.node.parents {
					p.Add(m)
				}
				a.wakeParents()
			}
			a.mu.Unlock()
		}
	}
}

package controller

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	grlv1 "grl/proto/grl/v1"
)

const (
	trafficHours = 24
	trafficTop   = 50      // callers of a bucket, pairs of a service
	trafficNames = 1000    // kept apart within an hour, of each
	trafficMost  = 1 << 16 // kept apart within an hour, of all together
	trafficBytes = 513     // of a name kept apart: no longer ones come from an aggregator
)

// traffic keeps, by the hour, who sends: what aggregators tell in details. The
// zero value is empty.
type traffic struct {
	hours []*trafficHour // newest first
}

type trafficHour struct {
	start    time.Time
	buckets  map[string]map[string]*grlv1.CallerCounts // bucket → caller, "" for the rest
	services map[string]map[pair]uint64                // service → pair, the zero one for the rest
	kept     int                                       // names kept apart
}

type pair struct{ caller, procedure string }

// add takes in a detail that arrived at now.
func (t *traffic) add(now time.Time, m *grlv1.Detail) {
	h := t.hour(now)
	for _, b := range m.GetBuckets() {
		callers := room(h, h.buckets, b.GetBucket())
		if callers == nil {
			continue
		}
		for _, c := range append(b.GetCallers(), b.GetRest()) {
			caller := c.GetCaller()
			if callers[caller] == nil && (len(callers) >= trafficNames || !h.fits(caller)) {
				caller = ""
			}
			if callers[caller] == nil {
				callers[caller] = &grlv1.CallerCounts{Caller: caller}
				h.kept++
			}
			callers[caller].Offered += c.GetOffered()
			callers[caller].Dropped += c.GetDropped()
			callers[caller].ShadowDropped += c.GetShadowDropped()
		}
	}
	for _, s := range m.GetServices() {
		pairs := room(h, h.services, s.GetService())
		if pairs == nil {
			continue
		}
		for _, c := range s.GetPairs() {
			p := pair{c.GetCaller(), c.GetProcedure()}
			if _, ok := pairs[p]; !ok {
				if len(pairs) >= trafficNames || !h.fits(p.caller, p.procedure) {
					p = pair{}
				} else {
					h.kept++
				}
			}
			pairs[p] += c.GetOffered()
		}
		pairs[pair{}] += s.GetRestOffered()
	}
}

// room returns the inner map of a name, nil if there are too many names.
func room[K comparable, V any](h *trafficHour, m map[string]map[K]V, name string) map[K]V {
	inner := m[name]
	if inner == nil && h.fits(name) {
		inner = make(map[K]V)
		m[name] = inner
		h.kept++
	}
	return inner
}

// fits reports whether there is room for something with these names.
func (h *trafficHour) fits(names ...string) bool {
	for _, name := range names {
		if len(name) > trafficBytes {
			return false
		}
	}
	return h.kept < trafficMost
}

func (t *traffic) hour(now time.Time) *trafficHour {
	start := now.Truncate(time.Hour)
	if len(t.hours) == 0 || t.hours[0].start.Before(start) {
		t.hours = slices.Insert(t.hours, 0, &trafficHour{
			start:    start,
			buckets:  make(map[string]map[string]*grlv1.CallerCounts),
			services: make(map[string]map[pair]uint64),
		})
		t.hours = t.hours[:min(len(t.hours), trafficHours)]
	}
	return t.hours[0]
}

// of returns the hours in which somebody sent to a service, newest first.
func (t *traffic) of(service string) []*grlv1.TrafficHour {
	var out []*grlv1.TrafficHour
	for _, h := range t.hours {
		m := &grlv1.TrafficHour{StartMs: h.start.UnixMilli(), Pairs: h.pairs(service)}
		for bucket, callers := range h.buckets {
			if strings.HasPrefix(bucket, service+"/") {
				m.Buckets = append(m.Buckets, largest(bucket, callers))
			}
		}
		slices.SortFunc(m.Buckets, func(a, b *grlv1.BucketCallers) int { return cmp.Compare(a.Bucket, b.Bucket) })
		if m.Pairs != nil || m.Buckets != nil {
			out = append(out, m)
		}
	}
	return out
}

// unlimited returns the hours in which somebody sent to services without limits,
// newest first.
func (t *traffic) unlimited() []*grlv1.TrafficHour {
	var out []*grlv1.TrafficHour
	for _, h := range t.hours {
		m := &grlv1.TrafficHour{StartMs: h.start.UnixMilli()}
		for _, service := range slices.Sorted(maps.Keys(h.services)) {
			m.Services = append(m.Services, h.pairs(service))
		}
		if len(m.Services) > 0 {
			out = append(out, m)
		}
	}
	return out
}

// largest returns the largest callers of a bucket and the sum of the others.
func largest(bucket string, callers map[string]*grlv1.CallerCounts) *grlv1.BucketCallers {
	m := &grlv1.BucketCallers{Bucket: bucket, Rest: &grlv1.CallerCounts{}}
	for caller, c := range callers {
		copied := &grlv1.CallerCounts{Caller: caller, Offered: c.Offered, Dropped: c.Dropped, ShadowDropped: c.ShadowDropped}
		if caller == "" {
			m.Rest = copied
			continue
		}
		m.Callers = append(m.Callers, copied)
	}
	slices.SortFunc(m.Callers, func(a, b *grlv1.CallerCounts) int {
		return cmp.Or(cmp.Compare(b.Offered, a.Offered), cmp.Compare(a.Caller, b.Caller))
	})
	for _, c := range m.Callers[min(trafficTop, len(m.Callers)):] {
		m.Rest.Offered += c.Offered
		m.Rest.Dropped += c.Dropped
		m.Rest.ShadowDropped += c.ShadowDropped
	}
	m.Callers = m.Callers[:min(trafficTop, len(m.Callers))]
	return m
}

// pairs returns the largest pairs of a service, nil if it has none.
func (h *trafficHour) pairs(service string) *grlv1.ServicePairs {
	pairs, ok := h.services[service]
	if !ok {
		return nil
	}
	m := &grlv1.ServicePairs{Service: service}
	for p, offered := range pairs {
		if p == (pair{}) {
			m.RestOffered = offered
			continue
		}
		m.Pairs = append(m.Pairs, &grlv1.PairCounts{Caller: p.caller, Procedure: p.procedure, Offered: offered})
	}
	slices.SortFunc(m.Pairs, func(a, b *grlv1.PairCounts) int {
		return cmp.Or(cmp.Compare(b.Offered, a.Offered), cmp.Compare(a.Caller, b.Caller), cmp.Compare(a.Procedure, b.Procedure))
	})
	for _, c := range m.Pairs[min(trafficTop, len(m.Pairs)):] {
		m.RestOffered += c.Offered
	}
	m.Pairs = m.Pairs[:min(trafficTop, len(m.Pairs))]
	return m
}

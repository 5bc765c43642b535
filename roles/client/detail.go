package client

import (
	"time"

	"grl/limiter"
	grlv1 "grl/proto/grl/v1"
	"grl/proto/wire"
)

const detailEvery = 10 * time.Second

// fromDetail returns the message for a detail, nil if there was no traffic.
func fromDetail(d limiter.Detail) *grlv1.Detail {
	if len(d.Buckets)+len(d.Services) == 0 {
		return nil
	}
	m := &grlv1.Detail{WindowMs: uint32(detailEvery.Milliseconds())}
	for _, b := range d.Buckets {
		callers := &grlv1.BucketCallers{Bucket: wire.Text(b.Bucket), Rest: fromCaller(limiter.CallerCounts{Counts: b.Rest})}
		for _, c := range b.Callers {
			callers.Callers = append(callers.Callers, fromCaller(c))
		}
		m.Buckets = append(m.Buckets, callers)
	}
	for _, s := range d.Services {
		pairs := &grlv1.ServicePairs{Service: wire.Text(s.Service), RestOffered: s.Rest}
		for _, p := range s.Pairs {
			pairs.Pairs = append(pairs.Pairs, &grlv1.PairCounts{Caller: wire.Text(p.Caller), Procedure: wire.Text(p.Procedure), Offered: p.Offered})
		}
		m.Services = append(m.Services, pairs)
	}
	return m
}

func fromCaller(c limiter.CallerCounts) *grlv1.CallerCounts {
	return &grlv1.CallerCounts{Caller: wire.Text(c.Caller), Offered: c.Offered, Dropped: c.Dropped, ShadowDropped: c.ShadowDropped}
}

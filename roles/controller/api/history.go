package api

import (
	"context"
	"strings"
	"time"

	"connectrpc.com/connect"

	"grl/limiter"
	grlv1 "grl/proto/grl/v1"
	"grl/store"
)

// historiesAtOnce is how many histories are read at once: others wait.
const historiesAtOnce = 2

func (s configuratorService) ReadHistory(ctx context.Context, r *grlv1.ReadHistoryRequest, stream *connect.ServerStream[grlv1.ReadHistoryResponse]) error {
	if _, err := configurator(ctx); err != nil {
		return err
	}
	select {
	case s.reading <- struct{}{}:
		defer func() { <-s.reading }()
	case <-ctx.Done():
		return s.rpcError(ctx, ctx.Err())
	}
	err := s.readHistory(ctx, r, stream.Send)
	if err == nil || ctx.Err() != nil { // nobody listens any more
		return err
	}
	return s.rpcError(ctx, err)
}

// readHistory sends the span, and the cells one after another, as fast as they
// are taken.
func (s configuratorService) readHistory(ctx context.Context, r *grlv1.ReadHistoryRequest, send func(*grlv1.ReadHistoryResponse) error) error {
	from, to, err := span(r.GetFromMs(), r.GetToMs())
	if err != nil {
		return err
	}
	buckets := store.SeriesQuery{Buckets: r.GetBuckets(), From: from, To: to}
	caps := store.SeriesQuery{From: from, To: to}
	seen := make(map[string]bool)
	for _, bucket := range buckets.Buckets {
		if err := checkBucket(bucket); err != nil {
			return err
		}
		if service, _, _ := strings.Cut(bucket, "/"); !seen[service] {
			seen[service] = true
			caps.Prefixes = append(caps.Prefixes, service+"/"+limiter.CapPrefix)
		}
	}
	presence, err := s.History.Presence(ctx, from, to)
	if err != nil {
		return err
	}
	err = send(&grlv1.ReadHistoryResponse{Span: &grlv1.HistorySpan{
		FromMs: presence.From.UnixMilli(), Hours: uint32(presence.Hours), Zones: presence.Zones, Present: presence.Present,
	}})
	if err != nil {
		return err
	}
	message := &grlv1.ReadHistoryResponse{Cell: &grlv1.CellHistory{}}
	each := func(c store.CellSeries) error {
		fill(message.GetCell(), c)
		return send(message) // has written it when it returns, so the slices may change
	}
	// Who reads a bucket has to know by then what its service was capped by.
	if err := s.History.ReadSeries(ctx, caps, each); err != nil {
		return err
	}
	return s.History.ReadSeries(ctx, buckets, each)
}

// span bounds the time of which history is asked for.
func span(fromMs, toMs int64) (from, to time.Time, err error) {
	if fromMs < 0 || toMs > maxMillis || toMs <= fromMs {
		return from, to, invalid("to_ms", "%d is not after from_ms, %d, or one of them is no time", toMs, fromMs)
	}
	from, to = time.UnixMilli(fromMs), time.UnixMilli(toMs)
	if most := time.Duration(store.MaxHours-1) * time.Hour; to.Sub(from) > most {
		return from, to, invalid("from_ms", "%v before to_ms, at most %v", to.Sub(from), most)
	}
	return from, to, nil
}

// fill makes a message that of a cell.
func fill(m *grlv1.CellHistory, c store.CellSeries) {
	m.Bucket, m.Instance, m.Caller = c.Cell.Bucket, c.Cell.Instance, c.Cell.Caller
	m.Cap = limiter.IsCap(c.Cell.Bucket)
	m.Offered, m.Dropped = withoutTail(c.Offered), withoutTail(c.Dropped)
	m.HighestSecond, m.CandidateDropped = withoutTail(c.HighestSecond), withoutTail(c.CandidateDropped)
	m.Zones = c.Zones
	m.Damaged = m.Damaged[:0]
	for _, hour := range c.Damaged {
		m.Damaged = append(m.Damaged, uint32(hour))
	}
}

// withoutTail leaves out the zeros at the end, which go without saying.
func withoutTail(counts []uint64) []uint64 {
	n := len(counts)
	for n > 0 && counts[n-1] == 0 {
		n--
	}
	return counts[:n]
}

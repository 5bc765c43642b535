package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	"connectrpc.com/connect"

	"grl/limiter"
	"grl/limiter/law"
	grlv1 "grl/proto/grl/v1"
	"grl/proto/grl/v1/grlv1connect"
	"grl/proto/wire"
	"grl/store"
	"grl/web"
)

// view answers what the controller sees now, for the API and the dashboard.
type view struct {
	*Controller
	grlv1connect.UnimplementedViewServiceHandler
}

// Buckets returns a row for each cell, and one for each bucket that nobody
// calls.
func (v view) Buckets() []web.Bucket {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := time.Now()
	owners := make(map[string]string)
	for _, s := range v.node.config.Services {
		owners[s.Name] = s.Owner
	}
	seen := make(map[string]bool)
	rows := make([]web.Bucket, 0, len(v.node.buckets))
	v.node.cells.Each(func(i int, id limiter.CellID) {
		seen[id.Bucket] = true
		row := bucketRow(v.node.states[i].bucket, id)
		row.Owner = owners[row.Service]
		v.node.live(now, i, &row)
		rows = append(rows, row)
	})
	for name, b := range v.node.buckets {
		if !seen[name] {
			row := bucketRow(b, limiter.CellID{Bucket: name})
			row.Owner = owners[row.Service]
			rows = append(rows, row)
		}
	}
	return rows
}

func bucketRow(b *limiter.Bucket, id limiter.CellID) web.Bucket {
	row := web.Bucket{
		Service:  b.Service,
		Name:     b.Name,
		Match:    matchText(b),
		Instance: id.Instance,
		Caller:   id.Caller,
		Class:    id.Class,
		Scope:    b.Scope,
		Behavior: b.Behavior,
		Block:    b.Block,
	}
	if !b.Block {
		row.LimitRPS = b.Limit(id.Instance)
	}
	return row
}

func matchText(b *limiter.Bucket) string {
	caller, procedure := string(b.Match.Caller), string(b.Match.Procedure)
	if caller == "" {
		caller = "*"
	}
	if b.PerCaller {
		caller = "each " + caller
	}
	if procedure == "" {
		procedure = "*"
	}
	return caller + " → " + procedure
}

// live fills in what is measured of a cell.
func (n *node) live(now time.Time, i int, row *web.Bucket) {
	s := &n.states[i]
	var live law.MicroRPS
	for _, z := range n.zones {
		r := z.sum.Rate(now, i)
		if z.live > 0 {
			live += r.Offered
		}
	}
	dropped, shadowDropped := n.flows[i].shares(n.ticks)
	row.OfferedRPS = s.rate.Offered.RPS()
	row.DroppedRPS, row.ShadowDroppedRPS = dropped*row.OfferedRPS, shadowDropped*row.OfferedRPS
	row.AdmittedRPS = row.OfferedRPS - row.DroppedRPS
	row.Hosts = int(s.rate.Hosts)
	row.Silent = s.rate.Offered > 0 && live == 0
	row.Ratio = law.Ratio(s.published.Admit)
	if row.Block {
		row.Ratio = 1
	}
}

// Fleet returns the state of the tree.
func (v view) Fleet() web.Fleet {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := time.Now()
	f := web.Fleet{
		Epoch:     v.node.epoch,
		Revision:  v.node.config.Revision,
		Loaded:    v.loaded,
		LoadError: v.refused,
		WarmingUp: !v.node.mayPublish(now),
		Controller: web.Node{
			Role:     "controller",
			Name:     v.name,
			Region:   v.opts.Config.Region,
			Version:  v.opts.Version,
			Revision: v.node.config.Revision,
		},
	}
	for _, m := range v.node.tree(now) {
		f.Nodes = append(f.Nodes, webNode(m))
	}
	f.SilentZones = v.node.silentZones(now)
	f.Alone = v.node.alone()
	return f
}

func webNode(m *grlv1.Node) web.Node {
	return web.Node{
		Role:            roleWord(m.GetRole()),
		Name:            m.GetName(),
		Zone:            m.GetZone(),
		Region:          m.GetRegion(),
		Version:         m.GetVersion(),
		Revision:        m.GetConfigRevision(),
		RefusedRevision: m.GetRefusedRevision(),
		RefusedReason:   m.GetRefusedReason(),
		ReportAge:       time.Duration(m.GetReportAgeMs()) * time.Millisecond,
		DirectiveAge:    time.Duration(m.GetDirectiveAgeMs()) * time.Millisecond,
		BytesReceived:   m.GetBytesReceived(),
		BytesSent:       m.GetBytesSent(),
		Hosts:           int(m.GetHosts()),
	}
}

// ListBuckets returns the buckets with their live figures.
func (v view) ListBuckets(_ context.Context, r *grlv1.ListBucketsRequest) (*grlv1.ListBucketsResponse, error) {
	out := &grlv1.ListBucketsResponse{}
	for _, row := range v.Buckets() {
		if r.GetService() != "" && r.GetService() != row.Service {
			continue
		}
		out.Buckets = append(out.Buckets, &grlv1.BucketView{
			Bucket:           row.Service + "/" + row.Name,
			Owner:            row.Owner,
			Instance:         row.Instance,
			Caller:           row.Caller,
			Class:            row.Class,
			Scope:            wire.FromScope(row.Scope),
			Behavior:         wire.FromBehavior(row.Behavior),
			Block:            row.Block,
			LimitRps:         row.LimitRPS,
			OfferedRps:       row.OfferedRPS,
			AdmittedRps:      row.AdmittedRPS,
			DroppedRps:       row.DroppedRPS,
			ShadowDroppedRps: row.ShadowDroppedRPS,
			DropRatio:        row.Ratio,
			Hosts:            uint32(row.Hosts),
		})
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	out.Revision = v.node.config.Revision
	return out, nil
}

// GetFleet returns the nodes of the tree.
func (v view) GetFleet(context.Context, *grlv1.GetFleetRequest) (*grlv1.GetFleetResponse, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := time.Now()
	return &grlv1.GetFleetResponse{
		Epoch:       v.node.epoch,
		Revision:    v.node.config.Revision,
		Nodes:       v.node.tree(now),
		SilentZones: v.node.silentZones(now),
		Alone:       v.node.alone(),
	}, nil
}

// GetTraffic returns who sends to one service.
func (v view) GetTraffic(_ context.Context, r *grlv1.GetTrafficRequest) (*grlv1.GetTrafficResponse, error) {
	if r.GetService() == "" {
		return nil, rpcError(connect.CodeInvalidArgument, errors.New("service: empty"))
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return &grlv1.GetTrafficResponse{Hours: v.traffic.of(r.GetService())}, nil
}

// GetHistory returns the minutes of one cell.
func (v view) GetHistory(ctx context.Context, r *grlv1.GetHistoryRequest) (*grlv1.GetHistoryResponse, error) {
	to := time.Now()
	if r.GetToMs() != 0 {
		to = time.UnixMilli(r.GetToMs())
	}
	from := to.Add(-time.Hour)
	if r.GetFromMs() != 0 {
		from = time.UnixMilli(r.GetFromMs())
	}
	if r.GetBucket() == "" || to.Before(from) {
		return nil, rpcError(connect.CodeInvalidArgument, fmt.Errorf("bucket %q from %v to %v: no bucket, or no span", r.GetBucket(), from.UTC(), to.UTC()))
	}
	cell := limiter.CellID{Bucket: r.GetBucket(), Instance: r.GetInstance(), Caller: r.GetCaller()}
	minutes, err := v.opts.Store.Minutes(ctx, cell, from, to)
	if errors.Is(err, store.ErrUnavailable) {
		v.opts.Log.ErrorContext(ctx, "cannot read history", "err", err)
		return nil, rpcError(connect.CodeUnavailable, errors.New("the history cannot be read now"))
	}
	if err != nil {
		return nil, rpcError(connect.CodeInternal, errors.New("reading the history failed"))
	}
	out := &grlv1.GetHistoryResponse{}
	for _, m := range minutes {
		out.Minutes = append(out.Minutes, &grlv1.Minute{
			StartMs:       m.Start.UnixMilli(),
			Offered:       m.Offered,
			Admitted:      m.Admitted,
			Dropped:       m.Dropped,
			ShadowDropped: m.ShadowDropped,
			HighestSecond: m.HighestSecond,
		})
	}
	return out, nil
}

package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"connectrpc.com/connect"

	"grl/limiter"
	grlv1 "grl/proto/grl/v1"
	"grl/store"
	"grl/store/ledger"
	"grl/web/page"
)

// view answers what the controller sees now, for the API and the dashboard.
type view struct{ *Controller }

// Fleet returns the state of the tree.
func (v view) Fleet() page.Fleet {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := time.Now()
	f := page.Fleet{
		Epoch:     v.node.epoch,
		Revision:  v.node.config.Revision,
		Loaded:    v.installedAt(),
		LoadError: v.refused,
		PublicURL: v.node.config.PublicURL,
		WarmingUp: !v.node.mayPublish(now),
		Controller: page.Node{
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
	f.SilentFor, f.SilentIn, f.SilentCounted = make(map[string]time.Duration), make(map[string]string), make(map[string]bool)
	for _, z := range v.node.silent(now) {
		f.SilentZones = append(f.SilentZones, z.name)
		f.SilentFor[z.name], f.SilentIn[z.name], f.SilentCounted[z.name] = now.Sub(z.lost), z.region, z.counted
	}
	f.Unheard = v.node.unheard(now)
	f.Alone, f.Follows = v.node.alone(), !v.node.leads
	f.Rollout = webRollout(v.node.rollout(v.state.Rollout))
	f.AllDisabled, f.Disabled = v.node.config.AllDisabled, v.node.config.Disabled
	return f
}

// installedAt returns when the configuration was made, or, at a regional
// controller, taken. mu is held.
func (c *Controller) installedAt() time.Time {
	if c.opts.Config.Regional() {
		return c.loaded
	}
	return c.state.Head.At
}

// webRollout is a rollout as pages show it, nil if there is none.
func webRollout(m *grlv1.Rollout) *page.Rollout {
	if m == nil {
		return nil
	}
	return &page.Rollout{
		Revision: m.GetRevision(), From: m.GetFromRevision(), Stopped: m.GetState() == grlv1.Rollout_STATE_STOPPED,
		Reached: m.GetReached(), Waiting: m.GetWaiting(), StepAt: time.UnixMilli(m.GetStepAtMs()), Reason: m.GetReason(),
	}
}

func webNode(m *grlv1.Node) page.Node {
	return page.Node{
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
		Reports:         m.GetReports(),
		Hosts:           int(m.GetHosts()),
		DisabledHere:    m.GetDisabledHere(),
	}
}

// GetFleet returns the nodes of the tree.
func (v view) GetFleet(context.Context, *grlv1.GetFleetRequest) (*grlv1.GetFleetResponse, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	now, n := time.Now(), v.node
	out := &grlv1.GetFleetResponse{
		Epoch:    n.epoch,
		Revision: n.config.Revision,
		Serial:   n.config.Serial,
		Nodes:    n.tree(now),
		Alone:    n.alone(),
		Name:     v.name,
		Leads:    n.leads,
		Region:   v.opts.Config.Region,
		Version:  v.opts.Version,
		Rollout:  n.rollout(v.state.Rollout),

		LimitsRefused:    v.refused,
		AllDisabled:      n.config.AllDisabled,
		DisabledServices: n.config.Disabled,
	}
	silent := n.silent(now)
	for _, z := range silent {
		out.SilentZones = append(out.SilentZones, z.name)
	}
	out.Silent = silentMessages(now, silent, func(string) bool { return true })
	return out, nil
}

// rollout returns what people are told of a rollout, nil if there is none that
// goes on or was stopped.
func (n *node) rollout(r ledger.Rollout) *grlv1.Rollout {
	m := &grlv1.Rollout{
		Revision:     r.Revision,
		FromRevision: r.From,
		Reached:      r.Reached,
		StartedAtMs:  r.StartedAt.UnixMilli(),
		StepAtMs:     r.StepAt.UnixMilli(),
		Reason:       r.Reason,
	}
	switch r.State {
	case ledger.RolloutRunning:
		m.State = grlv1.Rollout_STATE_RUNNING
	case ledger.RolloutStopped:
		m.State = grlv1.Rollout_STATE_STOPPED
	default:
		return nil
	}
	for _, z := range n.order {
		if z.live > 0 && !slices.Contains(r.Reached, z.name) {
			m.Waiting = append(m.Waiting, z.name)
		}
	}
	slices.Sort(m.Waiting)
	return m
}

// GetTraffic returns who sends to one service, or to those without limits.
func (v view) GetTraffic(_ context.Context, r *grlv1.GetTrafficRequest) (*grlv1.GetTrafficResponse, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if r.GetService() == "" {
		return &grlv1.GetTrafficResponse{Hours: v.traffic.unlimited()}, nil
	}
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

			CandidateDropped: m.CandidateDropped,
		})
	}
	return out, nil
}

package api

import (
	"context"
	"time"

	grlv1 "grl/proto/grl/v1"
	"grl/roles/controller/desk"
	"grl/store/ledger"
)

// incidentService serves grlv1connect.IncidentServiceHandler.
type incidentService struct{ Options }

func (s incidentService) PlaceCap(ctx context.Context, r *grlv1.PlaceCapRequest) (*grlv1.PlaceCapResponse, error) {
	by, err := by(ctx)
	if err != nil {
		return nil, err
	}
	request, err := toCap(r)
	if err != nil {
		return nil, s.rpcError(ctx, err)
	}
	request.By = by
	placed, effect, err := s.Desk.PlaceCap(ctx, request)
	if err != nil {
		return nil, s.rpcError(ctx, err)
	}
	out := &grlv1.PlaceCapResponse{Effect: &grlv1.CapEffect{DropShare: effect.DropShare, Text: effect.Text}}
	if effect.Known {
		out.Effect.OfferedRps = &effect.OfferedRPS
	}
	if !request.DryRun {
		out.Cap = s.view(placed)
	}
	return out, nil
}

// longest is above all that a cap may last, and far from what overflows.
const longest = 1000 * time.Hour

// capSpan returns how long a cap shall hold, as far as it can be told.
func capSpan(ms int64) time.Duration {
	return time.Duration(min(max(ms, 0), longest.Milliseconds())) * time.Millisecond
}

func toCap(r *grlv1.PlaceCapRequest) (desk.CapRequest, error) {
	request := desk.CapRequest{
		ID: r.GetRequestId(), Service: r.GetService(), Caller: r.GetCaller(), Procedure: r.GetProcedure(), LimitRPS: r.GetRps(), Block: r.GetBlock(),
		For:    capSpan(r.GetDurationMs()),
		Reason: r.GetReason(), Force: r.GetForce(), DryRun: r.GetDryRun(),
	}
	if b, ok := r.GetGate().(*grlv1.PlaceCapRequest_Block); ok && !b.Block {
		return request, invalid("block", "is false: give rps instead")
	}
	return request, nil
}

func (s incidentService) LiftCap(ctx context.Context, r *grlv1.LiftCapRequest) (*grlv1.LiftCapResponse, error) {
	by, err := by(ctx)
	if err != nil {
		return nil, err
	}
	if err := checkName("id", r.GetId()); err != nil {
		return nil, s.rpcError(ctx, err)
	}
	lifted, err := s.Desk.LiftCap(ctx, by, r.GetId(), r.GetReason())
	if err != nil {
		return nil, s.rpcError(ctx, err)
	}
	return &grlv1.LiftCapResponse{Cap: s.view(lifted)}, nil
}

func (s incidentService) ExtendCap(ctx context.Context, r *grlv1.ExtendCapRequest) (*grlv1.ExtendCapResponse, error) {
	by, err := by(ctx)
	if err != nil {
		return nil, err
	}
	if err := checkName("id", r.GetId()); err != nil {
		return nil, s.rpcError(ctx, err)
	}
	longer, err := s.Desk.ExtendCap(ctx, by, r.GetId(), capSpan(r.GetDurationMs()), r.GetReason())
	if err != nil {
		return nil, s.rpcError(ctx, err)
	}
	return &grlv1.ExtendCapResponse{Cap: s.view(longer)}, nil
}

func (s incidentService) ListCaps(ctx context.Context, r *grlv1.ListCapsRequest) (*grlv1.ListCapsResponse, error) {
	if _, err := by(ctx); err != nil {
		return nil, err
	}
	if err := checkName("service", r.GetService()); err != nil {
		return nil, s.rpcError(ctx, err)
	}
	caps, err := s.Desk.Caps(ctx, r.GetService())
	if err != nil {
		return nil, s.rpcError(ctx, err)
	}
	out := &grlv1.ListCapsResponse{}
	for _, c := range caps {
		out.Caps = append(out.Caps, s.view(c))
	}
	return out, nil
}

// view returns a cap with what it does now.
func (s incidentService) view(c ledger.Cap) *grlv1.CapView {
	load := s.Desk.CapLoad(c)
	m := &grlv1.Cap{
		Id: c.ID, Service: c.Service, Match: &grlv1.Match{Caller: c.Caller, Procedure: c.Procedure},
		Author: clean(c.Author), Reason: clean(c.Reason), RemainingMs: max(0, time.Until(c.EndsAt).Milliseconds()),
	}
	if c.Block {
		m.Gate = &grlv1.Cap_Block{Block: true}
	} else {
		m.Gate = &grlv1.Cap_Limit{Limit: &grlv1.Limit{Rps: c.RPS}}
	}
	return &grlv1.CapView{
		Cap: m, PlacedAtMs: millis(c.PlacedAt), EndsAtMs: millis(c.EndsAt),
		OfferedRps: load.OfferedRPS, DroppedRps: load.DroppedRPS,
		ClientsHolding: uint32(load.Holding), Clients: uint32(load.Clients), ClientsUnheard: uint32(load.Unheard),
	}
}

func (s incidentService) Disable(ctx context.Context, r *grlv1.DisableRequest) (*grlv1.DisableResponse, error) {
	by, err := by(ctx)
	if err != nil {
		return nil, err
	}
	if err := checkName("service", r.GetService()); err != nil {
		return nil, s.rpcError(ctx, err)
	}
	incident, err := s.Desk.Disable(ctx, desk.SwitchRequest{By: by, Service: r.GetService(), All: r.GetAll(), Reason: r.GetReason()})
	if err != nil {
		return nil, s.rpcError(ctx, err)
	}
	return &grlv1.DisableResponse{AllDisabled: incident.AllDisabled, DisabledServices: incident.Disabled}, nil
}

func (s incidentService) Enable(ctx context.Context, r *grlv1.EnableRequest) (*grlv1.EnableResponse, error) {
	by, err := by(ctx)
	if err != nil {
		return nil, err
	}
	if err := checkName("service", r.GetService()); err != nil {
		return nil, s.rpcError(ctx, err)
	}
	incident, err := s.Desk.Enable(ctx, desk.SwitchRequest{By: by, Service: r.GetService(), All: r.GetAll(), Reason: r.GetReason()})
	if err != nil {
		return nil, s.rpcError(ctx, err)
	}
	return &grlv1.EnableResponse{AllDisabled: incident.AllDisabled, DisabledServices: incident.Disabled}, nil
}

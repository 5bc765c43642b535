package api

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"grl/limiter/limitsfile"
	grlv1 "grl/proto/grl/v1"
	"grl/roles/controller/desk"
)

// configService serves grlv1connect.ConfigServiceHandler.
type configService struct{ Options }

func (s configService) Apply(ctx context.Context, r *grlv1.ApplyRequest) (*grlv1.ApplyResponse, error) {
	by, err := by(ctx)
	if err != nil {
		return nil, err
	}
	request := desk.ApplyRequest{
		By: by, Base: r.Base, Prune: r.GetPrune(), DryRun: r.GetDryRun(), Force: r.GetForce(), Now: r.GetNow(), Reason: r.GetReason(),
		Edit: r.GetEdit(),
	}
	for _, f := range r.GetFiles() {
		request.Files = append(request.Files, limitsfile.Source{Name: f.GetName(), Data: f.GetData()})
	}
	out, err := s.Desk.Apply(ctx, request)
	if err != nil {
		return nil, s.rpcError(ctx, err)
	}
	return &grlv1.ApplyResponse{Outcome: fromOutcome(out)}, nil
}

func (s configService) Rollback(ctx context.Context, r *grlv1.RollbackRequest) (*grlv1.RollbackResponse, error) {
	by, err := by(ctx)
	if err != nil {
		return nil, err
	}
	out, err := s.Desk.Rollback(ctx, desk.RollbackRequest{
		By: by, Revision: r.GetRevision(), Alone: r.GetAlone(), Force: r.GetForce(), Reason: r.GetReason(), DryRun: r.GetDryRun(),
	})
	if err != nil {
		return nil, s.rpcError(ctx, err)
	}
	return &grlv1.RollbackResponse{Outcome: fromOutcome(out)}, nil
}

func (s configService) Promote(ctx context.Context, r *grlv1.PromoteRequest) (*grlv1.PromoteResponse, error) {
	by, err := by(ctx)
	if err != nil {
		return nil, err
	}
	out, err := s.Desk.Promote(ctx, desk.PromoteRequest{
		By: by, Bucket: r.GetBucket(), Base: r.Base, Force: r.GetForce(), Reason: r.GetReason(), DryRun: r.GetDryRun(),
	})
	if err != nil {
		return nil, s.rpcError(ctx, err)
	}
	return &grlv1.PromoteResponse{Outcome: fromOutcome(out)}, nil
}

func (s configService) FinishRollout(ctx context.Context, r *grlv1.FinishRolloutRequest) (*grlv1.FinishRolloutResponse, error) {
	by, err := by(ctx)
	if err != nil {
		return nil, err
	}
	rollout, err := s.Desk.FinishRollout(ctx, desk.FinishRequest{By: by, Reason: r.GetReason()})
	if err != nil {
		return nil, s.rpcError(ctx, err)
	}
	return &grlv1.FinishRolloutResponse{Rollout: fromRollout(rollout, s.Desk.Waiting(rollout))}, nil
}

func (s configService) GetConfiguration(ctx context.Context, r *grlv1.GetConfigurationRequest) (*grlv1.GetConfigurationResponse, error) {
	if err := reader(ctx); err != nil {
		return nil, err
	}
	if err := checkName("service", r.GetService()); err != nil {
		return nil, s.rpcError(ctx, err)
	}
	revision, err := s.Ledger.Head(ctx)
	if err == nil && r.GetRevision() != 0 {
		revision, err = s.Ledger.Revision(ctx, r.GetRevision())
	}
	if err != nil {
		return nil, s.rpcError(ctx, err)
	}
	documents, err := s.Ledger.Documents(ctx, revision.Number)
	if err != nil {
		return nil, s.rpcError(ctx, err)
	}
	out := &grlv1.GetConfigurationResponse{Revision: fromRevision(revision)}
	for _, service := range slices.Sorted(maps.Keys(documents)) {
		if r.GetService() == "" || r.GetService() == service {
			out.Files = append(out.Files, &grlv1.LimitsFile{Name: service + ".yaml", Data: documents[service]})
		}
	}
	if r.GetService() != "" && len(out.Files) == 0 {
		return nil, s.rpcError(ctx, fmt.Errorf("service %q at r%d: %w", r.GetService(), revision.Number, desk.ErrNotFound))
	}
	return out, nil
}

func (s configService) ListRevisions(ctx context.Context, r *grlv1.ListRevisionsRequest) (*grlv1.ListRevisionsResponse, error) {
	if _, err := by(ctx); err != nil {
		return nil, err
	}
	rows, err := pageSize(r.GetPageSize())
	if err != nil {
		return nil, s.rpcError(ctx, err)
	}
	revisions, err := s.Ledger.Revisions(ctx, r.GetBefore(), rows)
	if err != nil {
		return nil, s.rpcError(ctx, err)
	}
	out := &grlv1.ListRevisionsResponse{}
	for _, revision := range revisions {
		out.Revisions = append(out.Revisions, fromRevision(revision))
	}
	return out, nil
}

// pageSize returns how many rows a list has at most.
func pageSize(asked uint32) (int, error) {
	switch {
	case asked == 0:
		return usualRows, nil
	case asked > mostRows:
		return 0, invalid("page_size", "%d, at most %d", asked, mostRows)
	default:
		return int(asked), nil
	}
}

// checkName bounds a name that is only compared.
func checkName(field, name string) error {
	if len(name) > limitsfile.MaxNameBytes {
		return invalid(field, "has %d bytes, at most %d", len(name), limitsfile.MaxNameBytes)
	}
	return nil
}

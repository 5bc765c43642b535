package api

import (
	"context"

	grlv1 "grl/proto/grl/v1"
	"grl/store/ledger"
)

// auditService serves grlv1connect.AuditServiceHandler.
type auditService struct{ Options }

func (s auditService) ListAudit(ctx context.Context, r *grlv1.ListAuditRequest) (*grlv1.ListAuditResponse, error) {
	if _, err := by(ctx); err != nil {
		return nil, err
	}
	rows, err := pageSize(r.GetPageSize())
	if err != nil {
		return nil, s.rpcError(ctx, err)
	}
	for field, name := range map[string]string{"actor": r.GetActor(), "action": r.GetAction(), "subject": r.GetSubject()} {
		if len(name) > maxFilter {
			return nil, s.rpcError(ctx, invalid(field, "has %d bytes, at most %d", len(name), maxFilter))
		}
	}
	entries, err := s.Ledger.Audit(ctx, r.GetBefore(), rows, ledger.Filter{Actor: r.GetActor(), Action: r.GetAction(), Subject: r.GetSubject()})
	if err != nil {
		return nil, s.rpcError(ctx, err)
	}
	out := &grlv1.ListAuditResponse{}
	for _, e := range entries {
		out.Entries = append(out.Entries, fromEntry(e))
	}
	return out, nil
}

func (s auditService) VerifyAudit(ctx context.Context, _ *grlv1.VerifyAuditRequest) (*grlv1.VerifyAuditResponse, error) {
	if _, err := by(ctx); err != nil {
		return nil, err
	}
	found, err := s.Ledger.VerifyAudit(ctx)
	if err != nil {
		return nil, s.rpcError(ctx, err)
	}
	return &grlv1.VerifyAuditResponse{Entries: found.Entries, Hash: found.Hash, BrokenEntry: found.Broken, BrokenReason: clean(found.Reason)}, nil
}

package api

import (
	"bytes"
	"context"

	"grl/policy"
	"grl/policy/policyfile"
	grlv1 "grl/proto/grl/v1"
	"grl/roles/controller/desk"
	"grl/store/ledger"
)

// policyService serves grlv1connect.PolicyServiceHandler.
type policyService struct{ Options }

func (s policyService) ApplyPolicies(ctx context.Context, r *grlv1.ApplyPoliciesRequest) (*grlv1.ApplyPoliciesResponse, error) {
	by, err := by(ctx)
	if err != nil {
		return nil, err
	}
	request := desk.PoliciesRequest{By: by, Base: r.Base, DryRun: r.GetDryRun(), Reason: r.GetReason()}
	for _, f := range r.GetFiles() {
		request.Files = append(request.Files, policyfile.Source{Name: f.GetName(), Data: f.GetData()})
	}
	out, err := s.Desk.ApplyPolicies(ctx, request)
	if err != nil {
		return nil, s.rpcError(ctx, err)
	}
	return &grlv1.ApplyPoliciesResponse{Outcome: fromPolicyOutcome(out)}, nil
}

func (s policyService) DeletePolicy(ctx context.Context, r *grlv1.DeletePolicyRequest) (*grlv1.DeletePolicyResponse, error) {
	by, err := by(ctx)
	if err != nil {
		return nil, err
	}
	if err := checkName("name", r.GetName()); err != nil {
		return nil, s.rpcError(ctx, err)
	}
	out, err := s.Desk.DeletePolicy(ctx, by, r.GetName(), r.GetReason())
	if err != nil {
		return nil, s.rpcError(ctx, err)
	}
	return &grlv1.DeletePolicyResponse{Outcome: fromPolicyOutcome(out)}, nil
}

func (s policyService) RollbackPolicies(ctx context.Context, r *grlv1.RollbackPoliciesRequest) (*grlv1.RollbackPoliciesResponse, error) {
	by, err := by(ctx)
	if err != nil {
		return nil, err
	}
	out, err := s.Desk.RollbackPolicies(ctx, by, r.GetRevision(), r.GetReason())
	if err != nil {
		return nil, s.rpcError(ctx, err)
	}
	return &grlv1.RollbackPoliciesResponse{Outcome: fromPolicyOutcome(out)}, nil
}

func (s policyService) GetPolicies(ctx context.Context, r *grlv1.GetPoliciesRequest) (*grlv1.GetPoliciesResponse, error) {
	if err := reader(ctx); err != nil {
		return nil, err
	}
	revision, policies, err := s.Desk.Policies(ctx, r.GetRevision())
	if err != nil {
		return nil, s.rpcError(ctx, err)
	}
	out := &grlv1.GetPoliciesResponse{Revision: fromRevision(revision)}
	for _, p := range policies {
		m := &grlv1.Policy{Name: p.Name, Data: p.Text, Buckets: uint32(p.Buckets)}
		if p.Spec != nil {
			m.Kind, m.Mode = p.Spec.Kind, fromMode(p.Spec.Mode)
		}
		out.Policies = append(out.Policies, m)
	}
	return out, nil
}

func (s policyService) ListPolicyRevisions(ctx context.Context, r *grlv1.ListPolicyRevisionsRequest) (*grlv1.ListPolicyRevisionsResponse, error) {
	if _, err := by(ctx); err != nil {
		return nil, err
	}
	rows, err := pageSize(r.GetPageSize())
	if err == nil {
		err = checkName("name", r.GetName())
	}
	if err != nil {
		return nil, s.rpcError(ctx, err)
	}
	revisions, err := s.Ledger.PolicyRevisions(ctx, r.GetBefore(), rows)
	if err != nil {
		return nil, s.rpcError(ctx, err)
	}
	if name := r.GetName(); name != "" {
		if revisions, err = s.ofPolicy(ctx, name, revisions); err != nil {
			return nil, s.rpcError(ctx, err)
		}
	}
	out := &grlv1.ListPolicyRevisionsResponse{}
	for _, revision := range revisions {
		out.Revisions = append(out.Revisions, fromRevision(revision))
	}
	return out, nil
}

// ofPolicy returns those of revisions, the newest first, at which a policy differs
// from the revision before.
func (s policyService) ofPolicy(ctx context.Context, name string, revisions []ledger.Revision) ([]ledger.Revision, error) {
	text := func(revision uint64) ([]byte, error) {
		if revision == 0 {
			return nil, nil // there were none
		}
		set, err := s.Ledger.Policies(ctx, revision)
		return set.Texts[name], err
	}
	var out []ledger.Revision
	var is []byte
	for i, revision := range revisions {
		if i == 0 {
			var err error
			if is, err = text(revision.Number); err != nil {
				return nil, err
			}
		}
		before, err := text(revision.Number - 1)
		if err != nil {
			return nil, err
		}
		if !bytes.Equal(before, is) {
			out = append(out, revision)
		}
		is = before
	}
	return out, nil
}

func fromPolicyOutcome(o desk.PolicyOutcome) *grlv1.PolicyOutcome {
	return &grlv1.PolicyOutcome{
		Revision: fromRevision(o.Revision), Changed: o.Changed, Added: o.Added, Removed: o.Removed, Updated: o.Updated,
	}
}

func fromMode(m policy.Mode) grlv1.PolicyMode {
	switch m {
	case policy.Propose:
		return grlv1.PolicyMode_POLICY_MODE_PROPOSE
	case policy.Shadow:
		return grlv1.PolicyMode_POLICY_MODE_SHADOW
	case policy.Apply:
		return grlv1.PolicyMode_POLICY_MODE_APPLY
	default:
		return grlv1.PolicyMode_POLICY_MODE_UNSPECIFIED
	}
}

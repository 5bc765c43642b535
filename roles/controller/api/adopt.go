package api

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	"grl/policy/guard"
	grlv1 "grl/proto/grl/v1"
	"grl/roles/controller/desk"
	"grl/store/ledger"
)

func (s configuratorService) AdoptRun(ctx context.Context, r *grlv1.AdoptRunRequest) (*grlv1.AdoptRunResponse, error) {
	by, err := s.enter(ctx, r.GetHolder())
	if err != nil {
		return nil, err
	}
	out, err := s.adopt(ctx, by, r)
	if err != nil {
		return nil, s.rpcError(ctx, err)
	}
	return out, nil
}

// adopt makes a revision of what an open run found, as far as its policies and
// the rails let it through, and records what became of each.
func (s configuratorService) adopt(ctx context.Context, by desk.By, r *grlv1.AdoptRunRequest) (*grlv1.AdoptRunResponse, error) {
	found, err := s.find(ctx, r.GetRun())
	if err != nil {
		return nil, err
	}
	if found.run.State != ledger.RunRunning {
		return nil, fmt.Errorf("adopt run %d: %w", found.run.ID, ledger.ErrNotRunning)
	}
	asked := found.adoptable()
	request := desk.AdoptRequest{
		By: by, Machine: true, Action: "rlc.adopt", Reason: reasonOf("", found.run.ID, asked), DryRun: r.GetDryRun() || found.run.DryRun,
	}
	var broken []desk.RefusedEdit
	for _, m := range asked {
		e, err := toEdit(m)
		if err != nil {
			broken = append(broken, desk.RefusedEdit{Bucket: m.GetBucket(), Findings: []guard.Finding{{Bucket: m.GetBucket(), Text: err.Error()}}})
			continue
		}
		request.Edits = append(request.Edits, e)
	}
	adopted, err := s.Desk.Adopt(ctx, request)
	if err != nil && !errors.As(err, new(*desk.PendingError)) { // that is saved; whether it is active the configurator looks itself
		return nil, err
	}
	adopted.Refused = append(adopted.Refused, broken...)
	if !request.DryRun {
		if err := s.noteAdopted(ctx, found, adopted); err != nil {
			return nil, err
		}
	}
	out := &grlv1.AdoptRunResponse{Outcome: fromOutcome(adopted.Outcome), Taken: adopted.Taken}
	for _, service := range slices.Sorted(maps.Keys(adopted.Documents)) {
		out.Files = append(out.Files, &grlv1.LimitsFile{Name: service + ".yaml", Data: adopted.Documents[service]})
	}
	return out, nil
}

// adoptable returns the results that their policies let through, as far as
// nothing became of them yet.
func (f *findings) adoptable() []*grlv1.RunResult {
	var list []*grlv1.RunResult
	for _, m := range f.results {
		switch m.GetOutcome() {
		case grlv1.RunOutcome_RUN_OUTCOME_APPLIED, grlv1.RunOutcome_RUN_OUTCOME_SHADOWED, grlv1.RunOutcome_RUN_OUTCOME_PROMOTED:
			if m.GetRevision() == 0 && m.GetDecidedBy() == "" {
				list = append(list, m)
			}
		}
	}
	return list
}

// noteAdopted records anew the results that something became of.
func (s configuratorService) noteAdopted(ctx context.Context, found *findings, adopted desk.Adoption) error {
	var again []*grlv1.RunResult
	note := func(bucket string, as func(*grlv1.RunResult)) {
		m := proto.CloneOf(found.of(bucket))
		as(m)
		again = append(again, m)
	}
	for _, bucket := range adopted.Taken {
		note(bucket, func(m *grlv1.RunResult) { m.Revision = adopted.Revision.Number })
	}
	for _, bucket := range adopted.Superseded {
		note(bucket, func(m *grlv1.RunResult) { m.Outcome = grlv1.RunOutcome_RUN_OUTCOME_LEFT })
	}
	for _, refused := range adopted.Refused {
		note(refused.Bucket, func(m *grlv1.RunResult) {
			m.Outcome, m.State = grlv1.RunOutcome_RUN_OUTCOME_PROPOSED, grlv1.ProposalState_PROPOSAL_STATE_PENDING
			m.Findings = fromFindings(refused.Findings)
		})
	}
	if err := s.addResults(ctx, found.run.ID, again); err != nil || !adopted.Changed {
		return err
	}
	_, err := s.Ledger.UpdateRun(ctx, found.run.ID, func(run *ledger.Run) { run.Revision = adopted.Revision.Number })
	return err
}

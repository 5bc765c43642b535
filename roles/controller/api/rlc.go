package api

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"grl/limiter/limitsfile"
	grlv1 "grl/proto/grl/v1"
	"grl/roles/controller/desk"
	"grl/store/ledger"
)

const (
	usualRuns = 50
	// absentAfter is how long nobody must have attended for there to be no
	// configurator.
	absentAfter = time.Minute

	mostResults  = 10_000 // of a page
	usualResults = 1_000
	// maxBucketBytes bounds a full name.
	maxBucketBytes = 2*limitsfile.MaxNameBytes + len("/")
)

// rlcService serves grlv1connect.RLCServiceHandler.
type rlcService struct {
	Options
	later *later
}

func (s rlcService) RequestRun(ctx context.Context, r *grlv1.RequestRunRequest) (*grlv1.RequestRunResponse, error) {
	by, err := by(ctx)
	if err != nil {
		return nil, err
	}
	for field, name := range map[string]string{"policy": r.GetPolicy(), "service": r.GetService()} {
		if err := checkName(field, name); err != nil {
			return nil, s.rpcError(ctx, err)
		}
	}
	id, err := s.Desk.RequestRun(ctx, desk.RunRequest{By: by, DryRun: r.GetDryRun(), Policy: r.GetPolicy(), Service: r.GetService()})
	if err != nil {
		return nil, s.rpcError(ctx, err)
	}
	return &grlv1.RequestRunResponse{RequestId: id}, nil
}

func (s rlcService) ListRuns(ctx context.Context, r *grlv1.ListRunsRequest) (*grlv1.ListRunsResponse, error) {
	if _, err := by(ctx); err != nil {
		return nil, err
	}
	rows, err := runRows(r.GetPageSize())
	if err != nil {
		return nil, s.rpcError(ctx, err)
	}
	if err := checkName("request_id", r.GetRequestId()); err != nil {
		return nil, s.rpcError(ctx, err)
	}
	runs, err := s.Ledger.Runs(ctx, r.GetBefore(), ledger.MaxRuns)
	if err != nil {
		return nil, s.rpcError(ctx, err)
	}
	if id := r.GetRequestId(); id != "" {
		runs = slices.DeleteFunc(runs, func(run ledger.Run) bool { return run.RequestID != id })
	}
	out := &grlv1.ListRunsResponse{}
	for _, run := range runs[:min(len(runs), rows)] {
		out.Runs = append(out.Runs, fromRun(run))
	}
	return out, nil
}

func runRows(asked uint32) (int, error) {
	switch {
	case asked == 0:
		return usualRuns, nil
	case asked > ledger.MaxRuns:
		return 0, invalid("page_size", "%d, at most %d", asked, ledger.MaxRuns)
	default:
		return int(asked), nil
	}
}

func (s rlcService) GetRun(ctx context.Context, r *grlv1.GetRunRequest) (*grlv1.GetRunResponse, error) {
	if _, err := by(ctx); err != nil {
		return nil, err
	}
	rows := usualResults
	if r.GetPageSize() > mostResults {
		return nil, s.rpcError(ctx, invalid("page_size", "%d, at most %d", r.GetPageSize(), mostResults))
	} else if r.GetPageSize() > 0 {
		rows = int(r.GetPageSize())
	}
	if err := checkBucket(r.GetBucket()); err != nil {
		return nil, s.rpcError(ctx, err)
	}
	found, err := s.find(ctx, r.GetId())
	if err == nil {
		err = s.supersede(ctx, s.later, found)
	}
	if err != nil {
		return nil, s.rpcError(ctx, err)
	}
	selected := slices.DeleteFunc(found.results, func(m *grlv1.RunResult) bool {
		return r.GetOutcome() != grlv1.RunOutcome_RUN_OUTCOME_UNSPECIFIED && m.GetOutcome() != r.GetOutcome() ||
			r.GetBucket() != "" && m.GetBucket() != r.GetBucket()
	})
	out := &grlv1.GetRunResponse{Run: fromRun(found.run), Total: uint32(len(selected))}
	selected = selected[min(len(selected), int(r.GetOffset())):]
	out.Results = selected[:min(len(selected), rows)]
	return out, nil
}

// checkBucket bounds a full name that is only compared.
func checkBucket(name string) error {
	if len(name) > maxBucketBytes {
		return invalid("bucket", "has %d bytes, at most %d", len(name), maxBucketBytes)
	}
	return nil
}

func (s rlcService) GetConfigurator(ctx context.Context, _ *grlv1.GetConfiguratorRequest) (*grlv1.GetConfiguratorResponse, error) {
	if _, err := by(ctx); err != nil {
		return nil, err
	}
	lease, err := s.Ledger.Lease(ctx)
	if err != nil {
		return nil, s.rpcError(ctx, err)
	}
	out := &grlv1.GetConfiguratorResponse{
		Absent: lease.Holder == "" || time.Since(lease.At) > absentAfter, Holder: clean(lease.Holder), SeenAtMs: millis(lease.At),
	}
	if len(lease.Status) > 0 {
		out.Status = &grlv1.ConfiguratorStatus{}
		if err := proto.Unmarshal(lease.Status, out.Status); err != nil {
			return nil, s.rpcError(ctx, fmt.Errorf("read status of the configurator: %w", err))
		}
	}
	return out, nil
}

func (s rlcService) DecideProposals(ctx context.Context, r *grlv1.DecideProposalsRequest) (*grlv1.DecideProposalsResponse, error) {
	by, err := by(ctx)
	if err != nil {
		return nil, err
	}
	out, err := s.decide(ctx, by, r)
	if err != nil {
		return nil, s.rpcError(ctx, err)
	}
	return out, nil
}

func (s rlcService) decide(ctx context.Context, by desk.By, r *grlv1.DecideProposalsRequest) (*grlv1.DecideProposalsResponse, error) {
	if r.GetForce() && r.GetReason() == "" {
		return nil, invalid("reason", "force needs one")
	}
	if desk.Shown(r.GetReason(), maxReason) != r.GetReason() {
		return nil, invalid("reason", "has more than %d bytes, or a control character", maxReason)
	}
	found, err := s.find(ctx, r.GetRun())
	if err != nil {
		return nil, err
	}
	if found.run.State == ledger.RunRunning || found.run.DryRun {
		return nil, &stateError{fmt.Sprintf("run %d is still running, or was a dry run: nothing of it can be decided", found.run.ID)}
	}
	if err := s.supersede(ctx, s.later, found); err != nil {
		return nil, err
	}
	p, err := found.proposals(r.GetBuckets())
	if err != nil {
		return nil, err
	}
	action := "rlc.reject"
	if r.GetApprove() {
		action = "rlc.approve"
	}
	if err := s.Desk.MayChange(ctx, by, action, p.services()); err != nil {
		return nil, err
	}
	if r.GetApprove() {
		return s.approve(ctx, by, r, p)
	}
	if err := s.note(ctx, by.Act(r.GetReason(), false), p.run, ledger.Rejected, 0, p.buckets()); err != nil {
		return nil, err
	}
	return &grlv1.DecideProposalsResponse{Decided: uint32(len(p.waiting)), Superseded: p.superseded}, nil
}

// maxReason leaves room in a reason for which run and policies it is about.
const maxReason = 700

// proposals are those of a run that somebody decides.
type proposals struct {
	run        uint64
	waiting    []*grlv1.RunResult
	superseded []string
}

// proposals returns those of buckets, none: all that wait.
func (f *findings) proposals(buckets []string) (proposals, error) {
	p := proposals{run: f.run.ID}
	if len(buckets) == 0 {
		for _, m := range f.results {
			if pending(m) {
				p.waiting = append(p.waiting, m)
			}
		}
		return p, nil
	}
	seen := make(map[string]bool, len(buckets))
	for _, bucket := range buckets {
		m := f.of(bucket)
		switch {
		case m == nil:
			return p, fmt.Errorf("run %d has nothing of bucket %q: %w", f.run.ID, desk.Shown(bucket, 100), desk.ErrNotFound)
		case seen[bucket]:
		case m.GetState() == grlv1.ProposalState_PROPOSAL_STATE_SUPERSEDED:
			p.superseded = append(p.superseded, bucket)
		case pending(m):
			p.waiting = append(p.waiting, m)
		case m.GetDecidedBy() != "":
			return p, &stateError{fmt.Sprintf("%s was decided by %s", bucket, m.GetDecidedBy())}
		default:
			return p, &stateError{bucket + " was not proposed"}
		}
		seen[bucket] = true
	}
	return p, nil
}

func (p proposals) buckets() []string {
	names := make([]string, len(p.waiting))
	for i, m := range p.waiting {
		names[i] = m.GetBucket()
	}
	return names
}

func (p proposals) services() []string {
	var names []string
	for _, m := range p.waiting {
		service, _, _ := strings.Cut(m.GetBucket(), "/")
		names = append(names, service)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// approve makes proposals the configuration, in the name of a person.
func (s rlcService) approve(ctx context.Context, by desk.By, r *grlv1.DecideProposalsRequest, p proposals) (*grlv1.DecideProposalsResponse, error) {
	request := desk.AdoptRequest{By: by, Action: "rlc.approve", Force: r.GetForce(), Reason: reasonOf(r.GetReason(), p.run, p.waiting)}
	for _, m := range p.waiting {
		e, err := toEdit(m)
		if err != nil {
			return nil, err
		}
		request.Edits = append(request.Edits, e)
	}
	adopted, err := s.Desk.Adopt(ctx, request)
	if err != nil && !errors.As(err, new(*desk.PendingError)) {
		return nil, err
	}
	// Also of a change that is saved and not active yet: it is made.
	if noted := s.note(ctx, by.Act(request.Reason, r.GetForce()), p.run, ledger.Approved, adopted.Revision.Number, adopted.Taken); noted != nil {
		return nil, noted
	}
	if err != nil {
		return nil, err
	}
	return &grlv1.DecideProposalsResponse{
		Outcome: fromOutcome(adopted.Outcome), Decided: uint32(len(adopted.Taken)), Superseded: append(p.superseded, adopted.Superseded...),
	}, nil
}

// note records what was decided of buckets.
func (s rlcService) note(ctx context.Context, act ledger.Act, run uint64, state string, revision uint64, buckets []string) error {
	var decisions []ledger.Decision
	for _, bucket := range buckets {
		decisions = append(decisions, ledger.Decision{Bucket: bucket, State: state, Revision: revision})
	}
	return s.Ledger.Decide(ctx, act, run, decisions)
}

// reasonOf names the run and the policies of results, after a reason.
func reasonOf(reason string, run uint64, results []*grlv1.RunResult) string {
	var policies []string
	for _, m := range results {
		if m.GetPolicy() != "" {
			policies = append(policies, desk.Shown(m.GetPolicy(), 64))
		}
	}
	slices.Sort(policies)
	policies = slices.Compact(policies)
	where := fmt.Sprintf("run %d", run)
	if n := len(policies); n > 3 {
		where += fmt.Sprintf(", policies %s and %d more", strings.Join(policies[:3], ", "), n-3)
	} else if n > 0 {
		where += ", policy " + strings.Join(policies, ", ")
	}
	if reason == "" {
		return where
	}
	return reason + " (" + where + ")"
}

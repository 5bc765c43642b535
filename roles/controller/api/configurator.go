package api

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"grl/limiter/limitsfile"
	"grl/proto/access"
	grlv1 "grl/proto/grl/v1"
	"grl/roles/controller/desk"
	"grl/store/ledger"
)

const (
	// leaseTTL is how long a configurator is at work after it attended.
	leaseTTL = 20 * time.Second
	// maxStatus bounds what a configurator says of itself, in bytes: conflicts
	// beyond it are left out.
	maxStatus = 256 << 10
	// pruneMemoryEvery is how often what was learnt of buckets that are gone is
	// forgotten.
	pruneMemoryEvery = 24 * time.Hour
	// repositorySource names the limits repository in the ledger.
	repositorySource = "limits repository"
	maxAuthor        = 200 // bytes
	shortCommit      = 10  // characters of a commit's hash that are shown
)

// configuratorService serves grlv1connect.ConfiguratorServiceHandler.
type configuratorService struct {
	Options
	reading chan struct{} // holds as many tokens as histories are read at once
	pruned  *atomic.Int64 // unix seconds, when memories were; 0: not yet
}

// configurator returns who a configurator is for the audit. It has a certificate
// or, where nobody has one, the token of an admin: what it says changes limits.
func configurator(ctx context.Context) (desk.By, error) {
	id := access.From(ctx)
	switch {
	case id.Node != nil && id.Node.Role == access.Configurator, id.Person != nil && id.Person.Level >= access.Admin:
		return desk.Machine(id.From, id.RequestID), nil
	case id.Person != nil:
		return desk.By{}, connect.NewError(connect.CodePermissionDenied, errors.New("a configurator without a certificate needs the token of an admin"))
	default:
		return desk.By{}, connect.NewError(connect.CodeUnauthenticated, errors.New("a configurator needs its certificate or, without TLS, the token of an admin"))
	}
}

// holds makes sure that a configurator is the one at work.
func (s configuratorService) holds(ctx context.Context, holder string) error {
	lease, err := s.Ledger.Lease(ctx)
	if err != nil {
		return err
	}
	if holder == "" || lease.Holder != holder || !time.Now().Before(lease.Until) {
		return &stateError{"this configurator does not have the lease: it must attend first, and another one may be at work"}
	}
	return nil
}

// enter is what every procedure of the holder begins with.
func (s configuratorService) enter(ctx context.Context, holder string) (desk.By, error) {
	by, err := configurator(ctx)
	if err != nil {
		return by, err
	}
	if err := s.holds(ctx, holder); err != nil {
		return by, s.rpcError(ctx, err)
	}
	return by, nil
}

func (s configuratorService) Attend(ctx context.Context, r *grlv1.AttendRequest) (*grlv1.AttendResponse, error) {
	if _, err := configurator(ctx); err != nil {
		return nil, err
	}
	if r.GetHolder() == "" || len(r.GetHolder()) > limitsfile.MaxNameBytes {
		return nil, s.rpcError(ctx, invalid("holder", "has %d bytes, want 1 to %d", len(r.GetHolder()), limitsfile.MaxNameBytes))
	}
	out, err := s.attend(ctx, r)
	if err != nil {
		return nil, s.rpcError(ctx, err)
	}
	return out, nil
}

func (s configuratorService) attend(ctx context.Context, r *grlv1.AttendRequest) (*grlv1.AttendResponse, error) {
	if r.GetLeave() {
		return &grlv1.AttendResponse{}, s.Ledger.LeaveLease(ctx, r.GetHolder())
	}
	status, err := statusBytes(r.GetStatus())
	if err != nil {
		return nil, err
	}
	lease, err := s.Ledger.TakeLease(ctx, r.GetHolder(), leaseTTL, time.Now(), status)
	if err != nil {
		return nil, err
	}
	head, err := s.Ledger.Head(ctx)
	if err != nil {
		return nil, err
	}
	policies, err := s.Ledger.PolicyRevisions(ctx, 0, 1)
	if err != nil {
		return nil, err
	}
	out := &grlv1.AttendResponse{Leads: lease.Holder == r.GetHolder(), Holder: clean(lease.Holder), Revision: head.Number}
	if len(policies) > 0 {
		out.PolicyRevision = policies[0].Number
	}
	if !out.Leads {
		return out, nil
	}
	requests, err := s.Ledger.Requests(ctx)
	for _, q := range requests {
		out.Requests = append(out.Requests, &grlv1.RunRequest{
			Id: clean(q.ID), Author: clean(q.Author), DryRun: q.DryRun, Policy: clean(q.Policy), Service: clean(q.Service),
		})
	}
	return out, err
}

// statusBytes returns a status as it is kept: with as many conflicts as fit, and
// a problem that is cut. However large it is, the lease is not refused for it.
func statusBytes(m *grlv1.ConfiguratorStatus) ([]byte, error) {
	if m == nil {
		return nil, nil
	}
	m.RepositoryProblem = desk.Shown(m.GetRepositoryProblem(), maxReason)
	for proto.Size(m) > maxStatus && len(m.Conflicts) > 0 {
		m.Conflicts = m.Conflicts[:len(m.Conflicts)/2]
	}
	if proto.Size(m) > maxStatus {
		m = &grlv1.ConfiguratorStatus{RepositoryProblem: "the status is too large to be shown"}
	}
	return proto.MarshalOptions{Deterministic: true}.Marshal(m)
}

func (s configuratorService) BeginRun(ctx context.Context, r *grlv1.BeginRunRequest) (*grlv1.BeginRunResponse, error) {
	by, err := s.enter(ctx, r.GetHolder())
	if err != nil {
		return nil, err
	}
	run := toRun(r.GetRun())
	run.Configurator = r.GetHolder()
	if run.RequestID != "" {
		request, err := s.Ledger.TakeRequest(ctx, run.RequestID)
		switch {
		case err == nil:
			run.Author, run.DryRun = request.Author, request.DryRun
		case !errors.Is(err, ledger.ErrNotFound): // else it was taken, and the answer got lost
			return nil, s.rpcError(ctx, err)
		}
	}
	begun, err := s.Ledger.BeginRun(ctx, by.Act("", false), run)
	if err != nil {
		return nil, s.rpcError(ctx, err)
	}
	return &grlv1.BeginRunResponse{Id: begun.ID}, nil
}

func (s configuratorService) RecordResults(ctx context.Context, r *grlv1.RecordResultsRequest) (*grlv1.RecordResultsResponse, error) {
	if _, err := s.enter(ctx, r.GetHolder()); err != nil {
		return nil, err
	}
	if err := s.record(ctx, r); err != nil {
		return nil, s.rpcError(ctx, err)
	}
	return &grlv1.RecordResultsResponse{}, nil
}

func (s configuratorService) record(ctx context.Context, r *grlv1.RecordResultsRequest) error {
	for _, m := range r.GetResults() {
		// What becomes of a result is not its finder's to say.
		m.State, m.DecidedBy, m.DecidedAtMs, m.Revision = 0, "", 0, 0
	}
	if err := s.addResults(ctx, r.GetRun(), r.GetResults()); err != nil {
		return err
	}
	memories := make(map[string][]byte, len(r.GetMemories()))
	for _, m := range r.GetMemories() {
		if len(m.GetData()) > ledger.MaxMemory || m.GetBucket() == "" {
			return invalid("memories", "%q has %d bytes, at most %d", m.GetBucket(), len(m.GetData()), ledger.MaxMemory)
		}
		memories[m.GetBucket()] = m.GetData()
	}
	if len(memories) > 0 {
		if err := s.Ledger.PutMemory(ctx, memories); err != nil {
			return err
		}
	}
	if len(r.GetResults()) == 0 {
		return nil
	}
	_, err := s.Ledger.UpdateRun(ctx, r.GetRun(), func(run *ledger.Run) {
		run.Done += uint32(len(r.GetResults()))
		for _, m := range r.GetResults() {
			run.Outcomes = counted(run.Outcomes, m.GetOutcome())
		}
	})
	return err
}

// addResults adds results to an open run.
func (s configuratorService) addResults(ctx context.Context, run uint64, results []*grlv1.RunResult) error {
	var add []ledger.Result
	for _, m := range results {
		if m.GetBucket() == "" {
			return invalid("results", "one has no bucket")
		}
		if err := checkBucket(m.GetBucket()); err != nil {
			return err
		}
		data, err := proto.Marshal(m)
		if err != nil {
			return fmt.Errorf("write result of %q: %w", m.GetBucket(), err)
		}
		if size := len(m.GetBucket()) + len(data); size > ledger.MaxResult {
			return invalid("results", "that of %q has %d bytes, at most %d", m.GetBucket(), size, ledger.MaxResult)
		}
		add = append(add, ledger.Result{Bucket: m.GetBucket(), Data: data})
	}
	if len(add) == 0 {
		return nil
	}
	return s.Ledger.AddResults(ctx, run, add)
}

func (s configuratorService) FinishRun(ctx context.Context, r *grlv1.FinishRunRequest) (*grlv1.FinishRunResponse, error) {
	by, err := s.enter(ctx, r.GetHolder())
	if err != nil {
		return nil, err
	}
	run, err := s.finish(ctx, by, r)
	if err != nil {
		return nil, s.rpcError(ctx, err)
	}
	return &grlv1.FinishRunResponse{Run: fromRun(run)}, nil
}

func (s configuratorService) finish(ctx context.Context, by desk.By, r *grlv1.FinishRunRequest) (ledger.Run, error) {
	found, err := s.find(ctx, r.GetRun())
	if err != nil || found.run.State != ledger.RunRunning { // else the answer got lost
		return found.orZero(), err
	}
	run, err := s.Ledger.FinishRun(ctx, by.Act(fmt.Sprintf("run %d", r.GetRun()), false), r.GetRun(), func(run *ledger.Run) {
		run.State, run.FinishedAt = ledger.RunDone, time.Now()
		if r.GetError() != "" {
			run.State, run.Error = ledger.RunFailed, r.GetError()
		}
		run.Commit, run.Verified = r.GetCommit(), r.GetVerified()
		run.Done, run.Outcomes = uint32(len(found.results)), found.count()
	})
	if err == nil {
		s.pruneMemory(ctx)
	}
	return run, err
}

func (f *findings) orZero() ledger.Run {
	if f == nil {
		return ledger.Run{}
	}
	return f.run
}

// pruneMemory forgets what was learnt of buckets that are gone, once a day.
func (s configuratorService) pruneMemory(ctx context.Context) {
	last, now := s.pruned.Load(), time.Now()
	if now.Sub(time.Unix(last, 0)) < pruneMemoryEvery || !s.pruned.CompareAndSwap(last, now.Unix()) {
		return
	}
	present, err := s.Desk.Present(ctx)
	if err == nil {
		err = s.Ledger.PruneMemory(ctx, present.Buckets())
	}
	if err != nil {
		s.Log.WarnContext(ctx, "cannot forget what was learnt of buckets that are gone", "err", err)
	}
}

func (s configuratorService) GetMemory(ctx context.Context, r *grlv1.GetMemoryRequest) (*grlv1.GetMemoryResponse, error) {
	if _, err := configurator(ctx); err != nil {
		return nil, err
	}
	memories, err := s.Ledger.Memory(ctx, r.GetBuckets())
	if err != nil {
		return nil, s.rpcError(ctx, err)
	}
	out := &grlv1.GetMemoryResponse{}
	for _, bucket := range slices.Sorted(maps.Keys(memories)) {
		out.Memories = append(out.Memories, &grlv1.BucketMemory{Bucket: bucket, Data: memories[bucket]})
	}
	return out, nil
}

func (s configuratorService) ApplyRepository(ctx context.Context, r *grlv1.ApplyRepositoryRequest) (*grlv1.ApplyRepositoryResponse, error) {
	by, err := s.enter(ctx, r.GetHolder())
	if err != nil {
		return nil, err
	}
	out, err := s.applyRepository(ctx, by, r)
	if err != nil {
		return nil, s.rpcError(ctx, err)
	}
	return &grlv1.ApplyRepositoryResponse{Outcome: fromOutcome(out)}, nil
}

func (s configuratorService) applyRepository(ctx context.Context, by desk.By, r *grlv1.ApplyRepositoryRequest) (desk.Outcome, error) {
	if s.Limits != "" {
		return desk.Outcome{}, &stateError{"the controller watches a limits directory, controller.limits, and files come one way at a time: take that key away to have them from the limits repository"}
	}
	author := desk.Shown(strings.TrimSpace(r.GetAuthor()), maxAuthor)
	if author == "" {
		author = "someone"
	}
	first, _, _ := strings.Cut(strings.TrimSpace(r.GetReason()), "\n")
	commit := desk.Shown(r.GetCommit(), shortCommit)
	by.Person = access.Person{Name: author + " via " + repositorySource, Level: access.Admin, By: repositorySource}
	request := desk.ApplyRequest{
		By: by, Source: repositorySource, Kept: true, Prune: true, Reason: strings.TrimSpace(fmt.Sprintf("%s (%s)", desk.Shown(first, maxReason), commit)),
	}
	for _, f := range r.GetFiles() {
		request.Files = append(request.Files, limitsfile.Source{Name: f.GetName(), Data: f.GetData()})
	}
	return s.Desk.Apply(ctx, request)
}

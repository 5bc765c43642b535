package api_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"grl/limiter"
	"grl/proto/access"
	grlv1 "grl/proto/grl/v1"
	"grl/proto/grl/v1/grlv1connect"
	"grl/store"
	"grl/store/ledger"
)

// holder is the configurator of the tests.
const holder = "configurator-1"

func (s *server) configurator() grlv1connect.ConfiguratorServiceClient {
	return grlv1connect.NewConfiguratorServiceClient(http.DefaultClient, s.url)
}

func (s *server) rlc() grlv1connect.RLCServiceClient {
	return grlv1connect.NewRLCServiceClient(http.DefaultClient, s.url)
}

func (s *server) policies() grlv1connect.PolicyServiceClient {
	return grlv1connect.NewPolicyServiceClient(http.DefaultClient, s.url)
}

func (s *server) attend() *grlv1.AttendResponse {
	s.t.Helper()
	out, err := s.configurator().Attend(s.t.Context(), &grlv1.AttendRequest{Holder: holder, Status: &grlv1.ConfiguratorStatus{Version: "1.2", Source: "history"}})
	if err != nil {
		s.t.Fatal(err)
	}
	return out
}

// bucketsOf applies limits of a service: name=rps.
func (s *server) bucketsOf(service string, buckets ...string) {
	s.t.Helper()
	text := "service: " + service + "\nbuckets:\n"
	for _, b := range buckets {
		name, rps, _ := strings.Cut(b, "=")
		text += fmt.Sprintf("  - {name: %s, match: {caller: %s}, limit: {rps: %s}, behavior: deny}\n", name, name, rps)
	}
	if _, err := s.config().Apply(s.t.Context(), &grlv1.ApplyRequest{Files: []*grlv1.LimitsFile{{Name: service + ".yaml", Data: []byte(text)}}}); err != nil {
		s.t.Fatal(err)
	}
}

func result(bucket string, outcome grlv1.RunOutcome, before, after float64) *grlv1.RunResult {
	return &grlv1.RunResult{
		Bucket: bucket, Policy: "nightly", Kind: "peak", Outcome: outcome, Reason: "since it is so",
		Before: &grlv1.ComputedLimit{Rps: before}, After: &grlv1.ComputedLimit{Rps: after},
	}
}

// run records results in a run of its own, adopts them, and finishes it.
func (s *server) run(results ...*grlv1.RunResult) (uint64, *grlv1.AdoptRunResponse) {
	s.t.Helper()
	ctx, c := s.t.Context(), s.configurator()
	begun, err := c.BeginRun(ctx, &grlv1.BeginRunRequest{Holder: holder, Run: &grlv1.Run{Trigger: "schedule", Source: "history", Buckets: uint32(len(results))}})
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := c.RecordResults(ctx, &grlv1.RecordResultsRequest{Holder: holder, Run: begun.GetId(), Results: results}); err != nil {
		s.t.Fatal(err)
	}
	adopted, err := c.AdoptRun(ctx, &grlv1.AdoptRunRequest{Holder: holder, Run: begun.GetId()})
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := c.FinishRun(ctx, &grlv1.FinishRunRequest{Holder: holder, Run: begun.GetId(), Verified: "active"}); err != nil {
		s.t.Fatal(err)
	}
	return begun.GetId(), adopted
}

// states returns outcome, state and revision of each result of a run.
func (s *server) states(id uint64) map[string]string {
	s.t.Helper()
	run, err := s.rlc().GetRun(s.t.Context(), &grlv1.GetRunRequest{Id: id})
	if err != nil {
		s.t.Fatal(err)
	}
	got := map[string]string{}
	for _, r := range run.GetResults() {
		words := strings.ToLower(strings.TrimPrefix(r.GetOutcome().String(), "RUN_OUTCOME_"))
		if r.GetState() != 0 {
			words += " " + strings.ToLower(strings.TrimPrefix(r.GetState().String(), "PROPOSAL_STATE_"))
		}
		if r.GetRevision() != 0 {
			words += fmt.Sprintf(" r%d", r.GetRevision())
		}
		if r.GetDecidedBy() != "" {
			words += " by " + r.GetDecidedBy()
		}
		got[r.GetBucket()] = words
	}
	return got
}

const (
	applied   = grlv1.RunOutcome_RUN_OUTCOME_APPLIED
	shadowed  = grlv1.RunOutcome_RUN_OUTCOME_SHADOWED
	proposed  = grlv1.RunOutcome_RUN_OUTCOME_PROPOSED
	unchanged = grlv1.RunOutcome_RUN_OUTCOME_UNCHANGED
)

// TestRun takes a cycle from the request to what people decide of it.
func TestRun(t *testing.T) {
	s := serve(t)
	ctx, c, rlc := t.Context(), s.configurator(), s.rlc()
	s.bucketsOf("payments", "web=100", "app=50", "old=7", "far=10", "gone=3")
	s.bucketsOf("search", "web=10")
	asked, err := rlc.RequestRun(ctx, &grlv1.RequestRunRequest{Service: "payments"})
	if err != nil {
		t.Fatal(err)
	}
	if told := s.attend(); !told.GetLeads() || told.GetRevision() != 2 || len(told.GetRequests()) != 1 || told.GetRequests()[0].GetAuthor() != "ada" {
		t.Fatalf("attend: %v", told)
	}
	begun, err := c.BeginRun(ctx, &grlv1.BeginRunRequest{Holder: holder, Run: &grlv1.Run{Trigger: "request", RequestId: asked.GetRequestId(), Author: "mallory", Buckets: 8}})
	if err != nil {
		t.Fatal(err)
	}
	if told := s.attend(); len(told.GetRequests()) != 0 {
		t.Errorf("requests %v, want the one that was begun taken", told.GetRequests())
	}
	shadow := result("payments/app", shadowed, 50, 50)
	shadow.After.CandidateRps = 40
	forged := result("payments/old", proposed, 7, 8)
	forged.DecidedBy, forged.Revision = "ada", 99
	found := &grlv1.RunResult{
		Bucket: "mail/all", Policy: "nightly", Outcome: shadowed, After: &grlv1.ComputedLimit{Rps: 5},
		NewBucket: "name: all\nlimit: {rps: 5}\nbehavior: allow\n",
	}
	_, err = c.RecordResults(ctx, &grlv1.RecordResultsRequest{
		Holder: holder, Run: begun.GetId(),
		Results: []*grlv1.RunResult{
			result("payments/web", applied, 100, 120), shadow, forged, result("payments/far", applied, 10, 1000),
			result("payments/gone", applied, 4, 5), result("search/web", unchanged, 10, 10), found,
			{Bucket: "search/none", Outcome: applied},
		},
		Memories: []*grlv1.BucketMemory{{Bucket: "payments/web", Data: []byte("learnt")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	dry, err := c.AdoptRun(ctx, &grlv1.AdoptRunRequest{Holder: holder, Run: begun.GetId(), DryRun: true})
	if err != nil || len(dry.GetTaken()) != 3 || dry.GetOutcome().GetRevision().GetNumber() != 2 {
		t.Fatalf("dry: %v, %v", dry, err)
	}
	adopted, err := c.AdoptRun(ctx, &grlv1.AdoptRunRequest{Holder: holder, Run: begun.GetId()})
	if err != nil || cmp.Diff(dry.GetTaken(), adopted.GetTaken()) != "" || adopted.GetOutcome().GetRevision().GetSource() != "rlc" ||
		len(adopted.GetFiles()) != 2 || !strings.Contains(string(adopted.GetFiles()[1].GetData()), "candidate: {rps: 40}") {
		t.Fatalf("adopted: %v, %v", adopted, err)
	}
	if reason := adopted.GetOutcome().GetRevision().GetReason(); reason != "run 1, policy nightly" {
		t.Errorf("reason = %q", reason)
	}
	again, err := c.AdoptRun(ctx, &grlv1.AdoptRunRequest{Holder: holder, Run: begun.GetId()})
	if err != nil || again.GetOutcome().GetChanged() {
		t.Errorf("again: %v, %v", again, err)
	}
	if _, err := rlc.DecideProposals(ctx, &grlv1.DecideProposalsRequest{Run: 1, Approve: true}); connect.CodeOf(err) != connect.CodeFailedPrecondition {
		t.Errorf("approval of a run that still runs: %v", err)
	}
	finished, err := c.FinishRun(ctx, &grlv1.FinishRunRequest{Holder: holder, Run: begun.GetId(), Verified: "active", Commit: "abc"})
	if err != nil || finished.GetRun().GetAuthor() != "ada" || finished.GetRun().GetRevision() != 3 || finished.GetRun().GetState() != grlv1.Run_STATE_DONE {
		t.Fatalf("finished: %v, %v", finished, err)
	}
	if o := finished.GetRun().GetOutcomes(); cmp.Diff(o, []uint32{0, 1, 3, 2, 1, 0, 0, 0, 1}) != "" || finished.GetRun().GetDone() != 8 {
		t.Errorf("outcomes %v of %d", o, finished.GetRun().GetDone())
	}
	want := map[string]string{
		"payments/web": "applied r3", "payments/app": "shadowed r3", "mail/all": "shadowed r3", "payments/old": "proposed pending",
		"payments/far": "proposed pending", "payments/gone": "left", "search/web": "unchanged", "search/none": "proposed superseded",
	}
	if diff := cmp.Diff(want, s.states(1)); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	one, err := rlc.GetRun(ctx, &grlv1.GetRunRequest{Id: 1, Bucket: "payments/far"})
	if err != nil || len(one.GetResults()) != 1 || one.GetResults()[0].GetFindings()[0].GetRail() != grlv1.Finding_RAIL_ABOVE_PRESENT {
		t.Errorf("what the rails refuse: %v, %v", one, err)
	}
	page, err := rlc.GetRun(ctx, &grlv1.GetRunRequest{Id: 1, Offset: 1, PageSize: 1, Outcome: proposed})
	if err != nil || page.GetTotal() != 3 || len(page.GetResults()) != 1 {
		t.Errorf("a page: %v, %v", page, err)
	}
	runs, err := rlc.ListRuns(ctx, &grlv1.ListRunsRequest{RequestId: asked.GetRequestId()})
	if err != nil || len(runs.GetRuns()) != 1 || runs.GetRuns()[0].GetId() != 1 {
		t.Errorf("runs: %v, %v", runs, err)
	}
	memory, err := c.GetMemory(ctx, &grlv1.GetMemoryRequest{Buckets: []string{"payments/app", "payments/web"}})
	if err != nil || len(memory.GetMemories()) != 1 || string(memory.GetMemories()[0].GetData()) != "learnt" {
		t.Errorf("memory: %v, %v", memory, err)
	}
}

func TestDecideProposals(t *testing.T) {
	s := serve(t)
	ctx, rlc := t.Context(), s.rlc()
	s.bucketsOf("payments", "web=100", "app=50", "far=10", "moved=5")
	s.bucketsOf("search", "web=10")
	s.attend()
	id, _ := s.run(
		result("payments/web", proposed, 100, 110), result("payments/app", proposed, 50, 55), result("payments/far", proposed, 10, 100),
		result("payments/moved", proposed, 5, 6), result("search/web", proposed, 10, 11))
	decide := func(approve bool, buckets ...string) (*grlv1.DecideProposalsResponse, error) {
		return rlc.DecideProposals(ctx, &grlv1.DecideProposalsRequest{Run: id, Buckets: buckets, Approve: approve, Reason: "as it grows"})
	}
	s.who = &access.Person{Name: "ed", Level: access.Editor, Services: []string{"payments"}}
	for _, approve := range []bool{true, false} {
		if _, err := decide(approve, "search/web"); connect.CodeOf(err) != connect.CodePermissionDenied {
			t.Errorf("of a service of others: %v", err)
		}
		if _, err := decide(approve, "payments/web", "payments/none"); connect.CodeOf(err) != connect.CodeNotFound {
			t.Errorf("what is not there: %v", err)
		}
	}
	if out, err := decide(true, "payments/web"); err != nil || out.GetDecided() != 1 || out.GetOutcome().GetRevision().GetAuthor() != "ed" ||
		out.GetOutcome().GetRevision().GetReason() != "as it grows (run 1, policy nightly)" || out.GetOutcome().GetRevision().GetSource() != "" {
		t.Errorf("approved: %v, %v", out, err)
	}
	if _, err := decide(false, "payments/web"); connect.CodeOf(err) != connect.CodeFailedPrecondition || !strings.Contains(err.Error(), "decided by ed") {
		t.Errorf("decided twice: %v", err)
	}
	if out, err := decide(false, "payments/app"); err != nil || out.GetDecided() != 1 || out.GetOutcome() != nil {
		t.Errorf("rejected: %v, %v", out, err)
	}
	code, why := refusal(t, func() error { _, err := decide(true, "payments/far"); return err }())
	if code != connect.CodeFailedPrecondition || why.GetFindings()[0].GetRail() != grlv1.Finding_RAIL_ABOVE_PRESENT {
		t.Errorf("a guard rail: %v, %v", code, why)
	}
	s.who = &access.Person{Name: "ada", Level: access.Admin}
	s.bucketsOf("payments", "web=110", "app=50", "far=10", "moved=9")
	if out, err := decide(true, "payments/moved", "search/web"); err != nil || out.GetDecided() != 1 || cmp.Diff(out.GetSuperseded(), []string{"payments/moved"}) != "" {
		t.Errorf("one that was changed: %v, %v", out, err)
	}
	// A later run proposes another limit of far; one that fails, or is dry, or has
	// nothing to say, does not matter.
	if _, err := s.configurator().BeginRun(ctx, &grlv1.BeginRunRequest{Holder: holder, Run: &grlv1.Run{}}); err != nil {
		t.Fatal(err)
	}
	s.run(&grlv1.RunResult{Bucket: "payments/far", Outcome: grlv1.RunOutcome_RUN_OUTCOME_REFUSED, Refused: "coverage"})
	s.run(result("payments/far", proposed, 10, 100))
	if got := s.states(id)["payments/far"]; got != "proposed pending" {
		t.Errorf("proposed again alike: %s", got)
	}
	last, _ := s.run(result("payments/far", proposed, 10, 90))
	want := map[string]string{
		"payments/web": "proposed approved r3 by ed", "payments/app": "proposed rejected by ed", "payments/far": "proposed superseded",
		"payments/moved": "proposed superseded", "search/web": "proposed approved r5 by ada",
	}
	if diff := cmp.Diff(want, s.states(id)); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	if out, err := decide(true); err != nil || out.GetDecided() != 0 {
		t.Errorf("all that wait, of which there is none: %v, %v", out, err)
	}
	out, err := rlc.DecideProposals(ctx, &grlv1.DecideProposalsRequest{Run: last, Approve: true, Force: true, Reason: "agreed"})
	if err != nil || out.GetDecided() != 1 {
		t.Errorf("forced: %v, %v", out, err)
	}
	for action, entries := range map[string]int{"rlc.approve": 6, "rlc.reject": 1} {
		list, err := s.ledger.Audit(ctx, 0, 100, ledger.Filter{Action: action})
		if err != nil || len(list) != entries {
			t.Errorf("%d entries %s, want %d: %v", len(list), action, entries, err)
		}
	}
	for _, bad := range []string{
		`{"run": "9"}`, `{"run": "1", "approve": true, "force": true}`, `{"run": "1", "reason": "` + strings.Repeat("a", 701) + `"}`, `{"run": "1", "reason": "a\u0007"}`,
	} {
		if code, _ := s.call("RLCService/DecideProposals", bad); code != "invalid_argument" && code != "not_found" {
			t.Errorf("%s: %q", bad, code)
		}
	}
}

// TestLease has one configurator at work, and refuses what the other says.
func TestLease(t *testing.T) {
	s := serve(t)
	ctx, c := t.Context(), s.configurator()
	if got, err := s.rlc().GetConfigurator(ctx, &grlv1.GetConfiguratorRequest{}); err != nil || !got.GetAbsent() {
		t.Errorf("at first: %v, %v", got, err)
	}
	s.attend()
	other, err := c.Attend(ctx, &grlv1.AttendRequest{Holder: "configurator-2"})
	if err != nil || other.GetLeads() || other.GetHolder() != holder {
		t.Errorf("another one: %v, %v", other, err)
	}
	refused := map[string]error{}
	_, refused["BeginRun"] = c.BeginRun(ctx, &grlv1.BeginRunRequest{Holder: "configurator-2", Run: &grlv1.Run{}})
	_, refused["RecordResults"] = c.RecordResults(ctx, &grlv1.RecordResultsRequest{Holder: "configurator-2"})
	_, refused["AdoptRun"] = c.AdoptRun(ctx, &grlv1.AdoptRunRequest{Holder: "configurator-2"})
	_, refused["FinishRun"] = c.FinishRun(ctx, &grlv1.FinishRunRequest{Holder: ""})
	_, refused["ApplyRepository"] = c.ApplyRepository(ctx, &grlv1.ApplyRepositoryRequest{Holder: "configurator-2"})
	for procedure, err := range refused {
		if connect.CodeOf(err) != connect.CodeFailedPrecondition {
			t.Errorf("%s without the lease: %v", procedure, err)
		}
	}
	got, err := s.rlc().GetConfigurator(ctx, &grlv1.GetConfiguratorRequest{})
	if err != nil || got.GetAbsent() || got.GetHolder() != holder || got.GetStatus().GetVersion() != "1.2" || got.GetSeenAtMs() == 0 {
		t.Errorf("configurator: %v, %v", got, err)
	}
	if _, err := c.Attend(ctx, &grlv1.AttendRequest{Holder: holder, Leave: true}); err != nil {
		t.Fatal(err)
	}
	if other, err = c.Attend(ctx, &grlv1.AttendRequest{Holder: "configurator-2", Status: hugeStatus()}); err != nil || !other.GetLeads() {
		t.Errorf("after it left: %v, %v", other, err)
	}
	if got, err := s.rlc().GetConfigurator(ctx, &grlv1.GetConfiguratorRequest{}); err != nil || len(got.GetStatus().GetConflicts()) == 0 || len(got.GetStatus().GetConflicts()) == 100 {
		t.Errorf("%d conflicts of a status that is too large, %v", len(got.GetStatus().GetConflicts()), err)
	}
}

// hugeStatus has more conflicts than are kept.
func hugeStatus() *grlv1.ConfiguratorStatus {
	m := &grlv1.ConfiguratorStatus{}
	for range 100 {
		m.Conflicts = append(m.Conflicts, &grlv1.Conflict{Bucket: "a/b", OurText: strings.Repeat("a", 8<<10)})
	}
	return m
}

// TestWhoMayBeConfigurator lets in a node, and the token of an admin.
func TestWhoMayBeConfigurator(t *testing.T) {
	s := serve(t)
	attend := func() error {
		_, err := s.configurator().Attend(t.Context(), &grlv1.AttendRequest{Holder: holder})
		return err
	}
	tests := []struct {
		name   string
		person *access.Person
		node   *access.Node
		want   connect.Code // 0: may
	}{
		{"nobody", nil, nil, connect.CodeUnauthenticated},
		{"an editor", &access.Person{Name: "ed", Level: access.Editor}, nil, connect.CodePermissionDenied},
		{"an aggregator", nil, &access.Node{Role: access.Aggregator}, connect.CodeUnauthenticated},
		{"an admin", &access.Person{Name: "ada", Level: access.Admin}, nil, 0},
		{"a configurator", nil, &access.Node{Role: access.Configurator}, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s.who, s.node = tt.person, tt.node
			if err := attend(); err == nil && tt.want != 0 || err != nil && connect.CodeOf(err) != tt.want {
				t.Errorf("error = %v, want %v", err, tt.want)
			}
		})
	}
	// It also reads what people do.
	s.who, s.node = nil, &access.Node{Role: access.Configurator}
	if _, err := s.config().GetConfiguration(t.Context(), &grlv1.GetConfigurationRequest{}); err != nil {
		t.Error(err)
	}
	if _, err := s.policies().GetPolicies(t.Context(), &grlv1.GetPoliciesRequest{}); err != nil {
		t.Error(err)
	}
}

func TestApplyRepository(t *testing.T) {
	s := serve(t)
	s.attend()
	apply := func(s *server, rps float64, author, reason string) (*grlv1.ApplyRepositoryResponse, error) {
		return s.configurator().ApplyRepository(t.Context(), &grlv1.ApplyRepositoryRequest{
			Holder: holder, Files: []*grlv1.LimitsFile{limits("payments", rps)}, Commit: "0123456789abcdef", Author: author, Reason: reason,
		})
	}
	out, err := apply(s, 100, "Ed <ed@example.com>", "payments: more\n\nand why")
	r := out.GetOutcome().GetRevision()
	if err != nil || r.GetNumber() != 1 || r.GetAuthor() != "Ed <ed@example.com> via limits repository" || r.GetReason() != "payments: more (0123456789)" || r.GetSource() != "limits repository" {
		t.Fatalf("applied: %v, %v", out, err)
	}
	if out, err = apply(s, 110, "\x1b[31m"+strings.Repeat("é", 300), strings.Repeat("a\r", 3000)); err != nil || out.GetOutcome().GetRevision().GetNumber() != 2 {
		t.Errorf("hostile names: %v, %v", out, err)
	}
	code, why := refusal(t, func() error { _, err := apply(s, 1000, "ed", ""); return err }())
	if code != connect.CodeFailedPrecondition || len(why.GetFindings()) != 1 {
		t.Errorf("a guard rail: %v, %v", code, why)
	}
	// What a person changed at the controller since is a conflict; what the
	// configurator did is not.
	s.run(result("payments/web", applied, 110, 120))
	if out, err = apply(s, 90, "ed", ""); err != nil || out.GetOutcome().GetRevision().GetNumber() != 4 {
		t.Errorf("over the configurator: %v, %v", out, err)
	}
	if _, err := s.config().Apply(t.Context(), &grlv1.ApplyRequest{Files: []*grlv1.LimitsFile{limits("payments", 95)}}); err != nil {
		t.Fatal(err)
	}
	if code, why = refusal(t, func() error { _, err := apply(s, 80, "ed", ""); return err }()); code != connect.CodeAborted || why.GetConflicts()[0].GetRevision().GetAuthor() != "ada" {
		t.Errorf("over a person: %v, %v", code, why)
	}

	watching := serveWith(t, s.store, t.TempDir())
	if _, err = apply(watching, 100, "ed", ""); connect.CodeOf(err) != connect.CodeFailedPrecondition || !strings.Contains(err.Error(), "controller.limits") {
		t.Errorf("beside a limits directory: %v", err)
	}
}

func TestReadHistory(t *testing.T) {
	s := serve(t)
	start := time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
	for i := range 90 {
		err := s.store.AppendMinute(t.Context(), start.Add(time.Duration(i)*time.Minute), []store.Sample{
			{Cell: limiter.CellID{Bucket: "payments/web"}, Zone: "a", Offered: uint64(600 + i), Admitted: 600, Dropped: uint64(i), HighestSecond: 20},
			{Cell: limiter.CellID{Bucket: "payments/web"}, Zone: "b", Offered: 10, Admitted: 10, HighestSecond: 1},
			{Cell: limiter.CellID{Bucket: "payments/_cap-7"}, Zone: "a", Offered: 5, Admitted: 5},
			{Cell: limiter.CellID{Bucket: "search/web"}, Zone: "a", Offered: 5, Admitted: 5},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	read := func(r *grlv1.ReadHistoryRequest) (messages []*grlv1.ReadHistoryResponse, err error) {
		stream, err := s.configurator().ReadHistory(t.Context(), r)
		if err != nil {
			return nil, err
		}
		defer stream.Close()
		for stream.Receive() {
			messages = append(messages, proto.CloneOf(stream.Msg()))
		}
		return messages, stream.Err()
	}
	request := &grlv1.ReadHistoryRequest{Buckets: []string{"payments/web", "payments/none"}, FromMs: start.UnixMilli(), ToMs: start.Add(3 * time.Hour).UnixMilli()}
	got, err := read(request)
	if err != nil || len(got) != 3 {
		t.Fatalf("%d messages, %v", len(got), err)
	}
	span := got[0].GetSpan()
	if span.GetFromMs() != start.UnixMilli() || len(span.GetZones()) != 2 || len(span.GetPresent()) != 2 || span.GetPresent()[0][0]&3 != 3 {
		t.Errorf("span: %v", span)
	}
	cells := map[string]*grlv1.CellHistory{}
	for _, m := range got[1:] {
		cells[m.GetCell().GetBucket()] = m.GetCell()
	}
	web := cells["payments/web"]
	if n := len(web.GetOffered()); n != 90 || web.GetOffered()[89] != 699 || web.GetDropped()[89] != 89 || web.GetHighestSecond()[0] != 21 || len(web.GetZones()) != 2 || web.GetCap() {
		t.Errorf("%d minutes: %v", n, web)
	}
	if c := cells["payments/_cap-7"]; !c.GetCap() || len(c.GetDropped()) != 0 || c.GetOffered()[0] != 5 {
		t.Errorf("cap: %v", c)
	}
	for _, bad := range []*grlv1.ReadHistoryRequest{
		{},
		{FromMs: 5, ToMs: 5},
		{FromMs: -5, ToMs: 5},
		{FromMs: 0, ToMs: 1 << 62},
		{FromMs: 0, ToMs: start.UnixMilli()},
		{Buckets: []string{strings.Repeat("a", 600)}, FromMs: 0, ToMs: 1},
	} {
		if _, err := read(bad); connect.CodeOf(err) != connect.CodeInvalidArgument {
			t.Errorf("%.100v: %v", bad, err)
		}
	}
	// One who does not listen does not hold up those who do.
	for range 5 {
		ctx, cancel := context.WithCancel(t.Context())
		if _, err := s.configurator().ReadHistory(ctx, request); err != nil {
			t.Fatal(err)
		}
		cancel()
	}
	if got, err := read(request); err != nil || len(got) != 3 {
		t.Errorf("%d messages, %v", len(got), err)
	}
}

func TestPoliciesOverRPC(t *testing.T) {
	s := serve(t)
	ctx, p := t.Context(), s.policies()
	s.bucketsOf("payments", "web=100", "app=50")
	night := &grlv1.LimitsFile{Name: "n.yaml", Data: []byte("name: night\nkind: peak\nmode: shadow\nmatch: {service: payments}\n")}
	out, err := p.ApplyPolicies(ctx, &grlv1.ApplyPoliciesRequest{Files: []*grlv1.LimitsFile{night}, Reason: "first"})
	if err != nil || cmp.Diff(out.GetOutcome().GetAdded(), []string{"night"}) != "" {
		t.Fatalf("apply: %v, %v", out, err)
	}
	got, err := p.GetPolicies(ctx, &grlv1.GetPoliciesRequest{})
	if err != nil || len(got.GetPolicies()) != 1 {
		t.Fatalf("get: %v, %v", got, err)
	}
	if m := got.GetPolicies()[0]; m.GetKind() != "peak" || m.GetMode() != grlv1.PolicyMode_POLICY_MODE_SHADOW || m.GetBuckets() != 2 || string(m.GetData()) != string(night.GetData()) {
		t.Errorf("policy: %v", m)
	}
	if told := s.attend(); told.GetPolicyRevision() != 1 {
		t.Errorf("attend: %v", told)
	}
	if _, err := p.DeletePolicy(ctx, &grlv1.DeletePolicyRequest{Name: "night"}); err != nil {
		t.Error(err)
	}
	if _, err := p.RollbackPolicies(ctx, &grlv1.RollbackPoliciesRequest{Revision: 1, Reason: "no"}); err != nil {
		t.Error(err)
	}
	list, err := p.ListPolicyRevisions(ctx, &grlv1.ListPolicyRevisionsRequest{})
	if err != nil || len(list.GetRevisions()) != 3 || list.GetRevisions()[2].GetReason() != "first" {
		t.Errorf("revisions: %v, %v", list, err)
	}
	code, why := refusal(t, func() error {
		_, err := p.ApplyPolicies(ctx, &grlv1.ApplyPoliciesRequest{Files: []*grlv1.LimitsFile{{Name: "n.yaml", Data: []byte("name: x\nkind: pique\n")}}})
		return err
	}())
	if code != connect.CodeInvalidArgument || why.GetProblems()[1].GetLine() != 2 {
		t.Errorf("a kind that there is not: %v, %v", code, why)
	}
}

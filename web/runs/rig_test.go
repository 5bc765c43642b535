package runs_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"grl/proto/access"
	grlv1 "grl/proto/grl/v1"
	"grl/proto/grl/v1/grlv1connect"
	"grl/roles/controller"
	"grl/roles/rolestest"
	"grl/store"
)

// holder is the configurator of the tests.
const holder = "configurator-1"

// People of the tests besides pagetest.Admin.
var (
	viewer = access.Person{Name: "vera", Level: access.Viewer}
	editor = access.Person{Name: "ed", Level: access.Editor, Services: []string{"payments"}}
	owner  = access.Person{Name: "olga", Level: access.Editor, Owners: []string{"team-search"}}
)

// rig is a controller with its dashboard, and clients of its API.
type rig struct {
	t            testing.TB
	pages        http.Handler
	config       grlv1connect.ConfigServiceClient
	configurator grlv1connect.ConfiguratorServiceClient
	rlc          grlv1connect.RLCServiceClient
}

func newRig(t testing.TB) *rig {
	t.Helper()
	config := controller.Default()
	config.DB = filepath.Join(t.TempDir(), "db")
	st, err := store.Open(t.Context(), config.DB)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	c, err := controller.New(t.Context(), controller.Options{
		Config: config, Log: slog.New(slog.DiscardHandler), Version: "test", Registry: prometheus.NewRegistry(), Store: st, AnyHost: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, pages: c.Handler()}
	var network rolestest.Network
	network.Serve(t, "controller", rolestest.AsAdmin(r.pages))
	client := network.Client(t)
	r.config = grlv1connect.NewConfigServiceClient(client, "http://controller")
	r.configurator = grlv1connect.NewConfiguratorServiceClient(client, "http://controller")
	r.rlc = grlv1connect.NewRLCServiceClient(client, "http://controller")
	return r
}

// ctx outlives none of the calls; benchmarks have no context of their own.
func (r *rig) ctx() context.Context { return r.t.Context() }

// limits applies the buckets of a service, each name=rps.
func (r *rig) limits(service string, buckets ...string) {
	r.t.Helper()
	text := "service: " + service + "\nowner: team-" + service + "\nbuckets:\n"
	for _, b := range buckets {
		name, rps, _ := strings.Cut(b, "=")
		text += fmt.Sprintf("  - {name: %s, match: {caller: %s}, limit: {rps: %s}, behavior: deny}\n", name, name, rps)
	}
	_, err := r.config.Apply(r.ctx(), &grlv1.ApplyRequest{Force: true, Reason: "test", Files: []*grlv1.LimitsFile{{Name: service + ".yaml", Data: []byte(text)}}})
	if err != nil {
		r.t.Fatal(err)
	}
}

// attend makes the test the configurator at work.
func (r *rig) attend(status *grlv1.ConfiguratorStatus) *grlv1.AttendResponse {
	r.t.Helper()
	told, err := r.configurator.Attend(r.ctx(), &grlv1.AttendRequest{Holder: holder, Status: status})
	if err != nil {
		r.t.Fatal(err)
	}
	return told
}

// begin opens a run.
func (r *rig) begin(run *grlv1.Run) uint64 {
	r.t.Helper()
	r.attend(&grlv1.ConfiguratorStatus{Version: "1.2", Source: "history"})
	begun, err := r.configurator.BeginRun(r.ctx(), &grlv1.BeginRunRequest{Holder: holder, Run: run})
	if err != nil {
		r.t.Fatal(err)
	}
	return begun.GetId()
}

// record adds results to an open run.
func (r *rig) record(id uint64, results ...*grlv1.RunResult) {
	r.t.Helper()
	const each = 1000
	for len(results) > 0 {
		n := min(len(results), each)
		if _, err := r.configurator.RecordResults(r.ctx(), &grlv1.RecordResultsRequest{Holder: holder, Run: id, Results: results[:n]}); err != nil {
			r.t.Fatal(err)
		}
		results = results[n:]
	}
}

// finish adopts and closes an open run.
func (r *rig) finish(id uint64) {
	r.t.Helper()
	if _, err := r.configurator.AdoptRun(r.ctx(), &grlv1.AdoptRunRequest{Holder: holder, Run: id}); err != nil {
		r.t.Fatal(err)
	}
	if _, err := r.configurator.FinishRun(r.ctx(), &grlv1.FinishRunRequest{Holder: holder, Run: id, Verified: "active", Commit: "0123456789abcdef"}); err != nil {
		r.t.Fatal(err)
	}
}

// run records results in a run of its own.
func (r *rig) run(results ...*grlv1.RunResult) uint64 {
	r.t.Helper()
	head, err := r.config.ListRevisions(r.ctx(), &grlv1.ListRevisionsRequest{PageSize: 1})
	if err != nil {
		r.t.Fatal(err)
	}
	base := uint64(0)
	if len(head.GetRevisions()) > 0 {
		base = head.GetRevisions()[0].GetNumber()
	}
	id := r.begin(&grlv1.Run{Trigger: "schedule", Source: "history", PolicyRevision: 7, BaseRevision: base, Buckets: uint32(len(results))})
	r.record(id, results...)
	r.finish(id)
	return id
}

const (
	applied   = grlv1.RunOutcome_RUN_OUTCOME_APPLIED
	proposed  = grlv1.RunOutcome_RUN_OUTCOME_PROPOSED
	unchanged = grlv1.RunOutcome_RUN_OUTCOME_UNCHANGED
	refused   = grlv1.RunOutcome_RUN_OUTCOME_REFUSED
)

// result is one of a policy of the kind peak, whose highest minute was a tenth
// below the new limit.
func result(bucket string, outcome grlv1.RunOutcome, before, after float64) *grlv1.RunResult {
	peaks := make([]float32, 28)
	for i := range peaks {
		peaks[i] = float32(after * 0.9)
	}
	peaks[3] = -1
	return &grlv1.RunResult{
		Bucket: bucket, Policy: "nightly", Kind: "peak", Outcome: outcome, Reason: "since it is so", DailyPeaks: peaks,
		Before: &grlv1.ComputedLimit{Rps: before}, After: &grlv1.ComputedLimit{Rps: after},
		Numbers: []*grlv1.RunNumber{{Name: "second_over_minute", Value: 1.25, Unit: "ratio"}, {Name: "peak", Value: after * 0.9, Unit: "rps"}},
	}
}

// states returns the state of each proposal of a run.
func (r *rig) states(id uint64) map[string]string {
	r.t.Helper()
	answer, err := r.rlc.GetRun(r.ctx(), &grlv1.GetRunRequest{Id: id, Outcome: proposed})
	if err != nil {
		r.t.Fatal(err)
	}
	out := make(map[string]string)
	for _, m := range answer.GetResults() {
		out[m.GetBucket()] = strings.ToLower(strings.TrimPrefix(m.GetState().String(), "PROPOSAL_STATE_"))
		if m.GetDecidedBy() != "" {
			out[m.GetBucket()] += " by " + m.GetDecidedBy()
		}
	}
	return out
}

// limit returns the line of a bucket in its service's limits file.
func (r *rig) limit(bucket string) string {
	r.t.Helper()
	service, name, _ := strings.Cut(bucket, "/")
	answer, err := r.config.GetConfiguration(r.ctx(), &grlv1.GetConfigurationRequest{Service: service})
	if err != nil {
		r.t.Fatal(err)
	}
	_, text, ok := strings.Cut(string(answer.GetFiles()[0].GetData()), "name: "+name+"\n")
	if !ok {
		return ""
	}
	for line := range strings.Lines(text) {
		if text, ok := strings.CutPrefix(strings.TrimSpace(line), "limit: "); ok {
			return text
		}
	}
	return ""
}

package configurator

import (
	"context"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"grl/limiter"
	"grl/limiter/limitsfile"
	"grl/policy"
	grlv1 "grl/proto/grl/v1"
	"grl/proto/grl/v1/grlv1connect"
	"grl/roles/configurator/compute"
	"grl/roles/controller"
	"grl/roles/rolestest"
	"grl/store"
)

// rig is a configurator beside a controller with a store, over a network in
// memory. The controller answers and installs; nothing of both runs by itself, so
// that weeks pass in no time.
type rig struct {
	*Configurator
	t        testing.TB
	dir      string
	store    *store.Store
	network  rolestest.Network
	client   *http.Client
	registry *prometheus.Registry
	admin    struct {
		config   grlv1connect.ConfigServiceClient
		policies grlv1connect.PolicyServiceClient
		rlc      grlv1connect.RLCServiceClient
	}
}

func newRig(t testing.TB, options ...func(*Config)) *rig {
	t.Helper()
	r := &rig{t: t, dir: t.TempDir(), registry: prometheus.NewRegistry()}
	var err error
	if r.store, err = store.Open(t.Context(), filepath.Join(r.dir, "db")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.store.Close() })
	r.control("controller")
	client := r.network.Client(t)
	r.client = client
	r.admin.config = grlv1connect.NewConfigServiceClient(client, "http://controller")
	r.admin.policies = grlv1connect.NewPolicyServiceClient(client, "http://controller")
	r.admin.rlc = grlv1connect.NewRLCServiceClient(client, "http://controller")
	own := Default()
	own.Controller = []string{"http://controller"}
	for _, option := range options {
		option(&own)
	}
	r.Configurator, err = New(t.Context(), Options{Config: own, Log: slog.New(slog.DiscardHandler), Version: "test", Registry: r.registry, HTTP: client})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// control serves a controller with the store under a name.
func (r *rig) control(name string) {
	r.t.Helper()
	config := controller.Default()
	config.DB = filepath.Join(r.dir, "db")
	ctl, err := controller.New(r.t.Context(), controller.Options{
		Config: config, Log: slog.New(slog.DiscardHandler), Version: "test", Registry: prometheus.NewRegistry(), Store: r.store, AnyHost: true,
	})
	if err != nil {
		r.t.Fatal(err)
	}
	r.network.Serve(r.t, name, rolestest.AsAdmin(ctl.Handler()))
}

// limits applies limits files, each one service.
func (r *rig) limits(files ...string) {
	r.t.Helper()
	request := &grlv1.ApplyRequest{Force: true, Reason: "test"}
	for _, text := range files {
		request.Files = append(request.Files, &grlv1.LimitsFile{Name: "limits.yaml", Data: []byte(text)})
	}
	if _, err := r.admin.config.Apply(r.t.Context(), request); err != nil {
		r.t.Fatal(err)
	}
}

// policies applies policy files.
func (r *rig) policies(files ...string) {
	r.t.Helper()
	request := &grlv1.ApplyPoliciesRequest{Reason: "test"}
	for _, text := range files {
		request.Files = append(request.Files, &grlv1.LimitsFile{Name: "policy.yaml", Data: []byte(text)})
	}
	if _, err := r.admin.policies.ApplyPolicies(r.t.Context(), request); err != nil {
		r.t.Fatal(err)
	}
}

// cycleNow computes all buckets that are due, as the schedule does, and returns
// the run; nil: nothing was due.
func (r *rig) cycleNow() *grlv1.Run {
	r.t.Helper()
	ctx := r.t.Context()
	r.renew(ctx)
	now, err := r.read(ctx)
	if err != nil {
		r.t.Fatal(err)
	}
	at := time.Now().UTC()
	ran, err := r.cycle(ctx, now, selection{
		trigger: "schedule",
		wanted: func(w compute.Work, m compute.Memory) bool {
			return m.Stale(w) || !nextCycle(w.Spec, m.ComputedAt).After(at)
		},
		discovers: func(*policy.Spec) bool { return true },
	})
	if err != nil {
		r.t.Fatal(err)
	}
	if !ran {
		return nil
	}
	runs, err := r.admin.rlc.ListRuns(ctx, &grlv1.ListRunsRequest{PageSize: 1})
	if err != nil {
		r.t.Fatal(err)
	}
	return runs.GetRuns()[0]
}

// results returns those of a run.
func (r *rig) results(run *grlv1.Run) []*grlv1.RunResult {
	r.t.Helper()
	answer, err := r.admin.rlc.GetRun(r.t.Context(), &grlv1.GetRunRequest{Id: run.GetId()})
	if err != nil {
		r.t.Fatal(err)
	}
	return answer.GetResults()
}

// bucket returns a bucket as it is configured.
func (r *rig) bucket(name string) *limiter.Bucket {
	r.t.Helper()
	service, _, _ := strings.Cut(name, "/")
	answer, err := r.admin.config.GetConfiguration(context.Background(), &grlv1.GetConfigurationRequest{Service: service})
	if err != nil {
		r.t.Fatal(err)
	}
	services, err := limitsfile.Load(sources(answer.GetFiles()))
	if err != nil {
		r.t.Fatal(err)
	}
	for _, s := range services {
		for i := range s.Buckets {
			if s.Buckets[i].FullName() == name {
				return &s.Buckets[i]
			}
		}
	}
	return nil
}

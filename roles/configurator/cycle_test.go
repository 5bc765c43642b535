package configurator

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"grl/limiter"
	"grl/policy"
	grlv1 "grl/proto/grl/v1"
	"grl/roles/configurator/compute"
	"grl/store/storetest"
)

const shopAt300 = "service: shop\nowner: team-shop\nbuckets:\n  - {name: all, limit: {rps: 300}, behavior: deny}\n"

// weeks writes four weeks of a bucket, up to now: a day's curve with 100 requests
// per second at its highest.
func (r *rig) weeks(bucket string) {
	r.t.Helper()
	start := time.Now().UTC().Truncate(time.Hour).Add(-4 * 7 * 24 * time.Hour)
	minutes := make([]uint64, int(time.Since(start)/time.Minute))
	for i := range minutes {
		at := start.Add(time.Duration(i) * time.Minute)
		minutes[i] = uint64(60 * (60 + 40*math.Cos(2*math.Pi*float64(at.Hour()*60+at.Minute())/1440)))
	}
	if err := storetest.Append(r.t.Context(), r.store, limiter.CellID{Bucket: bucket}, "zone", start, minutes, nil); err != nil {
		r.t.Fatal(err)
	}
}

// A policy that looks at no history needs none of the others to run with it.
func TestCycleOfAQuotaAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.limits(shopAt300)
		r.policies("name: agreed\nkind: quota\nmode: apply\nmatch: {service: shop}\nquota: [{rps: 123}]\n")
		run := r.cycleNow()
		if run.GetState() != grlv1.Run_STATE_DONE || r.bucket("shop/all").LimitRPS != 123 {
			t.Errorf("run %v, limit %v, want 123: %v", run.GetState(), r.bucket("shop/all").LimitRPS, r.results(run))
		}
		if again := r.cycleNow(); again != nil {
			t.Errorf("a cycle right after it: %v, want none due", again)
		}
	})
}

// A policy that changed while no configurator was at work is computed by the next
// one at once, and what did not change is not.
func TestCycleAfterOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.limits(shopAt300, strings.ReplaceAll(shopAt300, "shop", "bank"))
		agreed := func(service string, rps string) string {
			return "name: " + service + "\nkind: quota\nmode: apply\nmatch: {service: " + service + "}\nquota: [{rps: " + rps + "}]\n"
		}
		r.policies(agreed("shop", "123"), agreed("bank", "50"))
		var last *grlv1.Run
		for _, want := range []uint32{2, 1, 0} { // buckets of the run; 0: there is none
			r.renew(t.Context())
			d := diary{Configurator: r.Configurator} // as of one that has just begun
			if err := d.due(t.Context()); err != nil {
				t.Fatal(err)
			}
			runs, err := r.admin.rlc.ListRuns(t.Context(), &grlv1.ListRunsRequest{PageSize: 1})
			if err != nil {
				t.Fatal(err)
			}
			run := runs.GetRuns()[0]
			if fresh := run.GetId() != last.GetId(); fresh != (want > 0) || fresh && run.GetBuckets() != want {
				t.Errorf("run %v after %v, want one of %d buckets", run, last, want)
			}
			last = run
			r.policies(agreed("shop", "140"))
		}
		if got := r.bucket("shop/all").LimitRPS; got != 140 {
			t.Errorf("limit %v, want 140", got)
		}
	})
}

// What people pushed and does not hold stops neither the cycle nor, once it is
// mended, the files from getting what was changed meanwhile.
func TestCycleWithARefusedRepository(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "shop.yaml")
	put := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(shopAt300)
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(c *Config) { c.Repository = dir })
		r.renew(t.Context())
		if err := r.sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.weeks("shop/all")
		r.policies("name: nightly\nkind: peak\nmode: apply\nmatch: {service: shop}\n")
		put("service: shop\nbuckets: 5\n")
		run := r.cycleNow()
		if got := r.bucket("shop/all").LimitRPS; run.GetState() != grlv1.Run_STATE_DONE || got != 240 || run.GetCommit() != "" {
			t.Fatalf("limit %v after a run that is %v with commit %q, want 240 and no commit", got, run.GetState(), run.GetCommit())
		}
		if problem := r.status.GetRepositoryProblem(); !strings.Contains(problem, "shop.yaml:2") {
			t.Errorf("problem %q, want the place of the fault", problem)
		}
		put(shopAt300)
		r.client.CloseIdleConnections() // else pings take most of the time
		time.Sleep(24 * time.Hour)
		r.weeks("shop/all")
		r.cycleNow()
		text, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(text), "rps: 192") || r.bucket("shop/all").LimitRPS != 192 {
			t.Errorf("limit %v, file\n%s%v\nwant one step more in both", r.bucket("shop/all").LimitRPS, text, err)
		}
	})
}

// A cycle that is cut off after limits were lowered does not lower them again.
func TestCycleCutOffAfterAdopting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.limits(shopAt300)
		r.weeks("shop/all")
		r.policies("name: nightly\nkind: peak\nmode: apply\nmatch: {service: shop}\n")
		for try := range 3 {
			ctx := t.Context()
			r.renew(ctx)
			now, err := r.read(ctx)
			if err != nil {
				t.Fatal(err)
			}
			y := &cycle{Configurator: r.Configurator, now: time.Now().UTC(), content: now, memories: map[string]compute.Memory{}}
			y.specs = map[string]*policy.Spec{}
			all := selection{trigger: "schedule", wanted: func(compute.Work, compute.Memory) bool { return true }}
			for _, step := range []func() error{
				func() error { return y.plan(ctx, all) }, func() error { return y.begin(ctx, all, 0) },
				func() error { return y.computeAll(ctx) }, func() error { return y.publish(ctx) },
			} { // and no finish
				if err := step(); err != nil {
					t.Fatal(err)
				}
			}
			if got := r.bucket("shop/all").LimitRPS; got != 240 {
				t.Fatalf("limit of %v after try %d, want one step down, 240", got, try+1)
			}
		}
	})
}

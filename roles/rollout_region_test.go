package roles_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	grlv1 "grl/proto/grl/v1"
	"grl/proto/grl/v1/grlv1connect"
	"grl/roles/rolestest"
)

// newTwoRegions starts a fleet of two regions, r1 with z1 and z2, r2 with z3, of one
// host each.
func newTwoRegions(t *testing.T, limits string, rps float64) *fleet {
	t.Helper()
	f := &fleet{Plane: rolestest.NewPlane(t, limits), t: t}
	t.Cleanup(func() {
		f.stop(len(f.hosts))
		f.running.Wait()
	})
	f.Controller()
	for _, z := range [][2]string{{"z1", "r1"}, {"z2", "r1"}, {"z3", "r2"}} {
		f.Aggregator("aggregator-"+z[0], z[0], z[1])
		f.add(z[0], z[1], rps)
	}
	return f
}

// adopt has a configurator make these limits of single buckets, all of which are
// before what they were.
func (f *fleet) adopt(before float64, after map[string]float64) *grlv1.AdoptRunResponse {
	f.t.Helper()
	const holder = "configurator"
	c, ctx := grlv1connect.NewConfiguratorServiceClient(f.Network.Client(f.t), "http://controller"), f.t.Context()
	if _, err := c.Attend(ctx, &grlv1.AttendRequest{Holder: holder}); err != nil {
		f.t.Fatal(err)
	}
	run, err := c.BeginRun(ctx, &grlv1.BeginRunRequest{Holder: holder, Run: &grlv1.Run{Trigger: "schedule"}})
	if err != nil {
		f.t.Fatal(err)
	}
	record := &grlv1.RecordResultsRequest{Holder: holder, Run: run.GetId()}
	for bucket, rps := range after {
		record.Results = append(record.Results, &grlv1.RunResult{
			Bucket: bucket, Policy: "nightly", Outcome: grlv1.RunOutcome_RUN_OUTCOME_APPLIED,
			Before: &grlv1.ComputedLimit{Rps: before}, After: &grlv1.ComputedLimit{Rps: rps},
		})
	}
	if _, err := c.RecordResults(ctx, record); err != nil {
		f.t.Fatal(err)
	}
	adopted, err := c.AdoptRun(ctx, &grlv1.AdoptRunRequest{Holder: holder, Run: run.GetId()})
	if err != nil {
		f.t.Fatal(err)
	}
	if len(adopted.GetTaken()) != len(after) {
		f.t.Fatalf("%d of %d taken: %v", len(adopted.GetTaken()), len(after), adopted.GetOutcome())
	}
	return adopted
}

// What the configurator changes, however much it is, needs no force, and goes
// region by region, a minute each.
func TestComputedLimitsGoRegionByRegion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const buckets = 2000
		f := newTwoRegions(t, manyLimits(1000, buckets, 10), 100)
		f.offer(settling)
		after := make(map[string]float64, buckets)
		for i := range buckets {
			after[fmt.Sprintf("shop/b%d", i)] = 12
		}
		adopted := f.adopt(10, after)
		if s := adopted.GetOutcome().GetRollout(); s.GetState() != grlv1.Rollout_STATE_RUNNING || !slices.Equal(s.GetReached(), []string{"z1", "z2"}) || !slices.Equal(s.GetWaiting(), []string{"z3"}) {
			t.Errorf("rollout %v, want all zones of one region reached", s)
		}
		f.offer(12 * time.Second)
		if got := f.holding(); got != "z1 r2, z2 r2, z3 r1" {
			t.Errorf("at first hold %s", got)
		}
		f.offer(time.Minute)
		if got := f.holding(); got != "z1 r2, z2 r2, z3 r2" {
			t.Errorf("after a minute hold %s", got)
		}
		f.offer(time.Minute)
		if s := f.Fleet().GetRollout(); s.GetState() == grlv1.Rollout_STATE_RUNNING {
			t.Errorf("rollout %v, want it done", s)
		}
	})
}

// A computed limit that drops more than it was predicted to is taken back by
// itself, before it reaches another region; people's files still outrank what is
// left.
func TestComputedLimitsThatHarmStopByThemselves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newTwoRegions(t, manyLimits(1000, 11, 10), 200)
		f.offer(2 * time.Minute)
		f.adopt(1000, map[string]float64{"shop/all": 590}) // of 600 that are offered
		f.offer(5 * time.Second)
		f.add("z1", "r1", 150)
		f.add("z3", "r2", 150)
		f.offer(50 * time.Second)
		got := f.Fleet().GetRollout()
		if got.GetState() != grlv1.Rollout_STATE_STOPPED || !slices.Equal(got.GetReached(), []string{"z1", "z2"}) || !strings.Contains(got.GetReason(), "shop/all") {
			t.Errorf("rollout %v, want it stopped in its first region because of shop/all", got)
		}
		list, err := f.Config().ListRevisions(t.Context(), &grlv1.ListRevisionsRequest{})
		if err != nil || len(list.GetRevisions()) != 3 || list.GetRevisions()[0].GetSource() != "rlc" || list.GetRevisions()[0].GetAuthor() != "rollout" {
			t.Errorf("revisions %v, %v, want what the configurator did taken back", list, err)
		}
		f.offer(12 * time.Second)
		if held := f.holding(); !strings.Contains(held, "z3 r3") || strings.Contains(held, "r2") {
			t.Errorf("hosts hold %s, want r3, which equals r1", held)
		}
	})
}

package configurator

import (
	"io"
	"math"
	"net/http"
	"regexp"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"grl/limiter"
	grlv1 "grl/proto/grl/v1"
	"grl/store"
	"grl/web/format"
)

// TestPreview has a run propose a limit, and a day later the dashboard show what the
// policy would have made of the same history at that time: it is the same limit.
// The highest seconds stand at 2.2 times the mean.
func TestPreview(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		const bucket = "shop/all"
		r.limits("service: shop\nowner: team-shop\nbuckets:\n  - {name: all, limit: {rps: 200}, behavior: deny}\n")
		r.policies("name: nightly\nkind: peak\nmatch: {service: shop}\n")
		const day = 24 * time.Hour
		time.Sleep(time.Until(time.Now().UTC().Truncate(day).Add(day)))
		night := time.Now().UTC()
		r.record(bucket, night.Add(-7*day), night, 2.2)
		run := r.cycleNow()
		if run == nil {
			t.Fatal("no run")
		}
		results := r.results(run)
		if len(results) != 1 || results[0].GetOutcome() != grlv1.RunOutcome_RUN_OUTCOME_PROPOSED {
			t.Fatalf("the run has %v, want a proposal", results)
		}
		proposed := results[0].GetAfter().GetRps()
		if !(proposed > 300) {
			t.Errorf("%v rps are proposed: the highest seconds of 330 rps do not count", proposed)
		}

		time.Sleep(day)
		r.record(bucket, night, night.Add(day), 2.2)
		r.control("later") // began when all of that was there
		if shown := r.previewed("later", "nightly"); shown != format.RPS(proposed) {
			t.Errorf("the preview has a limit of %s rps, the run proposed %v", shown, proposed)
		}
	})
}

// record writes hours of a load that is between 50 and 150 rps, with highest seconds
// of so many times the mean.
func (r *rig) record(bucket string, from, to time.Time, second float64) {
	r.t.Helper()
	for at := from; at.Before(to); at = at.Add(time.Hour) {
		h := store.CellHour{Cell: limiter.CellID{Bucket: bucket}, Zone: "zone"}
		for m := range h.Minutes {
			minute := float64(at.Hour()*60 + m)
			rps := math.Round(100 - 50*math.Cos(minute/720*math.Pi))
			n := uint64(rps) * 60
			h.Minutes[m] = store.Minute{Offered: n, Admitted: n, HighestSecond: uint64(rps * second)}
		}
		if err := r.store.PutHours(r.t.Context(), at, slices.Values([]*store.CellHour{&h})); err != nil {
			r.t.Fatal(err)
		}
	}
}

// lastLimit is the end of the line of the limit in a preview.
var lastLimit = regexp.MustCompile(`>([0-9,.]+) limit<`)

// previewed returns the last limit that the preview of a policy draws, by a
// controller.
func (r *rig) previewed(controller, name string) string {
	r.t.Helper()
	answer, err := r.client.Get("http://" + controller + "/policies/trial?name=" + name)
	if err != nil {
		r.t.Fatal(err)
	}
	page, err := io.ReadAll(answer.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	if err := answer.Body.Close(); err != nil {
		r.t.Fatal(err)
	}
	found := lastLimit.FindSubmatch(page)
	if answer.StatusCode != http.StatusOK || found == nil {
		r.t.Fatalf("the preview answers %s without a limit: %s", answer.Status, page)
	}
	return string(found[1])
}

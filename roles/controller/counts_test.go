package controller

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"grl/limiter"
	grlv1 "grl/proto/grl/v1"
	"grl/roles/controller/api"
	"grl/roles/controller/desk"
	"grl/store/ledger"
	"grl/web"
	"grl/web/page"
)

// TestCountsOfTheConfiguration counts again by hand.
func TestCountsOfTheConfiguration(t *testing.T) {
	now := time.Now()
	c := cascade(1, limiter.Cap{ID: "7", Service: "pay", LimitRPS: 1, Ends: now.Add(time.Hour)}, limiter.Cap{ID: "6", Service: "pay", LimitRPS: 1, Ends: now.Add(-time.Minute)})
	v := view{Controller: &Controller{node: newRig(t, c).n}}
	if got := v.Counts(); got.Buckets != 5 || got.Shadow != 2 || got.Caps != 1 || got.Firing != 0 || got.Policies != 0 {
		t.Errorf("%+v, want 5 buckets, one of them in shadow and one with a candidate, 1 cap that runs", got)
	}
	v.node.install(configuration(2, 3), nil, nil)
	if got := v.Counts(); got.Buckets != 5 || got.Shadow != 5 || got.Caps != 0 || got.Firing != 0 {
		t.Errorf("after another configuration: %+v", got)
	}
}

// TestFiringIsCountedOnEveryPage: what fires and is not muted is beside Alerts in
// the navigation, as what needs a person; where nothing does, there is no count.
func TestFiringIsCountedOnEveryPage(t *testing.T) {
	c := judged(t, nil)
	v := view{c}
	shown := func() string {
		t.Helper()
		w := httptest.NewRecorder()
		web.New(web.Options{Backend: v, Services: page.Services{View: v}, AnyHost: true}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/buckets", nil))
		_, entry, found := strings.Cut(w.Body.String(), `<a class="nav__link" href="/alerts"`)
		if w.Code != http.StatusOK || !found {
			t.Fatalf("%d, and no link to the alerts in %s", w.Code, w.Body)
		}
		entry, _, _ = strings.Cut(entry, "</a>")
		return entry
	}
	if got := shown(); v.Counts().Firing != 0 || strings.Contains(got, "nav__count") {
		t.Errorf("nothing fires: %d, %s", v.Counts().Firing, got)
	}
	c.alerts.lost = "the store does not answer"
	c.judge(t.Context(), time.Now())
	if got := shown(); v.Counts().Firing != 1 || !strings.Contains(got, `<span class="nav__count nav__count--due">1</span>`) {
		t.Errorf("one fires: %d, %s", v.Counts().Firing, got)
	}
}

// TestCountsOfProposals has three proposals, of which one is rejected, one is of
// a limit that changed since, and one waits; a later run says nothing new.
func TestCountsOfProposals(t *testing.T) {
	v := ledgerView(t)
	c := cascade(1)
	applyAt(t, v, time.Now(), "ada", c.Services[0])
	v.desk = desk.New(desk.Options{Ledger: v.ledger, Traffic: load(v), Log: slog.New(slog.DiscardHandler)})
	v.api = api.New(api.Options{Ledger: v.ledger, Desk: v.desk, Log: slog.New(slog.DiscardHandler)})
	act := ledger.Act{Actor: "rlc", At: time.Now()}
	run := func(dry bool, limits map[string]float64) uint64 {
		t.Helper()
		r, err := v.ledger.BeginRun(t.Context(), act, ledger.Run{Trigger: "schedule", Configurator: "rlc", DryRun: dry})
		if err != nil {
			t.Fatal(err)
		}
		var results []ledger.Result
		for bucket, before := range limits {
			data, err := proto.Marshal(&grlv1.RunResult{
				Bucket: bucket, Outcome: grlv1.RunOutcome_RUN_OUTCOME_PROPOSED, Before: &grlv1.ComputedLimit{Rps: before}, After: &grlv1.ComputedLimit{Rps: 200},
			})
			if err != nil {
				t.Fatal(err)
			}
			results = append(results, ledger.Result{Bucket: bucket, Data: data})
		}
		if err := v.ledger.AddResults(t.Context(), r.ID, results); err != nil {
			t.Fatal(err)
		}
		_, err = v.ledger.FinishRun(t.Context(), act, r.ID, func(r *ledger.Run) {
			r.State, r.Outcomes = ledger.RunDone, make([]uint32, len(grlv1.RunOutcome_name))
			r.Outcomes[grlv1.RunOutcome_RUN_OUTCOME_PROPOSED] = uint32(len(results))
		})
		if err != nil {
			t.Fatal(err)
		}
		return r.ID
	}
	waiting := func(when string, want int) {
		t.Helper()
		if err := v.countDecided(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := v.Counts().Waiting; got != want {
			t.Errorf("%s: %d wait, want %d", when, got, want)
		}
	}
	waiting("no run", 0)
	id := run(false, map[string]float64{"pay/checkout": 100, "pay/each": 100, "pay/p": 77})
	waiting("two that hold, and one of a limit that is another one", 2)
	run(true, map[string]float64{"pay/blocked": 0})
	waiting("after a dry run", 2)
	if err := v.ledger.Decide(t.Context(), act, id, []ledger.Decision{{Bucket: "pay/each", State: ledger.Rejected}}); err != nil {
		t.Fatal(err)
	}
	waiting("one is rejected", 1)
	run(false, map[string]float64{"pay/checkout": 100})
	waiting("proposed again", 1)
	if _, err := v.ledger.BeginRun(t.Context(), act, ledger.Run{Trigger: "schedule", Configurator: "rlc"}); err != nil {
		t.Fatal(err)
	}
	waiting("while one runs", 1)
	if _, err := v.ledger.ApplyPolicies(t.Context(), 0, act, "policy.apply", nil, "", "", map[string][]byte{"nightly": []byte("name: nightly\n")}); err != nil {
		t.Fatal(err)
	}
	if err := v.countDecided(t.Context()); err != nil || v.Counts().Policies != 1 {
		t.Errorf("%+v, %v, want a policy", v.Counts(), err)
	}
}

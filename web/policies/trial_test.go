package policies_test

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"grl/limiter"
	"grl/policy"
	"grl/policy/backtest"
	"grl/policy/policyfile"
	"grl/store"
	"grl/web/format"
	"grl/web/page"
	"grl/web/pagetest"
	"grl/web/policies"
)

// means are what the buckets of a trial are offered, in requests per second.
var means = map[string]float64{"b0": 500, "b1": 1000, "b2": 50}

// gone is the hour of which nothing is known, and dropping the one in which grl
// dropped something, counted from the beginning.
const (
	gone     = 100
	dropping = 200
)

// trialRig is a controller that runs, with the last weeks of three buckets: days
// and noise, and a surge in the last week.
func trialRig(t *testing.T, hours int) *rig {
	r := newRig(t)
	r.limits("payments", "b0=1700", "b1=1700", "b2=1700")
	random := rand.New(rand.NewPCG(7, 1))
	from := time.Now().Truncate(time.Hour).Add(-time.Duration(hours) * time.Hour)
	for h := range hours {
		if h == gone {
			continue
		}
		var rows []*store.CellHour
		for _, name := range slices.Sorted(maps.Keys(means)) {
			row := &store.CellHour{Cell: limiter.CellID{Bucket: "payments/" + name}, Zone: "z"}
			for m := range row.Minutes {
				rps := means[name] * (1 + 0.5*math.Sin(float64(h*60+m)/720*math.Pi) + 0.05*random.NormFloat64())
				if h >= 30*24 && h < 30*24+4 {
					rps *= 2.5
				}
				row.Minutes[m].Offered = uint64(max(0, rps) * 60)
				row.Minutes[m].Admitted = row.Minutes[m].Offered
				if h == dropping {
					row.Minutes[m].Dropped, row.Minutes[m].Admitted = 1, row.Minutes[m].Offered-1
				}
			}
			rows = append(rows, row)
		}
		if err := r.store.PutHours(t.Context(), from.Add(time.Duration(h)*time.Hour), slices.Values(rows)); err != nil {
			t.Fatal(err)
		}
	}
	r.start()
	return r
}

const weeks = 35 * 24 // hours

// direct runs a policy on the stored minutes of a bucket, as docs/rlc.md has it.
func (r *rig) direct(text, bucket string) *backtest.Result {
	r.t.Helper()
	spec, err := policyfile.Parse("policy", []byte(text))
	if err != nil {
		r.t.Fatal(err)
	}
	to := time.Now().Truncate(time.Hour)
	from := to.Add(-weeks * time.Hour)
	minutes, err := r.store.Minutes(r.t.Context(), limiter.CellID{Bucket: "payments/" + bucket}, from, to)
	if err != nil {
		r.t.Fatal(err)
	}
	series := policy.Series{Start: from, Step: time.Minute, RPS: make([]float64, weeks*60)}
	for i := range series.RPS {
		series.RPS[i] = policy.Unknown
	}
	for _, m := range minutes {
		if m.Dropped == 0 {
			series.RPS[series.Index(m.Start)] = float64(m.Offered) / 60
		}
	}
	var kind policy.Kind
	for _, k := range policy.Kinds() {
		if k.Name == spec.Kind {
			kind = k
		}
	}
	result, err := backtest.Run(r.t.Context(), backtest.Options{Series: series, Spec: &spec, Policy: kind.New(&spec), Every: 24 * time.Hour, Bounds: backtest.Live})
	if err != nil {
		r.t.Fatal(err)
	}
	return result
}

// headroom is how a mean limit over a peak is printed.
func headroom(ratio float64) string {
	return strings.Replace(fmt.Sprintf("%.0f%%", 100*(ratio-1)), "-", "−", 1)
}

// TestTrial recomputes the figures of a preview from the same minutes. It runs in
// virtual time, so that a busy machine does not cut the sample.
func TestTrial(t *testing.T) { synctest.Test(t, testTrial) }

func testTrial(t *testing.T) {
	r := trialRig(t, weeks)
	const saved = "name: nightly\nkind: peak\nmatch: {service: payments}\n"
	r.apply(saved)
	is := r.direct(saved, "b0")
	if !(is.FD > 0) {
		t.Fatal("nothing would be dropped: the series tests nothing")
	}
	body := r.get(viewer, "/policies/trial?name=nightly&bucket=payments/b0")
	want(t, body, "Preview on payments/b0", "35.0 days", "False drops "+format.Share(is.FD), "Mean headroom "+headroom(is.H),
		"over the highest minute of a week", "60 minutes do not teach", "over 3 of 3 limits", "limit today 1,700")
	if _, region := pagetest.Get(t, r.pages, viewer, "/policies/trial?name=nightly", true); strings.Contains(region, "<html") || !strings.Contains(region, "Preview on") {
		t.Errorf("not a region: %s", region)
	}

	// Of all together: dropped volume over volume.
	dropped, volume := 0.0, 0.0
	for name := range means {
		result := r.direct(saved, name)
		for i, x := range result.Series.RPS {
			if policy.Known(x) && result.Limits[i] > 0 {
				dropped += max(0, x-result.Limits[i])
				volume += x
			}
		}
	}
	want(t, body, "False drops of all "+format.Share(dropped/volume))

	// A change, before and after; on another bucket.
	form := formOf(t, r.get(pagetest.Admin, "/policies/show?name=nightly&bucket=payments/b1"))
	form.Set("floor", "2000")
	draft := saved + "floor: 2000\n"
	before, after := r.direct(saved, "b1"), r.direct(draft, "b1")
	status, body := r.post(pagetest.Admin, "/policies/preview", form)
	if status != http.StatusOK {
		t.Fatalf("preview: %d", status)
	}
	want(t, body, "Preview on payments/b1", "False drops "+format.Share(after.FD)+" "+format.Share(before.FD)+" with nightly as saved",
		"Mean headroom "+headroom(after.H)+" "+headroom(before.H)+" with nightly as saved")
	if after.FD == before.FD {
		t.Error("the change changes nothing: this tests nothing")
	}
	if r.saved("nightly") != saved {
		t.Error("a preview saved something")
	}
	if len(body) > 300<<10 {
		t.Errorf("%d bytes", len(body))
	}

	// Each other kind; what is asked for twice is not computed twice.
	for _, kind := range []string{"forecast", "live", "quota"} {
		text := "name: try\nkind: " + kind + "\nmatch: {service: payments, caller: b1, bucket: b1}\n"
		if kind == "quota" {
			text += "quota:\n  - {rps: 1200}\n"
		}
		form := url.Values{"as": {"yaml"}, "text": {text}}
		for range 2 {
			if status, body := r.post(pagetest.Admin, "/policies/preview", form); status != http.StatusOK || !strings.Contains(body, "Preview on payments/b1") {
				t.Errorf("%s: %d, %s", kind, status, plain(body))
			}
		}
	}
}

// TestTrialCannotTell says why there is nothing to see.
func TestTrialCannotTell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := trialRig(t, 72)
		r.apply("name: nightly\nkind: peak\nmatch: {service: payments}\n", "name: none\nkind: peak\nmatch: {service: nothing}\n")
		status, body := r.post(pagetest.Admin, "/policies/preview", url.Values{"as": {"yaml"}, "base": {"1"}, "text": {"name: twice\nkind: peak\nmatch: {service: nothing}\n"}})
		if status != http.StatusUnprocessableEntity {
			t.Errorf("two with one match: %d", status)
		}
		want(t, body, "No preview: 1 fault", "selects the same buckets as policy")
		marked(t, body, "text")
		form := formOf(t, r.get(pagetest.Admin, "/policies/new"))
		form.Set("name", "twice")
		form.Set("match.service", "nothing")
		for _, target := range []string{"/policies/preview", "/policies/save"} {
			status, body := r.post(pagetest.Admin, target, form)
			if status != http.StatusUnprocessableEntity {
				t.Errorf("%s of two with one match: %d", target, status)
			}
			want(t, body, "selects the same buckets as policy")
			marked(t, body, "match.service")
		}
		want(t, r.get(viewer, "/policies/trial?name=nightly"), "Cannot tell: 3.0 days of history", "A preview needs 8 days")
		want(t, r.get(viewer, "/policies/trial?name=none"), "Cannot tell: no bucket matches")
		status, body = r.post(pagetest.Admin, "/policies/preview", url.Values{"as": {"yaml"}, "text": {"name: x\nkind: peek\n"}})
		if status != http.StatusUnprocessableEntity {
			t.Errorf("a policy that does not hold: %d", status)
		}
		want(t, body, "No preview: 2 faults")
	})
}

// TestWorstFirst has the cell that came nearest to its limit be tried first.
func TestWorstFirst(t *testing.T) {
	r := newRig(t)
	r.apply("name: nightly\nkind: peak\nmatch: {service: payments}\n")
	memory := pagetest.Memory{Rows: []page.Cell{
		{Service: "payments", Name: "a", OfferedRPS: 1, LimitRPS: 5},
		{Service: "payments", Name: "b", OfferedRPS: 9, LimitRPS: 18},
		{Service: "payments", Name: "c", OfferedRPS: 2},
		{Service: "payments", Name: "_cap", Cap: "1"},
		{Service: "search", Name: "x"},
		{Service: "payments", Name: "blocked", Block: true},
	}}
	memory.History.Headroom = []page.Headroom{{Cell: limiter.CellID{Bucket: "payments/c"}}}
	site := pagetest.Site(memory)
	site.Services.Policy = r.policies
	body := plain(get(t, pagetest.Handler(policies.Routes(site)), viewer, "/policies/buckets?name=nightly"))
	want(t, body, "3 buckets match.", "payments/ b 9.00 18.0 50.0%")
	if c, b, a := strings.Index(body, "payments/ c"), strings.Index(body, "payments/ b"), strings.Index(body, "payments/ a"); c < 0 || c > b || b > a || strings.Contains(body, "blocked") {
		t.Errorf("order: %s", body)
	}
}

// TestTrialOneAtATime has a second preview of a person end the first one.
func TestTrialOneAtATime(t *testing.T) {
	r := newRig(t)
	r.apply("name: nightly\nkind: peak\nmatch: {service: payments}\n")
	slow := slowHistory{pagetest.Memory{Rows: []page.Cell{{Service: "payments", Name: "b1", LimitRPS: 5}}}, make(chan struct{})}
	site := pagetest.Site(slow)
	site.Services.Policy = r.policies
	pages := pagetest.Handler(policies.Routes(site))
	ask := func(region bool) chan string {
		answer := make(chan string, 1)
		go func() {
			_, body := pagetest.Get(t, pages, viewer, "/policies/trial?name=nightly", region)
			answer <- body
		}()
		<-slow.asked
		return answer
	}
	whole := ask(false)
	first := ask(true)
	second := ask(true)
	if body := <-first; body != "" {
		t.Errorf("the outdated request is answered with %q", body)
	}
	for _, answer := range []chan string{whole, second} { // a page is not given up for a region
		want(t, <-answer, "Cannot tell: it takes longer than 2 s")
	}
}

// slowHistory is a history that never answers.
type slowHistory struct {
	pagetest.Memory
	asked chan struct{}
}

func (h slowHistory) Series(ctx context.Context, _ page.SeriesQuery) (page.Series, error) {
	h.asked <- struct{}{}
	<-ctx.Done()
	return page.Series{}, ctx.Err()
}

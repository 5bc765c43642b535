package overview_test

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"grl/proto/access"
	grlv1 "grl/proto/grl/v1"
	"grl/roles/rolestest"
	"grl/web/overview"
	"grl/web/pagetest"
)

const limits = `service: payments
owner: team-payments
buckets:
  - name: reads
    match: {procedure: Read}
    limit: {rps: 1000}
    behavior: allow
  - name: everything
    limit: {rps: 300}
    behavior: deny
`

// What the page says of a fleet is what the API says of it at the same moment.
func TestFiguresAreThoseOfTheAPI(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := rolestest.NewPlane(t, limits)
		p.Controller()
		p.Aggregator("a", "z1", "r1")
		host := p.Host("h", "z1", "r1", "payments", "a")
		stop, ended := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(ended)
			for {
				select {
				case <-stop:
					return
				case <-time.After(time.Second / 400):
					host.Service("payments").Decide("checkout", "Write")
				}
			}
		}()
		t.Cleanup(func() { close(stop); <-ended })
		time.Sleep(5 * time.Minute)
		if _, err := p.Incident().PlaceCap(t.Context(), &grlv1.PlaceCapRequest{
			Service: "payments", Caller: "promo", Gate: &grlv1.PlaceCapRequest_Rps{Rps: 40}, DurationMs: (9 * time.Minute).Milliseconds(), Reason: "retry loop",
		}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Second)
		synctest.Wait()

		_, body := pagetest.Get(t, p.Pages(), pagetest.Admin, "/", true)
		text := overview.Plain(body)
		var sum *grlv1.BucketView // every request passes this one
		for _, b := range p.Buckets() {
			if b.GetBucket() == "payments/everything" {
				sum = b
			}
		}
		if sum.GetDroppedRps() < 90 || sum.GetDroppedRps() > 110 {
			t.Fatalf("the API drops %v rps of 400 by a limit of 300", sum.GetDroppedRps())
		}
		// The page's figures are at most a second older than the API's.
		for name, want := range map[string]float64{"Offered": sum.GetOfferedRps(), "Admitted": sum.GetAdmittedRps(), "Dropped": sum.GetDroppedRps()} {
			if got := figure(t, text, name+` ([0-9.,]+) rps`); math.Abs(got-want) > 0.02*want {
				t.Errorf("%s %v rps, the API says %v", name, got, want)
			}
		}
		if got, want := figure(t, text, `payments/ everything global [0-9,]+ of 300 ([0-9.]+)%`), 100*sum.GetDropRatio(); math.Abs(got-want) > 1 {
			t.Errorf("drop ratio %v%%, the API says %v%%", got, want)
		}
		if got, want := figure(t, text, `rps ([0-9.]+)% of offered`), 100*sum.GetDroppedRps()/sum.GetOfferedRps(); math.Abs(got-want) > 1 {
			t.Errorf("%v%% of offered are dropped, by the API %v%%", got, want)
		}
		for _, want := range []string{
			"Tree healthy 1 controller 1 zone 1 host",
			"Buckets over limit 1 of",
			"promo → payments retry loop 40.0 rps 0 8:40",
			"Cap ends in 9 min: promo → payments. Extend or make permanent",
			"Cap placed", ": retry loop by admin",
			"r1 payments, payments/everything and 1 more",
			"Place a cap",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("no %q in:\n%s", want, text)
			}
		}
		// The means are those of what the history of the bucket that all pass has.
		minutes := p.History("payments/everything")
		var offered, admitted, dropped float64
		for _, m := range minutes {
			offered, admitted, dropped = offered+float64(m.GetOffered()), admitted+float64(m.GetAdmitted()), dropped+float64(m.GetDropped())
		}
		seconds := 60 * float64(len(minutes))
		for name, want := range map[string]float64{"Offered": offered / seconds, "Admitted": admitted / seconds, "Dropped": dropped / seconds} {
			if got := figure(t, text, name+` [0-9.,]+ rps (?:[0-9.]+% of offered )?mean 1 h ([0-9.,]+)`); math.Abs(got-want) > 0.01*want+0.05 {
				t.Errorf("mean of %s %v rps, the history says %v in %d minutes", name, got, want, len(minutes))
			}
		}
		viewer := access.Person{Name: "vera", Level: access.Viewer, By: "session", Session: "1"}
		if _, body := pagetest.Get(t, p.Pages(), viewer, "/", false); strings.Contains(body, "Place a cap") {
			t.Error("a viewer is shown how to cap")
		}
	})
}

// figure returns the number that a pattern finds in a text.
func figure(t *testing.T, text, pattern string) float64 {
	t.Helper()
	m := regexp.MustCompile(pattern).FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("no %s in:\n%s", pattern, text)
	}
	v, err := strconv.ParseFloat(strings.ReplaceAll(m[1], ",", ""), 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

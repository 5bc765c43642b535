package bucket_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	grlv1 "grl/proto/grl/v1"
	"grl/proto/grl/v1/grlv1connect"
	"grl/web/pagetest"
)

// TestSilentZone stops the aggregator of one of two zones: every page whose
// figures lack that zone says so, as long as they do, and what it says is true.
func TestSilentZone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, payments)
		incident := grlv1connect.NewIncidentServiceClient(s.Network.Client(t), "http://controller")
		if _, err := incident.PlaceCap(t.Context(), &grlv1.PlaceCapRequest{
			Service: "payments", Caller: "price-bot", DurationMs: time.Hour.Milliseconds(), Reason: "too much", Gate: &grlv1.PlaceCapRequest_Rps{Rps: 40},
		}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		// what each page says while the zone is counted as it was, and without it
		pages := []struct{ target, kept, without string }{
			{"/", "zone us-1 as last known", "without zone us-1"},
			{"/buckets", "Last known: zone us-1", "Without zone us-1"},
			{"/bucket?name=payments/writes", "zone us-1 as last known", "without zone us-1"},
			{"/bucket?name=payments/writes&by=region", "last known", "not known"},
			{"/shadow", "last known", "What it offers now is in no figure"},
			{"/caps", "(zone us-1 as last known)", "(without zone us-1)"},
			{"/fleet", "1 host not heard", "of those that report"},
			{"/explain?service=payments&caller=checkout&procedure=charges.v1.Charges/Create", "last known", "≥ "},
		}
		looks := func(when string, says func(i int) []string, not ...string) {
			t.Helper()
			for i, p := range pages {
				status, _, text := s.get(pagetest.Admin, p.target)
				if status != 200 {
					t.Fatalf("%s: %s: status %d", when, p.target, status)
				}
				for _, want := range says(i) {
					if !strings.Contains(text, want) {
						t.Errorf("%s: %s does not say %q:\n%s", when, p.target, want, text)
					}
				}
				for _, bad := range not {
					if strings.Contains(text, bad) {
						t.Errorf("%s: %s says %q:\n%s", when, p.target, bad, text)
					}
				}
			}
		}
		nothing := func(int) []string { return nil }
		looks("before", nothing, "us-1 as last", "thout zone", "≥", "No report from", "not heard")

		s.Stop("b")
		time.Sleep(15 * time.Second)
		looks("during the hold", func(i int) []string {
			return []string{"No report from zone us-1 since", "Its last known rates still count in the figures", pages[i].kept}
		}, "≥", "thout zone us-1 ", "is in no figure")
		time.Sleep(time.Minute)
		looks("after it", func(i int) []string {
			return []string{"No report from zone us-1 since", "What it offers now is in no figure", pages[i].without}
		}, "as last known", "still count")
		_, _, text := s.get(pagetest.Admin, "/caps")
		if !strings.Contains(text, "confirmed by 1 of 1 sidecar, 1 more not heard") {
			t.Errorf("the cap is said to be confirmed by all: %s", text)
		}
		_, _, text = s.get(pagetest.Admin, "/bucket?name=payments/writes")
		if !strings.Contains(text, "Offered ≥ ") || !strings.Contains(text, "us-1 Cut off for") {
			t.Errorf("the bucket does not mark what it is offered, or its zone: %s", text)
		}
		if _, _, text = s.get(pagetest.Admin, "/bucket?name=payments/regional"); strings.Contains(text, "≥") {
			t.Errorf("a bucket to which the zone offered nothing is marked: %s", text)
		}

		s.Aggregator("b", "us-1", "us")
		time.Sleep(20 * time.Second)
		looks("back", nothing, "us-1 as last", "thout zone us-1", "≥", "No report from", "not heard")
	})
}

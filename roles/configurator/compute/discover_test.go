package compute_test

import (
	"strings"
	"testing"
	"time"

	"grl/limiter"
	grlv1 "grl/proto/grl/v1"
	"grl/roles/configurator/compute"
)

// hour is what a service was sent in the hour that began so long before now.
func hour(before time.Duration, service string, requests uint64) *grlv1.TrafficHour {
	return &grlv1.TrafficHour{
		StartMs: monday.Add(-before).UnixMilli(),
		Services: []*grlv1.ServicePairs{{Service: service, Pairs: []*grlv1.PairCounts{
			{Caller: "web", Procedure: "shop.v1.Cart/Add", Offered: requests},
			{Caller: "web", Procedure: "shop.v1.Cart/Get", Offered: requests},
			{Caller: "app", Procedure: "shop.v1.Cart/Get", Offered: requests / 10},
			{Caller: "_other", Procedure: "shop.v1.Cart/Get", Offered: 50 * requests},
		}}},
	}
}

func TestDiscover(t *testing.T) {
	const h = time.Hour
	usual := []*grlv1.TrafficHour{hour(h, "shop", 36_000), hour(2*h, "shop", 18_000), hour(3*h, "shop", 18_000)}
	tests := []struct {
		name     string
		policy   string
		services []limiter.Service
		traffic  []*grlv1.TrafficHour
		want     string // buckets
	}{
		{"by caller", "mode: shadow\ndiscover: {by: caller, min_rps: 5}\n", nil, usual, "shop/web"},
		{"small callers too", "mode: shadow\ndiscover: {by: caller, min_rps: 0.5}\n", nil, usual, "shop/web shop/app"},
		{"by procedure", "mode: shadow\ndiscover: {by: procedure, min_rps: 5}\n", nil, usual, "shop/shop.v1.cart-get shop/shop.v1.cart-add"},
		{"by both", "mode: shadow\ndiscover: {by: both, min_rps: 5}\n", nil, usual, "shop/web-shop.v1.cart-add shop/web-shop.v1.cart-get"},
		{"a service with limits", "mode: shadow\ndiscover: {by: caller, min_rps: 5}\n", []limiter.Service{{Name: "shop"}}, usual, ""},
		{"another service", "mode: shadow\ndiscover: {by: caller, min_rps: 5}\n", nil, []*grlv1.TrafficHour{hour(h, "cart", 36_000), hour(2*h, "cart", 36_000)}, ""},
		{"its first hour", "mode: shadow\ndiscover: {by: caller, min_rps: 5}\n", nil, []*grlv1.TrafficHour{hour(h, "shop", 36_000)}, ""},
		{"an hour that is not over", "mode: shadow\ndiscover: {by: caller, min_rps: 5}\n", nil, []*grlv1.TrafficHour{hour(h/2, "shop", 36_000), hour(h/2+h, "shop", 36_000)}, ""},
		{"does not discover", "mode: shadow\n", nil, usual, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			found := compute.Discover(monday, spec(t, "kind: peak\n"+tt.policy), tt.services, tt.traffic)
			var names []string
			for _, r := range found {
				names = append(names, r.GetBucket())
				if r.GetOutcome() != grlv1.RunOutcome_RUN_OUTCOME_SHADOWED || !strings.Contains(r.GetNewBucket(), "behavior: allow") || r.GetAfter().GetRps() <= 0 {
					t.Errorf("%s: %v, %v rps:\n%s\nwant it in shadow", r.GetBucket(), r.GetOutcome(), r.GetAfter().GetRps(), r.GetNewBucket())
				}
			}
			if got := strings.Join(names, " "); got != tt.want {
				t.Errorf("found %q, want %q", got, tt.want)
			}
		})
	}
	r := compute.Discover(monday, spec(t, "kind: peak\ndiscover: {by: caller, min_rps: 5}\n"), nil, usual)[0]
	if r.GetOutcome() != grlv1.RunOutcome_RUN_OUTCOME_PROPOSED || !strings.Contains(r.GetReason(), "web sent up to 20 rps") {
		t.Errorf("proposed: %v: %s", r.GetOutcome(), r.GetReason())
	}
}

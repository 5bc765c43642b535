package proxy_test

import (
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"grl/limiter"
	"grl/roles/client/proxy"
)

// TestRetriesAreCounted on the side that decides, by the headers it is told.
func TestRetriesAreCounted(t *testing.T) {
	up := origin(t, echo)
	authority := "payments.localhost" + up.URL[strings.LastIndex(up.URL, ":"):]
	for side, enforce := range map[string]limiter.Enforce{"inbound": limiter.Inbound, "outbound": limiter.Outbound} {
		l := limited(t, enforce, limiter.Bucket{})
		o := proxy.Options{Limiter: l, AttemptHeaders: []string{"x-try"}}
		c, target := client(t, false), ""
		if enforce == limiter.Inbound {
			target = "http://" + inbound(t, up.URL, o)
		} else {
			c, target = via(t, serve(t, proxy.NewOutbound(o)), false), "http://"+authority
		}
		for _, header := range []http.Header{
			{}, {"X-Try": {"1"}}, {"X-Try": {"2"}}, {"Grpc-Previous-Rpc-Attempts": {"1"}}, {"X-Envoy-Attempt-Count": {"9"}},
		} {
			r := request(t, "GET", target+"/v1/charges/7", "")
			r.Header = header
			if res, _ := get(t, c, r); res.StatusCode != http.StatusTooManyRequests || res.Header.Get("X-Envoy-Ratelimited") != "true" {
				t.Errorf("%s: status %d, header %v, want a drop that is not to be retried", side, res.StatusCode, res.Header)
			}
		}
		l.Collect(time.Now())
		if got, want := maps.Collect(l.Retries()), map[string]uint64{"payments": 2}; !maps.Equal(got, want) {
			t.Errorf("%s: retries = %v, want %v", side, got, want)
		}
	}
}

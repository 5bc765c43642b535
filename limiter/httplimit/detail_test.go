package httplimit_test

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"grl/limiter"
	"grl/limiter/httplimit"
)

// TestDropSaysWhy has real limiters drop for each reason there is.
func TestDropSaysWhy(t *testing.T) {
	end := time.Unix(1e10, 0)
	bucket := func(change func(*limiter.Bucket)) limiter.Configuration {
		b := limiter.Bucket{Name: "writes", LimitRPS: 10, Behavior: limiter.Deny}
		change(&b)
		return limiter.Configuration{Services: []limiter.Service{{Name: "payments", Owner: "team", Buckets: []limiter.Bucket{b}}}}
	}
	capped := func(c limiter.Cap) limiter.Configuration {
		c.ID, c.Service, c.Ends = "1", "payments", end
		return limiter.Configuration{Caps: []limiter.Cap{c}}
	}
	tiers := []limiter.Tier{{Name: "high", Callers: []limiter.Pattern{"checkout"}}, {Name: "low"}}
	tests := []struct {
		name string
		c    limiter.Configuration
		want string
	}{
		{"limit", bucket(func(*limiter.Bucket) {}), "bucket payments/writes of team is over its limit"},
		{"block", bucket(func(b *limiter.Bucket) { b.Block, b.LimitRPS = true, 0 }), "bucket payments/writes of team is blocked"},
		{"tier", bucket(func(b *limiter.Bucket) { b.Tiers = tiers }), "bucket payments/writes of team is over its limit for tier low"},
		{"retries", bucket(func(b *limiter.Bucket) { b.ShedRetriesFirst = true }), "bucket payments/writes of team is over its limit for retries"},
		{
			"retries of a tier", bucket(func(b *limiter.Bucket) { b.Tiers, b.ShedRetriesFirst = tiers, true }),
			"bucket payments/writes of team is over its limit for retries of tier low",
		},
		{"cap", capped(limiter.Cap{LimitRPS: 5, Author: "ann", Reason: "the database is slow"}), "payments is capped by ann: the database is slow"},
		{"cap that blocks", capped(limiter.Cap{Block: true, Author: "ann", Reason: "migration"}), "payments is blocked by ann: migration"},
		{"cap without words", capped(limiter.Cap{LimitRPS: 5}), "payments is capped"},
		{"long reason", capped(limiter.Cap{LimitRPS: 5, Reason: strings.Repeat("é", 500) + "x"}), "payments is capped: " + strings.Repeat("é", 128) + "…"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := limiter.New(limiter.Options{})
			if err := l.Install(tt.c); err != nil {
				t.Fatal(err)
			}
			for c := range l.Cells() {
				c.SetRatio(1)
			}
			d := l.Decide(limiter.Request{Service: "payments", Caller: "web", Attempt: 1})
			if !d.Dropped {
				t.Fatal("not dropped")
			}
			rec := httptest.NewRecorder()
			httplimit.WriteDrop(rec, httptest.NewRequest("GET", "/", nil), httplimit.Drop{Decision: d})
			var body struct{ Detail string }
			if err := json.Unmarshal(rec.Body.Bytes(), &body); err != nil {
				t.Fatal(err)
			}
			if body.Detail != tt.want {
				t.Errorf("detail = %q, want %q", body.Detail, tt.want)
			}
		})
	}
}

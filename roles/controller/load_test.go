package controller

import (
	"math"
	"testing"
	"time"

	"grl/limiter"
	"grl/limiter/law"
)

// What a cap would be tried on is what comes, not what is left of it: it stands
// before the buckets.
func TestOfferedToACap(t *testing.T) {
	charge := limiter.Bucket{Service: "pay", Name: "charge", Match: limiter.Match{Caller: "web", Procedure: "Charge"}, LimitRPS: 10, Behavior: limiter.Deny}
	each := limiter.Bucket{Service: "pay", Name: "each", Match: limiter.Match{Caller: "*"}, LimitRPS: 100, Behavior: limiter.Deny, PerCaller: true}
	r := newRig(t, &limiter.Configuration{Revision: 1, Services: []limiter.Service{{Name: "pay", Buckets: []limiter.Bucket{charge, each}}}})
	r.warm()
	s := newSpeaker("a", "z1", 1)
	s.join(r)
	for range 6 {
		s.report(
			said{limiter.CellID{Bucket: "pay/charge"}, 60, law.Counts{Offered: 60, Dropped: 45}},
			said{limiter.CellID{Bucket: "pay/each", Caller: "web"}, 25, law.Counts{Offered: 25}},
			said{limiter.CellID{Bucket: "pay/each", Caller: "app"}, 30, law.Counts{Offered: 30}},
		)
		r.n.decide(r.now)
		r.pass(time.Second)
	}
	tests := []struct {
		name  string
		match limiter.Match
		rps   float64 // requests per second
		known bool
	}{
		{"the bucket's own match", limiter.Match{Caller: "web", Procedure: "Charge"}, 60, true},
		{"all of a caller: what reaches its bucket and what was dropped before", limiter.Match{Caller: "web"}, 25 + 45, true},
		{"a caller of which nothing was dropped", limiter.Match{Caller: "app"}, 30, true},
		{"everything", limiter.Match{}, 25 + 45 + 30, true},
		{"a procedure, which no bucket counts for all callers", limiter.Match{Procedure: "Charge"}, 0, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			rps, known := load{&Controller{node: r.n}}.Offered("pay", tt.match)
			if math.Abs(rps-tt.rps) > 0.5 || known != tt.known {
				t.Errorf("Offered(%+v) = %v, %v, want %v, %v", tt.match, rps, known, tt.rps, tt.known)
			}
		})
	}
}

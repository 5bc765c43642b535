package httplimit_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"grl/limiter"
	"grl/limiter/httplimit"
)

// classes counts what each class of the bucket all was offered.
func classes(l *limiter.Limiter) map[string]uint64 {
	l.Collect(time.Now())
	counts := map[string]uint64{}
	for c := range l.Cells() {
		if n := c.Counts().Offered; n > 0 {
			counts[c.ID().Class] += n
		}
	}
	return counts
}

// tiered is a service whose tiers are by header.
func tiered() limiter.Service {
	return limiter.Service{Name: "payments", Buckets: []limiter.Bucket{{
		Name: "all", LimitRPS: 1, Behavior: limiter.Deny, ShedRetriesFirst: true, Coherent: true,
		Tiers: []limiter.Tier{
			{Name: "high", Header: "x-priority", Values: []string{"urgent", "high"}},
			{Name: "middle", Header: "X-Priority", Values: []string{"middle"}},
			{Name: "low"},
		},
	}}}
}

func TestClassOfRequest(t *testing.T) {
	tests := []struct {
		name   string
		header http.Header
		want   string
	}{
		{"none", nil, "low"},
		{"high", http.Header{"X-Priority": {"high"}}, "high"},
		{"urgent", http.Header{"X-Priority": {"urgent"}}, "high"},
		{"middle", http.Header{"X-Priority": {"middle"}}, "middle"},
		{"unknown", http.Header{"X-Priority": {"High"}}, "low"},
		{"twice", http.Header{"X-Priority": {"high", "middle"}}, "low"},
		{"retry", http.Header{"X-Priority": {"high"}, "X-Envoy-Attempt-Count": {"2"}}, "high/retry"},
		{"first of Envoy", http.Header{"X-Priority": {"high"}, "X-Envoy-Attempt-Count": {"1"}}, "high"},
		{"retry of gRPC", http.Header{"Grpc-Previous-Rpc-Attempts": {"1"}}, "low/retry"},
	}
	for _, tt := range tests {
		l := limiter.New(limiter.Options{})
		if err := l.Install(limiter.Configuration{Revision: 1, Services: []limiter.Service{tiered()}}); err != nil {
			t.Fatal(err)
		}
		r := rpc("checkout")
		for name, v := range tt.header {
			r.Header[name] = v
		}
		httplimit.NewGate(l, httplimit.Options{Service: "payments"}).Decide(r)
		if got, want := classes(l), (map[string]uint64{tt.want: 1}); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: offered by class %v, want %v", tt.name, got, want)
		}
	}
}

// TestTraceDecides: requests of one trace have one fate, and it is that of the
// draw.
func TestTraceDecides(t *testing.T) {
	l := limiter.New(limiter.Options{})
	s := limiter.Service{Name: "payments", Buckets: []limiter.Bucket{{Name: "all", LimitRPS: 1, Behavior: limiter.Deny, Coherent: true}}}
	install(t, l, s)
	l.SetSalt(5)
	l.Cell(limiter.CellID{Bucket: "payments/all"}).SetRatio(0.5)
	gate := httplimit.NewGate(l, httplimit.Options{Service: "payments"})
	for i := range 100 {
		id := [16]byte{0: 0xab, 15: byte(i)}
		want := limiter.TraceDraw(5, id) < limiter.FixedRatio(0.5)
		for range 2 {
			r := rpc("checkout")
			r.Header.Set("traceparent", fmt.Sprintf("00-%x-00f067aa0ba902b7-01", id))
			if _, dropped := gate.Decide(r); dropped != want {
				t.Errorf("trace %x: dropped %v, want %v", id, dropped, want)
			}
		}
	}
}

func TestDecideOfClassesAllocatesNothing(t *testing.T) {
	l := limiter.New(limiter.Options{})
	if err := l.Install(limiter.Configuration{Revision: 1, Services: []limiter.Service{tiered()}}); err != nil {
		t.Fatal(err)
	}
	for c := range l.Cells() {
		c.SetRatio(0.001)
	}
	gate := httplimit.NewGate(l, httplimit.Options{Service: "payments"})
	r := rpc("checkout")
	r.Header.Set("x-priority", "high")
	r.Header.Set("x-envoy-attempt-count", "2")
	// Its draw is high, so it is admitted.
	r.Header.Set("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	if n := testing.AllocsPerRun(100, func() { gate.Decide(r) }); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

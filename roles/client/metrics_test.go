package client_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"grl/limiter"
	"grl/roles/client"
)

// TestRetriesMetric: retries are counted by service, with or without limits.
func TestRetriesMetric(t *testing.T) {
	config := client.Default()
	config.Service = "payments"
	l, registry := limiter.New(limiter.Options{}), prometheus.NewRegistry()
	if _, err := client.New(client.Options{Config: config, Limiter: l, Log: slog.New(slog.DiscardHandler), Registry: registry}); err != nil {
		t.Fatal(err)
	}
	for attempt := range uint32(4) {
		l.Decide(limiter.Request{Service: "payments", Caller: "checkout", Procedure: "x", Attempt: attempt})
	}
	l.Collect(time.Now())
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		if f.GetName() == "grl_client_retries_total" {
			for _, m := range f.GetMetric() {
				got[m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
			}
		}
	}
	if len(got) != 1 || got["payments"] != 3 {
		t.Errorf("grl_client_retries_total = %v, want 3 of payments", got)
	}
}

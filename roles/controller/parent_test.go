package controller

import (
	"log/slog"
	"testing"

	grlv1 "grl/proto/grl/v1"
)

// A configuration that does not hold is refused, and the parent is told why;
// what is older is left alone.
func TestConfigurationsOfTheParent(t *testing.T) {
	w := newWorld(t)
	c := &Controller{opts: Options{Log: slog.New(slog.DiscardHandler)}, node: w.eu.n, moved: make(chan struct{}, 1)}
	held := w.eu.n.config
	service := &grlv1.Service{Name: "pay", Enforce: grlv1.Enforce_ENFORCE_INBOUND, Buckets: []*grlv1.Bucket{{Name: "b"}}}
	take := func(m *grlv1.Configuration) error {
		t.Helper()
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.installFromParent(t.Context(), m)
	}
	if err := take(&grlv1.Configuration{Epoch: 1, Revision: 2, Whole: true, Services: []*grlv1.Service{service}}); err != nil {
		t.Errorf("a refusal ends the stream: %v", err)
	}
	report := &grlv1.Report{}
	w.eu.n.source(w.eu.now, false).Sign(report)
	if w.eu.n.config != held || report.GetConfigRevision() != 1 || report.GetRefusedRevision() != 2 || report.GetRefusedReason() == "" {
		t.Errorf("holds r%d and says %v, want that it refused r2 and holds r1", w.eu.n.config.Revision, report)
	}
	if err := take(&grlv1.Configuration{Epoch: 0, Revision: 9, Whole: true}); err != nil || w.eu.n.config != held {
		t.Errorf("took r%d of a lower epoch, error %v", w.eu.n.config.Revision, err)
	}
	if err := take(&grlv1.Configuration{Epoch: 1, Revision: 4, Base: 3}); err == nil {
		t.Error("a change of a revision that it does not hold does not end the stream")
	}
	sizes := &grlv1.Configuration{Epoch: 1, Revision: 1, Base: 1, Zones: []*grlv1.ZoneSize{{Zone: "us1", Region: "us", Aggregators: 5}}}
	if err := take(sizes); err != nil || w.eu.n.config != held || w.eu.n.region.refused.revision != 0 {
		t.Errorf("holds r%d after a change of sizes alone, error %v", w.eu.n.config.Revision, err)
	}
	if got := w.eu.n.part(&passed{}); got != 1.0/6 {
		t.Errorf("the part of an unknown cell is %v, want one aggregator of six", got)
	}
}

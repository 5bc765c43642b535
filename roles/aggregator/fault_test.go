package aggregator

import (
	"log/slog"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/prometheus/client_golang/prometheus"

	"grl/limiter"
	"grl/limiter/law"
	grlv1 "grl/proto/grl/v1"
	"grl/proto/uplink"
)

func newAggregator(t *testing.T) *Aggregator {
	t.Helper()
	a, err := New(Options{Config: Default(), Log: slog.New(slog.DiscardHandler), Registry: prometheus.NewRegistry()})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestHungAggregatorTakesNothingUnread(t *testing.T) {
	a := newAggregator(t)
	now := time.Now()
	h := a.node.join(now, &grlv1.Hello{Node: "host", BootId: 1}, map[limiter.CellID]law.Counts{})
	report := func(sequence uint64) error {
		return a.takeFromHost(t.Context(), h, &grlv1.JoinRequest{Message: &grlv1.JoinRequest_Report{Report: &grlv1.Report{Sequence: sequence}}})
	}
	a.ticked = now
	if err := report(1); err != nil || a.node.received != 1 {
		t.Fatalf("report in time: %v, %d taken, want 1", err, a.node.received)
	}
	a.ticked = now.Add(-3 * law.T)
	for sequence := uint64(2); sequence < 4; sequence++ {
		if err := report(sequence); connect.CodeOf(err) != connect.CodeUnavailable {
			t.Errorf("report %d, unread during a hang: %v, want unavailable", sequence, err)
		}
	}
	if a.node.received != 1 || len(a.node.hosts) != 0 {
		t.Errorf("after a hang: %d reports taken, %d hosts, want 1 and 0", a.node.received, len(a.node.hosts))
	}
}

func TestControllerHearsOfEpochThatOnlyHostsRemember(t *testing.T) {
	a := newAggregator(t)
	p := uplink.NewParent()
	if said := a.node.hello(p, "a", "", 1).GetHeard(); len(said) != 0 {
		t.Fatalf("hello says %v, want nothing", said)
	}
	directive := func(epoch uint64) error {
		return a.takeFromParent(t.Context(), p, &grlv1.JoinResponse{Message: &grlv1.JoinResponse_Directive{
			Directive: &grlv1.Directive{Decider: "global", Epoch: epoch, Sequence: 1},
		}})
	}
	if err := directive(1); err != nil {
		t.Errorf("directive of epoch 1, no host was here: %v", err)
	}
	a.node.join(time.Now(), &grlv1.Hello{Node: "host", BootId: 1, Heard: []*grlv1.Heard{{Decider: "global", Epoch: 5}}}, map[limiter.CellID]law.Counts{})
	if err := directive(1); err == nil {
		t.Error("took a directive of epoch 1, which hosts that heard 5 refuse")
	}
	if said := a.node.hello(p, "a", "", 1).GetHeard()[0].GetEpoch(); said != 5 {
		t.Errorf("the next hello says epoch %d, want 5", said)
	}
	if err := directive(6); err != nil {
		t.Errorf("directive of epoch 6: %v", err)
	}
	if err := directive(5); err != nil { // stale, not wrong: the controller has been told
		t.Errorf("directive of epoch 5: %v", err)
	}
}

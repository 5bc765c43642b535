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
	"grl/proto/wire"
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

// Sizes of zones come alone when an aggregator joins or leaves: the
// configuration stays the same one, and hosts hear nothing.
func TestSizesOfZonesComeAlone(t *testing.T) {
	a := newAggregator(t)
	whole := wire.FromConfiguration(revision(3, 1))
	whole.Zones = []*grlv1.ZoneSize{{Zone: "local", Region: "local", Aggregators: 1}}
	if err := a.install(t.Context(), whole); err != nil {
		t.Fatal(err)
	}
	held := a.node.config
	for _, aggregators := range []uint32{2, 3} {
		change := &grlv1.Configuration{Epoch: 1, Revision: 3, Base: 3, Zones: []*grlv1.ZoneSize{{Zone: "local", Region: "local", Aggregators: aggregators}}}
		if err := a.install(t.Context(), change); err != nil {
			t.Fatal(err)
		}
		if got := a.node.aggregators(limiter.Zone); got != int(aggregators) || a.node.config != held {
			t.Errorf("%d aggregators in the zone, want %d; another configuration: %v", got, aggregators, a.node.config != held)
		}
	}
	next := wire.Change(held, revision(4, 2)) // says nothing of zones
	if err := a.install(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	if got := a.node.aggregators(limiter.Zone); got != 3 || a.node.config.Revision != 4 {
		t.Errorf("%d aggregators in the zone of r%d, want 3 of r4", got, a.node.config.Revision)
	}
}

package controller

import (
	"strings"
	"testing"

	"grl/limiter"
	"grl/limiter/law"
	grlv1 "grl/proto/grl/v1"
	"grl/proto/wire"
)

func TestHellos(t *testing.T) {
	top, eu := Default(), Default()
	eu.Region, eu.Parent = "eu", []string{"http://parent"}
	aggregator := func(zone, region string) *grlv1.Hello {
		return &grlv1.Hello{Role: grlv1.Role_ROLE_AGGREGATOR, Node: "n", Zone: zone, Region: region}
	}
	controller := func(zone, region string) *grlv1.Hello {
		return &grlv1.Hello{Role: grlv1.Role_ROLE_CONTROLLER, Node: "n", Zone: zone, Region: region}
	}
	for _, tt := range []struct {
		name string
		own  Config
		m    *grlv1.Hello
		want string // in the error; empty: taken
	}{
		{"an aggregator", top, aggregator("z1", "eu"), ""},
		{"a region's controller", top, controller("", "eu"), ""},
		{"an aggregator of the region", eu, aggregator("z1", "eu"), ""},
		{"an aggregator of another region", eu, aggregator("z1", "us"), `at the controller of region "eu"`},
		{"a region below a region", eu, controller("", "eu"), "has a parent itself"},
		{"a region's controller with a zone", top, controller("z1", "eu"), `with a zone, "z1"`},
		{"a client", top, &grlv1.Hello{Role: grlv1.Role_ROLE_CLIENT, Zone: "z1", Region: "eu"}, "takes aggregators"},
		{"no zone", top, aggregator("", "eu"), "zone of a hello"},
		{"a zone named as regions are", top, aggregator("region eu", "eu"), "zone of a hello"},
		{"no region", top, controller("", ""), "region of a hello"},
		{"no hello", top, nil, "no hello"},
	} {
		err := checkHello(tt.m, tt.own)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}

// An aggregator and a region's controller may be children of one parent: the
// global cell is summed over both, and a zone here is not told of by a region.
func TestMixedChildren(t *testing.T) {
	w := newWorld(t)
	here := newSpeaker("h", "z1", 9)
	here.join(w.up)
	zonal := limiter.CellID{Bucket: "pay/zonal", Instance: "z1"}
	here.report(said{global, 500, law.Counts{}}, said{zonal, 1000, law.Counts{}})
	w.a.report(said{global, 1500, law.Counts{}})
	w.round()
	forged := newSpeaker("c", "", 10)
	forged.hello.Role = grlv1.Role_ROLE_CONTROLLER
	forged.join(w.up)
	forged.report(said{zonal, 5000, law.Counts{}}, said{limiter.CellID{Bucket: "pay/regional", Instance: "eu"}, 7, law.Counts{}})
	w.up.n.renew(w.up.now)
	if here.hear(); here.admits[global] != 0.5 || here.shares[global] != 0.25 || here.admits[zonal] != 0.5 {
		t.Errorf("heard %v with shares %v, want half of either and a share of a quarter", here.admits, here.shares)
	}
	if got := w.up.rps(limiter.CellID{Bucket: "pay/regional", Instance: "eu"}); got != 0 {
		t.Errorf("%v rps of region eu, told by another one", got)
	}
	if forged.hear(); len(forged.admits) != 1 {
		t.Errorf("a region heard %v, want the global cell alone", forged.admits)
	}
}

// Children hear how many aggregators there are in the fleet, and again when that
// changes, without the configuration.
func TestSizesOfZones(t *testing.T) {
	w := newWorld(t)
	w.a.report()
	w.b.report()
	w.round()
	w.round()
	total := func(m *grlv1.Configuration) (total uint32) {
		for _, z := range m.GetZones() {
			total += z.GetAggregators()
		}
		return total
	}
	first := w.eu.n.configurationFor(w.a.c)
	if first == nil || total(first) != 2 || !first.GetWhole() {
		t.Fatalf("sent %v, want the configuration and two aggregators", first)
	}
	if again := w.eu.n.configurationFor(w.a.c); again != nil {
		t.Errorf("sent %v again", again)
	}
	second := newSpeaker("c", "us1", 5)
	second.hello.Region = "us"
	second.join(w.us.rig)
	w.round()
	w.round()
	m := w.eu.n.configurationFor(w.a.c)
	if m == nil || total(m) != 3 || m.GetWhole() || len(m.GetServices()) != 0 || m.GetRevision() != first.GetRevision() || m.GetBase() != first.GetRevision() {
		t.Fatalf("sent %v, want a change of the sizes alone", m)
	}
	held, err := wire.ToConfiguration(&limiter.Configuration{}, first)
	if err != nil {
		t.Fatal(err)
	}
	if next, err := wire.ToConfiguration(held, m); err != nil || len(next.Services) != len(held.Services) {
		t.Errorf("the change makes %v of it, error %v", next, err)
	}
}

// A region and its parent count epochs each for itself: one heard of the other
// does not push it up, and the parent hears what children of a region know.
func TestEpochsByDecider(t *testing.T) {
	w := newWorld(t)
	late := newSpeaker("c", "eu2", 5)
	late.hello.Region = "eu"
	late.hello.Heard = wire.Heard(map[string]uint64{globalDecider: 40, "eu": 50})
	late.join(w.eu.rig)
	hello := w.eu.n.hello(w.eu.p, "n", "v", 1)
	if got := wire.HeardEpoch(hello, globalDecider); got != 40 {
		t.Errorf("the region says it has heard epoch %d of the parent, want 40", got)
	}
	if got := wire.HeardEpoch(hello, "eu"); got != 0 {
		t.Errorf("the region says it has heard epoch %d of itself, which is no affair of the parent", got)
	}
	m := &grlv1.Directive{Decider: globalDecider, Epoch: 39, Sequence: 1}
	if w.eu.n.outdated(w.eu.p, m) {
		t.Error("outdated although the hello said what the children know")
	}
	w.us.p.Reopen(nil)
	w.us.n.region.below = 40
	if !w.us.n.outdated(w.us.p, m) {
		t.Error("passes on what children will refuse, without telling the parent")
	}
}

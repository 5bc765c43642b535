package controller

import (
	"fmt"
	"testing"

	"grl/limiter"
	"grl/limiter/law"
	grlv1 "grl/proto/grl/v1"
)

func (r *rig) joins(zone, region string) *child {
	hello := &grlv1.Hello{Role: grlv1.Role_ROLE_AGGREGATOR, Node: "a", Zone: zone, Region: region}
	return r.n.join(r.now, hello, map[limiter.CellID]law.Counts{})
}

// An aggregator that was started with the wrong region must not keep the right
// one out until the controller is restarted.
func TestZoneComesBackInAnotherRegion(t *testing.T) {
	r := newRig(t, configuration(1, 1))
	c := r.joins("z1", "wrong")
	if got := r.n.foreign("z1", "right"); got != "wrong" {
		t.Errorf("in use, the zone is of region %q, want wrong", got)
	}
	r.n.leave(r.now, c)
	if got := r.n.foreign("z1", "right"); got != "" {
		t.Errorf("left, the zone is of region %q, want that it may join", got)
	}
	c = r.joins("z1", "right")
	if c.zone.region != "right" {
		t.Errorf("joined as of region %q", c.zone.region)
	}
	if _, err := r.n.report(r.now, c, &grlv1.Report{Sequence: 1}); err != nil {
		t.Fatal(err)
	}
	r.n.leave(r.now, c)
	if got := r.n.foreign("z1", "wrong"); got != "right" {
		t.Errorf("its last sums count, but it may join as of another region; foreign is %q", got)
	}
}

// Zones are what hellos say, so there is an end to them.
func TestZonesAreBounded(t *testing.T) {
	r := newRig(t, configuration(1, 1))
	staying := r.joins("staying", "r1")
	for i := range 10 * mostSilent {
		c := r.joins(fmt.Sprint("forged", i), "r1")
		if i%2 == 0 {
			if _, err := r.n.report(r.now, c, &grlv1.Report{Sequence: 1}); err != nil {
				t.Fatal(err)
			}
		}
		r.n.leave(r.now, c)
	}
	r.pass(law.ZoneKept)
	r.n.renew(r.now)
	if len(r.n.zones) > mostSilent+1 || len(r.n.order) != len(r.n.zones) {
		t.Errorf("%d zones and %d in order, want at most %d silent ones and one with an aggregator", len(r.n.zones), len(r.n.order), mostSilent)
	}
	if r.n.zones["staying"] != staying.zone {
		t.Error("a zone with an aggregator was forgotten")
	}
	r.pass(forgetZone)
	r.n.renew(r.now)
	if len(r.n.zones) != 1 {
		t.Errorf("%d zones a day later, want the one with an aggregator", len(r.n.zones))
	}
}

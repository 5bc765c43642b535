package controller

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"grl/limiter"
	"grl/limiter/law"
	grlv1 "grl/proto/grl/v1"
)

// twoZones is two zones that offer to a bucket each for itself and to one together.
type twoZones struct {
	*rig
	view view
	a, b *speaker
	k    uint64
}

func newTwoZones(t *testing.T) *twoZones {
	p := &twoZones{rig: newRig(t, cascade(1)), a: newSpeaker("a", "z1", 1), b: newSpeaker("b", "z2", 2)}
	p.now = time.Now()
	p.warm()
	p.view = view{&Controller{node: p.n}}
	for _, s := range []*speaker{p.a, p.b} {
		s.join(p.rig)
		for i := range uint64(3) {
			s.c.nodes = append(s.c.nodes, &grlv1.Node{Role: grlv1.Role_ROLE_CLIENT, Name: fmt.Sprint(s.hello.GetNode(), i), Zone: s.hello.GetZone()})
		}
	}
	return p
}

// tick has the zones report for one T.
func (p *twoZones) tick(speakers ...*speaker) {
	p.k++
	own := map[*speaker]string{p.a: "checkout", p.b: "q"}
	for _, s := range speakers {
		counts := law.Counts{Offered: 100 * p.k}
		s.report(said{payCell("p", ""), 100, counts}, said{payCell(own[s], ""), 100, counts})
	}
	time.Sleep(law.T)
	p.now = time.Now()
	p.n.renew(p.now)
}

// TestSilentZone follows a zone: before it falls silent, while its last rates
// are counted, when they are not any more, and when it is back. What lacks it is
// marked in every answer, and nothing else is.
func TestSilentZone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTwoZones(t)
		check := func(when string, offered float64, unheard int, want ...*grlv1.SilentZone) {
			t.Helper()
			p.check(t, when, offered, unheard, want...)
		}
		for range 3 {
			p.tick(p.a, p.b)
		}
		check("before", 200, 0)

		p.n.leave(p.now, p.b.c)
		check("just now", 200, 0, &grlv1.SilentZone{Name: "z2", Region: "r1", Counted: true})
		for range 29 {
			p.tick(p.a)
		}
		check("during the hold", 200, 3, &grlv1.SilentZone{Name: "z2", Region: "r1", SilentMs: 29_000, Counted: true})
		p.tick(p.a)
		check("after it", 100, 3, &grlv1.SilentZone{Name: "z2", Region: "r1", SilentMs: 30_000})

		p.b.join(p.rig)
		p.tick(p.a, p.b)
		check("back", 200, 0)
	})
}

// check asks in every way in which a figure may lack a zone.
func (p *twoZones) check(t *testing.T, when string, offered float64, unheard int, want ...*grlv1.SilentZone) {
	t.Helper()
	var names []string
	for _, z := range want {
		names = append(names, z.GetName())
	}
	same := func(what string, got []*grlv1.SilentZone) {
		t.Helper()
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %s names %v, want %v", when, what, got, want)
		}
	}
	f := p.view.Fleet()
	if fmt.Sprint(f.SilentZones) != fmt.Sprint(names) {
		t.Errorf("%s: the tree names %q, want %q", when, f.SilentZones, names)
	}
	for _, z := range want {
		if f.SilentCounted[z.GetName()] != z.GetCounted() || f.SilentFor[z.GetName()].Milliseconds() != z.GetSilentMs() || f.SilentIn[z.GetName()] != z.GetRegion() {
			t.Errorf("%s: the tree has %+v, want %v", when, f, z)
		}
	}
	fleet, err := p.view.GetFleet(t.Context(), &grlv1.GetFleetRequest{})
	if err != nil {
		t.Fatal(err)
	}
	same("GetFleet", fleet.GetSilent())

	p.view.sights.last.Store(nil) // a look is not taken for one of before
	for _, c := range p.view.Cells() {
		var lacks []string
		if c.Name == "p" || c.Name == "q" { // what z2 offers to
			lacks = names
		}
		if unheard == 0 && len(want) > 0 {
			lacks = names // nobody has looked yet what it offers to
		}
		if fmt.Sprint(c.SilentZones) != fmt.Sprint(lacks) {
			t.Errorf("%s: %s lacks %q, want %q", when, c.Name, c.SilentZones, lacks)
		}
		if c.Name == "p" && c.OfferedRPS != offered {
			t.Errorf("%s: %v rps, want %v", when, c.OfferedRPS, offered)
		}
	}
	list, err := p.view.ListBuckets(t.Context(), &grlv1.ListBucketsRequest{Service: "pay"})
	if err != nil {
		t.Fatal(err)
	}
	same("ListBuckets", list.GetSilent())
	for _, procedure := range []string{"p/do", "q/do"} {
		e, err := p.view.Explain(t.Context(), &grlv1.ExplainRequest{Service: "pay", Caller: "web", Procedure: procedure})
		if err != nil {
			t.Fatal(err)
		}
		same("Explain of "+procedure, e.GetSilent())
	}
	if got := (load{p.view.Controller}).Cap("pay", "none").Unheard; got != unheard || f.Unheard != unheard {
		t.Errorf("%s: %d hosts of caps and %d of the tree are unheard, want %d", when, got, f.Unheard, unheard)
	}
}

// TestZoneThatDoesNotComeBack starts a controller again while a zone is away:
// it may offer to any bucket of its instances, and nobody knows what.
func TestZoneThatDoesNotComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cascade(1)
		c.Services[0].Buckets = append(c.Services[0].Buckets, limiter.Bucket{Service: "pay", Name: "zonal", LimitRPS: 100, Scope: limiter.Zone})
		r := newRig(t, c)
		r.now = time.Now()
		r.n.before = map[string]*zone{
			"z1": {name: "z1", region: "r1", lost: r.now.Add(-time.Minute)},
			"z2": {name: "z2", region: "r1", lost: r.now.Add(-time.Minute)},
			"z3": {name: "z3", region: "r2", lost: r.now.Add(-forgetZone)},
		}
		if got := r.n.silent(r.now); len(got) != 0 {
			t.Errorf("while it warms up it names %v, want none", got)
		}
		r.warm()
		a := newSpeaker("a", "z1", 1)
		a.join(r)
		v := view{&Controller{node: r.n}}
		zonal := limiter.CellID{Bucket: "pay/zonal", Instance: "z1"}
		a.report(said{payCell("p", ""), 100, law.Counts{}}, said{zonal, 100, law.Counts{}})
		time.Sleep(law.T)
		r.now = time.Now()
		r.n.renew(r.now)
		if f := v.Fleet(); fmt.Sprint(f.SilentZones) != "[z2]" || f.SilentCounted["z2"] || f.SilentFor["z2"] != time.Minute+law.T {
			t.Errorf("the tree names %q since %v, want z2", f.SilentZones, f.SilentFor)
		}
		rows := byName(v.Cells())
		if fmt.Sprint(rows["p"].SilentZones) != "[z2]" || len(rows["zonal"].SilentZones) != 0 {
			t.Errorf("a global bucket lacks %q, that of z1 %q; want z2 and none", rows["p"].SilentZones, rows["zonal"].SilentZones)
		}
		parts := v.Parts("pay/p", "")
		if len(parts) != 2 || parts[1].Zone != "z2" || !parts[1].Silent || parts[1].Counted {
			t.Errorf("by zone: %+v, want z2 as a silent one", parts)
		}

		b := newSpeaker("b", "z2", 2)
		b.join(r)
		b.report()
		if got := r.n.silent(r.now); len(got) != 0 {
			t.Errorf("when it is there it names %v, want none", got)
		}
	})
}

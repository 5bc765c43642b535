package controller

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

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

// belowText says which zones are silent, and what lacks them.
func (w *world) belowText() string {
	n, now := w.up.n, w.up.now
	var lines []string
	all := n.silent(now)
	for _, s := range all {
		lines = append(lines, fmt.Sprintf("%s of %s for %v, counted %v, hosts %d", s.name, s.region, now.Sub(s.lost), s.counted, s.hosts))
	}
	for _, id := range []limiter.CellID{
		cellOf(0),
		{Bucket: "pay/each", Caller: "web"},
		{Bucket: "pay/zonal"},
		{Bucket: "pay/zonal", Instance: "eu1"},
		{Bucket: "pay/zonal", Instance: "eu2"},
		{Bucket: "pay/regional", Instance: "eu"},
		{Bucket: "pay/regional", Instance: "us"},
	} {
		for _, zone := range offering(all, n.buckets[id.Bucket], id) {
			lines = append(lines, id.Bucket+" "+id.Instance+" lacks "+zone)
		}
	}
	return strings.Join(lines, "\n")
}

// TestSilentZoneOfARegion follows a zone of a region at the parent of that: it is
// told of, and what the region offered to when it fell silent is marked. One that
// begins meanwhile does not know what that was.
func TestSilentZoneOfARegion(t *testing.T) {
	w := newWorld(t)
	c := newSpeaker("c", "eu2", 5)
	c.hello.Region = "eu"
	join := func() {
		c.join(w.eu.rig)
		c.c.nodes = []*grlv1.Node{{Role: grlv1.Role_ROLE_CLIENT, Name: "h1", Zone: "eu2"}, {Role: grlv1.Role_ROLE_CLIENT, Name: "h2", Zone: "eu2"}}
	}
	join()
	live := true
	rounds := func(many int) {
		for range many {
			w.a.report(said{cellOf(0), 100, law.Counts{}}, said{limiter.CellID{Bucket: "pay/zonal", Instance: "eu1"}, 10, law.Counts{}})
			w.b.report(said{cellOf(0), 100, law.Counts{}}, said{limiter.CellID{Bucket: "pay/each", Caller: "web"}, 5, law.Counts{}})
			if live {
				c.report(
					said{cellOf(0), 50, law.Counts{}}, said{limiter.CellID{Bucket: "pay/zonal", Instance: "eu2"}, 10, law.Counts{}},
					said{limiter.CellID{Bucket: "pay/regional", Instance: "eu"}, 5, law.Counts{}},
				)
			}
			w.pass(law.T)
			w.round()
		}
	}
	check := func(when string, offered float64, want ...string) {
		t.Helper()
		if diff := cmp.Diff(strings.Join(want, "\n"), w.belowText()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
		if got := w.up.rps(cellOf(0)); got != offered {
			t.Errorf("%s: %v rps, want %v", when, got, offered)
		}
	}
	lacks := []string{"pay/b0  lacks eu2", "pay/zonal  lacks eu2", "pay/zonal eu2 lacks eu2", "pay/regional eu lacks eu2"}
	silent := func(of string, lacks ...string) []string { return append([]string{"eu2 of eu for " + of}, lacks...) }

	rounds(3)
	check("before", 250)
	w.eu.n.leave(w.eu.now, c.c)
	live = false
	rounds(1)
	check("while it counts", 250, silent("1s, counted true, hosts 2", lacks...)...)
	rounds(29)
	check("when it does not any more", 200, silent("30s, counted false, hosts 2", lacks...)...)

	w.up.n.leave(w.up.now, w.eu.c)
	w.up.n.renew(w.up.now)
	check("without the region", 200, "region eu of eu for 0s, counted true, hosts 0",
		"pay/b0  lacks region eu", "pay/zonal  lacks region eu", "pay/zonal eu1 lacks region eu")
	w.eu.join()
	rounds(1)
	check("with it again", 200, silent("31s, counted false, hosts 2", lacks...)...)

	held := w.up.n.config
	w.up.start(2, held)
	w.up.warm()
	for _, r := range []*regional{w.eu, w.us} {
		r.c = nil
		r.join()
	}
	rounds(1)
	check("at a new parent", 200, silent("32s, counted false, hosts 2",
		"pay/b0  lacks eu2", "pay/each  lacks eu2", "pay/zonal  lacks eu2", "pay/zonal eu2 lacks eu2", "pay/regional eu lacks eu2")...)

	join()
	live = true
	rounds(1)
	check("back", 250)
}

// What a region may say of its zones without harm.
func TestSilencesAreTakenWithCare(t *testing.T) {
	w := newWorld(t)
	d := newSpeaker("d", "direct", 6)
	d.join(w.up)
	region := w.eu.c.zone
	var told []*grlv1.Silence
	for i := range mostSilent {
		told = append(told, &grlv1.Silence{Zone: fmt.Sprint("z", i)})
	}
	for name, m := range map[string]*grlv1.Silence{
		"no name":          {Zone: ""},
		"no zone's name":   {Zone: "region us"},
		"a hostile name":   {Zone: "a\x1b[2J"},
		"one that is here": {Zone: "direct"},
		"long forgotten":   {Zone: "old", SilentMs: uint64(forgetZone.Milliseconds())},
		"for ever":         {Zone: "old", SilentMs: math.MaxUint64},
	} {
		w.up.n.hearSilences(w.up.now, region, []*grlv1.Silence{m, {Zone: "eu2"}})
		if len(region.below) != 1 || region.below[0].name != "eu2" {
			t.Errorf("%s: took %v", name, region.below)
		}
	}
	w.up.n.hearSilences(w.up.now, region, []*grlv1.Silence{{Zone: "eu2"}, {Zone: "eu2"}})
	if len(region.below) != 1 {
		t.Errorf("told of one twice it has %d", len(region.below))
	}
	region.below = nil
	w.up.n.hearSilences(w.up.now, region, append(told, &grlv1.Silence{Zone: "more"}))
	if len(region.below) != mostSilent {
		t.Errorf("took %d, want %d", len(region.below), mostSilent)
	}
	w.up.n.hearSilences(w.up.now, region, nil)
	if len(region.below) != mostSilent {
		t.Errorf("of what is not told any more %d are left, want all: nobody is there", len(region.below))
	}
	for i, m := range told {
		m.Zone = fmt.Sprint("other", i)
	}
	told[0].Zone = "z7"
	w.up.n.hearSilences(w.up.now, region, told)
	if len(region.below) != mostSilent || hasZone(region.below, "z8") {
		t.Errorf("of as many others it has %d", len(region.below))
	}
	w.us.c.nodes = []*grlv1.Node{{Zone: "z7"}}
	w.up.n.hearSilences(w.up.now, region, told)
	if len(region.below) != mostSilent-1 || hasZone(region.below, "z7") {
		t.Errorf("with z7 in another region there are %d, want all but that", len(region.below))
	}
	w.us.c.nodes = nil
	w.up.n.hearSilences(w.up.now, region, told)
	w.eu.c.nodes = []*grlv1.Node{{Zone: "z7"}}
	w.up.n.hearSilences(w.up.now, region, nil)
	if len(region.below) != mostSilent-1 || hasZone(region.below, "z7") {
		t.Errorf("with a node in z7 there are %d, want all but that", len(region.below))
	}
	w.up.n.hearSilences(w.up.now.Add(forgetZone), region, nil)
	if len(region.below) != 0 {
		t.Errorf("a day later there are %d, want none", len(region.below))
	}
}

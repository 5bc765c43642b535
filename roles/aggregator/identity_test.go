package aggregator

import (
	"strings"
	"testing"

	"grl/limiter"
	"grl/limiter/law"
	"grl/proto/access"
	grlv1 "grl/proto/grl/v1"
)

func TestCheckIdentity(t *testing.T) {
	client := &access.Node{Role: access.Client, Zone: "z1", Service: "pay"}
	hello := func(zone string, services, callers []string) *grlv1.Hello {
		return &grlv1.Hello{Role: grlv1.Role_ROLE_CLIENT, Zone: zone, Region: "r1", Services: services, Callers: callers}
	}
	pay := []string{"pay"}
	tests := []struct {
		name  string
		node  *access.Node
		hello *grlv1.Hello
		want  string // "": taken
	}{
		{"plain text", nil, hello("z1", []string{"any"}, nil), ""},
		{"own service and caller", client, hello("z1", pay, pay), ""},
		{"another zone", client, hello("z2", pay, nil), `zone "z2"`},
		{"another service", client, hello("z1", []string{"pay", "shop"}, nil), `"shop"`},
		{"another caller", client, hello("z1", pay, []string{"shop"}), `"shop"`},
		{"controller of the region", &access.Node{Role: access.Controller, Zone: "r1"}, hello("z1", []string{"any"}, nil), ""},
		{"controller of another region", &access.Node{Role: access.Controller, Zone: "r2"}, hello("z1", nil, nil), `region "r1"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := checkIdentity(tt.node, tt.hello)
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}

// identityNode is a node whose configuration has a service of each side.
func identityNode() *node {
	n := newNode("z1", "r1", 0)
	bucket := func(service, name string, match limiter.Match, perCaller bool) limiter.Bucket {
		return limiter.Bucket{Service: service, Name: name, Match: match, PerCaller: perCaller, LimitRPS: 100, Behavior: limiter.Deny}
	}
	n.install(&limiter.Configuration{Epoch: 1, Revision: 1, Services: []limiter.Service{
		{Name: "pay", Buckets: []limiter.Bucket{bucket("pay", "all", limiter.Match{}, false), bucket("pay", "each", limiter.Match{Caller: "*"}, true)}},
		{Name: "shop", Buckets: []limiter.Bucket{bucket("shop", "all", limiter.Match{}, false)}},
		{Name: "mail", Enforce: limiter.Outbound, Buckets: []limiter.Bucket{
			bucket("mail", "all", limiter.Match{}, false),
			bucket("mail", "each", limiter.Match{Caller: "*"}, true),
			bucket("mail", "shops", limiter.Match{Caller: "shop*"}, false),
		}},
	}})
	return n
}

// TestForeignCells says which cells a host may report about.
func TestForeignCells(t *testing.T) {
	inbound := &grlv1.Hello{Services: []string{"pay"}}
	outbound := &grlv1.Hello{Callers: []string{"pay"}}
	tests := []struct {
		name   string
		hello  *grlv1.Hello
		proved bool
		cell   limiter.CellID
		want   bool
	}{
		{"own service", inbound, true, limiter.CellID{Bucket: "pay/all"}, true},
		{"a caller of the own service", inbound, true, limiter.CellID{Bucket: "pay/each", Caller: "shop"}, true},
		{"another service", inbound, true, limiter.CellID{Bucket: "shop/all"}, false},
		{"another service, without a certificate", inbound, false, limiter.CellID{Bucket: "shop/all"}, false},
		{"outbound service, without calling out", inbound, true, limiter.CellID{Bucket: "mail/all"}, false},
		{"outbound service", outbound, true, limiter.CellID{Bucket: "mail/all"}, true},
		{"inbound service of another, calling out", outbound, true, limiter.CellID{Bucket: "shop/all"}, false},
		{"own caller's cell", outbound, true, limiter.CellID{Bucket: "mail/each", Caller: "pay"}, true},
		{"another caller's cell", outbound, true, limiter.CellID{Bucket: "mail/each", Caller: "shop"}, false},
		{"another caller's cell, which a header named", outbound, false, limiter.CellID{Bucket: "mail/each", Caller: "shop"}, true},
		{"bucket of other callers", outbound, true, limiter.CellID{Bucket: "mail/shops"}, false},
		{"no such bucket", inbound, true, limiter.CellID{Bucket: "pay/none"}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			n := identityNode()
			if _, got := n.cellOf(&host{hello: tt.hello, proved: tt.proved}, tt.cell); got != tt.want {
				t.Errorf("takes %+v: %v, want %v", tt.cell, got, tt.want)
			}
		})
	}
}

// TestForeignCellIsNotCounted forges a report about another service beside one
// that is right, on one stream.
func TestForeignCellIsNotCounted(t *testing.T) {
	r := newRig(t, identityNode().config)
	h := r.n.join(r.now, &grlv1.Hello{Node: "h", BootId: 1, Zone: "z1", Services: []string{"pay"}}, map[limiter.CellID]law.Counts{})
	fresh, err := r.n.report(r.now, h, &grlv1.Report{
		Sequence: 1,
		Names:    []*grlv1.CellName{{Bucket: "shop/all"}, {Bucket: "pay/all"}},
		Cell:     []uint32{0, 1}, OfferedMicroRps: []uint64{1e15, 5e6}, Offered: []uint64{7, 3},
	})
	if err != nil || !fresh {
		t.Fatalf("report: %v, %v", fresh, err)
	}
	if i, ok := r.n.cells.Find(limiter.CellID{Bucket: "shop/all"}); ok {
		t.Errorf("the forged cell has a rate of %+v", r.n.sum.Rate(i))
	}
	i, ok := r.n.cells.Find(limiter.CellID{Bucket: "pay/all"})
	if !ok || r.n.sum.Rate(i).Offered != 5e6 {
		t.Errorf("the own cell was not taken")
	}
	if h.foreign != "shop/all" {
		t.Errorf("noticed %q, want shop/all", h.foreign)
	}
}

func TestForeignDetail(t *testing.T) {
	n := identityNode()
	callers := func(bucket string) *grlv1.BucketCallers {
		return &grlv1.BucketCallers{Bucket: bucket, Callers: []*grlv1.CallerCounts{{Caller: "pay", Offered: 1}, {Caller: "shop", Offered: 9}}}
	}
	pairs := func(service string) *grlv1.ServicePairs {
		return &grlv1.ServicePairs{Service: service, Pairs: []*grlv1.PairCounts{{Caller: "pay", Procedure: "p"}, {Caller: "shop", Procedure: "p"}}}
	}
	m := &grlv1.Detail{
		Buckets:  []*grlv1.BucketCallers{callers("pay/all"), callers("shop/all"), callers("mail/all"), callers("mail/shops"), callers("none/all")},
		Services: []*grlv1.ServicePairs{pairs("pay"), pairs("shop"), pairs("mail"), pairs("none")},
	}
	n.own(&host{hello: &grlv1.Hello{Services: []string{"pay"}, Callers: []string{"pay"}}, proved: true}, m)

	left := map[string]int{}
	for _, b := range m.GetBuckets() {
		left[b.GetBucket()] = len(b.GetCallers())
	}
	for _, s := range m.GetServices() {
		left[s.GetService()] = len(s.GetPairs())
	}
	want := map[string]int{"pay/all": 2, "mail/all": 1, "pay": 2, "mail": 1}
	for name, n := range want {
		if left[name] != n {
			t.Errorf("%s: %d are left, want %d", name, left[name], n)
		}
	}
	if len(left) != len(want) {
		t.Errorf("left are %v, want %v", left, want)
	}
}

package controller

import (
	"fmt"
	"testing"

	"connectrpc.com/connect"

	"grl/limiter"
	"grl/limiter/law"
	grlv1 "grl/proto/grl/v1"
)

// listRig has 25 buckets of which the later ones drop more.
func listRig(t *testing.T) view {
	r := newRig(t, configuration(3, 25))
	for i := range r.n.config.Services[0].Buckets {
		r.n.config.Services[0].Buckets[i].Behavior = limiter.Deny
	}
	r.warm()
	s := newSpeaker("a", "z1", 1)
	s.join(r)
	var rows []said
	for i := range 25 {
		rows = append(rows, said{cellOf(i), 2000, law.Counts{}})
	}
	s.report(rows...)
	for i := range 25 {
		rows[i].counts = law.Counts{Offered: 1000, Dropped: uint64(10 * (i / 2))}
		rows[i].rps = 2000 + float64(i)
	}
	r.pass(law.T)
	s.report(rows...)
	r.n.renew(r.now)
	return view{&Controller{node: r.n}}
}

func TestListBucketsPages(t *testing.T) {
	v := listRig(t)
	all, err := v.ListBuckets(t.Context(), &grlv1.ListBucketsRequest{})
	if err != nil || all.GetTotal() != 27 || len(all.GetBuckets()) != 27 || all.GetNextPageToken() != "" || all.GetRevision() != 3 {
		t.Fatalf("ListBuckets = %v, %v; want 27 rows of r3 on one page", all, err)
	}
	var names []string
	for token, pages := "", 0; ; pages++ {
		page, err := v.ListBuckets(t.Context(), &grlv1.ListBucketsRequest{PageSize: 10, PageToken: token, Service: "pay"})
		if err != nil || page.GetTotal() != 27 || len(page.GetBuckets()) > 10 || pages > 2 {
			t.Fatalf("page %d: %d rows of %d, %v", pages, len(page.GetBuckets()), page.GetTotal(), err)
		}
		for _, b := range page.GetBuckets() {
			names = append(names, b.GetBucket())
		}
		if token = page.GetNextPageToken(); token == "" {
			break
		}
	}
	for i, b := range all.GetBuckets() {
		if i >= len(names) || names[i] != b.GetBucket() {
			t.Fatalf("pages have %v, want the same as one page", names)
		}
	}
	if none, err := v.ListBuckets(t.Context(), &grlv1.ListBucketsRequest{Service: "orders"}); err != nil || none.GetTotal() != 0 || len(none.GetBuckets()) != 0 {
		t.Errorf("another service: %v, %v", none, err)
	}
}

func TestListBucketsOrders(t *testing.T) {
	v := listRig(t)
	for order, want := range map[grlv1.ListBucketsOrder]string{
		grlv1.ListBucketsOrder_LIST_BUCKETS_ORDER_DROPPED: "[pay/b24 pay/b23 pay/b22]",
		grlv1.ListBucketsOrder_LIST_BUCKETS_ORDER_OFFERED: "[pay/b24 pay/b23 pay/b22]",
	} {
		got, err := v.ListBuckets(t.Context(), &grlv1.ListBucketsRequest{PageSize: 3, Order: order})
		if err != nil || got.GetNextPageToken() != "" || got.GetTotal() != 27 {
			t.Fatalf("%v: %v, %v", order, got, err)
		}
		var names []string
		for _, b := range got.GetBuckets() {
			names = append(names, b.GetBucket())
		}
		if fmt.Sprint(names) != want {
			t.Errorf("%v: %v, want %s", order, names, want)
		}
	}
}

func TestListBucketsRefuses(t *testing.T) {
	v := listRig(t)
	for _, r := range []*grlv1.ListBucketsRequest{
		{PageSize: 10_001},
		{Order: 9},
		{PageToken: "!"},
		{PageToken: "YWJj"},
		{PageToken: token(&entry{bucket: &limiter.Bucket{}}), Order: grlv1.ListBucketsOrder_LIST_BUCKETS_ORDER_DROPPED},
	} {
		if got, err := v.ListBuckets(t.Context(), r); connect.CodeOf(err) != connect.CodeInvalidArgument {
			t.Errorf("ListBuckets(%v) = %v, %v", r, got, err)
		}
	}
}

func TestListBucketsShowsCapsAndCandidates(t *testing.T) {
	c := configuration(1, 1)
	c.Services[0].Buckets[0].Behavior, c.Services[0].Buckets[0].CandidateRPS = limiter.Deny, 300
	r := newRig(t, c)
	c = configuration(1, 1)
	c.Services[0].Buckets[0].Behavior, c.Services[0].Buckets[0].CandidateRPS = limiter.Deny, 300
	c.Epoch, c.Caps = 1, []limiter.Cap{{ID: "4", Service: "pay", LimitRPS: 5, Ends: r.now.Add(1e12)}}
	r.n.install(c, nil, nil)
	got, err := view{&Controller{node: r.n}}.ListBuckets(t.Context(), &grlv1.ListBucketsRequest{Service: "pay"})
	if err != nil {
		t.Fatal(err)
	}
	first, second := got.GetBuckets()[0], got.GetBuckets()[1]
	if first.GetBucket() != "pay/_cap-4" || first.GetCapId() != "4" || first.GetLimitRps() != 5 || first.GetDirectiveAgeMs() != -1 {
		t.Errorf("cap %v", first)
	}
	if second.GetBucket() != "pay/b0" || second.GetCandidateRps() != 300 || second.GetCapId() != "" {
		t.Errorf("candidate %v", second)
	}
	if third := got.GetBuckets()[2]; third.CandidateRps != nil {
		t.Errorf("no candidate: %v", third)
	}
}

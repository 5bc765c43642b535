package fleet_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"grl/web/fleet"
	"grl/web/page"
	"grl/web/pagetest"
)

// someFleet has a zone that is cut off, a host that refused a revision, one that
// does not report, and a region that is well.
func someFleet() page.Fleet {
	f := page.Fleet{
		Epoch: 12, Revision: 1482,
		Controller: page.Node{Role: "controller", Name: "global-1", Version: "v1.4.2", Revision: 1482},
		Nodes: []page.Node{
			{Role: "controller", Name: "eu-c", Region: "eu", Version: "v1.4.2", Revision: 1482, ReportAge: 200 * time.Millisecond},
			{Role: "aggregator", Name: "eu-1-a", Zone: "eu-1", Region: "eu", Version: "v1.4.2", Revision: 1482, ReportAge: 300 * time.Millisecond, DirectiveAge: 900 * time.Millisecond, Hosts: 3},
			{Role: "client", Name: "pay-1", Zone: "eu-1", Region: "eu", Version: "v1.4.2", Revision: 1482, ReportAge: 400 * time.Millisecond, DirectiveAge: 300 * time.Millisecond},
			{Role: "client", Name: "pay-2", Zone: "eu-1", Region: "eu", Version: "v1.3.0", Revision: 1466, RefusedRevision: 1482, RefusedReason: `bucket "payments/writes": unknown field candidate`, ReportAge: 500 * time.Millisecond},
			{Role: "client", Name: "pay-3", Zone: "eu-1", Region: "eu", Version: "v1.4.2", Revision: 1481, ReportAge: 9 * time.Second},
			{Role: "aggregator", Name: "us-1-a", Zone: "us-1", Region: "us", Version: "v1.4.2", Revision: 1482, ReportAge: 300 * time.Millisecond, Hosts: 2},
			{Role: "aggregator", Name: "us-1-b", Zone: "us-1", Region: "us", Version: "v1.4.2", Revision: 1482, ReportAge: 300 * time.Millisecond, Hosts: 1},
			{Role: "client", Name: "web-1", Zone: "us-1", Region: "us", Version: "v1.4.2", Revision: 1482, ReportAge: 500 * time.Millisecond},
		},
		SilentZones: []string{"eu-2"}, SilentFor: map[string]time.Duration{"eu-2": 12 * time.Second}, SilentIn: map[string]string{"eu-2": "eu"},
	}
	return f
}

func show(t testing.TB, f page.Fleet, target string) string {
	t.Helper()
	r, body := pagetest.Get(t, pagetest.Handler(fleet.Routes(pagetest.Site(pagetest.Memory{Tree: f}))), pagetest.Admin, target, true)
	if r.StatusCode != http.StatusOK {
		t.Fatalf("%s: status %d:\n%s", target, r.StatusCode, body)
	}
	return body
}

// wants fails unless a page contains all of these, in this order.
func wants(t *testing.T, body string, texts ...string) {
	t.Helper()
	rest := body
	for _, want := range texts {
		i := strings.Index(rest, want)
		if i < 0 {
			t.Fatalf("no %q, or not there, in\n%s", want, rest)
		}
		rest = rest[i+len(want):]
	}
}

// Zones that need a look are open and say why; the others are folded.
func TestTroubleIsOpen(t *testing.T) {
	body := show(t, someFleet(), "/fleet")
	wants(t, body, "global-1", "Leads, epoch 12", ">eu<", "controller, regional",
		">eu-1<", "1 refused", ">pay-2<", "Refused r1482", "r1466", "◂", "Keeps r1466: “bucket &#34;payments/writes&#34;: unknown field candidate”",
		">pay-3<", "No report 9.0 s", "All 3 hosts of eu-1", ">eu-2<", "Cut off 12 s", "Autonomous for 18 s more", ">us<", ">us-1<", "2 aggregators")
	for _, bad := range []string{">pay-1<", ">web-1<"} {
		if strings.Contains(body, bad) {
			t.Errorf("%s is shown, though nothing is wrong with it", bad)
		}
	}
	body = show(t, someFleet(), "/fleet?close=z.eu-1&open=z.us-1")
	wants(t, body, ">us-1<", ">us-1-a<", ">us-1-b<", ">web-1<")
	if strings.Contains(body, ">pay-2<") {
		t.Error("a folded zone shows its hosts")
	}
}

// What is cut off says what it does now, for how long still, and what comes next.
func TestCutOff(t *testing.T) {
	tests := []struct {
		name  string
		since time.Duration
		want  string
	}{
		{"just now", 12 * time.Second, "Autonomous for 18 s more"},
		{"held", 33 * time.Second, "Hosts hold their last ratios for 7.0 s more, then decay for 10 s and open."},
		{"fading", 45 * time.Second, "The last ratios of its hosts decay; in 5.0 s they admit everything."},
		{"open", time.Minute, "Its hosts admit everything by now."},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := someFleet()
			f.SilentFor["eu-2"] = tt.since
			wants(t, show(t, f, "/fleet"), tt.want, "Nothing was heard since ")
		})
	}
}

// A filter makes a list of the nodes that are meant.
func TestFilters(t *testing.T) {
	tests := []struct {
		target string
		want   []string // names of nodes
	}{
		{"/fleet?q=PAY", []string{"pay-2", "pay-3", "pay-1"}},
		{"/fleet?q=us-1", []string{"us-1-a", "us-1-b", "web-1"}},
		{"/fleet?show=refused", []string{"pay-2"}},
		{"/fleet?show=late", []string{"pay-3"}},
		{"/fleet?version=v1.3.0", []string{"pay-2"}},
		{"/fleet?show=trouble&q=eu", []string{"pay-2", "pay-3"}},
		{"/fleet?q=none", nil},
	}
	for _, tt := range tests {
		t.Run(tt.target, func(t *testing.T) {
			body := show(t, someFleet(), tt.target)
			for _, name := range []string{"pay-1", "pay-2", "pay-3", "web-1", "us-1-a", "us-1-b", "eu-1-a"} {
				shown, want := strings.Contains(body, ">"+name+"<"), false
				for _, w := range tt.want {
					want = want || w == name
				}
				if shown != want {
					t.Errorf("%s is shown: %v, want %v", name, shown, want)
				}
			}
			var inOrder []string
			for _, w := range tt.want {
				inOrder = append(inOrder, ">"+w+"<")
			}
			wants(t, body, inOrder...)
		})
	}
}

// large is a fleet of 100,000 hosts in 30 zones of 3 regions; one is behind.
func large() page.Fleet {
	f := page.Fleet{Revision: 7, Controller: page.Node{Role: "controller", Name: "global-1", Revision: 7}}
	for z := range 30 {
		f.Nodes = append(f.Nodes, page.Node{Role: "aggregator", Name: fmt.Sprintf("agg-%d", z), Zone: fmt.Sprintf("zone-%d", z), Region: fmt.Sprintf("region-%d", z%3), Revision: 7, Hosts: 3333})
	}
	for i := range 100_000 {
		z := i % 30
		f.Nodes = append(f.Nodes, page.Node{Role: "client", Name: fmt.Sprintf("host-%06d", i*7919%100_000), Zone: fmt.Sprintf("zone-%d", z), Region: fmt.Sprintf("region-%d", z%3), Version: "v1", Revision: 7, DirectiveAge: time.Duration(i) * time.Microsecond})
	}
	f.Nodes[100].Revision = 6
	return f
}

// 100,000 hosts are summed by zone, and paged inside one. The bound has the
// slack of a loaded machine; BenchmarkFleet has the figure.
func TestHundredThousandHosts(t *testing.T) {
	f := large()
	for _, target := range []string{"/fleet", "/fleet?open=r.region-1&open=z.zone-7&in=z.zone-7&page=3", "/fleet?q=host-09", "/fleet?show=behind"} {
		began := time.Now()
		body := show(t, f, target)
		if took := time.Since(began); took > 5*time.Second || len(body) > 300_000 {
			t.Errorf("%s: %d bytes after %v", target, len(body), took)
		}
	}
	body := show(t, f, "/fleet?open=r.region-1&open=z.zone-7&in=z.zone-7&page=3")
	if n := strings.Count(body, ">host-"); n != 50+1 { // and the one that is behind
		t.Errorf("%d hosts are shown, want 50 and the one behind", n)
	}
	wants(t, body, "101–150 of 3,334", "page=2", "page=4")
	body = show(t, f, "/fleet")
	wants(t, body, "9 other zones, all live")
	wants(t, show(t, f, "/fleet/now"), ">99,990<", "1 behind")
}

func TestLongestNames(t *testing.T) {
	long := strings.Repeat("n", 256)
	f := page.Fleet{Revision: 2}
	for z := range 200 {
		name := fmt.Sprintf("%d%s", z, long)
		f.Nodes = append(f.Nodes, page.Node{Role: "aggregator", Name: name, Zone: name, Region: name, Version: name, RefusedRevision: 2, RefusedReason: strings.Repeat(long, 8)})
		for range 20 {
			f.Nodes = append(f.Nodes, page.Node{Role: "client", Name: name, Zone: name, Region: name, Version: name, RefusedRevision: 2, RefusedReason: strings.Repeat(long, 8)})
		}
	}
	for _, target := range []string{"/fleet", "/fleet?show=refused"} {
		if body := show(t, f, target); len(body) > 250_000 { // the frame is some more
			t.Errorf("%s has %d bytes, want at most 250,000", target, len(body))
		}
	}
	wants(t, show(t, f, "/fleet"), "Not all rows have room here")
}

func BenchmarkFleet(b *testing.B) {
	h := pagetest.Handler(fleet.Routes(pagetest.Site(pagetest.Memory{Tree: large()})))
	for b.Loop() {
		pagetest.Get(b, h, pagetest.Admin, "/fleet", false)
	}
}

// A region without a controller is as its zones are.
func TestRegionIsAsItsZones(t *testing.T) {
	f := someFleet()
	f.SilentZones = append(f.SilentZones, "ap-1")
	f.SilentIn["ap-1"], f.SilentFor["ap-1"] = "ap", time.Second
	f.Nodes = append(f.Nodes,
		page.Node{Role: "aggregator", Name: "sa-1-a", Zone: "sa-1", Region: "sa", Revision: 1482},
		page.Node{Role: "client", Name: "old", Zone: "sa-1", Region: "sa", Revision: 1480, RefusedRevision: 1482, RefusedReason: "r"})
	wants(t, show(t, f, "/fleet"), ">ap<", "1 of 1 zone cut off", ">ap-1<", ">sa<", "1 refused", ">sa-1<", ">us<", "Live")
}

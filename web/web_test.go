package web

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"grl/limiter"

	"grl/web/page"
	"grl/web/pagetest"
)

// someFleet has a zone that is cut off, and a node that refused a revision.
func someFleet(now time.Time) page.Fleet {
	return page.Fleet{
		Epoch: 12, Revision: 1482, Loaded: now.Add(-3 * time.Hour),
		Controller: page.Node{Role: "controller", Name: "global-1", Version: "v1.4.2", Revision: 1482, Hosts: 98_412, BytesReceived: 61_000_000, BytesSent: 38_000_000},
		Nodes: []page.Node{
			{Role: "aggregator", Name: "eu-1-a", Zone: "eu-1", Region: "eu", Version: "v1.4.2", Revision: 1482, ReportAge: 300 * time.Millisecond, DirectiveAge: 900 * time.Millisecond, Hosts: 4812},
			{Role: "aggregator", Name: "eu-2-a", Zone: "eu-2", Region: "eu", Version: "v1.4.2", Revision: 1481, ReportAge: 12 * time.Second, DirectiveAge: 13 * time.Second, Hosts: 4655},
			{Role: "aggregator", Name: "us-1-a", Zone: "us-1", Region: "us", Version: "v1.3.0", Revision: 1466, RefusedRevision: 1482, RefusedReason: `bucket "payments/writes": unknown field candidate`, ReportAge: 500 * time.Millisecond, Hosts: 4071},
			{Role: "aggregator", Name: "us-1-b", Zone: "us-1", Region: "us", Version: "v1.4.2", Revision: 1482, ReportAge: 4200 * time.Millisecond, Hosts: 80},
		},
		SilentZones: []string{"eu-2"},
	}
}

// testAssets are small ones, so that golden files do not change with a style.
func testAssets(t testing.TB, built bool) *assets {
	t.Helper()
	files := fstest.MapFS{
		"static/grl.css":     {Data: []byte("body { margin: 0 }")},
		"static/live.js":     {Data: []byte(`"use strict";`)},
		"static/hands.js":    {Data: []byte(`"use strict";`)},
		"static/keys.js":     {Data: []byte(`"use strict";`)},
		"static/zoom.js":     {Data: []byte(`"use strict";`)},
		"static/favicon.svg": {Data: []byte("<svg/>")},
	}
	if built {
		files["dist/htmx.org-4.0.1-htmx.min-0123456789.js"] = &fstest.MapFile{Data: []byte("htmx")}
	}
	a, err := newAssets(files, files)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func testHandler(t testing.TB, b page.Backend) http.Handler {
	t.Helper()
	return newHandler(Options{Backend: b, Version: "v1.4.2", Hosts: []string{"grl.example.com"}}, testAssets(t, true))
}

// get asks h for target, as htmx does if fragment is set.
func get(t testing.TB, h http.Handler, target string, fragment bool) (*http.Response, string) {
	t.Helper()
	r := httptest.NewRequest("GET", "http://localhost:7070"+target, nil)
	if fragment {
		r.Header.Set("HX-Request", "true")
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	body, err := io.ReadAll(w.Result().Body)
	if err != nil {
		t.Fatal(err)
	}
	return w.Result(), string(body)
}

// Each region's URL is a page, and to htmx the content of that page's region.
func TestFragmentIsPartOfThePage(t *testing.T) {
	h := testHandler(t, pagetest.Memory{Rows: pagetest.Cells(), Tree: someFleet(time.Now())})
	for _, target := range []string{"/", "/buckets", "/buckets?rows=2&sort=name&page=2", "/buckets?q=none", "/fleet", "/fleet/now", "/fleet?q=a&page=2"} {
		t.Run(target, func(t *testing.T) {
			pr, body := get(t, h, target, false)
			fr, fragment := get(t, h, target, true)
			if !strings.HasPrefix(body, "<!doctype html>") || strings.Contains(fragment, "<html") {
				t.Errorf("page begins %.20q, fragment %.20q", body, fragment)
			}
			if fragment == "" || !strings.Contains(body, fragment) {
				t.Errorf("the page does not contain its fragment:\n%s", fragment)
			}
			for _, r := range []*http.Response{pr, fr} {
				if r.Header.Get("Vary") != "HX-Request" || r.Header.Get("Cache-Control") != "no-store" {
					t.Errorf("Vary %q, Cache-Control %q", r.Header.Get("Vary"), r.Header.Get("Cache-Control"))
				}
			}
		})
	}
}

// A region polls the URL it was opened with, and never a page's own script.
func TestRegionsPollTheirURL(t *testing.T) {
	h := testHandler(t, pagetest.Memory{Rows: pagetest.Cells(), Tree: page.Fleet{}})
	_, body := get(t, h, "/buckets?q=pay&state=over&sort=-offered", false)
	if want := `hx-get="/buckets?q=pay&amp;sort=-offered&amp;state=over"`; !strings.Contains(body, want) {
		t.Errorf("no %s", want)
	}
	if n := strings.Count(body, `hx-trigger="every 2s, refresh"`); n != 1 {
		t.Errorf("%d regions poll, want that of the buckets", n)
	}
}

func TestNamesAreEscapedAndShown(t *testing.T) {
	const hostile = `<script>alert("1")</script>'&`
	const escaped = `&lt;script&gt;alert(&#34;1&#34;)&lt;/script&gt;&#39;&amp;`
	f := someFleet(time.Now())
	f.SilentZones, f.LoadError = []string{hostile}, hostile
	f.Controller.Name, f.Controller.Version = hostile, hostile
	f.Nodes[0] = page.Node{Role: hostile, Name: hostile, Zone: hostile, Region: hostile, Version: hostile, RefusedRevision: 1, RefusedReason: hostile}
	b := page.Cell{Service: hostile, Name: hostile, Owner: hostile, Match: hostile, Instance: hostile, Caller: hostile, Scope: limiter.Zone}
	h := newHandler(Options{Backend: pagetest.Memory{Rows: []page.Cell{b}, Tree: f}, Version: hostile}, testAssets(t, true))
	for _, target := range []string{"/", "/buckets?q=%3Cscript%3E&sort=%22%3E%3Cscript%3E", "/buckets?q=%3Cscript%3Ealert(1)", "/fleet?page=%3Cscript%3E"} {
		_, body := get(t, h, target, false)
		if strings.Contains(body, "<script>") {
			t.Errorf("%s: a name became markup", target)
		}
		if !strings.Contains(body, escaped) {
			t.Errorf("%s: no name is shown", target)
		}
		if strings.Contains(body, " style=") || strings.Contains(body, " onerror=") {
			t.Errorf("%s: inline style or script", target)
		}
	}
}

func TestNotices(t *testing.T) {
	many := strings.Repeat("payments.yaml:1:1: something is wrong here\n", 500)
	tests := []struct {
		name  string
		fleet page.Fleet
		want  []string
	}{
		{"refused before any revision", page.Fleet{LoadError: "x"}, []string{"The limits directory was refused: no limit is in force"}},
		{"refused later", page.Fleet{LoadError: "a\nb", Revision: 7}, []string{"refused: r7 stays active", ">a\nb</pre>"}},
		{"many errors", page.Fleet{LoadError: many}, []string{"407 more lines are in the log of the controller."}},
		{"warming up", page.Fleet{WarmingUp: true, Epoch: 3}, []string{"Warming up: not every node has reported yet"}},
		{"one zone silent", page.Fleet{SilentZones: []string{"eu-2"}}, []string{"No report from zone eu-2", "Tree healthy except zone eu-2", "0 of 1 zone"}},
		{"several", page.Fleet{SilentZones: []string{"a", "b", "c"}}, []string{"No report from zones a, b and c"}},
		{"many", page.Fleet{SilentZones: strings.Split("a b c d e f g h", " ")}, []string{"No report from zones a, b, c, d, e, f and 2 more"}},
		{"nothing yet", page.Fleet{}, []string{"Nothing is limited yet"}},
		{"all disabled", page.Fleet{AllDisabled: true}, []string{"Dropping is disabled everywhere"}},
		{"some disabled", page.Fleet{Disabled: []string{"a", "b"}}, []string{"Dropping is disabled for a and b"}},
		{"alone", page.Fleet{Alone: true}, []string{"The parent is silent"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, body := get(t, testHandler(t, pagetest.Memory{Tree: tt.fleet}), "/", false)
			for _, want := range tt.want {
				if !strings.Contains(body, want) {
					t.Errorf("no %q", want)
				}
			}
		})
	}
	t.Run("none", func(t *testing.T) {
		_, body := get(t, testHandler(t, pagetest.Memory{Tree: page.Fleet{Revision: 1}}), "/", true)
		if strings.Contains(body, "notice") {
			t.Errorf("a healthy fleet has a notice:\n%s", body)
		}
	})
}

// A page without numbers does not claim to be live.
func TestNotFoundHasNoAge(t *testing.T) {
	r, body := get(t, testHandler(t, pagetest.Memory{}), "/nothing", false)
	if r.StatusCode != http.StatusNotFound || !strings.Contains(body, "There is no page at this address") {
		t.Errorf("status %d:\n%s", r.StatusCode, body)
	}
	if strings.Contains(body, `id="live"`) || strings.Contains(body, "hx-get") {
		t.Error("it says how old its numbers are")
	}
}

func TestEmptyTables(t *testing.T) {
	_, body := get(t, testHandler(t, pagetest.Memory{}), "/", false)
	if !strings.Contains(body, "Nothing is limited yet") || !strings.Contains(body, "behavior: allow") {
		t.Error("without a bucket, no first steps")
	}
	h := testHandler(t, pagetest.Memory{Rows: pagetest.Cells()})
	_, body = get(t, h, "/buckets?q=chekout&state=over", false)
	for _, want := range []string{"No bucket matches “chekout”", "The filter “Over limit” is also on.", `value="chekout"`, `<option value="over" selected>`} {
		if !strings.Contains(body, want) {
			t.Errorf("no %q", want)
		}
	}
	_, body = get(t, h, "/buckets?state=near&scope=zone", false)
	if !strings.Contains(body, "The filters “Near limit” and “Zone” are on.") {
		t.Error("filters that are on are not named")
	}
}

func TestBuiltWithoutAssets(t *testing.T) {
	h := newHandler(Options{Backend: pagetest.Memory{Rows: pagetest.Cells()}}, testAssets(t, false))
	_, body := get(t, h, "/", false)
	const words = "Built without web assets: pages work, without updates in place. Run <code>go generate ./web</code>."
	if !strings.Contains(body, words) {
		t.Errorf("no %q", words)
	}
	if strings.Contains(body, "htmx.org") {
		t.Error("links to htmx, which is not there")
	}
}

// hundredThousand returns cells as a large company has them.
func hundredThousand() []page.Cell {
	cells := make([]page.Cell, 100_000)
	for i := range cells {
		service, caller := fmt.Sprintf("service-%d", i*7919%1100), fmt.Sprintf("caller-%d", i%317)
		b := page.Cell{
			Service: service, Name: fmt.Sprintf("%s-charge-%d", caller, i), Owner: "team-" + service,
			Match:    caller + " → " + service + ".v1.Charges/Create",
			Behavior: limiter.Deny, LimitRPS: 1000, OfferedRPS: float64(i * 31 % 1100), Hosts: i % 4000,
		}
		b.DroppedRPS = max(0, b.OfferedRPS-b.LimitRPS)
		b.AdmittedRPS = b.OfferedRPS - b.DroppedRPS
		b.Ratio = b.DroppedRPS / max(1, b.OfferedRPS)
		cells[i] = b
	}
	return cells
}

// With 100,000 buckets every page answers within 200 ms. The bound has the
// slack of a loaded machine; BenchmarkBuckets has the figure.
func TestHundredThousandBucketsAreFast(t *testing.T) {
	h := testHandler(t, pagetest.Memory{Rows: hundredThousand()})
	for _, target := range []string{"/", "/buckets", "/buckets?q=099999", "/buckets?q=no-such-name-anywhere", "/buckets?sort=name&page=2000"} {
		start := time.Now()
		r, body := get(t, h, target, false)
		took := time.Since(start)
		t.Logf("%s: %v, %d bytes", target, took, len(body))
		if r.StatusCode != http.StatusOK || took > 5*200*time.Millisecond+50*time.Millisecond {
			t.Errorf("%s: status %d after %v", target, r.StatusCode, took)
		}
	}
}

// A page is at most 300 KB, even if all its names are the longest there may be.
func TestLongestNamesFit(t *testing.T) {
	long := strings.Repeat("n", 256)
	cells := make([]page.Cell, 100)
	for i := range cells {
		cells[i] = page.Cell{
			Service: long, Name: long, Owner: long, Match: long + " → " + long, Caller: long, Instance: long,
			Scope: limiter.Zone, Behavior: limiter.Deny, LimitRPS: 1e9, OfferedRPS: 9e9, Ratio: 0.9,
		}
	}
	f := page.Fleet{LoadError: strings.Repeat(long+"\n", 1000)}
	for range 100 {
		f.Nodes = append(f.Nodes, page.Node{Role: "aggregator", Name: long, Zone: long, Region: long, Version: long, RefusedRevision: 1, RefusedReason: long})
	}
	h := testHandler(t, pagetest.Memory{Rows: cells, Tree: f})
	for _, target := range []string{"/", "/buckets", "/fleet"} {
		if _, body := get(t, h, target, false); len(body) > 300_000 {
			t.Errorf("%s has %d bytes, want at most 300,000", target, len(body))
		}
	}
}

func BenchmarkBuckets(b *testing.B) {
	h := testHandler(b, pagetest.Memory{Rows: hundredThousand()})
	for _, target := range []string{"/", "/buckets", "/buckets?sort=name", "/buckets?sort=name&page=1000", "/buckets?q=caller-7", "/buckets?q=no-such-name-anywhere"} {
		b.Run(target[1:], func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				get(b, h, target, false)
			}
		})
	}
}

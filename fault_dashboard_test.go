package main

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"grl/store"
	"grl/store/storetest"
)

// largePages are pages of which each must be fast, with a bucket of the history.
var largePages = []string{
	"/", "/?range=7d", "/?range=5w", "/headroom", "/buckets", "/buckets?q=caller-7", "/buckets?q=no-such-name-anywhere", "/buckets?sort=name&page=2000",
	"/bucket?name=service-0/bucket-1", "/bucket?name=service-0/bucket-1&range=7d", "/bucket?name=service-0/bucket-1&range=5w",
	"/bucket?name=service-0/bucket-1&range=5m", "/bucket/zoom?name=service-0/bucket-1&range=5w", "/bucket/series.json?name=service-0/bucket-1&range=5w",
	"/bucket/new?service=service-0",
	"/shadow", "/explain?service=service-0&caller=caller-1&procedure=p", "/caps", "/caps?service=service-0&caller=caller-1",
	"/policies", "/policies/show?name=peak", "/policies/new", "/rlc", "/rlc/run?id=1", "/fleet", "/alerts", "/alerts/rules", "/changes", "/access", "/",
}

// TestFaultLargeDashboard asks for every page where there are many buckets, and
// measures how long the answers take and how much memory the controller.
func TestFaultLargeDashboard(t *testing.T) {
	buckets, history, requests := 2_000, 40, 5
	if *measure {
		buckets, history, requests = 100_000, 2_000, 50
	}
	f := emptyFleet(t)
	s, err := store.Open(t.Context(), f.db)
	if err != nil {
		t.Fatal(err)
	}
	const seed = 1
	if err := storetest.Fill(t.Context(), s, storetest.FillOptions{Seed: seed, Cells: storetest.Cells(history), Weeks: 5, Until: time.Now().Add(time.Hour), Fleet: true}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	limits := t.TempDir()
	for service, left := 0, buckets; left > 0; service++ {
		each := 10 // as storetest.Cells names them
		if service >= history/10 {
			each = min(100, left)
		}
		var text strings.Builder
		fmt.Fprintf(&text, "service: service-%d\nowner: team-%d\nbuckets:\n", service, service%40)
		for j := range each {
			behavior := "deny"
			if j%7 == 3 {
				behavior = "allow"
			}
			fmt.Fprintf(&text, "  - {name: bucket-%d, match: {caller: caller-%d}, limit: {rps: 300}, behavior: %s}\n", j, j, behavior)
		}
		write(t, filepath.Join(limits, fmt.Sprintf("service-%d.yaml", service)), text.String())
		left -= each
	}
	f.addController("--controller.db", f.db, "--controller.limits", limits)
	rlc := f.member("configurator")
	rlc.args = []string{"--role", "configurator", "--configurator.listen", rlc.control, "--configurator.controller", f.controller.url()}
	f.start()
	policy := filepath.Join(rlc.dir, "peak.yaml")
	write(t, policy, "name: peak\nkind: peak\nmode: propose\nmatch: {bucket: bucket-1}\n")
	f.controller.do("policy", "apply", "-f", policy)
	rlc.launch()
	rlc.serving()
	patient(t, "limits are proposed", 10*time.Minute, func() bool {
		code, body := get(t, f.controller.url()+"/rlc/run?id=1")
		return code == http.StatusOK && strings.Contains(body, "service-0/")
	})
	patient(t, "the past of all cells is read", 10*time.Minute, func() bool {
		code, body := get(t, f.controller.url()+"/shadow")
		return code == http.StatusOK && !strings.Contains(body, "is being read")
	})
	without := fmt.Sprintf("/bucket?name=service-%d/bucket-5", history/10+3) // without history
	for _, path := range append([]string{without}, largePages...) {
		took := make([]time.Duration, requests)
		var size int
		for i := range took {
			start := time.Now()
			r, err := http.Get(f.controller.url() + path)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(r.Body)
			_ = r.Body.Close()
			took[i], size = time.Since(start), len(body)
			if err != nil || r.StatusCode != http.StatusOK {
				t.Fatalf("%s: status %d, %v", path, r.StatusCode, err)
			}
		}
		slices.Sort(took)
		measured(t, "95 % of the answers to "+path+" within", took[len(took)*95/100], 200*time.Millisecond)
		if size > 300_000 {
			t.Errorf("%s has %d bytes, want at most 300,000", path, size)
		}
	}
	report(t, fmt.Sprintf("memory of the controller with %d buckets at most", buckets), f.controller.peakMemory(), 1024, "MiB")
}

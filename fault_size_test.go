package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// sizedService is a limits file of a service with as many buckets as its part of
// them. The first one's limit is rps.
func sizedService(service string, n int, rps float64) string {
	var text strings.Builder
	fmt.Fprintf(&text, "service: %s\nowner: team-%s\nbuckets:\n", service, service)
	for i := range n {
		fmt.Fprintf(&text, "  - name: from-%03d\n    match: {caller: caller-%03d}\n    limit: {rps: %g}\n    behavior: deny\n", i, i, rps)
		rps = 1000
	}
	return text.String()
}

// TestFaultlessSize applies as many buckets as grl is made for, or a fifth of
// them where the race detector and other tests slow it down, and changes one.
func TestFaultlessSize(t *testing.T) {
	const (
		applied  = 10 * time.Second
		edited   = time.Second
		mebibyte = 1 << 20
		memory   = 1024 // MiB
		changed  = 64   // KiB, for what an edit sends to one child
		watched  = 3 * time.Second
	)
	services, buckets := 220, 20_000
	if *measure {
		services, buckets = 1100, 100_000
	}
	f := emptyFleet(t)
	f.addController("--controller.db", f.db)
	f.add([]zoneSize{{1, 2}, {1, 1}}, nil)
	f.start()
	size := func(i int) int { return buckets/services + min(1, max(0, buckets%services-i)) }
	for i := range services {
		name := fmt.Sprintf("service-%04d", i)
		if i == 0 {
			name = "shop"
		}
		write(t, filepath.Join(f.limits, name+".yaml"), sizedService(name, size(i), 1000))
	}
	l, _ := f.load(quiet)

	e := f.controller.do("apply", "-f", f.limits, "--reason", "all of them")
	all := fmt.Sprintf("%d buckets", buckets)
	measured(t, all+" applied", e.took, applied)
	measured(t, all+" applied to all clients", f.holdRevision(t, e.began, 1), applied+edited)
	e = f.controller.do("apply", "-f", f.limits)
	measured(t, all+" applied again", e.took, applied)
	if !strings.Contains(e.stdout, "nothing changed: r1") {
		t.Errorf("the same files again: %s", e.stdout)
	}

	idle := f.sent(t)
	pause(watched)
	idle = f.sent(t).less(idle)
	before := f.sent(t)
	shop := filepath.Join(f.limits, "shop.yaml")
	write(t, shop, sizedService("shop", size(0), 900))
	e = f.controller.do("apply", "-f", shop, "--reason", "one of them")
	measured(t, "one of "+all+" edited to all clients", f.holdRevision(t, e.began, 2), edited)
	pause(time.Until(e.began.Add(watched)))
	cost := f.sent(t).less(before).less(idle)
	for _, c := range []struct {
		what  string
		bytes float64
	}{{"the aggregators", cost.aggregators}, {"a host", cost.host}} {
		report(t, "bytes to "+c.what+" for an edit of one of "+all, c.bytes/1024, changed, "KiB")
		if c.bytes > 5*changed*1024 {
			t.Errorf("an edit of one of %s sent %.0f bytes to %s", all, c.bytes, c.what)
		}
	}
	for _, m := range append(f.controlPlane(), f.sidecars[0]) {
		report(t, "memory of the "+m.name+" with "+all, m.must("process_resident_memory_bytes")/mebibyte, memory, "MiB")
	}
	if resident := f.controller.must("process_resident_memory_bytes") / mebibyte; resident > 5*memory {
		t.Errorf("the controller takes %.0f MiB, want at most %d and slack", resident, memory)
	}
	began := time.Now()
	f.controller.kill()
	f.controller.restart()
	measured(t, "controller with "+all+" started again", time.Since(began), applied)
	l.unhurt("many buckets", began, -1, began)
}

// sent is how many bytes went down to the nodes below.
type sent struct{ aggregators, host float64 }

func (s sent) less(o sent) sent { return sent{s.aggregators - o.aggregators, s.host - o.host} }

// sent returns what was sent to all aggregators, and to the host with the most.
func (f *fleet) sent(t *testing.T) (s sent) {
	t.Helper()
	var fleet struct {
		Nodes []struct {
			Role      string
			BytesSent float64 `json:"bytesSent,string"`
		}
	}
	f.controller.read(&fleet, "status")
	for _, n := range fleet.Nodes {
		if n.Role == "ROLE_AGGREGATOR" {
			s.aggregators += n.BytesSent
		} else {
			s.host = max(s.host, n.BytesSent)
		}
	}
	return s
}

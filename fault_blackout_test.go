package main

import (
	"net/http"
	"testing"
	"time"
)

// TestFaultOfTheControlPlane kills the controller and all aggregators for
// longer than hosts hold and let decay: everything is admitted, nothing fails
// or gets slower, and then all is enforced again.
func TestFaultOfTheControlPlane(t *testing.T) {
	const hold, decay = time.Second, time.Second
	args := []string{"--client.hold", hold.String(), "--client.decay", decay.String()}
	f := newFleet(t, faultLimit, []zoneSize{{1, 3}, {1, 3}}, args...)
	began := time.Now()
	l, stop := f.load(calm)
	l.holds("start", began, faultLimit, back)
	pause(2 * time.Second) // to have as much to compare with as without

	enforced := span{began.Add(2 * time.Second), time.Now()}
	open := blackout(t, f, l, hold+decay)
	compareLatency(t, l, enforced, open)
	once := sizes(f.sidecars)
	blackout(t, f, l, hold+decay)
	compareSizes(t, "an outage", once, sizes(f.sidecars))

	stop()
	l.unhurt("control plane lost", began, -1, began)
	if admitted := count(l.through(began, time.Now()), http.StatusOK); int64(admitted) != f.reached.Load() {
		t.Errorf("%d requests were admitted, %d reached the upstream", admitted, f.reached.Load())
	}
}

// A span is from one moment to another.
type span struct{ from, to time.Time }

// blackout kills the control plane, checks that all is admitted once hosts have
// opened, and starts it again. It returns a span in which they were open and
// nothing else happened.
func blackout(t *testing.T, f *fleet, l *load, opens time.Duration) span {
	t.Helper()
	const outage = 5 * time.Second // with hosts open
	for _, m := range f.controlPlane() {
		m.kill()
	}
	pause(opens + 500*time.Millisecond) // the timer of a busy machine may be late
	dark := span{from: time.Now()}
	f.startCold(t)
	still := span{from: time.Now()}
	pause(outage)
	dark.to, still.to = time.Now(), time.Now()
	answers := l.through(dark.from, dark.to)
	if dropped := count(answers, http.StatusTooManyRequests); dropped > 0 {
		t.Errorf("without a control plane %d of %d requests were dropped, want none", dropped, len(answers))
	}

	for _, m := range f.controlPlane() {
		m.launch()
	}
	for _, m := range f.controlPlane() {
		m.serving()
	}
	// Nodes spread their return over seconds, to not come all at once.
	const returned = 15 * time.Second
	measured(t, "return of the control plane", l.holds("return of the control plane", dark.to, faultLimit, returned), returned)
	return still
}

// startCold starts one more sidecar while nobody is there to ask: it serves.
func (f *fleet) startCold(t *testing.T) {
	t.Helper()
	began := time.Now()
	p := serve(t, t.TempDir(), "--role", "client", "--client.admin", "127.0.0.1:0", "--client.listen", "127.0.0.1:0",
		"--client.service", "shop", "--client.upstream", f.upstream.URL, "--client.aggregators", "http://"+f.aggregators[0].control)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+p.address("client.listen"), http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("direct", "yes") // not one of the load's
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Errorf("request to a sidecar that started without a control plane: %v", err)
		return
	}
	response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Errorf("request to a sidecar that started without a control plane: status %d, want 200", response.StatusCode)
	}
	measured(t, "sidecar serves without a control plane", time.Since(began), time.Second)
}

// compareLatency checks that sidecars are not slower without a control plane.
func compareLatency(t *testing.T, l *load, with, without span) {
	t.Helper()
	for _, q := range []struct {
		name  string
		share float64
	}{{"p50", 0.5}, {"p99.5", 0.995}} {
		before := l.quantile(false, with.from, with.to, q.share)
		after := l.quantile(false, without.from, without.to, q.share)
		report(t, "latency straight to the upstream, "+q.name, 1e3*l.quantile(true, with.from, without.to, q.share).Seconds(), 0, "ms")
		report(t, "latency with a control plane, "+q.name, 1e3*before.Seconds(), 0, "ms")
		report(t, "latency without a control plane, "+q.name, 1e3*after.Seconds(), 1e3*before.Seconds(), "ms")
		if after > slack(before) {
			t.Errorf("%s through a sidecar without a control plane is %v, with it %v", q.name, after, before)
		}
	}
}

// size is what a process takes.
type size struct{ goroutines, residentBytes float64 }

// sizes returns the size of each member.
func sizes(members []*member) []size {
	var all []size
	for _, m := range members {
		all = append(all, size{m.must("go_goroutines"), m.must("process_resident_memory_bytes")})
	}
	return all
}

// compareSizes checks that faults leave nothing behind.
func compareSizes(t *testing.T, what string, before, after []size) {
	t.Helper()
	const goroutines, mebibytes = 5, 4
	var grown size
	for i := range before { // the mean, since connections come and go
		grown.goroutines += (after[i].goroutines - before[i].goroutines) / float64(len(before))
		grown.residentBytes += (after[i].residentBytes - before[i].residentBytes) / float64(len(before))
	}
	report(t, "goroutines more after "+what, grown.goroutines, goroutines, "goroutines")
	report(t, "memory more after "+what, grown.residentBytes/(1<<20), mebibytes, "MiB")
	if grown.goroutines > 5*goroutines {
		t.Errorf("%v goroutines more after %s: %v, before %v", grown.goroutines, what, after, before)
	}
	if grown.residentBytes > 5*mebibytes*(1<<20) {
		t.Errorf("%v bytes more after %s: %v, before %v", grown.residentBytes, what, after, before)
	}
}

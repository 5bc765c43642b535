package main

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// A fleet is a controller, zones with aggregators and sidecars, each a process
// of its own, and the upstream behind all sidecars. Each process keeps its
// addresses over a restart.
type fleet struct {
	t           *testing.T
	scheme      string // of control ports: http or https
	limits      string // directory that the controller watches
	db          string // directory of its store
	upstream    *httptest.Server
	reached     atomic.Int64 // requests that the upstream got through a sidecar
	controller  *member      // the first of them
	controllers []*member    // one, or a group
	aggregators []*member    // in the order of the zones
	sidecars    []*member    // in the order of the zones
	relays      []*relay     // of each zone, to the first controller
	etcds       []*etcd      // what controllers keep their store in; none: a directory
	ports       []net.Listener
}

// A member is one process of a fleet.
type member struct {
	*process // the last one started
	name     string
	control  string // address of metrics and health
	listen   string // of a sidecar: address of its proxy
	dir      string
	args     []string
	t        *testing.T
	up       time.Time // the last one served
	scheme   string    // of control: http or https
}

// A zoneSize says how many processes a zone has.
type zoneSize struct{ aggregators, sidecars int }

// shopLimit is a limits file with one enforced limit, of a service called shop.
func shopLimit(rps float64) string {
	return fmt.Sprintf("service: shop\nowner: team-shop\nbuckets:\n  - name: everything\n    limit: {rps: %g}\n    behavior: deny\n", rps)
}

// newFleet starts a fleet whose limits directory holds shop.yaml with that
// limit. Args are added to those of each sidecar.
func newFleet(t *testing.T, limit float64, zones []zoneSize, args ...string) *fleet {
	t.Helper()
	f := emptyFleet(t)
	write(t, filepath.Join(f.limits, "shop.yaml"), shopLimit(limit))
	f.addController("--controller.db", f.db, "--controller.limits", f.limits)
	f.add(zones, args)
	f.start()
	return f
}

// emptyFleet returns a fleet without members, whose upstream answers.
func emptyFleet(t *testing.T) *fleet {
	t.Helper()
	if !*measure { // fleets mostly wait, but figures want the machine for themselves
		t.Parallel()
	}
	f := &fleet{t: t, scheme: "http", limits: t.TempDir(), db: filepath.Join(t.TempDir(), "db")}
	f.upstream = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("direct") == "" {
			f.reached.Add(1)
		}
		w.WriteHeader(http.StatusOK)
	}))
	t.Cleanup(f.upstream.Close)
	return f
}

// start starts all members, once they are named.
func (f *fleet) start() {
	f.t.Helper()
	for _, port := range f.ports {
		port.Close()
	}
	f.startEtcd()
	for _, m := range f.members() {
		m.launch()
	}
	for _, m := range f.members() {
		m.serving()
	}
}

// addController names one more controller, with these arguments.
func (f *fleet) addController(args ...string) {
	m := f.member("controller")
	m.args = append([]string{"--role", "controller", "--controller.listen", m.control}, args...)
	f.controllers = append(f.controllers, m)
	f.controller = f.controllers[0]
}

// add names the members of zones and their arguments. Aggregators reach the
// first controller through a relay.
func (f *fleet) add(zones []zoneSize, args []string) {
	for i, z := range zones {
		zone := "zone-" + strconv.Itoa(i)
		way := newRelay(f.t, f.controller.control)
		f.relays = append(f.relays, way)
		controllers := []string{f.scheme + "://" + way.port.Addr().String()}
		for _, c := range f.controllers[1:] {
			controllers = append(controllers, c.url())
		}
		var addresses []string
		for range z.aggregators {
			m := f.member("aggregator of " + zone)
			m.args = []string{
				"--role", "aggregator", "--aggregator.listen", m.control, "--aggregator.zone", zone,
				"--aggregator.controllers", strings.Join(controllers, ","),
			}
			f.aggregators = append(f.aggregators, m)
			addresses = append(addresses, m.url())
		}
		for range z.sidecars {
			m := f.member("sidecar of " + zone)
			m.listen = f.address()
			m.args = append([]string{
				"--role", "client", "--client.zone", zone, "--client.admin", m.control, "--client.listen", m.listen,
				"--client.service", "shop", "--client.upstream", f.upstream.URL, "--client.aggregators", strings.Join(addresses, ","),
			}, args...)
			f.sidecars = append(f.sidecars, m)
			addresses = append(addresses[1:], addresses[0]) // the next one prefers another aggregator
		}
	}
}

func (f *fleet) member(name string) *member {
	return &member{t: f.t, name: name, scheme: f.scheme, control: f.address(), dir: f.t.TempDir()}
}

// address returns an address that stays the member's while it is dead: it is
// held until all have theirs, and no outgoing connection is given its port.
func (f *fleet) address() string {
	f.t.Helper()
	for range 100 {
		port, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 20_000+rand.N(12_000)))
		if err == nil {
			f.ports = append(f.ports, port)
			return port.Addr().String()
		}
	}
	f.t.Fatal("no free ports")
	return ""
}

// url returns the URL of the control port.
func (m *member) url() string { return m.scheme + "://" + m.control }

func (f *fleet) members() []*member {
	return slices.Concat(f.controlPlane(), f.sidecars)
}

// controlPlane returns all that a request must not need.
func (f *fleet) controlPlane() []*member {
	return slices.Concat(f.controllers, f.aggregators)
}

// launch starts the process and does not wait for it.
func (m *member) launch() {
	m.t.Helper()
	p := start(m.t, grl(m.t, m.dir, append([]string{"serve", "--log.format", "json"}, m.args...)...))
	m.process = p
	m.t.Cleanup(func() {
		for _, unwanted := range []string{"DATA RACE", "panic"} {
			if strings.Contains(p.text(), unwanted) {
				m.t.Errorf("log of a %s contains %q", m.name, unwanted)
			}
		}
	})
}

// serving waits until the launched process serves.
func (m *member) serving() {
	m.t.Helper()
	if !m.await("serving") {
		m.t.Fatalf("%s ended before it served:\n%s", m.name, m.text())
	}
	m.up = time.Now()
}

// restart starts the process anew, and waits until it serves.
func (m *member) restart() {
	m.t.Helper()
	m.launch()
	m.serving()
}

// kill ends the process as kill -9 does.
func (m *member) kill() {
	m.t.Helper()
	m.signal(syscall.SIGKILL)
	<-m.exited
}

// last returns when the message was logged last; the zero time if never.
func (m *member) last(message string) time.Time {
	m.t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, l := range slices.Backward(m.log) {
		if l.facts["msg"] != message {
			continue
		}
		text, _ := l.facts["time"].(string)
		at, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			m.t.Fatalf("time of %q: %v", l.text, err)
		}
		return at
	}
	return time.Time{}
}

// metric returns the sum of the series of that name, with labels or without;
// false if there is none.
func (m *member) metric(name string) (float64, bool) {
	m.t.Helper()
	_, text := get(m.t, m.url()+"/metrics")
	var sum float64
	found := false
	for line := range strings.Lines(text) {
		rest, ok := strings.CutPrefix(line, name)
		if !ok || rest[0] != ' ' && rest[0] != '{' {
			continue
		}
		value, err := strconv.ParseFloat(strings.TrimSpace(rest[strings.LastIndexByte(rest, ' '):]), 64)
		if err != nil {
			m.t.Fatalf("metric %q: %v", line, err)
		}
		sum += value
		found = true
	}
	return sum, found
}

// must returns a metric that has to be there.
func (m *member) must(name string) float64 {
	m.t.Helper()
	value, ok := m.metric(name)
	if !ok {
		m.t.Fatalf("%s has no metric %s", m.name, name)
	}
	return value
}

// removeAll deletes a directory with all in it.
func removeAll(t *testing.T, dir string) {
	t.Helper()
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
}

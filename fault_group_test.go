package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"connectrpc.com/connect"

	grlv1 "grl/proto/grl/v1"
	"grl/proto/grl/v1/grlv1connect"
	"grl/proto/uplink"
	"grl/roles/command/remote"
)

const (
	groupLoad  = 1.5 * faultLimit
	takenOver  = 5 * time.Second // another controller has sent directives within
	group      = 3               // controllers
	awayFor    = 2 * time.Second // a killed leader stays dead for
	nearLimit  = 0.02            // share of the limit that the mean may be off
	groupSlack = 5               // times that, where the machine has other things to do
)

// newGroup starts three controllers on an etcd of so many nodes, with zones
// below them and a limit on shop.
func newGroup(t *testing.T, nodes int, zones []zoneSize) *fleet {
	t.Helper()
	f := emptyFleet(t)
	f.addEtcd(nodes)
	for range group {
		f.addController("--controller.store", "etcd", "--controller.etcd", f.etcdURLs(), "--controller.db", filepath.Join(t.TempDir(), "db"))
	}
	f.add(zones, nil)
	f.start()
	write(t, filepath.Join(f.limits, "shop.yaml"), shopLimit(faultLimit))
	f.controller.do("apply", "-f", f.limits)
	return f
}

// leader waits until one of the controllers leads, and returns it.
func (f *fleet) leader(but ...*member) (leader *member) {
	f.t.Helper()
	eventually(f.t, "a controller leads", func() bool {
		for _, m := range f.controllers {
			if len(but) > 0 && m == but[0] {
				continue
			}
			if leads, err := m.leads(); err == nil && leads {
				leader = m
				return true
			}
		}
		return false
	})
	return leader
}

// leads reports whether a controller says that it leads.
func (m *member) leads() (bool, error) {
	ctx, cancel := context.WithTimeout(m.t.Context(), time.Second)
	defer cancel()
	fleet, err := m.connect().View.GetFleet(ctx, &grlv1.GetFleetRequest{})
	return fleet.GetLeads(), err
}

// directed waits until every aggregator has heard a controller after since, and
// returns how long after since the last of them did.
func (f *fleet) directed(since time.Time) time.Duration {
	f.t.Helper()
	var last time.Duration
	eventually(f.t, "new directives at every aggregator", func() bool {
		last = 0
		for _, m := range f.aggregators {
			now := time.Now()
			age := time.Duration(m.must("grl_aggregator_directive_age_seconds") * float64(time.Second))
			heard := now.Add(-age).Sub(since)
			if heard < 100*time.Millisecond { // what was under way does not count
				return false
			}
			last = max(last, heard)
		}
		return true
	})
	return last
}

// TestFaultOfTheLeader kills the controller that leads, again and again, and then
// freezes one, under constant load above the limit.
func TestFaultOfTheLeader(t *testing.T) {
	failovers := 2
	if *measure {
		failovers = 10
	}
	f := newGroup(t, 1, []zoneSize{{1, 2}, {1, 1}})
	ears := f.listen(t)
	began := time.Now()
	l, _ := f.load(groupLoad)
	l.holds("start", began, faultLimit, back)
	pause(2 * time.Second)

	steadily := time.Now()
	for i := range failovers {
		leader := f.leader()
		killed := time.Now()
		leader.kill()
		measured(t, "leader killed to new directives", f.directed(killed), takenOver)
		if next := f.leader(leader); uint64(next.must("grl_controller_epoch")) < ears.epoch() {
			t.Errorf("failover %d: the leader has epoch %v, hosts have heard %d", i, next.must("grl_controller_epoch"), ears.epoch())
		}
		pause(time.Until(killed.Add(takenOver + awayFor)))
		leader.restart()
	}
	l.near(t, "admitted over all failovers", steadily, time.Now(), faultLimit)

	leader := f.leader()
	frozen := time.Now()
	leader.signal(syscall.SIGSTOP)
	measured(t, "leader frozen to new directives", f.directed(frozen), takenOver)
	f.leader(leader)
	epoch := ears.epoch()
	pause(time.Until(frozen.Add(10 * time.Second)))
	thawed := time.Now()
	leader.signal(syscall.SIGCONT)
	eventually(t, "the thawed leader does not lead", func() bool {
		leads, err := leader.leads()
		return err == nil && !leads
	})
	report(t, "thawed leader to listening", time.Since(thawed).Seconds(), 0, "s")
	pause(steady)
	if now := ears.epoch(); now != epoch {
		t.Errorf("epoch %d after a frozen leader was thawed, want %d as before", now, epoch)
	}
	l.near(t, "admitted while a leader was frozen and thawed", frozen, time.Now(), faultLimit)
	l.unhurt("leaders lost", began, -1, began)
	ears.check(t)
}

// TestFaultOfEtcd edits through each controller, kills the node of a
// three-node etcd that leads, and then all of it.
func TestFaultOfEtcd(t *testing.T) {
	f := newGroup(t, 3, []zoneSize{{1, 1}, {1, 1}})
	ears := f.listen(t)
	began := time.Now()
	l, _ := f.load(groupLoad)
	l.holds("start", began, faultLimit, back)
	for i, m := range f.controllers { // whether it leads or follows
		var said struct{ DropRatio float64 }
		m.read(&said, "explain", "--service", "shop", "--caller", "web", "--procedure", "POST /v1/orders")
		if want := 1 - faultLimit/groupLoad; said.DropRatio < want-quarter || said.DropRatio > want+quarter {
			t.Errorf("controller %d explains a drop ratio of %.2f, want about %.2f", i, said.DropRatio, want)
		}
	}
	edited := faultLimit
	for i, m := range f.controllers {
		edited++
		began := time.Now()
		write(t, filepath.Join(f.limits, "shop.yaml"), shopLimit(edited))
		m.do("apply", "-f", f.limits, "--reason", fmt.Sprintf("through controller %d", i))
		if i == 0 {
			measured(t, "limit edited through a controller to all clients", f.holdRevision(t, began, uint64(i+2)), time.Second)
		}
	}
	for _, m := range f.controllers {
		if e := m.ask("audit", "verify"); e.code != 0 {
			t.Errorf("grl audit verify ended with %d, want 0:\n%s%s", e.code, e.stdout, e.stderr)
		}
	}

	pause(time.Second)
	killed := time.Now()
	f.etcdLeader().kill()
	eventually(t, "edits after the loss of a node of etcd", func() bool {
		return f.controller.ask("cap", "shop", "--caller", "nobody", "--rps", "5", "--for", "1m", "--reason", "etcd lost a node").code == 0
	})
	measured(t, "etcd leader killed to edits", time.Since(killed), takenOver)
	l.near(t, "admitted while etcd lost its leader", killed.Add(-time.Second), time.Now().Add(steady), edited)

	down := time.Now()
	for _, e := range f.etcds {
		if e.running() {
			e.kill()
		}
	}
	outage := 8 * time.Second
	if *measure {
		outage = time.Minute // longer than aggregators go on alone
	}
	pause(outage - 2*time.Second)
	for _, m := range f.aggregators {
		if silent := m.must("grl_aggregator_silent_deciders"); silent != 0 {
			t.Errorf("without etcd no controller directs an %s any more", m.name)
		}
	}
	for _, m := range f.controllers {
		_, err := m.connect().Incident.PlaceCap(t.Context(), &grlv1.PlaceCapRequest{
			Service: "shop", Caller: "nobody", Gate: &grlv1.PlaceCapRequest_Rps{Rps: 1}, DurationMs: 60_000, Reason: "etcd is down",
		})
		if code := remote.Code(err); code != connect.CodeUnavailable {
			t.Errorf("an edit without etcd: %v (%v), want unavailable", err, code)
		}
		if status, page := get(t, "http://"+m.control+"/"); status != http.StatusOK || !strings.Contains(page, "shop") {
			t.Errorf("the dashboard without etcd answers %d:\n%s", status, page)
		}
	}
	pause(time.Until(down.Add(outage)))
	l.near(t, "admitted while etcd was down", down, time.Now(), edited)

	up := time.Now()
	f.startEtcd()
	eventually(t, "edits once etcd is back", func() bool {
		return f.controller.ask("cap", "shop", "--caller", "nobody", "--rps", "5", "--for", "1m", "--reason", "etcd is back").code == 0
	})
	measured(t, "etcd back to edits", time.Since(up), 2*takenOver)
	l.holds("etcd back", time.Now(), edited, back)
	l.unhurt("etcd lost", began, -1, began)
	ears.check(t)
}

// near checks that the mean admitted in a span is the limit.
func (l *load) near(t *testing.T, what string, from, to time.Time, limit float64) {
	t.Helper()
	pause(time.Until(to.Add(2 * step)))
	share := float64(count(l.through(from, to), http.StatusOK)) / to.Sub(from).Seconds() / limit
	report(t, what+", off the limit", 100*(share-1), 100*nearLimit, "%")
	if off := share - 1; off > groupSlack*nearLimit || off < -groupSlack*nearLimit {
		t.Errorf("%s: %.3f of the limit, want within %v and slack:\n%s", what, share, nearLimit, l.history(from))
	}
}

// holdRevision waits until every sidecar holds a revision, and returns how long
// after since the last of them did.
func (f *fleet) holdRevision(t *testing.T, since time.Time, revision uint64) time.Duration {
	t.Helper()
	eventually(t, fmt.Sprintf("r%d at every sidecar", revision), func() bool {
		for _, m := range f.sidecars {
			if held, _ := m.metric("grl_client_config_revision"); uint64(held) < revision {
				return false
			}
		}
		return true
	})
	return time.Since(since)
}

// running reports whether the process has not ended.
func (p *process) running() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// ears hear what aggregators tell hosts, as hosts without traffic.
type ears struct {
	mu   sync.Mutex
	last []stamp  // of each aggregator
	down []string // what went down
}

// A stamp orders directives.
type stamp struct{ epoch, sequence, step uint64 }

func (s stamp) before(o stamp) bool {
	if s.epoch != o.epoch {
		return s.epoch < o.epoch
	}
	if s.sequence != o.sequence {
		return s.sequence < o.sequence
	}
	return s.step < o.step
}

// listen joins each aggregator as a host, until the test ends.
func (f *fleet) listen(t *testing.T) *ears {
	t.Helper()
	e := &ears{last: make([]stamp, len(f.aggregators))}
	ctx, cancel := context.WithCancel(t.Context())
	client := uplink.HTTPClient()
	var hearing sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		hearing.Wait()
		client.CloseIdleConnections()
	})
	for i, m := range f.aggregators {
		stream, err := grlv1connect.NewTreeServiceClient(client, "http://"+m.control).Join(ctx)
		if err != nil {
			t.Fatal(err)
		}
		hello := &grlv1.Hello{
			Role: grlv1.Role_ROLE_CLIENT, Node: fmt.Sprintf("ear-%d", i), Zone: zoneOf(m), Region: "local", BootId: uint64(i + 1), Services: []string{"shop"},
		}
		if err := stream.Send(&grlv1.JoinRequest{Message: &grlv1.JoinRequest_Hello{Hello: hello}}); err != nil {
			t.Fatal(err)
		}
		hearing.Go(func() { e.report(ctx, stream) })
		hearing.Go(func() { e.hear(t, ctx, stream, i) })
	}
	return e
}

// zoneOf returns the zone of an aggregator.
func zoneOf(m *member) string { return strings.TrimPrefix(m.name, "aggregator of ") }

type joined = connect.BidiStreamForClientSimple[grlv1.JoinRequest, grlv1.JoinResponse]

// report sends an empty report each second, as hosts do.
func (e *ears) report(ctx context.Context, stream *joined) {
	again := time.NewTicker(time.Second)
	defer again.Stop()
	for sequence := uint64(1); ; sequence++ {
		if stream.Send(&grlv1.JoinRequest{Message: &grlv1.JoinRequest_Report{Report: &grlv1.Report{Sequence: sequence}}}) != nil {
			return // hear says why
		}
		select {
		case <-ctx.Done():
			return
		case <-again.C:
		}
	}
}

func (e *ears) hear(t *testing.T, ctx context.Context, stream *joined, i int) {
	for {
		message, err := stream.Receive()
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			t.Errorf("stream to aggregator %d: %v", i, errors.Unwrap(err))
			return
		}
		d := message.GetDirective()
		if d == nil {
			continue
		}
		now := stamp{d.GetEpoch(), d.GetSequence(), d.GetStep()}
		e.mu.Lock()
		if now.before(e.last[i]) {
			e.down = append(e.down, fmt.Sprintf("aggregator %d: %v after %v", i, now, e.last[i]))
		}
		e.last[i] = now
		e.mu.Unlock()
	}
}

// epoch returns the highest epoch heard.
func (e *ears) epoch() (highest uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, s := range e.last {
		highest = max(highest, s.epoch)
	}
	return highest
}

// check fails the test if a directive came after one of a higher epoch, sequence
// or step, or none came at all.
func (e *ears) check(t *testing.T) {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, text := range e.down {
		t.Errorf("directives went down: %s", text)
	}
	for i, s := range e.last {
		if s.epoch == 0 {
			t.Errorf("aggregator %d sent no directive", i)
		}
	}
}

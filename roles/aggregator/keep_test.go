package aggregator

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"grl/limiter"
	"grl/limiter/law"
	grlv1 "grl/proto/grl/v1"
	"grl/proto/statefile"
	"grl/proto/wire"
)

// saved returns what a node keeps on disk, as it is read from there.
func (r *rig) saved() statefile.State {
	r.t.Helper()
	dir, err := os.MkdirTemp("", "state")
	if err != nil {
		r.t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	s, ok := r.n.save(r.now)
	if !ok {
		r.t.Fatal("nothing to save")
	}
	f := statefile.New(dir, "aggregator", "z1")
	if err := f.Save(s); err != nil {
		r.t.Fatal(err)
	}
	if s, err = f.Load(); err != nil {
		r.t.Fatal(err)
	}
	return s
}

// resume has a node that has just started go on from what the one of old kept,
// whose configuration had held for a minute.
func (r *rig) resume(old *rig, s statefile.State) {
	r.n.begin(statefile.State{Configuration: old.n.config})
	r.n.restore(r.now, s)
}

// decided returns a rig that a controller told of half a limit.
func decided(t tester) (*rig, *speaker) {
	r, s := ready(t, revision(3, 2), 200)
	r.n.resize([]*grlv1.ZoneSize{{Zone: "z1", Region: "r1", Aggregators: 2}})
	r.say(globalDecider, law.Stamp{Epoch: 4, Sequence: 7}, row(cellOf(0), 100, 400, 0.5), row(cellOf(1), 100, 50, 0.25))
	s.hear()
	return r, s
}

// Faults 3 and 6: an aggregator that restarts while no controller answers
// serves the configuration at once, and goes on with its last shares for what
// is left of its autonomy.
func TestRestartDuringAnOutage(t *testing.T) {
	old, s := decided(t)
	state := old.saved()

	r := newRig(t, nil)
	r.now = old.now.Add(20 * law.T)
	r.resume(old, state)
	s.join(r)
	if c := r.n.configurationFor(s.h); c.GetRevision() != 3 || len(c.GetServices()) != 1 {
		t.Fatalf("serves configuration %v at once, want r3", c)
	}
	s.report(saidRate(0, 200))
	var first, last time.Duration
	for began := old.now; r.now.Sub(began) < time.Minute; r.pass(law.Delta) {
		s.report()
		if r.n.decideAlone(r.now, true) {
			last = r.now.Sub(began)
		}
		if len(s.hear()) > 0 && first == 0 {
			first = r.now.Sub(began)
		}
	}
	if first != 20*law.T+law.Handover {
		t.Errorf("the first directive comes %v after the controller's last, want %v", first, 20*law.T+law.Handover)
	}
	if want := law.DeciderSilent + law.Autonomy; last != want {
		t.Errorf("the last directive comes %v after the controller's last, want %v", last, want)
	}
	if s.refused != 0 || s.admits[cellOf(0)] != 0.25 {
		t.Errorf("the host refused %d directives and admits %v, want 0 and 0.25", s.refused, s.admits[cellOf(0)])
	}
	if got := r.n.aggregators(0); got != 2 {
		t.Errorf("%d aggregators are known, want 2", got)
	}
}

func TestRestartIsShort(t *testing.T) {
	old, _ := decided(t)
	r := newRig(t, nil)
	r.now = old.now.Add(law.T)
	r.resume(old, old.saved())
	s := newSpeaker("new", 9)
	s.join(r)
	if s.hear(); s.admits[cellOf(0)] != 0.25 || s.admits[cellOf(1)] != 2 {
		t.Errorf("a new host hears %v, want what was decided a moment ago", s.admits)
	}
}

func TestDirectivesOnDiskAge(t *testing.T) {
	for _, tt := range []struct {
		name string
		away time.Duration // by wall time
		live bool
	}{
		{"while autonomy lasts", law.DeciderSilent + law.Autonomy - law.T - law.Handover, true},
		{"longer", law.DeciderSilent + law.Autonomy + time.Millisecond, false},
		{"a day", 24 * time.Hour, false},
		{"the clock went back", -time.Hour, true},
	} {
		old, _ := decided(t)
		r := newRig(t, nil)
		r.now = old.now.Add(tt.away)
		r.resume(old, old.saved())
		s := r.begin(200)
		r.pass(law.T)
		r.n.decideAlone(r.now, true)
		s.hear()
		if live := len(s.admits) > 0; live != tt.live {
			t.Errorf("%s: told %v, want anything: %v", tt.name, s.admits, tt.live)
		}
		if s.revision != 3 {
			t.Errorf("%s: serves r%d, want r3 whatever its age", tt.name, s.revision)
		}
		if r.say(globalDecider, law.Stamp{Epoch: 4, Sequence: 6}) {
			t.Errorf("%s: takes an older directive than before the restart", tt.name)
		}
		if got := r.n.hello(r.p, "a", "", 1).GetHeard(); len(got) != 1 || got[0].GetEpoch() != 4 {
			t.Errorf("%s: the hello says that %v was heard, want epoch 4", tt.name, got)
		}
	}
}

// Each T at most, and only what changed; what only renews, less often.
func TestSaveOnlyWhatChanged(t *testing.T) {
	r, _ := decided(t)
	saved := func(what string, want bool) {
		t.Helper()
		if _, got := r.n.save(r.now); got != want {
			t.Errorf("%s: saved %v, want %v", what, got, want)
		}
	}
	saved("at first", true)
	saved("nothing", false)
	sequence := uint64(7)
	say := func(rows ...statefile.Row) {
		sequence++
		r.pass(law.T)
		r.say(globalDecider, law.Stamp{Epoch: 4, Sequence: sequence}, rows...)
	}
	say(row(cellOf(0), 100, 500, 0.5))
	saved("a cell", true)
	say()
	saved("a directive that renews", false)
	for range 4 {
		say()
	}
	saved("the fifth one", true)
	r.n.install(revision(4, 2))
	saved("a configuration, which is kept elsewhere", false)
	r.n.resize(nil)
	saved("the sizes of zones", true)
	saved("nothing", false)
}

// keeper starts aggregators on one directory, one after the other.
type keeper struct {
	t      *testing.T
	config Config
	end    func() // of the one that runs
}

func newKeeper(t *testing.T) *keeper {
	k := &keeper{t: t, config: Default(), end: func() {}}
	k.config.StateDir, k.config.Zone, k.config.Region = filepath.Join(t.TempDir(), "state"), "z1", "r1"
	return k
}

// start ends the aggregator that runs and starts another one, which keeps its
// state on disk.
func (k *keeper) start() *Aggregator {
	k.t.Helper()
	k.end()
	a, err := New(Options{Config: k.config, Log: slog.New(slog.DiscardHandler), Registry: prometheus.NewRegistry()})
	if err != nil {
		k.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(k.t.Context())
	var running sync.WaitGroup
	running.Go(func() { a.state.Keep(ctx, a.opts.Log, a.save) })
	running.Go(func() { a.good.Keep(ctx, a.opts.Log, a.held) })
	k.end = func() { cancel(); running.Wait() }
	return a
}

// install has a controller say a configuration.
func (k *keeper) install(a *Aggregator, c *limiter.Configuration) {
	k.t.Helper()
	if err := a.install(k.t.Context(), wire.FromConfiguration(c)); err != nil {
		k.t.Fatal(err)
	}
}

// The whole way over the disk, by the roles' own code.
func TestStateSurvivesTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKeeper(t)
		a := k.start()
		if a.node.config.Any() {
			t.Fatalf("begins with r%d, want nothing", a.node.config.Revision)
		}
		k.install(a, revision(3, 1))
		time.Sleep(statefile.GoodAfter + 2*law.T)
		r := newRig(t, nil)
		r.n, r.now = a.node, time.Now()
		a.mu.Lock()
		r.say(globalDecider, law.Stamp{Epoch: 4, Sequence: 7}, row(cellOf(0), 100, 400, 0.5))
		a.mu.Unlock()
		time.Sleep(law.T + 1)
		synctest.Wait()

		b := k.start()
		d := b.node.deciders[globalDecider]
		if b.node.config.Revision != 3 || d == nil || d.taken != (law.Stamp{Epoch: 4, Sequence: 7}) || time.Since(d.heard).Round(law.T/10) != law.T {
			t.Errorf("goes on with r%d and %+v, want r3 and a directive a T old", b.node.config.Revision, d)
		}
		k.end()
		k.end = func() {}
		if err := os.WriteFile(filepath.Join(k.config.StateDir, "aggregator.state"), []byte("damaged"), 0o600); err != nil {
			t.Fatal(err)
		}
		c := k.start()
		if c.node.config.Revision != 3 || len(c.node.deciders) != 0 {
			t.Errorf("begins with r%d and %d deciders of a damaged file, want r3 and none", c.node.config.Revision, len(c.node.deciders))
		}
		k.end()
	})
}

// Fault 20: what had not held for a minute when the process ended is not begun
// with again, whatever it was that ended it.
func TestConfigurationThatDidNotHoldIsNotTrusted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKeeper(t)
		a := k.start()
		k.install(a, revision(3, 1))
		time.Sleep(statefile.GoodAfter / 2)
		if a = k.start(); a.node.config.Any() {
			t.Fatalf("begins with r%d, which held for half a minute; want nothing", a.node.config.Revision)
		}
		k.install(a, revision(3, 1))
		time.Sleep(statefile.GoodAfter + 2*law.T)
		k.install(a, revision(4, 2))
		time.Sleep(statefile.GoodAfter - 2*law.T)

		// The bad one ends the process again and again.
		for range 3 {
			if a = k.start(); a.node.config.Revision != 3 {
				t.Fatalf("begins with r%d, want r3, the newest that held for a minute", a.node.config.Revision)
			}
			k.install(a, revision(4, 2)) // the controller still says so
			if a.node.config.Revision != 4 {
				t.Fatalf("holds r%d, want what the controller says", a.node.config.Revision)
			}
			time.Sleep(statefile.GoodAfter / 3)
		}
		k.install(a, revision(5, 1))
		time.Sleep(statefile.GoodAfter + 2*law.T)
		if a = k.start(); a.node.config.Revision != 5 {
			t.Errorf("begins with r%d, want r5, which held", a.node.config.Revision)
		}
		k.end()
	})
}

package aggregator

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"grl/limiter/law"
	grlv1 "grl/proto/grl/v1"
	"grl/proto/statefile"
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
	r.n.restore(r.now, state)
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
	r.n.restore(r.now, old.saved())
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
		r.n.restore(r.now, old.saved())
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
	saved("a configuration", true)
	r.n.resize(nil)
	saved("the sizes of zones", true)
	saved("nothing", false)
}

// The whole way over the disk, by the roles' own code.
func TestStateSurvivesTheProcess(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	config := Default()
	config.StateDir, config.Zone, config.Region = dir, "z1", "r1"
	start := func() *Aggregator {
		a, err := New(Options{Config: config, Log: slog.New(slog.DiscardHandler), Registry: prometheus.NewRegistry()})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	synctest.Test(t, func(t *testing.T) {
		a := start()
		if a.node.config.Revision != 0 {
			t.Fatalf("begins with r%d, want nothing", a.node.config.Revision)
		}
		r := newRig(t, nil)
		r.n, r.now = a.node, time.Now()
		r.n.install(revision(3, 1))
		r.say(globalDecider, law.Stamp{Epoch: 4, Sequence: 7}, row(cellOf(0), 100, 400, 0.5))
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			a.state.Keep(t.Context(), a.opts.Log, a.save)
		}()
		t.Cleanup(func() { <-ended })
		time.Sleep(law.T + 1)
		synctest.Wait()

		b := start()
		d := b.node.deciders[globalDecider]
		if b.node.config.Revision != 3 || d == nil || d.taken != (law.Stamp{Epoch: 4, Sequence: 7}) || time.Since(d.heard).Round(law.T/10) != law.T {
			t.Errorf("goes on with r%d and %+v, want r3 and a directive a T old", b.node.config.Revision, d)
		}
		if err := os.WriteFile(filepath.Join(dir, "aggregator.state"), []byte("damaged"), 0o600); err != nil {
			t.Fatal(err)
		}
		if c := start(); c.node.config.Revision != 0 {
			t.Errorf("begins with r%d of a damaged file", c.node.config.Revision)
		}
	})
}

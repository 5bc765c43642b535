package client

import (
	"testing"
	"time"

	"grl/limiter"
	"grl/limiter/law"
	"grl/proto/statefile"
)

// restart returns the rig of a client that starts after so long, from what the
// one before kept in a real file.
func (r *rig) restart(t *testing.T, after time.Duration) *rig {
	t.Helper()
	file := statefile.New(t.TempDir(), "client", "z1 pay")
	kept, changed := r.s.kept(r.now)
	if !changed {
		t.Fatal("nothing to keep")
	}
	if err := file.Save(kept); err != nil {
		t.Fatal(err)
	}
	loaded, err := file.Load()
	if err != nil {
		t.Fatal(err)
	}
	next := newRig(t)
	next.now = r.now.Add(after)
	if err := next.s.begin(r.s.config); err != nil {
		t.Fatal(err)
	}
	next.s.resume(next.now, loaded.Deciders)
	return next
}

// running returns a client that drops half in two buckets, of which the second
// holds on silence.
func running(t *testing.T) *rig {
	r := newRig(t)
	m := configuration(3, 2)
	m.GetServices()[0].GetBuckets()[1].HoldOnSilence = true
	r.install(m)
	r.offer(10, law.T)
	r.request("web", "p1", 1)
	r.pass(law.Delta)
	r.direct(map[limiter.CellID]float32{bucketCell(0): 0.5, bucketCell(1): 0.5})
	return r
}

func TestARestartGoesOn(t *testing.T) {
	tests := []struct {
		name       string
		after      time.Duration
		open, hold int // dropped of 1000
	}{
		{"at once", time.Second, 500, 500},
		{"while decaying", 15 * time.Second, 250, 500},
		{"too late", 21 * time.Second, 0, 500},
		{"with a clock that went back", -time.Hour, 500, 500},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			next := running(t).restart(t, tt.after)
			if next.s.config.Revision != 3 || !next.s.has("pay") {
				t.Fatalf("configuration r%d after the restart, want r3", next.s.config.Revision)
			}
			for i, want := range []int{tt.open, tt.hold} {
				dropped := next.request("web", []string{"p0", "p1"}[i], 1000)
				if dropped < want-10 || dropped > want+10 {
					t.Errorf("p%d: %d of 1000 dropped, want %d", i, dropped, want)
				}
			}
		})
	}
}

func TestAPausedLeaderIsRefusedAfterARestart(t *testing.T) {
	r := running(t)
	r.s.deciders["global"].taken = law.Stamp{Epoch: 4, Sequence: 7}
	next := r.restart(t, time.Second)
	old := next.directive(law.Stamp{Epoch: 4, Sequence: 6}, map[limiter.CellID]float32{bucketCell(0): 1})
	if err := next.s.direct(next.now, old); err != nil {
		t.Fatal(err)
	}
	if got := next.s.cells[next.s.cell(bucketCell(0))].host.Verdict.Admit; got != 0.5 {
		t.Errorf("admits %v after an older directive, want 0.5", got)
	}
}

// A disk is written to only when a restart would otherwise forget something.
func TestKeepsWhatChanged(t *testing.T) {
	r := newRig(t)
	if _, changed := r.s.kept(r.now); changed {
		t.Error("keeps nothing, again")
	}
	r.install(configuration(1, 1))
	r.offer(10, law.T)
	r.direct(map[limiter.CellID]float32{bucketCell(0): 2})
	if _, changed := r.s.kept(r.now); changed {
		t.Error("keeps that nothing is dropped")
	}
	r.direct(map[limiter.CellID]float32{bucketCell(0): 0.5})
	if kept, changed := r.s.kept(r.now); !changed || len(kept.Deciders) != 1 {
		t.Error("does not keep what is dropped")
	}
	if _, changed := r.s.kept(r.now.Add(law.T)); changed {
		t.Error("keeps each second how old it is")
	}
	if _, changed := r.s.kept(r.now.Add(keptFor)); !changed {
		t.Error("does not keep how old it is")
	}
	r.direct(map[limiter.CellID]float32{bucketCell(0): 2})
	if kept, changed := r.s.kept(r.now); !changed || len(kept.Deciders) != 0 {
		t.Error("does not keep that nothing is dropped any more")
	}
	if _, changed := r.s.kept(r.now); changed {
		t.Error("keeps the same twice")
	}
}

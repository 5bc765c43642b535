package aggregator

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"grl/limiter"
	"grl/limiter/law"
	"grl/proto/statefile"
)

// twoServices returns the configuration of revision with a service more, shop,
// and the cell of its only bucket.
func twoServices() (*limiter.Configuration, limiter.CellID) {
	c := revision(1, 1)
	c.Services = append(c.Services, limiter.Service{Name: "shop", Buckets: []limiter.Bucket{{Service: "shop", Name: "all", LimitRPS: 100}}})
	return c, limiter.CellID{Bucket: "shop/all"}
}

// 6.14: what moves elsewhere costs a host no directives, however often it does,
// and its own cells cost one each time.
func TestDirectivesToAHost(t *testing.T) {
	const turns, perT = 600, int(law.T / law.PublishGap)
	for _, tt := range []struct {
		name        string
		others, own int     // turns between two moves; 0: never
		least, most float64 // directives a T
	}{
		{"nothing moves", 0, 0, 1, 1},
		{"others at each T", perT, 0, 1, 1},
		{"others at each turn", 1, 0, 0.9, 1.2},
		{"its own at each T", 0, perT, 1, 1},
		{"its own at each second T", 0, 2 * perT, 1, 1},
		{"others at each turn, its own at each T", 1, perT, 1, 1.2},
		{"its own at each turn", 0, 1, float64(perT), float64(perT)},
	} {
		c, other := twoServices()
		r, s := ready(t, c, 50)
		directives, oldest, heard := 0, time.Duration(0), r.now
		for turn := range turns {
			var rows []statefile.Row
			offered := float64(200 + turn)
			if tt.others > 0 && turn%tt.others == 0 {
				rows = append(rows, row(other, 100, offered, 1))
			}
			moved := tt.own > 0 && turn%tt.own == 0
			if moved {
				rows = append(rows, row(cellOf(0), 100, offered, 1))
			}
			if len(rows) > 0 || turn%perT == 0 {
				r.say(globalDecider, seq(uint64(turn)+1), rows...)
				if told := s.hear(); len(told) > 0 {
					directives += len(told)
					oldest, heard = max(oldest, r.now.Sub(heard)), r.now
				}
			}
			if moved && s.verdicts[cellOf(0)].Offered != offered {
				t.Fatalf("%s: turn %d: the host does not hear at once of its cell", tt.name, turn)
			}
			r.pass(law.PublishGap)
		}
		if got := float64(directives) * float64(perT) / turns; got < tt.least || got > tt.most {
			t.Errorf("%s: %v directives a T to a host, want %v to %v", tt.name, got, tt.least, tt.most)
		}
		if most := law.RenewAfterCells + law.PublishGap; oldest > most {
			t.Errorf("%s: a host hears nothing for %v, want at most %v", tt.name, oldest, most)
		}
	}
}

// Coherent drops need one salt on all hosts: when it turns, all hear of it at
// once.
func TestSaltTurnsForAllHosts(t *testing.T) {
	c, other := twoServices()
	r, s := ready(t, c, 50)
	const turn = 1024 // directives
	for sequence := uint64(turn - 2); sequence <= turn+1; sequence++ {
		r.say(globalDecider, seq(sequence), row(other, 100, float64(sequence), 1))
		s.hear()
		if got, want := s.taken[globalDecider].Salt(), seq(sequence).Salt(); got != want {
			t.Errorf("directive %d: the host has salt %d, want %d", sequence, got, want)
		}
		r.pass(law.PublishGap)
	}
	if got := s.taken[globalDecider].Sequence; got != turn {
		t.Errorf("the host took directive %d, want %d and none that only renews", got, turn)
	}
}

// Whenever directives come, as long as there is one at each T: a host hears at
// once of its cells, and of the decider before two T and a bit have passed; each
// time with the reports that the sums contain.
func TestHostsAreRenewed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, other := twoServices()
		r, s := ready(t, c, 50)
		heard, next := r.now, r.now
		for sequence := range rapid.Uint64Range(1, 100).Draw(t, "directives") {
			if rapid.Bool().Draw(t, "at T") {
				r.now = next
			} else {
				r.pass(min(time.Duration(rapid.Int64Range(0, int64(law.T)).Draw(t, "after")), next.Sub(r.now)))
			}
			if r.now.Equal(next) {
				next = next.Add(law.T)
				s.report()
				r.n.tick(r.now)
				r.full()
			}
			offered := float64(200 + sequence)
			var rows []statefile.Row
			if rapid.Bool().Draw(t, "others move") {
				rows = append(rows, row(other, 100, offered, 1))
			}
			moved := rapid.IntRange(0, 3).Draw(t, "its own moves") == 0
			if moved {
				rows = append(rows, row(cellOf(0), 100, offered, 1))
			}
			r.say(globalDecider, seq(sequence+1), rows...)
			told := s.hear()
			if moved && (len(told) != 1 || s.verdicts[cellOf(0)].Offered != offered) {
				t.Fatalf("heard %v at once of a cell that moved", told)
			}
			for _, m := range told {
				heard = r.now
				if got := m.GetReportSequence(); got != s.sequence {
					t.Fatalf("the directive contains report %d, want %d", got, s.sequence)
				}
				if want := s.h.counts.Contained(r.n.deciders[globalDecider].counts); m.GetCountedSequence() != want {
					t.Fatalf("the directive confirms the counts of report %d, want %d", m.GetCountedSequence(), want)
				}
			}
			if age := r.now.Sub(heard); age > law.RenewAfterCells+law.T {
				t.Fatalf("the host heard nothing for %v", age)
			}
		}
	})
}

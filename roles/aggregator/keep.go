package aggregator

import (
	"time"

	"grl/limiter"
	"grl/limiter/law"
	"grl/proto/statefile"
)

// keepRenewed is how often the state is saved while directives only renew what
// holds: until then, a restart takes them for a little older.
const keepRenewed = 5 * law.T

// saved is what is on disk.
type saved struct {
	kept  uint64    // node.kept
	heard time.Time // the last directive
	at    time.Time
}

// save returns the node's state for its file, false if that has it.
func (n *node) save(now time.Time) (statefile.State, bool) {
	var heard time.Time
	for _, d := range n.deciders {
		if d.heard.After(heard) {
			heard = d.heard
		}
	}
	last := n.saved
	if n.kept == last.kept && (heard.Equal(last.heard) || now.Sub(last.at) < keepRenewed) {
		return statefile.State{}, false
	}
	n.saved = saved{n.kept, heard, now}
	s := statefile.State{Zones: n.zones}
	if n.config.Revision != 0 {
		s.Configuration = n.config
	}
	rows := make(map[*decider][]statefile.Row)
	n.cells.Each(func(i int, id limiter.CellID) {
		if at := &n.states[i]; at.decider != nil {
			rows[at.decider] = append(rows[at.decider], statefile.Row{Cell: id, Verdict: at.given, Share: at.share})
		}
	})
	for _, d := range n.deciders {
		s.Deciders = append(s.Deciders, statefile.Decider{Name: d.name, Stamp: d.stamp, Heard: d.heard, Rows: rows[d]})
	}
	return s, true
}

// restore goes on from a state that was saved before a restart. The
// configuration holds whatever its age; of a directive that is too old to stand
// in for its decider only the stamp is kept.
func (n *node) restore(now time.Time, s statefile.State) {
	n.zones = s.Zones
	if s.Configuration != nil {
		n.install(s.Configuration)
	}
	n.version++
	for i := range s.Deciders {
		from := &s.Deciders[i]
		d := n.decider(from.Name)
		d.taken, d.stamp = from.Stamp, from.Stamp
		d.strayed = true // the steps it counted may be ahead of its parent's
		n.heard.raise(d.name, from.Stamp.Epoch)
		if age := from.Age(now); age <= law.DeciderSilent+n.autonomy {
			d.heard = now.Add(-age)
			n.resume(now, d, from.Rows)
		}
	}
}

// resume takes what was decided until the restart.
func (n *node) resume(now time.Time, d *decider, rows []statefile.Row) {
	for _, r := range rows {
		if i, ok := n.cell(r.Cell); ok {
			n.give(now, i, d, r.Verdict, r.Share)
		}
	}
	d.turn++
}

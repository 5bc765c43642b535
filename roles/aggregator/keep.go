package aggregator

import (
	"errors"
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

// load goes on from what is on disk: the newest configuration that was good, and
// what was decided last. What cannot be used is logged, and the aggregator begins
// with the next older, or without.
func (a *Aggregator) load() {
	c := a.opts.Config
	name := c.Zone + " of " + c.Region
	a.state, a.good = statefile.New(c.StateDir, "aggregator", name), statefile.NewGood(c.StateDir, "aggregator", name)
	notGood := a.good.Load(func(s statefile.State) error {
		a.node.begin(s)
		return nil
	})
	s, err := a.state.Load()
	a.node.restore(time.Now(), s)
	if err := errors.Join(notGood, err); err != nil {
		a.opts.Log.Error("cannot go on from all of the state on disk", "err", err)
	}
	if held := a.node.config; held.Any() {
		a.opts.Log.Info("goes on with the state on disk", "revision", held.Revision, "serial", held.Serial, "deciders", len(s.Deciders))
	}
}

// held returns the configuration held, none before the first.
func (a *Aggregator) held() statefile.State {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.node.config.Any() {
		return statefile.State{}
	}
	return statefile.State{Configuration: a.node.config, Zones: a.node.zones}
}

// save returns what is to be kept on disk beside the configuration, false if it
// is there.
func (a *Aggregator) save(now time.Time) (statefile.State, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.node.save(now)
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
	// The zones are written with a configuration: this one says nothing.
	s := statefile.State{Configuration: &limiter.Configuration{}, Zones: n.zones}
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

// begin goes on from a configuration of before a restart, whatever its age.
func (n *node) begin(s statefile.State) {
	n.install(s.Configuration)
	n.resize(s.Zones)
}

// restore goes on from a state that was saved before a restart, as far as the
// configuration has its cells. Of a directive that is too old to stand in for
// its decider only the stamp is kept.
func (n *node) restore(now time.Time, s statefile.State) {
	if s.Zones != nil {
		n.zones = s.Zones
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

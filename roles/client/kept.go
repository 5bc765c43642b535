package client

import (
	"errors"
	"fmt"
	"time"

	"grl/limiter"
	"grl/limiter/law"
	"grl/proto/statefile"
)

// keptFor is how long what is on disk may be behind while something is dropped:
// a restart takes its directives for a little older.
const keptFor = 5 * law.T

// kept returns what to keep on disk of what was decided, false if that may wait.
// Cells that drop nothing are left out: forgetting them changes nothing.
func (s *state) kept(now time.Time) (statefile.State, bool) {
	out := statefile.State{}
	rows := make(map[*decider][]statefile.Row)
	s.table.Each(func(i int, id limiter.CellID) {
		if at := &s.cells[i]; at.decider != nil && law.Ratio(at.host.Verdict.Admit) > 0 {
			rows[at.decider] = append(rows[at.decider], statefile.Row{Cell: id, Verdict: at.host.Verdict})
		}
	})
	for name, d := range s.deciders {
		if len(rows[d]) > 0 {
			out.Deciders = append(out.Deciders, statefile.Decider{Name: name, Stamp: d.taken, Heard: d.heard, Rows: rows[d]})
		}
	}
	drops := len(out.Deciders) > 0
	changed := drops != s.keptDrops || drops && now.Sub(s.keptAt) >= keptFor
	if changed {
		s.keptDrops, s.keptAt = drops, now
	}
	return out, changed
}

// begin takes in a configuration of the process before, whatever its age.
func (s *state) begin(c *limiter.Configuration) error {
	if err := s.limiter.Install(*c); err != nil {
		return fmt.Errorf("restore configuration: %w", err)
	}
	s.use(c)
	return nil
}

// resume takes in what was decided before, as far as the configuration has it;
// of directives too old only what holds on silence.
func (s *state) resume(now time.Time, deciders []statefile.Decider) {
	for i := range deciders {
		kept := &deciders[i]
		d := &decider{taken: kept.Stamp, heard: now.Add(-kept.Age(now))}
		for _, row := range kept.Rows {
			if !s.known(row.Cell) || s.holds(s.buckets[row.Cell.Bucket], now.Sub(d.heard)) == 0 {
				continue
			}
			at := &s.cells[s.cell(row.Cell)]
			at.decider, at.host.Verdict = d, row.Verdict
			s.deciders[kept.Name] = d
		}
	}
	s.apply(now)
}

// restore takes in what is on disk: the newest configuration that was good, and
// what was decided last. What cannot be taken is logged, and the client begins
// with the next older, or without.
func (c *Client) restore() {
	c.mu.Lock()
	defer c.mu.Unlock()
	notGood := c.good.Load(func(s statefile.State) error { return c.state.begin(s.Configuration) })
	kept, err := c.file.Load()
	c.state.resume(time.Now(), kept.Deciders)
	if err := errors.Join(notGood, err); err != nil {
		c.opts.Log.Warn("cannot go on from all of the state on disk", "err", err)
	}
	if c.state.config.Any() {
		c.opts.Log.Info("goes on from the state on disk", "revision", c.state.config.Revision, "deciders", len(c.state.deciders))
	}
}

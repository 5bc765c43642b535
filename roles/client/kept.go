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

// kept returns what to keep on disk, false if that may wait. Cells that drop
// nothing are left out: forgetting them changes nothing.
func (s *state) kept(now time.Time) (statefile.State, bool) {
	out := statefile.State{}
	if s.config.Revision != 0 {
		out.Configuration = s.config
	}
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
	changed := s.keptConfig != out.Configuration || drops != s.keptDrops || drops && now.Sub(s.keptAt) >= keptFor
	if changed {
		s.keptConfig, s.keptDrops, s.keptAt = out.Configuration, drops, now
	}
	return out, changed
}

// restore takes in what was kept by the process before. Configuration holds
// whatever its age; of directives too old only what holds on silence.
func (s *state) restore(now time.Time, k statefile.State) error {
	if k.Configuration == nil {
		return nil
	}
	if err := s.limiter.Install(*k.Configuration); err != nil {
		return fmt.Errorf("restore configuration: %w", err)
	}
	s.use(k.Configuration)
	for i := range k.Deciders {
		kept := &k.Deciders[i]
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
	return nil
}

// restore takes in what the file has. What cannot be taken is logged, and the
// client begins without.
func (c *Client) restore() {
	kept, err := c.file.Load()
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := errors.Join(err, c.state.restore(time.Now(), kept)); err != nil {
		c.opts.Log.Warn("cannot go on from the state on disk", "err", err)
		return
	}
	if kept.Configuration != nil {
		c.opts.Log.Info("goes on from the state on disk", "revision", kept.Configuration.Revision, "deciders", len(c.state.deciders))
	}
}

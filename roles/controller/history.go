package controller

import (
	"context"
	"maps"
	"time"

	"grl/store"
)

const (
	flushEvery = 5 * time.Second
	pruneEvery = time.Hour
)

// record writes complete minutes to the history, and which zones are there.
func (c *Controller) record(ctx context.Context) error {
	tick := time.NewTicker(flushEvery)
	defer tick.Stop()
	for pruned := time.Now(); ; {
		select {
		case <-ctx.Done():
			return nil
		case now := <-tick.C:
			c.flush(ctx, now, false)
			if now.Sub(pruned) >= pruneEvery {
				pruned = now
				if err := c.opts.Store.Prune(ctx, now); err != nil {
					c.opts.Log.WarnContext(ctx, "cannot prune history", "err", err)
				}
			}
		}
	}
}

// flush writes the complete minutes, or all. What cannot be written is lost:
// history must not hold up limiting, nor fill the memory.
func (c *Controller) flush(ctx context.Context, now time.Time, all bool) {
	c.mu.Lock()
	minutes := c.node.recorder.take(now, all)
	var zones []store.Zone
	for _, z := range c.node.zones {
		if z.live > 0 {
			zones = append(zones, store.Zone{Name: z.name, Region: z.region})
		}
	}
	c.mu.Unlock()
	maps.Copy(minutes, fleetMinutes(minutes))
	samples := make(map[int64][]store.Sample)
	for p, list := range minutes {
		for _, m := range list {
			samples[m.at] = append(samples[m.at], store.Sample{
				Cell:          p.cell,
				Zone:          p.zone,
				Offered:       m.offered,
				Admitted:      m.offered - min(m.dropped, m.offered),
				Dropped:       m.dropped,
				ShadowDropped: m.shadowDropped,
				HighestSecond: m.highest,

				CandidateDropped: m.candidate,
			})
		}
	}
	complete := now.Add(-settled).Truncate(time.Minute)
	for at, list := range samples {
		if err := c.opts.Store.AppendMinute(ctx, time.Unix(at*60, 0), list); err != nil {
			c.metrics.lost.Add(float64(len(list)))
			c.mu.Lock()
			c.kept.lose(time.Unix(at*60, 0))
			c.mu.Unlock()
			c.opts.Log.ErrorContext(ctx, "lost a minute of history", "minute", time.Unix(at*60, 0).UTC(), "cells", len(list), "err", err)
		}
	}
	c.mu.Lock()
	c.kept.flushed = complete
	c.mu.Unlock()
	if len(zones) > 0 {
		if err := c.opts.Store.SawZones(ctx, zones, now); err != nil {
			c.opts.Log.WarnContext(ctx, "cannot note zones", "err", err)
		}
	}
}

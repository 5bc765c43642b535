package controller

import (
	"context"
	"maps"
	"time"

	"grl/limiter"
	"grl/store/ledger"
)

const (
	// quarter is when limits by the hour may change: time zones differ by quarters
	// of an hour.
	quarter = 15 * time.Minute
	// lookAtClock bounds the wait for the next quarter, since a clock may be set.
	lookAtClock = time.Minute
	// clocksDiffer is by how much those of two controllers may.
	clocksDiffer = time.Minute
)

// hourOf returns the time whose limits by the hour hold: what the leader said
// last, or when the revision was made, which is later while the leader has not
// looked at it. It is the same at all controllers but before the leader said
// anything, when each goes by its own clock. What a clock said that was far
// ahead does not count.
func hourOf(s ledger.State, now time.Time) time.Time {
	switch hour := s.Incident.Hour; {
	case hour.IsZero():
		return now
	case s.Head.At.After(hour) && s.Head.At.Before(now.Add(clocksDiffer)):
		return s.Head.At
	default:
		return hour
	}
}

// clock tells the hour of the day at one moment.
type clock struct {
	at    time.Time
	hours map[string]int // time zone → hour of the day, as far as asked for
}

func newClock(at time.Time) clock { return clock{at, make(map[string]int)} }

// hour returns the hour of the day where the hours of b are.
func (c clock) hour(b *limiter.Bucket) int {
	hour, ok := c.hours[b.TimeZone]
	if !ok {
		hour = c.at.In(b.Location()).Hour()
		c.hours[b.TimeZone] = hour
	}
	return hour
}

// limits returns the services as they hold at the hour, and their buckets that
// have limits by the hour. What has none is the same memory.
func (c clock) limits(services []limiter.Service) (at []limiter.Service, hourly []*limiter.Bucket) {
	at = make([]limiter.Service, len(services))
	for i := range services {
		at[i] = services[i]
		copied := false
		for j := range services[i].Buckets {
			b := &services[i].Buckets[j]
			if !b.HasHours() {
				continue
			}
			if !copied {
				at[i].Buckets, copied = append([]limiter.Bucket(nil), services[i].Buckets...), true
			}
			at[i].Buckets[j] = b.AtHour(c.hour(b))
			hourly = append(hourly, b)
		}
	}
	return at, hourly
}

// differs reports whether a limit of b is another one at the hour of the other
// clock.
func (c clock) differs(b *limiter.Bucket, other clock) bool {
	one, two := c.hour(b), other.hour(b)
	if one == two {
		return false
	}
	x, y := b.AtHour(one), b.AtHour(two)
	return x.LimitRPS != y.LimitRPS || !maps.Equal(x.Regions, y.Regions)
}

// keepHours has the limits of each hour hold, for as long as this controller
// leads: until ctx ends. While the store is down those of the last hour stay.
func (c *Controller) keepHours(ctx context.Context) {
	for told := false; ctx.Err() == nil; {
		c.mu.Lock()
		installed := c.installed
		c.mu.Unlock()
		now := time.Now()
		wait := min(now.Truncate(quarter).Add(quarter).Sub(now), lookAtClock)
		if err := c.setHour(ctx, now); err != nil {
			if !told && ctx.Err() == nil {
				c.opts.Log.ErrorContext(ctx, "cannot go over to the limits of this hour; trying again", "err", err)
			}
			told, wait = true, retryCampaign
		} else {
			told = false
		}
		select {
		case <-ctx.Done():
		case <-installed:
		case <-time.After(wait):
		}
	}
}

// setHour goes over to the limits of this hour, if some limit changes by it, or
// nobody has said which hour it is.
func (c *Controller) setHour(ctx context.Context, now time.Time) error {
	if !c.hourDue(now) {
		return nil
	}
	if err := c.ledger.SetHour(ctx, now.Truncate(quarter)); err != nil {
		return err
	}
	return c.reload(ctx)
}

func (c *Controller) hourDue(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	hour := now.Truncate(quarter)
	said := c.state.Incident.Hour
	switch {
	case len(c.hourly) == 0 || !hour.After(said) && said.Sub(hour) < ledger.HourAhead:
		return false
	case said.IsZero():
		return true
	}
	installed, next := newClock(c.hour), newClock(hour)
	for _, b := range c.hourly {
		if next.differs(b, installed) {
			return true
		}
	}
	return false
}

package guard

import (
	"fmt"
	"slices"
	"time"

	"grl/limiter"
)

// moment is a pair as it holds in an hour of the day.
type moment struct {
	Pair         // without limits by the hour
	clock [2]int // hour of the day by the clock that label names, and by the other
	label string // " at 14:00 Europe/Berlin"; "" where no limit changes by the hour
}

// where returns in words where and when a limit of the moment holds.
func (m *moment) where(instance string) string { return in(instance) + m.label }

// highest says of which minutes the highest one is taken.
func (m *moment) highest() string {
	if m.label == "" {
		return fmt.Sprintf("the highest minute of the last %d days", Days)
	}
	return fmt.Sprintf("the highest minute of that hour in the last %d days", Days)
}

// hours is a pair by the hour: each side has hours of its own, which may be of
// another time zone.
type hours struct {
	pair          Pair
	before, after *time.Location     // nil: that side has one limit at all hours
	moments       map[[2]int]*moment // by hour of the day of both sides, 0 for one without
	order         []*moment          // as they were met

	quarter int64   // of an hour, since 1970, that was asked for last: zones differ by these
	last    *moment // of it
}

func newHours(p Pair) *hours {
	return &hours{pair: p, before: location(p.Before), after: location(p.After), moments: map[[2]int]*moment{}}
}

// location returns where the hours of b are; nil if it has none.
func location(b *limiter.Bucket) *time.Location {
	if b == nil || !b.HasHours() {
		return nil
	}
	return b.Location()
}

// at returns the pair as it holds in a minute since 1970.
func (h *hours) at(minute int64) *moment {
	if h.last != nil && minute/15 == h.quarter {
		return h.last
	}
	key := [2]int{hourAt(h.before, minute), hourAt(h.after, minute)}
	m := h.moments[key]
	if m == nil {
		m = h.moment(key[0], key[1])
		h.moments[key] = m
		h.order = append(h.order, m)
	}
	h.quarter, h.last = minute/15, m
	return m
}

func hourAt(zone *time.Location, minute int64) int {
	if zone == nil {
		return 0
	}
	return time.Unix(minute*60, 0).In(zone).Hour()
}

func atHour(b *limiter.Bucket, hour int) *limiter.Bucket {
	if b == nil || !b.HasHours() {
		return b
	}
	at := b.AtHour(hour)
	return &at
}

// moment returns the pair as it holds in an hour of the day of each side. It is
// named by the clock of the bucket as it shall be, or as it was if that has no
// hours.
func (h *hours) moment(before, after int) *moment {
	m := &moment{Pair: Pair{atHour(h.pair.Before, before), atHour(h.pair.After, after)}}
	switch {
	case h.after != nil:
		m.clock, m.label = [2]int{after, before}, fmt.Sprintf(" at %d:00 %s", after, h.after)
	case h.before != nil:
		m.clock, m.label = [2]int{before, after}, fmt.Sprintf(" at %d:00 %s", before, h.before)
	}
	return m
}

// all returns the pair as it holds in each hour of the day. Where the sides have
// different time zones, the hours that meet in winter or in summer.
func (h *hours) all() []*moment {
	if h.before == nil && h.after == nil {
		h.at(0)
		return h.order
	}
	const winter, summer = 0, 181 * 24 * 60 // minutes since 1970: 1 January, 1 July
	for quarter := range int64(24 * 4) {    // zones differ by quarters of an hour
		h.at(winter + quarter*15)
		h.at(summer + quarter*15)
	}
	slices.SortFunc(h.order, func(a, b *moment) int { return slices.Compare(a.clock[:], b.clock[:]) })
	return h.order
}

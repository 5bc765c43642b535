package storetest

import (
	"context"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"time"

	"grl/limiter"
	"grl/store"
)

// FillOptions says which history Fill makes.
type FillOptions struct {
	Seed  uint64 // the same one makes the same history
	Cells []limiter.CellID
	Zones []string // among which the load of each cell is spread evenly; nil: "zone-a"
	Weeks int      // above 0
	Until time.Time
	// Shape returns the load that a cell, by its index, is expected to be offered
	// at a time, in requests per second, at least 0. nil: DefaultShape of Seed.
	Shape func(cell int, at time.Time) float64
	// Bucket returns the bucket of a cell, by its index, of which a minute counts
	// as dropped, or virtually dropped, what lies above the limit or candidate;
	// nil: nothing is.
	Bucket func(cell int) *limiter.Bucket
	// Fleet adds what the fleet counted; each request is in one of the Cells.
	Fleet bool
}

// Cells returns the ids of n global buckets, ten in a service.
func Cells(n int) []limiter.CellID {
	cells := make([]limiter.CellID, n)
	for i := range cells {
		cells[i].Bucket = fmt.Sprintf("service-%d/bucket-%d", i/10, i%10)
	}
	return cells
}

// DefaultShape returns a load with a day, quiet weekends and growth of 1 % a
// week. The cells differ: by their mean, from 1 to 100 requests per second, by
// how much the day swings, and by up to two hours.
func DefaultShape(seed uint64) func(cell int, at time.Time) float64 {
	const day, week = 24 * time.Hour, 7 * 24 * time.Hour
	return func(cell int, at time.Time) float64 {
		r := rand.New(rand.NewPCG(seed, uint64(cell)))
		mean, swing, late := math.Pow(100, r.Float64()), 0.3+0.5*r.Float64(), r.Float64()*4-2
		at = at.UTC()
		hour := at.Sub(at.Truncate(day)).Hours() - late
		rps := mean * (1 - swing*math.Cos(2*math.Pi*(hour-3)/24))
		if weekday := at.Weekday(); weekday == time.Saturday || weekday == time.Sunday {
			rps *= 0.7
		}
		return rps * math.Pow(1.01, float64(at.Unix())/week.Seconds()-2900) // 2900: a week of 2025
	}
}

// Fill writes Weeks of history that end with the hour before Until's, with a
// shape, noise as that of Poisson, and a highest second.
func Fill(ctx context.Context, s *store.Store, o FillOptions) error {
	if o.Zones == nil {
		o.Zones = []string{"zone-a"}
	}
	if o.Shape == nil {
		o.Shape = DefaultShape(o.Seed)
	}
	r := rand.New(rand.NewPCG(o.Seed, 0))
	end := o.Until.Truncate(time.Hour)
	for at := end.AddDate(0, 0, -7*o.Weeks); at.Before(end); at = at.Add(time.Hour) {
		if err := s.PutHours(ctx, at, o.hour(r, at)); err != nil {
			return err
		}
	}
	return nil
}

// hour returns what all cells counted in the hour that begins at a time.
func (o *FillOptions) hour(r *rand.Rand, at time.Time) iter.Seq[*store.CellHour] {
	return func(yield func(*store.CellHour) bool) {
		fleet := make([]store.CellHour, len(o.Zones)+1) // at last that of all zones
		for i, cell := range o.Cells {
			// Within the hour it is a straight line.
			first, last := o.Shape(i, at), o.Shape(i, at.Add(time.Hour))
			all := store.CellHour{Cell: cell}
			for z, zone := range o.Zones {
				h := store.CellHour{Cell: cell, Zone: zone}
				for m := range h.Minutes {
					rps := (first + (last-first)*float64(m)/60) / float64(len(o.Zones))
					h.Minutes[m] = noisyMinute(r, rps)
					o.limit(i, &h.Minutes[m], &all.Minutes[m])
					addTo(&fleet[z].Minutes[m], h.Minutes[m])
				}
				if !yield(&h) {
					return
				}
			}
			for m := range all.Minutes {
				addTo(&fleet[len(o.Zones)].Minutes[m], all.Minutes[m])
			}
			if !yield(&all) {
				return
			}
		}
		for z := range fleet {
			fleet[z].Cell.Bucket = store.FleetBucket
			if z < len(o.Zones) {
				fleet[z].Zone = o.Zones[z]
			}
			if o.Fleet && !yield(&fleet[z]) {
				return
			}
		}
	}
}

// limit has the bucket of a cell drop what lies above the part of its limit that
// one of the zones has; all takes what the candidate drops.
func (o *FillOptions) limit(cell int, m, all *store.Minute) {
	if o.Bucket == nil {
		return
	}
	b := o.Bucket(cell)
	above := func(rps float64) uint64 { return m.Offered - min(m.Offered, uint64(60*rps/float64(len(o.Zones)))) }
	if b.Behavior == limiter.Deny {
		m.Dropped = above(b.LimitRPS)
		m.Admitted = m.Offered - m.Dropped
	} else {
		m.ShadowDropped = above(b.LimitRPS)
	}
	if b.CandidateRPS > 0 {
		all.CandidateDropped += above(b.CandidateRPS) - min(m.Dropped, above(b.CandidateRPS))
	}
}

// addTo adds a minute to that of the fleet, of which no highest second is known.
func addTo(sum *store.Minute, m store.Minute) {
	sum.Offered += m.Offered
	sum.Admitted += m.Admitted
	sum.Dropped += m.Dropped
	sum.ShadowDropped += m.ShadowDropped
	sum.CandidateDropped += m.CandidateDropped
}

// noisyMinute returns a minute of a load in requests per second.
func noisyMinute(r *rand.Rand, rps float64) store.Minute {
	offered := poisson(r, 60*rps)
	// The highest of 60 seconds lies about as the highest of 60 normal ones does,
	// by the law of Gumbel.
	gumbel := -math.Log(r.ExpFloat64())
	highest := uint64(max(0, math.Round(rps+math.Sqrt(rps)*(2.1+0.4*gumbel))))
	return store.Minute{
		Offered: offered, Admitted: offered,
		HighestSecond: min(max(highest, (offered+59)/60), offered),
	}
}

// poisson returns a number of events of which mean are expected.
func poisson(r *rand.Rand, mean float64) uint64 {
	if mean > 30 {
		return uint64(max(0, math.Round(mean+math.Sqrt(mean)*r.NormFloat64())))
	}
	n := uint64(0)
	for left := mean - r.ExpFloat64(); left > 0; left -= r.ExpFloat64() {
		n++
	}
	return n
}

// Append writes minutes of one cell in one zone from the start of an hour on,
// requests offered and in the highest second of each; what remains of the last
// hour is idle. Hours that are there are replaced. highest may be nil: then it
// is a sixtieth of the minute, rounded up.
func Append(ctx context.Context, s *store.Store, cell limiter.CellID, zone string, start time.Time, offered, highest []uint64) error {
	for first := 0; first < len(offered); first += 60 {
		h := store.CellHour{Cell: cell, Zone: zone}
		for m := range min(60, len(offered)-first) {
			n := offered[first+m]
			second := (n + 59) / 60
			if highest != nil {
				second = highest[first+m]
			}
			h.Minutes[m] = store.Minute{Offered: n, Admitted: n, HighestSecond: second}
		}
		one := func(yield func(*store.CellHour) bool) { yield(&h) }
		if err := s.PutHours(ctx, start.Add(time.Duration(first)*time.Minute), one); err != nil {
			return err
		}
	}
	return nil
}

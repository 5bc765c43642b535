package bucket

import (
	"context"
	"fmt"
	"math"
	"time"

	"grl/limiter"
	"grl/limiter/limitsfile"
	"grl/web/format"
	"grl/web/page"
)

const (
	weekMinutes = 7 * 24 * 60
	weekPart    = 84 * time.Hour // that is read at once: a series has bounds
	// mostReplayed bounds the limits of a bucket whose weeks are gone through
	// here: of more, the guard rails say what would be dropped.
	mostReplayed = 12
)

// past is what the cells that share a limit were offered in the last 7 days, by
// the minute.
type past struct {
	instance string
	from     time.Time
	offered  []float64 // requests per second, by the minute; NaN: not known
}

// week reads it for each limit of a bucket; nil: they are too many.
func (s site) week(ctx context.Context, q query, b *limiter.Bucket, seen *sum) ([]past, error) {
	gates := make(map[limiter.CellID]bool)
	var order []limiter.CellID
	for i := range seen.cells {
		id := gate(b, &seen.cells[i])
		if !gates[id] {
			gates[id] = true
			order = append(order, id)
		}
	}
	if len(order) > mostReplayed {
		return nil, nil
	}
	to := time.Now().UTC().Truncate(time.Minute)
	var out []past
	for _, id := range order {
		p := past{instance: id.Instance, from: to.Add(-weekMinutes * time.Minute)}
		for from := p.from; from.Before(to); from = from.Add(weekPart) {
			series, err := s.lines.read(ctx, s.Backend, page.SeriesQuery{
				Bucket: q.bucket(), Instance: id.Instance, Caller: id.Caller, From: from, To: from.Add(weekPart), Step: time.Minute,
			})
			if err != nil {
				return nil, err
			}
			p.offered = append(p.offered, series.Offered...)
		}
		out = append(out, p)
	}
	return out, nil
}

// replay is what a limit would have done.
type replay struct {
	offered, dropped float64 // requests
	over             int     // minutes
	peak             float64 // highest minute, requests per second
	known            int     // minutes that were counted, of the limit of which they are most
	limit            float64 // the last one, of one limit alone; 0: several
}

// span says of which time that is: "7 days", or as much as is known of them.
func (r *replay) span() string {
	if r.known >= weekMinutes*9/10 {
		return "7 days"
	}
	return spanText(time.Duration(r.known) * time.Minute)
}

// share is what would have been dropped, in [0, 1].
func (r *replay) share() float64 { return part100(r.dropped, r.offered) }

// replayed goes through weeks with a limit, as if it were enforced; nil: there is
// no limit.
func replayed(weeks []past, b *limiter.Bucket) replay {
	var r replay
	for _, w := range weeks {
		limit := limitsAt(b, w.instance)
		r.known = max(r.known, knownOf(w.offered))
		for i, offered := range w.offered {
			if math.IsNaN(offered) {
				continue
			}
			r.offered += 60 * offered
			r.peak = max(r.peak, offered)
			if over := offered - limit(w.from.Add(time.Duration(i)*time.Minute)); over > 0 {
				r.dropped += 60 * over
				r.over++
			}
		}
		if len(weeks) == 1 {
			if l := limit(time.Now()); !math.IsInf(l, 0) {
				r.limit = l
			}
		}
	}
	return r
}

// limitsAt returns the limit of an instance at a time.
func limitsAt(b *limiter.Bucket, instance string) func(time.Time) float64 {
	switch {
	case b == nil:
		return func(time.Time) float64 { return math.Inf(1) }
	case b.Block:
		return func(time.Time) float64 { return 0 }
	case !b.HasHours():
		limit := b.Limit(instance)
		return func(time.Time) float64 { return limit }
	}
	where := b.Location()
	var table [limiter.Hours]float64
	for h := range table {
		at := b.AtHour(h)
		table[h] = at.Limit(instance)
	}
	return func(t time.Time) float64 { return table[t.In(where).Hour()] }
}

// droppedNow is the share of what is offered now that a limit would drop if it
// were enforced.
func droppedNow(seen *sum, b *limiter.Bucket) float64 {
	if b == nil {
		return 0
	}
	offered := make(map[limiter.CellID]float64)
	total := 0.0
	for i := range seen.cells {
		offered[gate(b, &seen.cells[i])] += seen.cells[i].OfferedRPS
		total += seen.cells[i].OfferedRPS
	}
	dropped, now := 0.0, time.Now()
	for id, rps := range offered {
		dropped += max(0, rps-limitsAt(b, id.Instance)(now))
	}
	return part100(dropped, total)
}

// enforces reports whether a bucket drops what is above its limit.
func enforces(b *limiter.Bucket) bool { return b != nil && b.Behavior == limiter.Deny }

// outcome is what a change would do.
type outcome struct {
	before, after *limiter.Bucket // before nil: it is new
	wasNow, now   float64         // shares of what is offered now
	was, week     replay
	predicted     float64 // by the guard rails; below 0: they cannot tell
	offeredNow    float64
	several       bool    // more limits than are gone through here
	silent        bool    // what is offered now is not known
	changed       bool    // the bucket would be another
	free          float64 // the lowest limit that needs no force, requests per second; 0: not known
}

// predict says what a change would do.
func (s site) predict(ctx context.Context, q query, seen *sum, before, after *limiter.Bucket) (outcome, error) {
	o := outcome{before: before, after: after, predicted: -1, offeredNow: seen.offered, silent: seen.silent}
	weeks, err := s.week(ctx, q, after, seen)
	if err != nil {
		return o, err
	}
	o.several = weeks == nil && len(seen.cells) > 0
	o.was, o.week = replayed(weeks, before), replayed(weeks, after)
	o.changed = before == nil || limitsfile.BucketText(before) != limitsfile.BucketText(after)
	o.wasNow, o.now = droppedNow(seen, before), droppedNow(seen, after)
	if enforces(before) {
		o.wasNow = seen.ratio() // as measured, chance and lag included
	}
	if !o.changed {
		o.now = o.wasNow
	}
	if len(weeks) == 1 && enforces(before) {
		o.free = free(weeks[0].offered, &o.was)
	}
	return o, nil
}

// What the guard rails let through without force; docs/decisions/0019-guard-rails.md
// has them.
const (
	leastOfPeak   = 0.5
	mostOfPresent = 3
	mostDropped   = 0.05 // of what was offered, beyond what is dropped as it is
)

// free returns the lowest limit that needs no force: one not below half of the
// highest minute, and that drops little more than the present one.
func free(offered []float64, was *replay) float64 {
	if was.offered <= 0 {
		return 0
	}
	low, high := leastOfPeak*was.peak, was.peak
	tooMuch := func(limit float64) bool {
		dropped := 0.0
		for _, v := range offered {
			if v > limit { // not of NaN
				dropped += 60 * (v - limit)
			}
		}
		return part100(dropped, was.offered)-was.share() > mostDropped
	}
	if !tooMuch(low) {
		return low
	}
	for high-low > 0.001*was.peak {
		if middle := (low + high) / 2; tooMuch(middle) {
			low = middle
		} else {
			high = middle
		}
	}
	return high
}

// lead is the sentence that says it.
func (o *outcome) lead() string {
	week, known := o.weekShare()
	switch {
	case !known && o.offeredNow <= 0:
		return "Cannot tell: no requests matched in the last 7 days."
	case !enforces(o.after):
		return "Drops nothing, in shadow. As a limit it would drop " + nothing(o.now) + " now" + o.andWeek(week, known) + "."
	}
	verb := "Would drop "
	if o.before != nil && !o.changed {
		verb = "As it is, drops "
	}
	return verb + nothing(o.now) + " now" + o.andWeek(week, known) + "."
}

func (o *outcome) andWeek(week float64, known bool) string {
	if !known {
		return ""
	}
	and := " and "
	if o.now <= 0 {
		and = ", and "
	}
	return and + nothing(week) + " of the " + o.last()
}

// last says of which time the share is: "last 7 days", or "4 min that are known".
func (o *outcome) last() string {
	switch span := o.week.span(); {
	case o.several || span == "7 days":
		return "last 7 days"
	case o.week.known == 1:
		return span + " that is known"
	default:
		return span + " that are known"
	}
}

// weekShare is the share of the last 7 days that would be dropped.
func (o *outcome) weekShare() (float64, bool) {
	if o.several {
		return max(o.predicted, 0), o.predicted >= 0
	}
	return o.week.share(), o.week.known > 0 && o.week.offered > 0
}

func nothing(share float64) string {
	if share <= 0 {
		return "nothing"
	}
	return format.Share(share)
}

// facts are the numbers behind the sentence.
func (o *outcome) facts() []page.Fact {
	var out []page.Fact
	add := func(name, was, is string) {
		if o.before == nil || was == is {
			was = ""
		}
		out = append(out, page.Fact{Name: name, Old: was, Value: is})
	}
	of := func(b *limiter.Bucket, share float64) string {
		if !enforces(b) {
			share = 0
		}
		return format.Share(share)
	}
	if o.offeredNow > 0 && !o.silent {
		add("Dropped now", of(o.before, o.wasNow), of(o.after, o.now))
	}
	if o.several || o.week.known == 0 || o.week.offered <= 0 {
		if o.several && o.predicted >= 0 {
			add("Dropped, last 7 days", "", format.Share(o.predicted))
		}
		return out
	}
	add("Dropped, "+o.last(), of(o.before, o.was.share()), of(o.after, o.week.share()))
	add("Minutes over the limit", format.Count(o.was.over), format.Count(o.week.over))
	if o.week.limit > 0 && o.week.peak > 0 {
		was := ""
		if o.was.limit > 0 {
			was = signed(o.was.limit/o.was.peak - 1)
		}
		add("Limit over "+o.peakName(), was, signed(o.week.limit/o.week.peak-1))
	}
	return out
}

// peakName names the highest minute of the time that is known.
func (o *outcome) peakName() string {
	if span := o.week.span(); span != "7 days" {
		return "peak of " + span
	}
	return "7-day peak"
}

// signed prints a share with its sign, in whole per cent: −19%.
func signed(v float64) string {
	p := math.Round(100 * v)
	switch {
	case p > 0:
		return fmt.Sprintf("+%s%%", format.Count(int(min(p, 1e9))))
	case p < 0:
		return format.Count(int(p)) + "%"
	}
	return "0%"
}

func (o *outcome) effect(url string) page.Effect {
	return page.Effect{URL: url, Lead: o.lead(), Bad: enforces(o.after) && o.now > 0, Facts: o.facts()}
}

package history

import (
	"cmp"
	"time"

	"grl/policy"
)

const (
	day  = 24 * time.Hour
	week = 7 * day

	// leastCoverage is the share of the expected steps that must be there, in the
	// last 7 days and in all.
	leastCoverage = 0.8
	// leastTaught is the share of all steps that must teach, in the same two: what
	// caps, drops and incidents leave may be next to nothing.
	leastTaught = 0.2
	// leastSteps is how many steps must teach at least.
	leastSteps = 10
	// leastExpected is how many requests must have been expected of a time for
	// zeros in it to be none: a Poisson count of that mean is never 0.
	leastExpected = 100
)

// The words of policy.Refusals that are said of history.
const (
	noData       = "no_data"
	lowCoverage  = "coverage"
	partial      = "partial"
	nan          = "nan"
	below        = "negative"
	twice        = "duplicated"
	outOfOrder   = "out_of_order"
	zero         = "zero"
	shortHistory = "short_history"
	unreadable   = "damaged"
	dropped      = "own_drops"
	incident     = "incident"
)

// claim is what a source says of a lane beside its steps.
type claim struct {
	instance string
	from, to time.Time // of the query
	looks    time.Time // from when on the policy looks at it
	// least is how long a history must be for a limit to be lowered by it.
	least time.Duration
	// ignored are the times that the policy says do not teach.
	ignore []policy.Ignore
	// warning is why the answer may be a part of the whole; "": it is all.
	warning string
}

// unit judges the lane: what of it teaches, and what may be done with it. It is
// pure, and may change the lane's marks.
// Source: docs/rlc.md, "Sources".
func (l *lane) unit(c claim) Unit {
	l.cut(l.index(c.to))
	l.behead(l.index(c.from))
	u := Unit{Instance: c.instance, Days: l.days(c)}
	u.Series = policy.Series{Start: l.start, Step: l.step}
	begin := 0
	for begin < len(l.rps) && l.missing(begin) {
		begin++
	}
	if begin == len(l.rps) {
		u.Refused = noData
		return u
	}
	for _, ig := range c.ignore {
		l.markBetween(ig.From, ig.To, ignored)
	}
	l.vanish(begin)
	u.Series = l.series(begin)
	if l.second != nil {
		looked := u.Series.Between(c.looks, c.to)
		u.SecondOverMinute = policy.SecondOverMinute(looked, l.second[len(l.second)-len(looked.RPS):])
	}

	all, lately := l.tally(begin), l.tally(max(begin, l.index(c.to.Add(-week))))
	young := c.to.Sub(u.Series.Start) < c.least
	u.Notes = all.notes(c, u.Series, young)
	u.Refused = cmp.Or(all.refused(), lately.refused(), all.useless())
	if u.Refused == "" {
		u.NoLower = all.noLower(c.warning, young, lately.drops > 0)
	}
	return u
}

// series returns what teaches, from a step on.
func (l *lane) series(begin int) policy.Series {
	s := policy.Series{
		Start: l.start.Add(time.Duration(begin) * l.step),
		Step:  l.step,
		RPS:   make([]float64, len(l.rps)-begin),
	}
	for i := range s.RPS {
		s.RPS[i] = policy.Unknown
		if l.teaches(begin + i) {
			s.RPS[i] = l.rps[begin+i]
		}
	}
	return s
}

// days adds up what happened on each day.
func (l *lane) days(c claim) []Day {
	var days []Day
	for from := 0; from < len(l.rps); {
		midnight := l.start.Add(time.Duration(from) * l.step).UTC().Truncate(day)
		to := max(from+1, l.index(midnight.Add(day)))
		d := l.day(from, to)
		d.Start = midnight
		d.Coverage = min(1, d.Coverage*l.step.Seconds()/part(midnight, c.from, c.to).Seconds())
		days = append(days, d)
		from = to
	}
	return days
}

// day adds up steps [from, to); its coverage is their number.
func (l *lane) day(from, to int) Day {
	var d Day
	rates := 0.0
	for i, rps := range l.rps[from:to] {
		if rps == rps { // else it is missing, or broken
			d.Coverage++
			rates += rps
			if l.total != nil {
				d.Offered += l.total[from+i]
			}
		}
	}
	if l.total == nil {
		d.Offered = rates * l.step.Seconds()
	}
	if l.dropped != nil {
		d.Dropped = sum(l.dropped[from:to])
	}
	if l.candidate != nil {
		d.CandidateDropped = sum(l.candidate[from:to])
	}
	return d
}

func sum(values []float64) float64 {
	total := 0.0
	for _, v := range values {
		total += v
	}
	return total
}

// part returns how much of the day that begins at midnight lies in [from, to).
func part(midnight, from, to time.Time) time.Duration {
	end := midnight.Add(day)
	if to.Before(end) {
		end = to
	}
	if from.After(midnight) {
		midnight = from
	}
	return max(end.Sub(midnight), time.Second)
}

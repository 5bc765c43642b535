package policy

import "time"

// slots is a history cut into the hours of a zone, or into its days where the
// steps are longer than an hour. Those after the history have no rows.
type slots struct {
	series Series
	starts []time.Time
	rows   []int     // rows[i] is the first row of slot i, rows[i+1] the one after its last
	most   []float64 // M of docs/rlc.md: the highest row of each; Unknown if none is known
	ahead  []int     // hours that the zone is ahead of UTC; 0 of days
	day    int       // slots of a day
}

// cut returns the slots from that of from until to. from is in the location whose
// hours and days count.
func cut(series Series, from, to time.Time) *slots {
	s := &slots{series: series, day: 24}
	next := func(at time.Time) time.Time { return at.Add(time.Hour) }
	if series.Step > time.Hour {
		s.day = 1
		next = func(at time.Time) time.Time { return at.AddDate(0, 0, 1) }
	}
	most := int(to.Sub(from)*time.Duration(s.day)/day) + 2
	s.starts, s.ahead = make([]time.Time, 0, most), make([]int, 0, most)
	s.rows, s.most = make([]int, 0, most+1), make([]float64, 0, most)
	s.rows = append(s.rows, 0)
	for at := slotStart(from, series.Step); at.Before(to); at = next(at) {
		ahead := 0
		if s.day > 1 {
			_, seconds := at.Zone()
			ahead = seconds / 3600
		}
		first := s.rows[len(s.starts)]
		after := min(max(first, series.Index(next(at).Add(series.Step-1))), len(series.RPS))
		s.starts, s.ahead = append(s.starts, at), append(s.ahead, ahead)
		s.rows, s.most = append(s.rows, after), append(s.most, highest(series.RPS[first:after]))
	}
	return s
}

// slotStart returns when the hour of at starts in its location, or the day where
// the steps are longer than an hour.
func slotStart(at time.Time, step time.Duration) time.Time {
	if step > time.Hour {
		return midnight(at)
	}
	since := time.Duration(at.Minute())*time.Minute + time.Duration(at.Second())*time.Second + time.Duration(at.Nanosecond())
	return at.Add(-since)
}

// midnight returns when the day of at starts in its location.
func midnight(at time.Time) time.Time {
	y, m, d := at.Date()
	return time.Date(y, m, d, 0, 0, 0, 0, at.Location())
}

// highest returns the highest known load; Unknown if none is known.
func highest(rps []float64) float64 {
	most := Unknown
	for _, x := range rps {
		if x > most || !Known(most) {
			most = x
		}
	}
	return most
}

// index returns the slot that starts at at.
func (s *slots) index(at time.Time) int {
	i := len(s.starts) - 1
	for i > 0 && s.starts[i].After(at) {
		i--
	}
	return i
}

// end returns when slot i ends.
func (s *slots) end(i int) time.Time {
	if s.day > 1 {
		return s.starts[i].Add(time.Hour)
	}
	return s.starts[i].AddDate(0, 0, 1)
}

// of returns the rows of slot i.
func (s *slots) of(i int) []float64 { return s.series.RPS[s.rows[i]:s.rows[i+1]] }

// forecast returns f of slot i from those before it alone; Unknown if too little
// of them is known.
// Source: docs/rlc.md, "forecast".
func (s *slots) forecast(b basis, i int) float64 {
	now := s.carried(i)
	if b == carried {
		return now
	}
	return higher(now, s.seen(i))
}

// schedule returns what is known of slot i while the one before it is not over:
// what the weeks and days say.
func (s *slots) schedule(b basis, i int) float64 {
	if b == carried {
		w := s.weeks(i)
		return profile(w.n, w, s.days(i))
	}
	return s.seen(i)
}

// carried returns now of docs/rlc.md: the slot before, carried along the shape of
// the week; Unknown if that slot or the shape is.
func (s *slots) carried(i int) float64 {
	if i == 0 || !Known(s.most[i-1]) {
		return Unknown
	}
	w, before := s.weeks(i), s.weeks(i-1)
	n := min(w.n, before.n) // both by the same measure, or the ratio tells of the measures
	from, to := profile(n, before, s.days(i-1)), profile(n, w, s.days(i))
	switch {
	case !Known(from) || !Known(to):
		return Unknown
	case from == 0 && to == 0:
		return s.most[i-1]
	}
	return s.most[i-1] * clamp(to/from, leastChange, mostChange)
}

// seen returns the highest of the earlier weeks at this hour, or of the last 7
// days where no week is known; Unknown where no day is.
func (s *slots) seen(i int) float64 {
	if w := s.weeks(i); w.n > 0 {
		return w.highest
	}
	if d := s.days(i); d.n > 0 {
		return d.highest
	}
	return Unknown
}

// higher returns the higher one of two loads, of which one may be Unknown.
func higher(a, b float64) float64 {
	if b > a || !Known(a) {
		return b
	}
	return a
}

// profile returns prof of docs/rlc.md: a times the mean of the weeks and 1 - a
// times that of the days, where a = n / (n + 1) of n weeks.
func profile(n int, weeks, days past) float64 {
	switch {
	case n == 0 && days.n == 0:
		return Unknown
	case n == 0:
		return days.mean
	case days.n == 0:
		return weeks.mean
	}
	a := float64(n) / float64(n+1)
	return a*weeks.mean + (1-a)*days.mean
}

// past is what the same hour was before: how often it is known, the mean and the
// highest.
type past struct {
	n             int
	mean, highest float64
}

func (p *past) add(rps float64) {
	if !Known(rps) {
		return
	}
	p.n++
	p.mean += (rps - p.mean) / float64(p.n)
	p.highest = max(p.highest, rps)
}

// weeks returns what the same hour of the earlier weeks was.
func (s *slots) weeks(i int) past {
	var p past
	for days := 7; days*s.day <= i+1; days += 7 {
		p.add(s.earlier(i, days))
	}
	return p
}

// days returns what the same hour of the last 7 days was.
func (s *slots) days(i int) past {
	var p past
	for days := 1; days <= 7; days++ {
		p.add(s.earlier(i, days))
	}
	return p
}

// earlier returns M so many days before slot i, at the same hour of the clock;
// Unknown before the history.
func (s *slots) earlier(i, days int) float64 {
	j := i - days*s.day
	if j < 0 {
		return Unknown
	}
	if j += s.ahead[i] - s.ahead[j]; j < 0 { // the clock was set in between
		return Unknown
	}
	return s.most[j]
}

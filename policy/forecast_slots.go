package policy

import "time"

// slots is a history cut into the hours of a zone, or into its days where the
// steps are longer than an hour. Those after the history have no rows.
type slots struct {
	series Series
	starts []time.Time // of each slot
	rows   []int       // rows[i] is the first row of slot i, rows[i+1] the one after its last
	most   []float64   // M of docs/rlc.md: the highest row of each; Unknown without a known one
	ahead  []int       // hours that the zone is ahead of UTC; 0 of days
	day    int         // slots of a day
}

// slotStart returns when the hour, or the day, of at starts in its location.
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

// cut returns the slots that start in [from, to), with the rows of series before
// known. from and to are in the location whose hours and days count.
func cut(series Series, from, known, to time.Time) *slots {
	s := &slots{series: series, day: 24}
	next := func(at time.Time) time.Time { return at.Add(time.Hour) }
	if series.Step > time.Hour {
		s.day = 1
		next = func(at time.Time) time.Time { return at.AddDate(0, 0, 1) }
	}
	for at := slotStart(from, series.Step); at.Before(to); at = next(at) {
		ahead := 0
		if s.day > 1 {
			_, seconds := at.Zone()
			ahead = seconds / 3600
		}
		s.starts, s.ahead = append(s.starts, at), append(s.ahead, ahead)
	}
	s.rows = make([]int, len(s.starts)+1)
	end := series.rowFrom(known)
	first := series.rowFrom(from)
	for i, at := range s.starts {
		s.rows[i] = clampRow(series.rowFrom(at), first, end)
	}
	s.rows[len(s.starts)] = clampRow(series.rowFrom(to), first, end)
	s.most = make([]float64, len(s.starts))
	for i := range s.most {
		s.most[i] = highest(s.of(i))
	}
	return s
}

func clampRow(i, least, most int) int { return min(max(i, least), most) }

// rowFrom returns the first row that starts at or after at, or how many there are.
func (s Series) rowFrom(at time.Time) int {
	return min(max(0, s.Index(at.Add(s.Step-1))), len(s.RPS))
}

// of returns the rows of slot i.
func (s *slots) of(i int) []float64 { return s.series.RPS[s.rows[i]:s.rows[i+1]] }

// highest returns the highest known load; Unknown if none is.
func highest(rps []float64) float64 {
	most := Unknown
	for _, x := range rps {
		if !(x <= most) && Known(x) {
			most = x
		}
	}
	return most
}

// earlier returns M so many days before slot i, at the same hour of the clock;
// Unknown before the history.
func (s *slots) earlier(i, days int) float64 {
	j := i - days*s.day
	if j < 0 {
		return Unknown
	}
	if j += s.ahead[i] - s.ahead[j]; j < 0 { // summer time began or ended in between
		return Unknown
	}
	return s.most[j]
}

// mean is of what is known: of how many, their mean and the highest of them.
type mean struct {
	n             int
	mean, highest float64
}

func (m *mean) add(rps float64) {
	if !Known(rps) {
		return
	}
	m.n++
	m.mean += (rps - m.mean) / float64(m.n)
	m.highest = max(m.highest, rps)
}

// weeks returns what the same hour of the earlier weeks was.
func (s *slots) weeks(i int) mean {
	var m mean
	for days := 7; days*s.day <= i+1; days += 7 {
		m.add(s.earlier(i, days))
	}
	return m
}

// days returns what the same hour of the last 7 days was.
func (s *slots) days(i int) mean {
	var m mean
	for days := 1; days <= 7; days++ {
		m.add(s.earlier(i, days))
	}
	return m
}

// profile returns prof of docs/rlc.md: a times the mean of the weeks and 1 - a
// times that of the days, where a = n / (n + 1) of n weeks.
func profile(n int, weeks, days mean) float64 {
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

// carried returns now(i) of docs/rlc.md: the hour before, carried along the shape
// of the week; Unknown if that hour or the shape is.
func (s *slots) carried(i int) float64 {
	if i == 0 || !Known(s.most[i-1]) {
		return Unknown
	}
	w, before := s.weeks(i), s.weeks(i-1)
	n := min(w.n, before.n)
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

package policy

import "time"

const (
	// liveTimes is what the highest step of the last hours is multiplied by.
	liveTimes = 1.2
	// liveLeast and liveMost are the shares of the robust peak that the limit stays
	// between.
	liveLeast, liveMost = 0.5, 1.3
	// liveSpan is how far back the load of now reaches, today and yesterday.
	liveSpan = 2 * time.Hour
	// liveKnown is the share of that which must be known.
	liveKnown = 0.8
	// liveAhead is how long the limit of a cycle holds: until the next, and one
	// more that fails.
	liveAhead = 10 * time.Minute
)

// live follows the load of the last hours, within bounds that the history sets.
type live struct{ spec *Spec }

func newLive(s *Spec) Policy { return live{s} }

// Compute implements Policy. It refuses where the last hours are not known: that
// they were quiet is nothing to conclude from silence.
// Source: docs/rlc.md, "live".
func (p live) Compute(in Input) Result {
	now := in.Now.In(p.spec.location())
	today := p.last(in.Series, now)
	seen := observe(today)
	switch {
	case seen.known == 0:
		return Result{Memory: in.Memory, Refused: "no_data"}
	case float64(seen.known)*today.Step.Seconds() < liveKnown*liveSpan.Seconds():
		return Result{Memory: in.Memory, Refused: "coverage"}
	}
	l := liveLimit{window: p.spec.teaching(in.Series.over(now.Add(-p.spec.History), now)), second: p.spec.secondOverMinute(in)}
	l.known = observe(l.window)
	l.peak = RobustPeak(l.window.RPS)
	l.load, l.at = today.RPS[seen.most], today.Time(seen.most)
	yesterday := p.last(in.Series, now.AddDate(0, 0, -1))
	if was := observe(yesterday); was.known > 0 && yesterday.RPS[was.most] > l.load {
		l.load, l.at, l.yesterday = yesterday.RPS[was.most], yesterday.Time(was.most), true
	}
	var at time.Time
	l.event, at = p.spec.mostEventFactor(now, now.Add(liveAhead))
	l.bound()
	return Result{
		LimitRPS: l.rps, MostRPS: l.rps, Memory: in.Memory,
		Reason: p.reason(l, now, at), Numbers: l.numbers(),
	}
}

// last returns the steps of the hours before at.
func (p live) last(s Series, at time.Time) Series {
	return p.spec.teaching(s.over(at.Add(-liveSpan), at))
}

// liveLimit is what a limit of live is made of, in requests per second.
type liveLimit struct {
	window Series
	known  sight
	peak   float64 // robust
	load   float64 // the highest step of the hours
	at     time.Time
	// yesterday says that it is of the day before.
	yesterday bool
	second    float64 // over minute
	event     float64 // factor of the calendar
	rps       float64
	by        term
}

// bound sets the limit.
func (l *liveLimit) bound() {
	step := l.window.Step
	load, peak := l.load*l.second, l.peak*l.second
	l.rps = liveTimes * load
	if floor := SparseFloor(load, step); floor > l.rps {
		l.rps, l.by = floor, bySparse
	}
	if least := liveLeast * peak; l.rps < least {
		l.rps, l.by = least, byShare
	}
	if most := max(liveMost*peak, SparseFloor(peak, step)); l.rps > most {
		l.rps, l.by = most, byCap
	}
	l.rps *= l.event
}

func (l *liveLimit) numbers() []Number {
	numbers := []Number{
		{"peak", l.peak * l.second, "rps"},
		{"history", float64(l.known.known) * l.window.Step.Hours() / 24, "days"},
		{"load", l.load * l.second, "rps"},
	}
	numbers = append(numbers, factors(l.event, l.second)...)
	return append(numbers, Number{"computed", l.rps, "rps"})
}

// reason returns the part of the sentence; at is when the event is.
func (p live) reason(l liveLimit, now, at time.Time) string {
	peak := "the peak of the last " + lasting(now.Sub(l.window.Time(l.known.first))) + ", " + Rate(l.peak) + " rps"
	hours := "the last " + lasting(liveSpan)
	if l.yesterday {
		hours = "the same " + lasting(liveSpan) + " yesterday"
	}
	load := "the highest step of " + hours + ", " + Rate(l.load) + " rps on " + p.spec.when(l.at, l.window.Step)
	times := ratio(liveTimes) + " times " + load
	text := times
	switch l.by {
	case byShare:
		text = "half of " + peak + ", more than " + times
	case byCap:
		text = atMost(liveMost, l.peak*l.second, l.window.Step, peak) + ", no more than that, though " + times + " would be"
	case bySparse:
		text = "two standard deviations above " + load
	}
	return text + p.spec.times(l.event, l.second, at)
}

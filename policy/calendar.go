package policy

import (
	"math"
	"time"
)

// eventFactor returns by how much the events of t multiply the load: those that
// overlap multiply each other. Without one it is 1.
func (s *Spec) eventFactor(t time.Time) float64 {
	factor := 1.0
	for _, e := range s.Events {
		if !t.Before(e.From) && t.Before(e.To) {
			factor *= e.Factor
		}
	}
	return factor
}

// eventsAt returns the names of the events of t.
func (s *Spec) eventsAt(t time.Time) []string {
	var names []string
	for _, e := range s.Events {
		if !t.Before(e.From) && t.Before(e.To) {
			names = append(names, e.Name)
		}
	}
	return names
}

// mostEventFactor returns the highest factor of [from, to), and a time that has
// it. A limit that holds all that time must fit the most that is expected in it.
func (s *Spec) mostEventFactor(from, to time.Time) (float64, time.Time) {
	most, at := s.eventFactor(from), from
	// The factor changes where an event begins or ends, and only there.
	for _, e := range s.Events {
		for _, t := range []time.Time{e.From, e.To} {
			if t.After(from) && t.Before(to) && s.eventFactor(t) > most {
				most, at = s.eventFactor(t), t
			}
		}
	}
	return most, at
}

// taught returns what the load of a step at t teaches. Within a past event it is
// divided by the factor, or last year's sale would be this week's baseline. Where
// less was expected it stays: dividing would make a peak of the few that came.
func (s *Spec) taught(t time.Time, rps float64) float64 {
	return rps / max(1, s.eventFactor(t))
}

// teaching returns the steps of a series as they teach: it itself where no event
// touches it.
func (s *Spec) teaching(series Series) Series {
	touched := false
	for _, e := range s.Events {
		touched = touched || e.Factor > 1 && e.From.Before(series.Time(len(series.RPS))) && e.To.After(series.Start)
	}
	if !touched {
		return series
	}
	taught := Series{Start: series.Start, Step: series.Step, RPS: make([]float64, len(series.RPS))}
	for i, rps := range series.RPS {
		taught.RPS[i] = s.taught(series.Time(i), rps)
	}
	return taught
}

// capacityAt returns the planned capacity at t, that with the latest beginning;
// infinite where none is planned.
func (s *Spec) capacityAt(t time.Time) float64 {
	capacity, from := math.Inf(1), time.Time{}
	for _, c := range s.Capacity {
		if !c.From.After(t) && !c.From.Before(from) {
			capacity, from = c.RPS, c.From
		}
	}
	return capacity
}

// secondOverMinute returns the factor from the mean of a step to its highest
// second: that of the policy, else as measured, at least 1.
func (s *Spec) secondOverMinute(in Input) float64 {
	factor := in.SecondOverMinute
	if s.SecondOverMinute > 0 {
		factor = s.SecondOverMinute
	}
	if factor > 1 { // not so of NaN
		return factor
	}
	return 1
}

package policy

import (
	"math"
	"time"
)

const (
	// priorBuffer is the buffer of a bucket of which nothing is known; it weighs as
	// much as two months of cycles.
	priorBuffer = 1.10
	priorWeeks  = 8.0
	// mostBuffer bounds what can be taught: beyond it lies no noise but an event.
	mostBuffer = 1.30
	// buffers is how many are tried, in steps of 2 %; mostBuffer follows them.
	buffers    = 15
	bufferStep = 0.02
	// mostMissed is the share of the volume that the buffer looked for may drop in
	// the cycles learnt from: half of what a limit may.
	mostMissed = 0.0005

	// remembered is how long a cycle teaches.
	remembered = 26 * week
	// leastCycle is how long a cycle lasts at least: a run in between, asked for or
	// after a change, does not end it. A night that loses an hour is longer.
	leastCycle = 20 * time.Hour
	// MaxCycles bounds a Memory: as many as can be in half a year.
	MaxCycles = int(remembered/leastCycle) + 1
)

// tried returns the i-th buffer that cycles are judged by.
func tried(i int) float64 { return 1 + bufferStep*float64(i) }

// settle closes the open cycle if it is over at now, and forgets what is too old,
// or said to be of later than now. It does not change m.
func settle(m Memory, spec *Spec, series Series, now time.Time) Memory {
	settled := Memory{Open: m.Open, Cycles: make([]Cycle, 0, len(m.Cycles)+1)}
	for _, c := range m.Cycles {
		if c.To.After(now.Add(-remembered)) && !c.To.After(now) {
			settled.Cycles = append(settled.Cycles, c)
		}
	}
	if m.Open == nil {
		return settled
	}
	switch lasted := now.Sub(m.Open.From); {
	case lasted < 0:
		settled.Open = nil
	case lasted >= leastCycle:
		settled.Open = nil
		period := spec.teaching(series.over(m.Open.From, now))
		if c, known := judge(*m.Open, period, now); known {
			settled.Cycles = append(settled.Cycles, c)
		}
	}
	if extra := len(settled.Cycles) - MaxCycles; extra > 0 {
		settled.Cycles = settled.Cycles[extra:]
	}
	return settled
}

// judge returns a cycle that is over with what its period taught; false if nothing
// is known of it.
func judge(c Cycle, period Series, now time.Time) (Cycle, bool) {
	c.To, c.Volume, c.Dropped = now, 0, make([]float64, buffers)
	seconds, known := period.Step.Seconds(), false
	for _, rps := range period.RPS {
		if !Known(rps) {
			continue
		}
		known = true
		c.Volume += rps * seconds
		for i := range c.Dropped {
			over := rps - c.BaseRPS*tried(i)
			if over <= 0 {
				break // nor do higher ones drop
			}
			c.Dropped[i] += over * seconds
		}
	}
	return c, known
}

// open begins a cycle, unless one is under way.
func (m *Memory) open(now time.Time, baseRPS float64) {
	if m.Open == nil {
		m.Open = &Cycle{From: now.Truncate(time.Second), BaseRPS: baseRPS}
	}
}

// learnt is the buffer that a memory teaches.
type learnt struct {
	buffer float64
	best   float64 // of the cycles alone
	cycles int
}

// buffer returns the smallest buffer that would have dropped little enough in the
// cycles together, pulled to the prior by as much as the cycles are few. It is in
// [1, mostBuffer].
func (m Memory) buffer() learnt {
	l := learnt{buffer: priorBuffer, best: priorBuffer, cycles: len(m.Cycles)}
	if l.cycles == 0 {
		return l
	}
	var volume, spans float64
	dropped := make([]float64, buffers)
	for _, c := range m.Cycles {
		volume += c.Volume
		spans += c.To.Sub(c.From).Hours() / week.Hours()
		for i := range min(buffers, len(c.Dropped)) {
			dropped[i] += c.Dropped[i]
		}
	}
	l.best = mostBuffer
	for i, d := range dropped {
		if d <= mostMissed*volume {
			l.best = tried(i)
			break
		}
	}
	l.buffer = math.Exp((spans*math.Log(l.best) + priorWeeks*math.Log(priorBuffer)) / (spans + priorWeeks))
	l.buffer = clamp(l.buffer, 1, mostBuffer)
	return l
}

package fleet

import (
	"fmt"
	"math"
	"time"
)

// Names of the scenarios.
const (
	Step          = "step"
	Ramp          = "ramp"
	Pulse         = "pulse"
	Diurnal       = "diurnal"
	Low           = "low"
	Retry         = "retry"
	RetryNear     = "retry-near"
	Churn         = "churn"
	Partition     = "partition"
	Failover      = "failover"
	FailoverSurge = "failover-surge"
	Shift         = "shift"
	LoneHost      = "lone-host"
	Replay        = "trace"
)

// scenario makes a plan for options that have their defaults.
type scenario struct {
	Entry
	plan func(o *Options) Plan
}

// surgeOf is a surge, in multiples of the base.
const surgeOf = 367.0 / 22

// begin is how long a fleet has to find its rates before anything happens.
const begin = 10 * time.Second

// Scenarios returns the scenarios a fleet can run.
func Scenarios() []Entry {
	var out []Entry
	for _, s := range scenarios() {
		out = append(out, s.Entry)
	}
	return out
}

func scenarios() []scenario {
	return []scenario{
		{Entry{Step, "the load rises from its base to 16.7 times that at once, for 20 s"}, step},
		{Entry{Ramp, "the same in 3 s"}, ramp},
		{Entry{Pulse, "ten pulses of 0.5 s, one each 3 s, as high as the step"}, pulse},
		{Entry{Diurnal, "twice a sine from 0.6 to 1.4 times the limit in 60 s"}, diurnal},
		{Entry{Low, "0.9 times the limit for 5 minutes, then twice the limit for 15: run it with a limit of 5"}, low},
		{Entry{Retry, "each drop is retried twice: twice the limit for 15 s, then 0.8 times"}, retry},
		{Entry{RetryNear, "each drop is retried twice: 1.1 times the limit"}, retryNear},
		{Entry{Churn, "hosts live for a minute, reports are lost, repeated and up to 0.5 s late, at twice the limit"}, churn},
		{Entry{Partition, "a zone is cut off for 20 s at twice the limit"}, partition},
		{Entry{Failover, "the controller is away for 5 s at twice the limit, then for 20 s while the load falls below it"}, failover},
		{Entry{FailoverSurge, "the controller is away for 20 s, with the step in it"}, failoverSurge},
		{Entry{Shift, "at 1.5 times the limit the load moves from one half of the hosts to the other, 4:1 to 1:4"}, shift},
		{Entry{LoneHost, "below the limit one host alone rises by 0.4 times the limit"}, loneHost},
		{Entry{Replay, "what a trace says was requested"}, replay},
	}
}

// planFor returns the plan of the options.
func planFor(o *Options) (Plan, error) {
	if o.Plan != nil {
		return *o.Plan, nil
	}
	for _, s := range scenarios() {
		if s.Name == o.Scenario {
			if s.Name == Replay && o.Trace == nil {
				return Plan{}, fmt.Errorf("%w: scenario %q needs a trace", ErrOptions, Replay)
			}
			return s.plan(o), nil
		}
	}
	return Plan{}, fmt.Errorf("%w: no scenario %q", ErrOptions, o.Scenario)
}

// all makes all hosts share a load.
func all(knots ...Knot) []Load { return []Load{{Hosts: 1, Knots: knots}} }

// jump is a load that goes from one rate to another one at once.
func jump(at time.Duration, from, to float64) []Knot { return []Knot{{at, from}, {at, to}} }

func step(o *Options) Plan {
	base, surge := o.BaseRPS, surgeOf*o.BaseRPS
	rise, fall, end := 2*begin, 4*begin, 6*begin
	return Plan{
		Length: end,
		Loads:  all(append(jump(rise, base, surge), jump(fall, surge, base)...)...),
		From:   begin, Change: rise, Settled: fall, Release: fall,
		Steady: []Span{{rise + 5*time.Second, fall}},
	}
}

func ramp(o *Options) Plan {
	base, surge := o.BaseRPS, surgeOf*o.BaseRPS
	rise, top, fall, end := 2*begin, 2*begin+3*time.Second, 4*begin, 6*begin
	return Plan{
		Length: end,
		Loads:  all(append([]Knot{{rise, base}, {top, surge}}, jump(fall, surge, base)...)...),
		From:   begin, Change: rise, Settled: fall, Release: fall,
		Steady: []Span{{top + 5*time.Second, fall}},
	}
}

func pulse(o *Options) Plan {
	base, surge := o.BaseRPS, surgeOf*o.BaseRPS
	var knots []Knot
	for i := range 10 {
		at := 2*begin + time.Duration(i)*3*time.Second
		knots = append(knots, jump(at, base, surge)...)
		knots = append(knots, jump(at+500*time.Millisecond, surge, base)...)
	}
	return Plan{Length: 6 * begin, Loads: all(knots...), From: begin}
}

func diurnal(o *Options) Plan {
	const period = 60 * time.Second
	var knots []Knot
	for at := time.Duration(0); at <= 2*period; at += 100 * time.Millisecond {
		phase := 2 * math.Pi * at.Seconds() / period.Seconds()
		knots = append(knots, Knot{begin + at, o.LimitRPS * (1 - 0.4*math.Cos(phase))})
	}
	return Plan{Length: begin + 2*period, Loads: all(knots...), From: begin}
}

func low(o *Options) Plan {
	rise, end := begin+5*time.Minute, begin+20*time.Minute // chance takes its time
	return Plan{
		Length: end,
		Loads:  all(jump(rise, 0.9*o.LimitRPS, 2*o.LimitRPS)...),
		From:   begin,
		Steady: []Span{{rise + begin, end}},
	}
}

func retry(o *Options) Plan {
	rise, fall, end := 2*begin, 2*begin+15*time.Second, 6*begin
	l := o.LimitRPS
	return Plan{
		Length:  end,
		Loads:   all(append(jump(rise, o.BaseRPS, 2*l), jump(fall, 2*l, 0.8*l)...)...),
		Retries: 2,
		From:    begin, Change: rise, Settled: fall, Release: fall,
		Steady: []Span{{rise + 7*time.Second, fall}},
	}
}

func retryNear(o *Options) Plan {
	rise, end := 2*begin, 6*begin
	return Plan{
		Length:  end,
		Loads:   all(jump(rise, o.BaseRPS, 1.1*o.LimitRPS)...),
		Retries: 2,
		From:    begin, Change: rise, Settled: end,
		Steady: []Span{{rise + 15*time.Second, end}},
	}
}

func churn(o *Options) Plan {
	end := 7 * begin
	return Plan{
		Length:   end,
		Loads:    all(Knot{0, 2 * o.LimitRPS}),
		HostLife: time.Minute,
		Loss:     0.05, Duplication: 0.02, Late: 500 * time.Millisecond,
		From:   begin,
		Steady: []Span{{begin, end}},
	}
}

func partition(o *Options) Plan {
	cut, end := 2*begin, 5*begin
	return Plan{
		Length: end,
		Loads:  all(Knot{0, 2 * o.LimitRPS}),
		Faults: []Fault{{Kind: ZoneCut, Span: Span{cut, cut + 20*time.Second}}},
		From:   cut,
		Steady: []Span{{cut, end}},
	}
}

func failover(o *Options) Plan {
	first, second, fall, end := 2*begin, 3*begin, 3*begin+5*time.Second, 7*begin
	return Plan{
		Length: end,
		Loads:  all(jump(fall, 2*o.LimitRPS, 0.5*o.LimitRPS)...),
		Faults: []Fault{
			{Kind: ControllerDown, Span: Span{first, first + 5*time.Second}},
			{Kind: ControllerDown, Span: Span{second, second + 20*time.Second}},
		},
		From: first, Release: fall,
		Steady: []Span{{first, second}},
	}
}

func failoverSurge(o *Options) Plan {
	away, rise, end := 2*begin, 2*begin+4*time.Second, 5*begin
	surge := surgeOf * o.BaseRPS
	return Plan{
		Length: end,
		Loads:  all(jump(rise, o.BaseRPS, surge)...),
		Faults: []Fault{{Kind: ControllerDown, Span: Span{away, away + 20*time.Second}}},
		From:   away, Change: rise, Settled: end,
		Steady: []Span{{rise + 5*time.Second, end}},
	}
}

func shift(o *Options) Plan {
	at, end := 2*begin, 2*begin+15*time.Second
	most, least := 0.8*1.5*o.LimitRPS, 0.2*1.5*o.LimitRPS
	return Plan{
		Length: end,
		Loads: []Load{
			{Hosts: 0.5, Knots: jump(at, most, least)},
			{Hosts: 0.5, Knots: jump(at, least, most)},
		},
		From: begin, Change: at, Settled: end,
		Steady: []Span{{at - 2*time.Second, end}},
	}
}

func loneHost(o *Options) Plan {
	at, end := 2*begin, 4*begin
	alone := 0.45 * o.LimitRPS / float64(o.Hosts)
	return Plan{
		Length: end,
		Loads: []Load{
			{Knots: jump(at, alone, alone+0.4*o.LimitRPS)},
			{Hosts: 1, Knots: []Knot{{0, 0.45*o.LimitRPS - alone}}},
		},
		From: begin,
	}
}

// replay has no loads: each bucket has its own.
func replay(o *Options) Plan {
	length := time.Duration(o.Trace.Seconds()) * time.Second
	return Plan{Length: length}
}

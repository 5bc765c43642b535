package compute

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"grl/limiter"
	"grl/policy"
	grlv1 "grl/proto/grl/v1"
	"grl/roles/configurator/history"
)

const (
	hours = 24
	week  = 7 * 24 * time.Hour
)

// Cycle is what all buckets of one cycle have in common.
type Cycle struct {
	Now time.Time
	// Period is how long a cycle of a policy lasts.
	Period func(*policy.Spec) time.Duration
}

// Compute returns what the policy makes of a bucket, and what it learnt. A
// policy that panics has failed for this bucket alone.
func (c Cycle) Compute(w Work, h history.Bucket, m Memory) (result *grlv1.RunResult, next Memory) {
	result = &grlv1.RunResult{
		Bucket: w.Bucket.FullName(), Policy: w.Spec.Name, Kind: w.Spec.Kind, Mode: modes[w.Spec.Mode], Before: limitOf(w.Bucket),
	}
	newDay := NewDay(w.Spec, m, c.Now)
	m = c.memory(w, m)
	next = m
	defer func() {
		if p := recover(); p != nil {
			result.Outcome, result.Reason, next = grlv1.RunOutcome_RUN_OUTCOME_FAILED, fmt.Sprintf("the policy %s broke: %v", w.Spec.Kind, p), m
		}
	}()
	if h.Err != nil {
		return refuse(result, "source_error", "no history: "+h.Err.Error()), next
	}
	j := judging{cycle: c, work: w, memory: m, newDay: newDay}
	for _, u := range h.Units {
		j.unit(u)
	}
	next.Units = j.learnt
	j.result(result, h)
	return result, next
}

// modes are the words of a policy's mode in messages.
var modes = map[policy.Mode]grlv1.PolicyMode{
	policy.Propose: grlv1.PolicyMode_POLICY_MODE_PROPOSE,
	policy.Shadow:  grlv1.PolicyMode_POLICY_MODE_SHADOW,
	policy.Apply:   grlv1.PolicyMode_POLICY_MODE_APPLY,
}

// memory returns m as far as it is still about the bucket.
func (c Cycle) memory(w Work, m Memory) Memory {
	if of := requestsOf(w.Bucket); m.Of != of {
		m = Memory{Of: of} // other requests: what was learnt is not about them
	}
	m.ComputedAt, m.Policy = c.Now, w.Spec.Name
	switch now := w.Bucket.CandidateRPS; {
	case now == 0:
		m.CandidateSince = time.Time{}
	case m.CandidateSince.IsZero() || now < m.CandidateRPS:
		m.CandidateSince = c.Now // what was clean for a higher one need not be for it
	}
	m.CandidateRPS = w.Bucket.CandidateRPS
	return m
}

// refuse says that nothing is changed, and why.
func refuse(r *grlv1.RunResult, word, reason string) *grlv1.RunResult {
	r.Outcome, r.Refused, r.Reason = grlv1.RunOutcome_RUN_OUTCOME_REFUSED, word, reason
	return r
}

// limitOf returns the limit of a bucket as messages have it.
func limitOf(b *limiter.Bucket) *grlv1.ComputedLimit {
	m := &grlv1.ComputedLimit{
		Rps: b.LimitRPS, HourlyRps: slices.Clone(b.Hourly), TimeZone: b.TimeZone, CandidateRps: b.CandidateRPS,
	}
	for region, rps := range b.Regions {
		if m.RegionsRps == nil {
			m.RegionsRps = make(map[string]float64)
		}
		m.RegionsRps[region] = rps
	}
	for region, hourly := range b.RegionHourly {
		if m.RegionsHourly == nil {
			m.RegionsHourly = make(map[string]*grlv1.HourlyLimits)
		}
		m.RegionsHourly[region] = &grlv1.HourlyLimits{Rps: slices.Clone(hourly)}
	}
	return m
}

// judging is a bucket whose units are judged one after another.
type judging struct {
	cycle  Cycle
	work   Work
	memory Memory

	newDay   bool // the first cycle of the day in the policy's time zone
	verdicts []verdict
	learnt   map[string]Unit
}

// verdict is what was computed of one unit.
type verdict struct {
	instance string
	refused  string
	// rps holds from now on, or at most in any hour; hourly may be nil.
	rps    float64
	hourly []float64
	now    float64 // of the present hour
	before float64 // that it replaces
	reason string
	notes  []string
	number []policy.Number
	short  bool // there is less history than the kind needs
	series policy.Series
}

// unit judges one unit.
func (j *judging) unit(u history.Unit) {
	learnt := j.memory.Units[u.Instance]
	learnt.Steps = maps.Clone(learnt.Steps)
	spec := j.work.Spec
	v := verdict{instance: u.Instance, refused: u.Refused, notes: slices.Clone(u.Notes), before: j.present(u.Instance), series: u.Series}
	defer func() {
		if j.learnt == nil {
			j.learnt = make(map[string]Unit)
		}
		j.learnt[u.Instance] = learnt
		j.verdicts = append(j.verdicts, v)
	}()
	if v.refused != "" && kind(spec).Least > 0 {
		return
	}
	r := kind(spec).New(spec).Compute(policy.Input{
		Now: j.cycle.Now, Series: u.Series, Memory: learnt.learnt(), SecondOverMinute: max(1, u.SecondOverMinute), Instance: u.Instance,
	})
	if v.refused, v.number = r.Refused, r.Numbers; v.refused != "" {
		v.notes = append(v.notes, r.Reason)
		return
	}
	if data, err := r.Memory.MarshalBinary(); err == nil {
		learnt.Learnt = data
	}
	v.short = known(u.Series) < kind(spec).Least
	j.bound(&v, &learnt, r, u)
}

// kind returns the row of the table that a spec names.
func kind(s *policy.Spec) policy.Kind {
	for _, k := range policy.Kinds() {
		if k.Name == s.Kind {
			return k
		}
	}
	panic(fmt.Sprintf("policy %q is of no kind", s.Name)) // the reader of policy files refuses it
}

// known returns from how long ago on something is known.
func known(s policy.Series) time.Duration {
	for i, rps := range s.RPS {
		if policy.Known(rps) {
			return time.Duration(len(s.RPS)-i) * s.Step
		}
	}
	return 0
}

// present returns the limit of a unit now.
func (j *judging) present(instance string) float64 {
	at := j.work.Bucket.At(j.cycle.Now)
	return at.Limit(instance)
}

// hoursOf returns the hourly limits of a unit, nil if it has none.
func (j *judging) hoursOf(instance string) []float64 {
	if hourly, ok := j.work.Bucket.RegionHourly[instance]; ok {
		return hourly
	}
	if _, own := j.work.Bucket.Regions[instance]; own {
		return nil
	}
	return j.work.Bucket.Hourly
}

// boundOne holds one limit to the rails, with what it was when the cycle began.
func (j *judging) boundOne(learnt *Unit, key int, in policy.BoundInput) policy.Bounded {
	period := j.cycle.period(j.work.Spec, key)
	in.DownFromRPS = learnt.before(key, in.PresentRPS, j.cycle.Now, period)
	if (1-j.work.Spec.MaxStep)*in.DownFromRPS > in.PresentRPS {
		in.DownFromRPS = in.PresentRPS // people lowered it further meanwhile: a step from there
	}
	if in.PresentRPS > 0 {
		learnt.step(key, in.PresentRPS, j.cycle.Now, period)
	}
	b := policy.Bound(j.work.Spec, in)
	if j.work.Bucket.Behavior == limiter.Allow && (b.Rule == "triple" || b.Rule == "step") {
		// What drops nothing may move as far as it likes.
		free := in
		free.PresentRPS, free.DownFromRPS = 0, 0
		return policy.Bound(j.work.Spec, free)
	}
	return b
}

// period returns within which a limit may be lowered by one step: a cycle, and
// at least what its kind says; of one hour of the day a day.
func (c Cycle) period(s *policy.Spec, key int) time.Duration {
	if key != constant {
		return 24 * time.Hour
	}
	return max(c.Period(s), kind(s).Step)
}

// bound holds what was computed of a unit to the rails.
func (j *judging) bound(v *verdict, learnt *Unit, r policy.Result, u history.Unit) {
	zone := zoneOf(j.work.Spec)
	peaks := highest(u.Series.Between(j.cycle.Now.Add(-week), j.cycle.Now), zone)
	present := j.hoursOf(u.Instance)
	if r.Hourly == nil && present == nil {
		b := j.boundOne(learnt, constant, policy.BoundInput{
			At: j.cycle.Now, LimitRPS: r.LimitRPS, PresentRPS: v.before, PeakRPS: slices.Max(peaks[:]), NoLower: u.NoLower,
		})
		v.rps, v.now = b.LimitRPS, b.LimitRPS
		v.reason = policy.Sentence(v.before, b, r.Reason)
		return
	}
	hour := j.cycle.Now.In(zone).Hour()
	// Else only the present hour: the others were computed at the beginning of the
	// day, unless that waits for a person.
	whole := present == nil || r.Hourly == nil || j.newDay || j.work.Spec.Mode == policy.Propose || j.work.Bucket.TimeZone != zoneName(zone)
	v.hourly = make([]float64, hours)
	for h := range hours {
		at := nextHour(j.cycle.Now, h, zone)
		in := policy.BoundInput{At: at, LimitRPS: r.LimitRPS, PeakRPS: peaks[h], NoLower: u.NoLower}
		before := j.work.Bucket.At(at)
		in.PresentRPS = before.Limit(u.Instance)
		if r.Hourly != nil {
			in.LimitRPS = r.Hourly[h]
		}
		if !whole && h != hour {
			v.hourly[h] = in.PresentRPS
			continue
		}
		b := j.boundOne(learnt, h, in)
		v.hourly[h] = b.LimitRPS
		if h == hour {
			v.now, v.reason = b.LimitRPS, policy.Sentence(v.before, b, r.Reason)
		}
	}
	v.rps = slices.Max(v.hourly)
	if slices.Min(v.hourly) == v.rps {
		v.hourly = nil // the same at all hours
	}
}

// zoneOf returns where the hours of a policy are.
func zoneOf(s *policy.Spec) *time.Location {
	if s.Location == nil {
		return time.UTC
	}
	return s.Location
}

// zoneName returns a location as limits files name it.
func zoneName(zone *time.Location) string {
	if zone == time.UTC {
		return ""
	}
	return zone.String()
}

// nextHour returns a time within the next full or present hour h of the day.
func nextHour(now time.Time, h int, zone *time.Location) time.Time {
	for ahead := range 2 * hours {
		if at := now.Add(time.Duration(ahead) * time.Hour); at.In(zone).Hour() == h {
			return at
		}
	}
	return now // a day without that hour
}

// highest returns the highest step at each hour of the day; 0: none is known.
func highest(s policy.Series, zone *time.Location) (peaks [hours]float64) {
	for i, rps := range s.RPS {
		if !(rps > 0) {
			continue
		}
		if h := s.Time(i).In(zone).Hour(); rps > peaks[h] {
			peaks[h] = rps
		}
	}
	return peaks
}

// same reports whether two limits are the same but for what a float64 loses.
func same(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(a, b) }

// daily returns the highest step of each of the last 28 days, -1: unknown.
func daily(s policy.Series, now time.Time) []float32 {
	const days = 28
	peaks := make([]float32, days)
	for d := range peaks {
		peaks[d] = -1
		from := now.Add(time.Duration(d-days) * 24 * time.Hour)
		for _, rps := range s.Between(from, from.Add(24*time.Hour)).RPS {
			if policy.Known(rps) {
				peaks[d] = max(peaks[d], float32(rps))
			}
		}
	}
	return peaks
}

// rates writes a limit as people do.
func rates(rps float64) string { return policy.Rate(rps) + " rps" }

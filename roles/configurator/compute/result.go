package compute

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"grl/limiter"
	"grl/policy"
	grlv1 "grl/proto/grl/v1"
	"grl/roles/configurator/history"
)

const (
	// candidateBand is the share by which a candidate moves at least.
	candidateBand = 0.02
	// mostTold bounds the regions and notes that a sentence names.
	mostTold = 3
)

// result puts the verdicts of all units together.
func (j *judging) result(r *grlv1.RunResult, h history.Bucket) {
	computed := slices.DeleteFunc(slices.Clone(j.verdicts), func(v verdict) bool { return v.refused != "" })
	if len(computed) == 0 {
		j.refuseAll(r)
		return
	}
	slices.SortStableFunc(computed, func(a, b verdict) int { return compareMoves(b, a) })
	lead := computed[0]
	r.Reason = j.sentence(computed)
	for _, n := range lead.number {
		r.Numbers = append(r.Numbers, &grlv1.RunNumber{Name: n.Name, Value: n.Value, Unit: n.Unit})
	}
	after := j.after(computed)
	mode := j.work.Spec.Mode
	if mode == policy.Apply && slices.ContainsFunc(computed, func(v verdict) bool { return v.short }) {
		mode = policy.Propose
	}
	r.Mode = modes[mode]
	j.settle(r, h, after, mode)
	if r.Outcome != grlv1.RunOutcome_RUN_OUTCOME_UNCHANGED {
		r.DailyPeaks = daily(lead.series, j.cycle.Now)
	}
	if known(lead.series) > 0 {
		j.evidence(r, lead, after)
	}
}

// evidence says what the limits, before and after, would have dropped of the
// history.
func (j *judging) evidence(r *grlv1.RunResult, lead verdict, after *grlv1.ComputedLimit) {
	zone := zoneOf(j.work.Spec)
	was, is := dropped(lead, r.GetBefore(), j.work.Bucket, zone), dropped(lead, after, j.work.Bucket, zone)
	r.Numbers = append(r.Numbers,
		&grlv1.RunNumber{Name: "dropped_before", Value: was, Unit: "ratio"},
		&grlv1.RunNumber{Name: "dropped_after", Value: is, Unit: "ratio"})
	if r.Outcome == grlv1.RunOutcome_RUN_OUTCOME_UNCHANGED {
		return
	}
	r.Reason += "; it would have dropped " + shareText(is) + " of the history"
	if shareText(was) != shareText(is) {
		r.Reason += ", the present one " + shareText(was)
	}
}

// refuseAll says that no unit could be computed, and why the first one could
// not.
func (j *judging) refuseAll(r *grlv1.RunResult) {
	if len(j.verdicts) == 0 {
		refuse(r, "no_data", "the limit stays: nothing was ever recorded of this bucket")
		return
	}
	v := j.verdicts[0]
	text := v.refused
	for _, w := range policy.Refusals() {
		if w.Name == v.refused {
			text = w.Text
		}
	}
	refuse(r, v.refused, "the limit stays: "+strings.Join(append([]string{text}, told(v.notes)...), "; "))
}

// compareMoves orders verdicts by how far they move a limit.
func compareMoves(a, b verdict) int {
	move := func(v verdict) float64 {
		if v.before <= 0 {
			return math.Inf(1)
		}
		return math.Abs(math.Log(v.now / v.before))
	}
	switch x, y := move(a), move(b); {
	case x < y:
		return -1
	case x > y:
		return 1
	default:
		return strings.Compare(b.instance, a.instance)
	}
}

// sentence says what was computed of the units that move most.
func (j *judging) sentence(computed []verdict) string {
	var parts []string
	for _, v := range computed[:min(mostTold, len(computed))] {
		text := v.reason
		if v.instance != "" {
			text = v.instance + " " + text
		}
		parts = append(parts, text)
	}
	if more := len(computed) - mostTold; more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more regions", more))
	}
	for _, v := range j.verdicts {
		if v.refused != "" {
			parts = append(parts, fmt.Sprintf("%s stays (%s)", v.instance, v.refused))
		}
	}
	lead := computed[0]
	parts = append(parts, told(lead.notes)...)
	if lead.short && j.work.Spec.Mode == policy.Apply {
		parts = append(parts, fmt.Sprintf("proposed only, since there are %.0f days of history and not %.0f",
			known(lead.series).Hours()/24, kind(j.work.Spec).Least.Hours()/24))
	}
	return strings.Join(parts, "; ")
}

// told returns the first of some notes.
func told(notes []string) []string { return notes[:min(mostTold, len(notes))] }

// after returns the limit of the bucket as it was computed.
func (j *judging) after(computed []verdict) *grlv1.ComputedLimit {
	m := limitOf(j.work.Bucket)
	for _, v := range computed {
		if v.instance == "" {
			m.Rps, m.HourlyRps = v.rps, v.hourly
			continue
		}
		if m.RegionsRps == nil {
			m.RegionsRps = make(map[string]float64)
		}
		m.RegionsRps[v.instance] = v.rps
		delete(m.RegionsHourly, v.instance)
		if v.hourly != nil {
			if m.RegionsHourly == nil {
				m.RegionsHourly = make(map[string]*grlv1.HourlyLimits)
			}
			m.RegionsHourly[v.instance] = &grlv1.HourlyLimits{Rps: v.hourly}
		}
	}
	if j.work.Bucket.Scope == limiter.Region && len(m.RegionsRps) > 0 {
		// A region that is new, and of which nothing is known, gets the highest.
		m.Rps = slices.Max(slices.Collect(maps.Values(m.RegionsRps)))
		m.HourlyRps = nil
	}
	m.TimeZone = ""
	if m.HourlyRps != nil || len(m.RegionsHourly) > 0 {
		m.TimeZone = zoneName(zoneOf(j.work.Spec))
	}
	return m
}

// settle decides what becomes of a computed limit.
func (j *judging) settle(r *grlv1.RunResult, h history.Bucket, after *grlv1.ComputedLimit, mode policy.Mode) {
	r.After, r.Outcome = after, grlv1.RunOutcome_RUN_OUTCOME_UNCHANGED
	shadow := j.work.Bucket.Behavior == limiter.Allow
	switch {
	case mode == policy.Shadow && !shadow:
		j.shadow(r, h, after)
	case sameLimit(r.GetBefore(), after):
	case mode == policy.Propose:
		r.Outcome, r.State = grlv1.RunOutcome_RUN_OUTCOME_PROPOSED, grlv1.ProposalState_PROPOSAL_STATE_PENDING
	case shadow:
		r.Outcome = grlv1.RunOutcome_RUN_OUTCOME_SHADOWED
	default:
		r.Outcome = grlv1.RunOutcome_RUN_OUTCOME_APPLIED
	}
}

// shadow makes a computed limit the candidate of an enforced bucket, or the
// candidate, once it was clean for long enough, the limit.
func (j *judging) shadow(r *grlv1.RunResult, h history.Bucket, computed *grlv1.ComputedLimit) {
	before := r.GetBefore()
	r.After = proto.CloneOf(before)
	if days := cleanDays(h.Units, before.GetCandidateRps(), j.memory.CandidateSince, j.cycle.Now); promotes(j.work.Spec, days) && len(before.GetRegionsRps()) == 0 {
		b := j.promoted(h.Units[0], before)
		r.After.Rps, r.After.HourlyRps, r.After.TimeZone, r.After.CandidateRps = b.LimitRPS, nil, "", 0
		r.Outcome = grlv1.RunOutcome_RUN_OUTCOME_PROMOTED
		r.Reason = policy.Sentence(before.GetRps(), b, fmt.Sprintf("the candidate, which would have dropped nothing of note for %d days", days))
		return
	}
	next := candidateOf(computed)
	if same(next, before.GetRps()) && len(before.GetRegionsRps()) == 0 {
		next = 0 // it would be the limit itself
	}
	if now := before.GetCandidateRps(); next == 0 && now == 0 || next > 0 && math.Abs(next-now) < candidateBand*now {
		return
	}
	r.After.CandidateRps = next
	r.Outcome = grlv1.RunOutcome_RUN_OUTCOME_SHADOWED
	if next == 0 {
		r.Reason += "; so no candidate is needed"
	}
}

// promoted returns the limit that a candidate becomes, within the rails.
func (j *judging) promoted(u history.Unit, before *grlv1.ComputedLimit) policy.Bounded {
	learnt := j.learnt[u.Instance]
	peaks := highest(u.Series.Between(j.cycle.Now.Add(-week), j.cycle.Now), time.UTC)
	b := j.boundOne(&learnt, constant, policy.BoundInput{
		At: j.cycle.Now, LimitRPS: before.GetCandidateRps(), PresentRPS: before.GetRps(), PeakRPS: slices.Max(peaks[:]), NoLower: u.NoLower,
	})
	j.learnt[u.Instance] = learnt
	return b
}

// candidateOf returns the one limit that stands for all of a computed one.
func candidateOf(m *grlv1.ComputedLimit) float64 { return m.GetRps() }

// sameLimit reports whether two limits are the same.
func sameLimit(a, b *grlv1.ComputedLimit) bool { return proto.Equal(a, b) }

// dropped returns the share of what a unit was offered that a limit would have
// dropped, in [0, 1].
func dropped(v verdict, m *grlv1.ComputedLimit, b *limiter.Bucket, zone *time.Location) float64 {
	judged := *b
	judged.LimitRPS, judged.Hourly, judged.TimeZone = m.GetRps(), m.GetHourlyRps(), m.GetTimeZone()
	judged.Regions, judged.RegionHourly = m.GetRegionsRps(), nil
	for region, hourly := range m.GetRegionsHourly() {
		if judged.RegionHourly == nil {
			judged.RegionHourly = make(map[string][]float64)
		}
		judged.RegionHourly[region] = hourly.GetRps()
	}
	var limits [hours]float64
	for h := range hours {
		at := judged.AtHour(h)
		limits[h] = at.Limit(v.instance)
	}
	constant := slices.Min(limits[:]) == slices.Max(limits[:])
	var over, all float64
	for i, rps := range v.series.RPS {
		if !policy.Known(rps) {
			continue
		}
		all += rps
		limit := limits[0]
		if !constant {
			limit = limits[v.series.Time(i).In(zone).Hour()]
		}
		over += max(0, rps-limit)
	}
	if all == 0 {
		return 0
	}
	return over / all
}

// shareText writes a share as percent.
func shareText(share float64) string {
	switch {
	case share == 0:
		return "nothing"
	case share < 0.00005:
		return "less than 0.01 %"
	default:
		return fmt.Sprintf("%.2g %%", 100*share)
	}
}

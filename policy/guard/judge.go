package guard

import (
	"fmt"
	"maps"
	"slices"

	"grl/limiter"
	"grl/policy"
)

// Judge returns what the rails say of the pairs that a change touches, in their
// order, what needs force first. past tells what each of them was offered; it
// is called at most once a pair, and not for one whose limit only rises. buckets is how many buckets there were: with 0
// the change is the first one, of which nothing is said.
func Judge(pairs []Pair, buckets int, past func(Pair) Past) []Finding {
	if buckets == 0 {
		return nil
	}
	var forced, others []Finding
	add := func(findings ...Finding) {
		for _, f := range findings {
			if f.NeedsForce {
				forced = append(forced, f)
			} else {
				others = append(others, f)
			}
		}
	}
	add(many(pairs, buckets)...)
	for _, p := range pairs {
		if !p.enforcedBefore() && !p.enforcedAfter() {
			continue // drops nothing
		}
		m := measured{}
		if p.tightens() || !p.enforcedAfter() {
			m = newMeasured(p, past(p))
		}
		add(judge(p, m)...)
	}
	return append(forced, others...)
}

func (p Pair) enforcedBefore() bool { return p.Before != nil && p.Before.Behavior == limiter.Deny }
func (p Pair) enforcedAfter() bool  { return p.After != nil && p.After.Behavior == limiter.Deny }

// many counts the buckets that were there and whose enforcement changes. New
// ones are judged by themselves: a service that joins is no careless change of
// the others.
func many(pairs []Pair, buckets int) []Finding {
	changed := 0
	for _, p := range pairs {
		if p.Before != nil && (p.enforcedBefore() || p.enforcedAfter()) {
			changed++
		}
	}
	if changed <= fewBuckets || float64(changed) <= mostOfBuckets*float64(buckets) {
		return nil
	}
	return []Finding{{
		Rail: ManyBuckets, NeedsForce: true,
		Text: fmt.Sprintf("changes %s of %s buckets at once, more than %s", policy.Count(changed), policy.Count(buckets), Percent(mostOfBuckets)),
	}}
}

func judge(p Pair, m measured) []Finding {
	var findings []Finding
	if f, ok := belowPeak(p, m); ok {
		findings = append(findings, f)
	}
	if f, ok := abovePresent(p, m); ok {
		findings = append(findings, f)
	}
	if f, ok := predicted(p, m); ok {
		findings = append(findings, f)
	}
	return findings
}

// tightens reports whether the change may drop what was not dropped before.
func (p Pair) tightens() bool {
	switch {
	case !p.enforcedAfter():
		return false
	case !p.enforcedBefore() || p.After.Block && !p.Before.Block:
		return true
	case p.Before.Block:
		return false
	case !sameRequests(p.Before, p.After):
		return true
	default:
		return slices.ContainsFunc(newHours(p).all(), (*moment).lowered)
	}
}

// keeps reports whether both sides are enforced, by limits of the same requests.
func (p Pair) keeps() bool {
	return p.enforcedBefore() && p.enforcedAfter() && !p.Before.Block && !p.After.Block && sameRequests(p.Before, p.After)
}

// lowered reports whether the limit of an instance is lower than it was.
func (m *moment) lowered() bool {
	return slices.ContainsFunc(m.instances(), func(instance string) bool {
		return m.After.Limit(instance) < m.Before.Limit(instance)
	})
}

// instances returns "" for those without a limit of their own, and those which
// have one on either side, sorted.
func (p Pair) instances() []string {
	all := map[string]bool{"": true}
	for _, b := range []*limiter.Bucket{p.Before, p.After} {
		for region := range b.Regions {
			all[region] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// belowPeak is about limits: what blocks has none.
func belowPeak(p Pair, m measured) (Finding, bool) {
	if !p.tightens() || p.After.Block || !m.known {
		return Finding{}, false
	}
	g := m.tightest
	if g.limit >= leastOfPeak*g.peak {
		return Finding{}, false
	}
	return Finding{
		Rail: BelowPeak, Bucket: p.Name(), NeedsForce: true,
		Text: fmt.Sprintf("limit of %s rps%s is below half of %s, %s rps", policy.Rate(g.limit), g.where, g.highest, policy.Rate(g.peak)),
	}, true
}

func abovePresent(p Pair, m measured) (Finding, bool) {
	if !p.enforcedBefore() || p.Before.Block {
		return Finding{}, false
	}
	f := Finding{Rail: AbovePresent, Bucket: p.Name(), NeedsForce: true}
	if !p.enforcedAfter() { // as if the limit were the highest minute
		if g := m.loosest; !m.known || g.peak <= mostOfPresent*g.present {
			return Finding{}, false
		}
		g := m.loosest
		f.Text = fmt.Sprintf("takes away a limit of %s rps%s, and up to %s rps were offered in the last %d days, more than %d times as much",
			policy.Rate(g.present), g.where, policy.Rate(g.peak), Days, mostOfPresent)
		return f, true
	}
	if p.After.Block {
		return Finding{}, false
	}
	for _, at := range newHours(p).all() {
		if instance, ok := at.raised(); ok {
			f.Text = fmt.Sprintf("limit of %s rps%s is above %d times the present one, %s rps",
				policy.Rate(at.After.Limit(instance)), at.where(instance), mostOfPresent, policy.Rate(at.Before.Limit(instance)))
			return f, true
		}
	}
	return Finding{}, false
}

// raised returns an instance whose limit rises too far.
func (m *moment) raised() (instance string, ok bool) {
	for _, instance := range m.instances() {
		if m.After.Limit(instance) > mostOfPresent*m.Before.Limit(instance) {
			return instance, true
		}
	}
	return "", false
}

// predicted says what the bucket as it shall be would have dropped. What is
// offered now stands in for history in the text only: a moment is no week.
func predicted(p Pair, m measured) (Finding, bool) {
	if !p.tightens() {
		return Finding{}, false
	}
	f := Finding{Rail: PredictedDrops, Bucket: p.Name(), DropShare: m.after, Predicted: m.known || m.now}
	switch {
	case p.After.Block:
		return blocks(f, m), true
	case m.known:
		f.NeedsForce = m.after > mostDropped && m.after > m.before
		f.Text = fmt.Sprintf("would have dropped %s of what was offered in the last %d days", Percent(m.after), Days)
		if p.enforcedBefore() {
			f.Text += fmt.Sprintf("; as it is, %s", Percent(m.before))
		} else if m.shadowed > 0 {
			f.Text += fmt.Sprintf("; counted in shadow: %s", Percent(m.shadowed))
		}
	case m.now:
		f.Text = fmt.Sprintf("would drop %s of the %s rps that are offered now; there is no history to tell more", Percent(m.after), policy.Rate(m.nowRPS))
	default:
		f.Text = "cannot tell what it would drop: there is no history"
	}
	return f, true
}

// blocks is about a bucket that shall block. It drops all that is offered, now
// or as before; without either, nobody can tell whether that is anything.
func blocks(f Finding, m measured) Finding {
	f.Text = "would drop everything that it matches"
	switch {
	case m.known && m.tightest.peak > 0:
		f.Text += fmt.Sprintf(", up to %s rps in the last %d days", policy.Rate(m.tightest.peak), Days)
	case m.now:
		f.Text += fmt.Sprintf(", %s rps now", policy.Rate(m.nowRPS))
	case m.known:
		f.Text += ", which was nothing in the last 7 days"
		return f
	default:
		f.Text += ": cannot tell how much that is"
		return f
	}
	f.DropShare, f.Predicted, f.NeedsForce = 1, true, true
	return f
}

package compute

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"grl/limiter"
	"grl/limiter/limitsfile"
	"grl/policy"
	grlv1 "grl/proto/grl/v1"
)

const (
	// mostFound bounds the buckets that are found for one service.
	mostFound = 20
)

// Discover returns buckets in shadow for services without limits, from who sent
// to them in the last hours, the largest first. Their limits are those of peak,
// over the means of hours: a first guess that drops nothing.
func Discover(now time.Time, spec *policy.Spec, services []limiter.Service, traffic []*grlv1.TrafficHour) []*grlv1.RunResult {
	if spec.Discover == nil {
		return nil
	}
	known := make(map[string]bool, len(services))
	for i := range services {
		known[services[i].Name] = true
	}
	seen := make(map[string]map[limiter.Match]load)
	first := make(map[string]int64) // service → the first hour in which it was seen
	for _, h := range traffic {
		for _, s := range h.GetServices() {
			if at, ok := first[s.GetService()]; !ok || h.GetStartMs() < at {
				first[s.GetService()] = h.GetStartMs()
			}
		}
	}
	for _, h := range traffic {
		start := time.UnixMilli(h.GetStartMs()).UTC()
		if now.Sub(start) < time.Hour {
			continue // is not over
		}
		for _, s := range h.GetServices() {
			if known[s.GetService()] || !spec.Match.Service.Match(s.GetService()) || first[s.GetService()] == h.GetStartMs() {
				continue // also of a first hour, which may have begun in its middle
			}
			if seen[s.GetService()] == nil {
				seen[s.GetService()] = make(map[limiter.Match]load)
			}
			addHour(seen[s.GetService()], spec.Discover.By, start, s.GetPairs())
		}
	}
	var found []*grlv1.RunResult
	for _, service := range slices.Sorted(maps.Keys(seen)) {
		found = append(found, discovered(now, spec, service, seen[service])...)
	}
	return found
}

// load is the mean of each hour in which something was sent, in requests per
// second.
type load map[time.Time]float64

// highest returns the highest hour and its start.
func (l load) highest() (at time.Time, rps float64) {
	for start, mean := range l {
		if mean > rps || mean == rps && start.Before(at) {
			at, rps = start, mean
		}
	}
	return at, rps
}

// addHour adds the pairs of one hour to what they would be matched by.
func addHour(matches map[limiter.Match]load, by policy.DiscoverBy, start time.Time, pairs []*grlv1.PairCounts) {
	for _, p := range pairs {
		m := limiter.Match{Caller: limiter.Pattern(p.GetCaller()), Procedure: limiter.Pattern(p.GetProcedure())}
		switch by {
		case policy.ByCaller:
			m.Procedure = ""
		case policy.ByProcedure:
			m.Caller = ""
		}
		if strings.HasPrefix(string(m.Caller), "_") || strings.HasPrefix(string(m.Procedure), "_") {
			continue // grl's own names, which stand for nobody in particular
		}
		if matches[m] == nil {
			matches[m] = make(load)
		}
		matches[m][start] += float64(p.GetOffered()) / time.Hour.Seconds()
	}
}

// discovered returns the buckets of one service.
func discovered(now time.Time, spec *policy.Spec, service string, matches map[limiter.Match]load) []*grlv1.RunResult {
	type candidate struct {
		match limiter.Match
		load  load
		at    time.Time
		rps   float64
	}
	var large []candidate
	for m, l := range matches {
		if at, rps := l.highest(); rps >= spec.Discover.MinRPS {
			large = append(large, candidate{m, l, at, rps})
		}
	}
	slices.SortFunc(large, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.rps, a.rps), strings.Compare(string(a.match.Caller), string(b.match.Caller)), strings.Compare(string(a.match.Procedure), string(b.match.Procedure)))
	})
	taken := make(map[string]bool)
	var found []*grlv1.RunResult
	for _, c := range large[:min(mostFound, len(large))] {
		b := limiter.Bucket{Service: service, Name: newName(c.match, taken), Match: c.match, Behavior: limiter.Allow}
		if b.LimitRPS = guess(now, spec, c.load); b.LimitRPS == 0 {
			continue
		}
		text, ok := bucketText(b)
		if !ok {
			continue // a name that no limits file can have
		}
		r := &grlv1.RunResult{
			Bucket: b.FullName(), Policy: spec.Name, Kind: spec.Kind, Mode: modes[spec.Mode],
			Outcome: grlv1.RunOutcome_RUN_OUTCOME_SHADOWED, After: limitOf(&b), NewBucket: text,
			Reason: fmt.Sprintf("%s, in shadow: %s has no limits, and %s sent up to %s, the mean of the hour from %s",
				rates(b.LimitRPS), service, who(c.match), rates(c.rps), c.at.In(zoneOf(spec)).Format("Mon 2 Jan 15:04")),
			Numbers: []*grlv1.RunNumber{{Name: "peak", Value: c.rps, Unit: "rps"}},
		}
		if spec.Mode == policy.Propose {
			r.Outcome, r.State = grlv1.RunOutcome_RUN_OUTCOME_PROPOSED, grlv1.ProposalState_PROPOSAL_STATE_PENDING
		}
		found = append(found, r)
	}
	return found
}

// guess returns a first limit from the means of some hours; 0: none.
func guess(now time.Time, spec *policy.Spec, l load) float64 {
	first := now
	for start := range l {
		if start.Before(first) {
			first = start
		}
	}
	s := policy.Series{Start: first, Step: time.Hour, RPS: make([]float64, int(now.Sub(first)/time.Hour)+1)}
	for i := range s.RPS {
		s.RPS[i] = policy.Unknown
		if mean, ok := l[s.Time(i)]; ok {
			s.RPS[i] = mean
		}
	}
	peak := *spec
	peak.Kind = "peak"
	// One step further: an hour that is not over is known as far as it is.
	r := kind(&peak).New(&peak).Compute(policy.Input{Now: s.Time(len(s.RPS)), Series: s, SecondOverMinute: 1})
	if r.Refused != "" || !(r.LimitRPS > 0) {
		return 0
	}
	return policy.Bound(&peak, policy.BoundInput{At: now, LimitRPS: r.LimitRPS}).LimitRPS
}

// who names what a match selects.
func who(m limiter.Match) string {
	switch {
	case m.Procedure == "":
		return string(m.Caller)
	case m.Caller == "":
		return "callers of " + string(m.Procedure)
	default:
		return string(m.Caller) + " to " + string(m.Procedure)
	}
}

// newName returns a name for a bucket that is not taken, and takes it.
func newName(m limiter.Match, taken map[string]bool) string {
	parts := []string{}
	for _, p := range []limiter.Pattern{m.Caller, m.Procedure} {
		if p != "" {
			parts = append(parts, string(p))
		}
	}
	plain := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '.':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		default:
			return '-'
		}
	}, strings.Join(parts, "-"))
	for strings.Contains(plain, "--") {
		plain = strings.ReplaceAll(plain, "--", "-")
	}
	const most = 60
	plain = strings.Trim(plain[:min(len(plain), most)], "-.")
	name := cmp.Or(plain, "found")
	for n := 2; taken[name]; n++ {
		name = fmt.Sprintf("%s-%d", cmp.Or(plain, "found"), n)
	}
	taken[name] = true
	return name
}

// bucketText returns a bucket as in a limits file, at the margin; false: no
// limits file can have it.
func bucketText(b limiter.Bucket) (string, bool) {
	file := limitsfile.Normalize(limiter.Service{Name: b.Service, Buckets: []limiter.Bucket{b}})
	_, err := limitsfile.Parse(b.Service, file)
	return limitsfile.BucketText(&b), err == nil
}

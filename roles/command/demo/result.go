package demo

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// settleIn is how long after the surge's start the limit must hold.
const settleIn = time.Second

// Result is what happened in a demo, as the senders of the requests saw it,
// over windows of one second from its start on. Rates are in requests per
// second.
type Result struct {
	LimitRPS       float64 `json:"limit_rps"`
	OfferedPeakRPS float64 `json:"offered_peak_rps"` // the highest window
	// AdmittedMeanRPS is the mean from 1 s after the surge began to its end;
	// nil if the demo was stopped before.
	AdmittedMeanRPS *float64 `json:"admitted_mean_rps"`
	// SettleSeconds is from the surge's start to the first window from which
	// all later ones of the surge are as near the limit as chance allows; nil
	// if there is none.
	SettleSeconds *float64 `json:"settle_seconds"`
	// FalseDropsBefore are drops before the surge.
	FalseDropsBefore int `json:"false_drops_before"`
	// FalseDropsAfter are drops after the surge while no more than the limit
	// was offered in the last second and in the last window.
	FalseDropsAfter int `json:"false_drops_after"`
	// UpstreamErrors are requests that got neither upstream's answer nor a
	// drop.
	UpstreamErrors int `json:"upstream_errors"`
	// ShadowDrops are what the sidecars say shadow buckets would have dropped;
	// a request counts in each.
	ShadowDrops uint64 `json:"shadow_drops"`
	// Decisions are the requests that the sidecars say they decided.
	Decisions uint64 `json:"decisions"`
	// LateRequests were sent more than 100 ms after they were due, because this
	// machine did not keep up. They make the other figures doubtful.
	LateRequests int  `json:"late_requests"`
	StoppedEarly bool `json:"stopped_early"`

	plan    plan
	windows []window // complete ones
	shadow  map[cellKey]uint64
}

// newResult judges what was sent in a demo that lasted elapsed.
func newResult(p plan, requests []request, c counted, elapsed time.Duration) Result {
	requests = slices.Clone(requests)
	slices.SortFunc(requests, func(a, b request) int { return cmp.Compare(a.sent, b.sent) })
	r := Result{
		LimitRPS:     p.limits.all,
		Decisions:    c.decisions,
		StoppedEarly: elapsed < p.total,
		plan:         p,
		windows:      make([]window, min(elapsed, p.total)/time.Second),
		shadow:       c.shadow,
	}
	for _, n := range c.shadow {
		r.ShadowDrops += n
	}
	for _, sent := range requests {
		if i := int(sent.sent / time.Second); i < len(r.windows) {
			r.windows[i].add(sent.outcome)
		}
		if sent.late {
			r.LateRequests++
		}
		if sent.outcome == failed {
			r.UpstreamErrors++
		}
	}
	for _, w := range r.windows {
		r.OfferedPeakRPS = max(r.OfferedPeakRPS, float64(w.offered))
	}
	r.FalseDropsBefore, r.FalseDropsAfter = r.falseDrops(requests)
	if from := p.third + settleIn; len(r.windows) >= seconds(2*p.third) {
		mean := meanAdmitted(r.windows[seconds(from):seconds(2*p.third)])
		r.AdmittedMeanRPS = &mean
		r.SettleSeconds = r.settle(r.windows[seconds(p.third):seconds(2*p.third)])
	}
	return r
}

func seconds(d time.Duration) int { return int(d / time.Second) }

func meanAdmitted(windows []window) float64 {
	var sum int
	for _, w := range windows {
		sum += w.admitted
	}
	return float64(sum) / float64(len(windows))
}

// settle returns the seconds before the first of the surge's windows from which
// on all are within the band around the limit.
func (r Result) settle(surge []window) *float64 {
	n := len(surge)
	for n > 0 && math.Abs(float64(surge[n-1].admitted)-r.LimitRPS) <= r.band(surge[n-1])*r.LimitRPS {
		n--
	}
	if n == len(surge) {
		return nil
	}
	settled := float64(n)
	return &settled
}

// band returns how far from the limit a window may be, in units of the limit:
// 6 %, or 4.5 deviations of what is left of Poisson arrivals of which the share
// p is dropped evenly.
func (r Result) band(w window) float64 {
	p := max(0, 1-r.LimitRPS/float64(w.offered))
	return max(0.06, 4.5*math.Sqrt((1-p)/r.LimitRPS))
}

// falseDrops counts the drops that were not called for. Requests are in the
// order in which they were sent.
func (r Result) falseDrops(requests []request) (before, after int) {
	oldest := 0 // the first request of the last second
	for i, sent := range requests {
		for requests[oldest].sent <= sent.sent-time.Second {
			oldest++
		}
		if sent.outcome != dropped {
			continue
		}
		switch r.plan.at(sent.sent) {
		case beforeSurge:
			before++
		case afterSurge:
			window := int(sent.sent/time.Second) - 1
			if float64(i-oldest+1) <= r.LimitRPS && window < len(r.windows) && float64(r.windows[window].offered) <= r.LimitRPS {
				after++
			}
		}
	}
	return before, after
}

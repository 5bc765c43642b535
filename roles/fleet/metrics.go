package fleet

import (
	"math"
	"time"
)

// buckets returns what was written down of each gate.
func (r *recorder) buckets() []Bucket {
	out := make([]Bucket, len(r.gates))
	for i := range out {
		g, track := &r.lay.gates[i], &r.gates[i]
		b := Bucket{Name: g.id.Bucket, Instance: g.id.Instance, Caller: g.id.Caller, LimitRPS: g.limit}
		b.Series = Series{Slot: r.slot, Limit: g.limit}
		for s := range r.slots {
			from, to := time.Duration(s)*r.slot, time.Duration(s+1)*r.slot
			seconds := (min(to, r.plan.Length) - from).Seconds()
			offered := track.offered[s]
			b.Series.Offered = append(b.Series.Offered, offered/seconds)
			b.Series.Admitted = append(b.Series.Admitted, (offered-track.dropped[s])/seconds)
			mean := g.between(from, to) / r.slot.Seconds()
			if track.retried != nil {
				mean += track.retried[s] / seconds
			}
			b.Series.Mean = append(b.Series.Mean, mean)
		}
		b.Series.rate()
		out[i] = b
	}
	return out
}

// rate fills in the ratios.
func (s *Series) rate() {
	s.Ratio = make([]float64, len(s.Offered))
	for i, offered := range s.Offered {
		if offered > 0 {
			s.Ratio[i] = max(0, 1-s.Admitted[i]/offered)
		}
	}
}

// sumUp adds up series.
func sumUp(buckets []Bucket) Series {
	total := Series{Slot: buckets[0].Series.Slot}
	n := len(buckets[0].Series.Offered)
	total.Offered, total.Admitted, total.Mean = make([]float64, n), make([]float64, n), make([]float64, n)
	for i := range buckets {
		s := &buckets[i].Series
		total.Limit += s.Limit
		for k := range n {
			total.Offered[k] += s.Offered[k]
			total.Admitted[k] += s.Admitted[k]
			total.Mean[k] += s.Mean[k]
		}
	}
	total.rate()
	return total
}

// judge adds up what the metrics are made of, over buckets.
type judge struct {
	plan *Plan
	slot time.Duration
}

// slots returns the slots of a span, those that lie in it as a whole.
func (j *judge) slots(s Span, n int) (from, to int) {
	from = int((s.From + j.slot - 1) / j.slot)
	to = min(int(s.To/j.slot), n)
	return from, max(from, to)
}

func (r *recorder) metrics(out *Result) Metrics {
	j := &judge{r.plan, r.slot}
	m := Metrics{
		SettleSeconds: math.NaN(), SteadySDPercent: math.NaN(), MeanErrorPercent: math.NaN(),
		PeakToPeakPercent: math.NaN(), ReleaseSeconds: math.NaN(), JainHosts: math.NaN(),
	}
	var over, falsely, quiet, limits float64
	for i := range out.Buckets {
		s := &out.Buckets[i].Series
		over += j.over(s)
		dropped, offered := j.falseDrops(s)
		falsely += dropped
		quiet += offered
		limits += s.Limit
	}
	m.OvershootSeconds, m.FalseDropsSeconds = over/limits, falsely/limits
	m.FalseDropsPercent = math.NaN()
	if quiet > 0 {
		m.FalseDropsPercent = 100 * falsely / quiet
	}
	if r.plan.Change > 0 && r.plan.Change < r.plan.Length {
		m.SettleSeconds = j.settle(&out.Total)
	}
	if r.plan.Release > 0 && r.plan.Release < r.plan.Length {
		m.ReleaseSeconds = j.release(&out.Total)
	}
	j.steady(&m, out)
	r.bytesPerHost(&m, len(out.Hosts))
	return m
}

// over returns the requests above the limit, in groups of slots of which the
// load was above it.
func (j *judge) over(s *Series) float64 {
	from, to := j.slots(Span{j.plan.From, j.plan.Length}, len(s.Admitted))
	seconds := min(1, 1000/s.Limit) // longer ones would hide a surge
	group := max(1, int(math.Ceil(seconds/j.slot.Seconds()-1e-9)))
	sum := 0.0
	for i := from; i < to; i += group {
		end := min(i+group, to)
		excess, overload := 0.0, 0.0
		for k := i; k < end; k++ {
			excess += (s.Admitted[k] - s.Limit) * j.slot.Seconds()
			overload += s.Mean[k] - s.Limit
		}
		if overload > 0 {
			sum += max(0, excess)
		}
	}
	return sum
}

// falseDrops returns the requests dropped while the load was within the limit,
// and those offered meanwhile.
func (j *judge) falseDrops(s *Series) (dropped, offered float64) {
	from, to := j.slots(Span{j.plan.From, j.plan.Length}, len(s.Admitted))
	for i := from; i < to; i++ {
		if s.Mean[i] <= s.Limit {
			dropped += (s.Offered[i] - s.Admitted[i]) * j.slot.Seconds()
			offered += s.Offered[i] * j.slot.Seconds()
		}
	}
	return dropped, offered
}

// settle returns the time from the change until the mean over a window, in
// which 5 % is at least five deviations, stays within 5 % of what it should be.
func (j *judge) settle(s *Series) float64 {
	from, to := j.slots(Span{j.plan.Change, j.plan.Settled}, len(s.Admitted))
	settled, judged := to, false
	for i := to - 1; i >= from; i-- {
		want := max(1e-3, min(s.Limit, s.Mean[i])) // a Poisson count's variance, too
		window := max(1, int(math.Ceil(1/(0.01*0.01*want)/j.slot.Seconds())))
		if i+window > to {
			continue
		}
		judged = true
		got, due := 0.0, 0.0
		for k := i; k < i+window; k++ {
			got += s.Admitted[k]
			due += min(s.Limit, s.Mean[k])
		}
		if math.Abs(got-due) > 0.05*due {
			break
		}
		settled = i
	}
	switch {
	case !judged:
		return math.NaN() // too few requests to tell 5 % from chance
	case settled == to:
		return math.Inf(1)
	}
	return (time.Duration(settled)*j.slot - j.plan.Change).Seconds()
}

// release returns the time from the fall until the last slot with drops.
func (j *judge) release(s *Series) float64 {
	from, to := j.slots(Span{j.plan.Release, j.plan.Length}, len(s.Admitted))
	last := from
	for i := from; i < to; i++ {
		if s.Offered[i]-s.Admitted[i] > 0.001*s.Limit {
			last = i + 1
		}
	}
	if last == to {
		return math.Inf(1)
	}
	return (time.Duration(last)*j.slot - j.plan.Release).Seconds()
}

// steady fills in what is said of steady overload.
func (j *judge) steady(m *Metrics, out *Result) {
	s := &out.Total
	per := int(time.Second / j.slot)
	var seconds []float64
	for _, span := range j.plan.Steady {
		from, to := j.slots(span, len(s.Admitted))
		for i := from; i+per <= to; i += per {
			sum := 0.0
			for k := i; k < i+per; k++ {
				sum += s.Admitted[k]
			}
			seconds = append(seconds, 100*sum/float64(per)/s.Limit)
		}
	}
	m.JainHosts = jain(out.Hosts)
	if len(seconds) < 2 {
		return
	}
	sum, least, most := 0.0, math.Inf(1), math.Inf(-1)
	for _, v := range seconds {
		sum += v
		least, most = min(least, v), max(most, v)
	}
	mean, squares := sum/float64(len(seconds)), 0.0
	for _, v := range seconds {
		squares += (v - mean) * (v - mean)
	}
	m.MeanErrorPercent = mean - 100
	m.SteadySDPercent = math.Sqrt(squares / float64(len(seconds)-1))
	m.PeakToPeakPercent = most - least
}

// jain returns Jain's index of the shares that hosts admitted.
func jain(hosts []HostInfo) float64 {
	n, sum, squares := 0.0, 0.0, 0.0
	for _, h := range hosts {
		if h.Steady.Offered > 0 {
			x := float64(h.Steady.Admitted()) / float64(h.Steady.Offered)
			n, sum, squares = n+1, sum+x, squares+x*x
		}
	}
	switch {
	case n == 0:
		return math.NaN()
	case squares == 0:
		return 1 // nothing for everyone
	}
	return sum * sum / (n * squares)
}

func (r *recorder) bytesPerHost(m *Metrics, hosts int) {
	from, to := int((r.plan.From+time.Second-1)/time.Second), int(r.plan.Length/time.Second)
	sum, worst := 0.0, 0.0
	for _, n := range r.sent[min(from, to):to] {
		sum += n
		worst = max(worst, n)
	}
	m.BytesPerHostSecond = sum / float64(max(1, to-from)) / float64(hosts)
	m.WorstBytesPerHostSecond = worst / float64(hosts)
}

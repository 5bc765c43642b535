package fleet_test

import (
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"grl/limiter/law"
	"grl/roles/fleet"
)

// The fifteen properties of the law, by their numbers, are in the files
// property_*_test.go; the six traps in trap_test.go, the published figures in
// target_test.go. Where a property is of one part alone, that part's package
// has a test of it too:
//
//	2, p is 0 whenever the mean is within the limit: law, TestGateNeverDropsAtOrBelowTheLimit
//	12, the coin: limiter, TestCoinCount, TestCoinIsFairToPeriodicTraffic, TestZeroRatioTouchesNoCoin
//	13, the estimate of one host: law, TestEstimateIsUnbiased
//
// The fleet of most is the published one: 200 hosts in 4 zones, a limit of
// 44,000, links of 10 and 40 ms.

// seeds returns the fixed seeds of a test and a fresh one, which it prints.
// FLEET_SEED sets the fresh one, to run a failure again.
func seeds(t *testing.T) []uint64 {
	t.Helper()
	fresh := rand.Uint64()
	if text := os.Getenv("FLEET_SEED"); text != "" {
		var err error
		if fresh, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("FLEET_SEED: %v", err)
		}
	}
	t.Logf("fresh seed %d", fresh)
	return []uint64{1, 2, 3, fresh}
}

// run runs a fleet.
func run(t *testing.T, o fleet.Options, seed uint64) *fleet.Result {
	t.Helper()
	o.Seed = seed
	r, err := fleet.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// figures has one number of each run of a test, in the order of its seeds.
type figures []float64

// each checks that all figures are at most bound.
func (f figures) each(t *testing.T, what string, bound float64) {
	t.Helper()
	f.atMost(t, "each "+what, slices.Max(f), bound)
}

// average checks that their mean is at most bound: where chance may move a
// single one beyond it.
func (f figures) average(t *testing.T, what string, bound float64) {
	t.Helper()
	f.atMost(t, "mean "+what, f.mean(), bound)
}

func (f figures) atMost(t *testing.T, what string, got, bound float64) {
	t.Helper()
	t.Logf("%s: %.4g, at most %.4g; of each run: %.4g", what, got, bound, []float64(f))
	if !(got <= bound) { // NaN neither
		t.Errorf("%s: %.4g, want at most %.4g", what, got, bound)
	}
}

func (f figures) mean() float64 {
	sum := 0.0
	for _, v := range f {
		sum += v
	}
	return sum / float64(len(f))
}

// rms returns the root of the mean square.
func (f figures) rms() float64 {
	sum := 0.0
	for _, v := range f {
		sum += v * v
	}
	return math.Sqrt(sum / float64(len(f)))
}

// known returns what a deviation may be found to be that is at most bound: n
// values alone tell it so well, within four deviations of such an estimate.
func known(bound float64, n int) float64 { return bound * (1 + 4/math.Sqrt(2*float64(n))) }

// settled is how long a fleet has to find its rates.
const settled = 10 * time.Second

// steady is a plan with one load, in requests per second, that is looked at for
// a time.
func steady(rps float64, seconds float64) *fleet.Plan {
	end := settled + time.Duration(seconds*float64(time.Second))
	return &fleet.Plan{
		Length: end,
		Loads:  []fleet.Load{{Hosts: 1, Knots: []fleet.Knot{{RPS: rps}}}},
		From:   settled,
		Steady: []fleet.Span{{From: settled, To: end}},
	}
}

// jump is a load that goes from one rate to another one at once.
func jump(at time.Duration, from, to float64) []fleet.Knot {
	return []fleet.Knot{{At: at, RPS: from}, {At: at, RPS: to}}
}

// journal is what the global controller said of the first cell.
type journal []entry

type entry struct {
	at      time.Duration
	verdict law.Verdict
}

// note takes in a directive.
func (j *journal) note(d fleet.Directive) {
	if d.Node != "global" {
		return
	}
	for _, r := range d.Rows {
		if r.Cell == 0 {
			*j = append(*j, entry{d.At, r.Verdict})
		}
	}
}

// mean returns the mean over time of what f makes of a verdict.
func (j journal) mean(from, to time.Duration, f func(law.Verdict) float64) float64 {
	sum := 0.0
	for i, e := range j {
		end := to
		if i+1 < len(j) {
			end = min(to, j[i+1].at)
		}
		if begin := max(from, e.at); end > begin {
			sum += (end - begin).Seconds() * f(e.verdict)
		}
	}
	return sum / (to - from).Seconds()
}

// means returns the means of the values of a series over spans of that width,
// which begin each step from one time on and end by another one.
func means(s *fleet.Series, values []float64, from, to, width, step time.Duration) figures {
	var out figures
	for ; from+width <= to; from += step {
		out = append(out, figures(values[from/s.Slot:(from+width)/s.Slot]).mean())
	}
	return out
}

// ratioOf is what a verdict has hosts drop.
func ratioOf(v law.Verdict) float64 { return law.Ratio(v.Admit) }

// quiet returns when the last drop that was decided ended, end if one did not.
func (j journal) quiet(end time.Duration) time.Duration {
	var last time.Duration
	for i, e := range j {
		if ratioOf(e.verdict) == 0 {
			continue
		}
		last = end
		if i+1 < len(j) {
			last = j[i+1].at
		}
	}
	return last
}

// isHot is 1 where a verdict says hot.
func isHot(v law.Verdict) float64 {
	if v.Hot {
		return 1
	}
	return 0
}

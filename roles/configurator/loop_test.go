package configurator

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"grl/limiter"
	"grl/policy/backtest"
	grlv1 "grl/proto/grl/v1"
	"grl/store"
)

// TestClosedLoop runs the whole way from history to limits for eight weeks of
// recorded traffic, in minutes: what a limit drops is in the history of the next
// cycle.
func TestClosedLoop(t *testing.T) {
	for _, tt := range []struct {
		name, kind string
		lasts      time.Duration // after the first four weeks
	}{
		{"peak", "kind: peak\n", 8 * 7 * 24 * time.Hour},
		// At Christmas four times as much comes as on other days, which no forecast
		// knows: without the event 0.17 % are dropped, since drops do not teach.
		{"forecast", "kind: forecast\nevents: [{name: Christmas, from: 2000-02-25, to: 2000-02-28, factor: 3}]\n", *forecastLoop},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { closedLoop(t, tt.kind, tt.lasts) })
		})
	}
}

const loopPolicy = "name: nightly\nmatch: {service: shop}\nmode: apply\n"

// forecastLoop is how long the loop of forecasts lasts: 24 cycles a day take
// their time.
var forecastLoop = flag.Duration("forecast-loop", 3*24*time.Hour, "how long the closed loop of forecasts lasts; 1344h are eight weeks")

// loopBefore is how much history there is at first.
const loopBefore = 4 * 7 * 24 * time.Hour

func closedLoop(t *testing.T, kind string, lasts time.Duration) {
	seed := uint64(time.Now().UnixNano()) // of the bubble: the same each time
	t.Logf("seed %d", seed)
	f, err := backtest.ReadFile("../../policy/backtest/testdata/api_1h.csv.gz", 0)
	if err != nil {
		t.Fatal(err)
	}
	l := &loop{rig: newRig(t), random: rand.New(rand.NewPCG(seed, 0)), recorded: f, outcomes: make(map[grlv1.RunOutcome]int), worst: make(map[time.Time]float64)}
	l.limits("service: shop\nowner: team-shop\nbuckets:\n  - {name: all, limit: {rps: 450}, behavior: deny}\n")
	l.policies(loopPolicy + kind)
	start := time.Now().UTC().Truncate(24 * time.Hour).Add(24 * time.Hour)
	time.Sleep(time.Until(start))
	for time.Since(start) < loopBefore+lasts {
		l.tell(kind, start)
		l.hour(time.Since(start) >= loopBefore)
		l.client.CloseIdleConnections() // else pings take most of the time
		time.Sleep(time.Until(l.at))
		if time.Since(start) >= loopBefore {
			if run := l.cycleNow(); run != nil {
				for _, r := range l.results(run) {
					l.note(r)
				}
			}
		}
	}
	l.judge()
}

// loopEvents are what happens in the loop beside the recorded traffic.
var loopEvents = []struct {
	what        string
	from, lasts time.Duration // since the beginning
	factor      float64       // of the traffic; below 0: the controller is away
	told        bool          // a person says to the policy that it does not teach
}{
	{"surge", 31*24*time.Hour + 10*time.Hour, 20 * time.Minute, 6, false},
	{"the controller was away", 33*24*time.Hour + 5*time.Hour, 2 * time.Hour, -1, true},
	{"outage", 36*24*time.Hour + 12*time.Hour, time.Hour, 0, true},
	{"attack", 40*24*time.Hour + 14*time.Hour, 2 * time.Hour, 30, false},
	{"surge", 62*24*time.Hour + 18*time.Hour, 45 * time.Minute, 4, false},
}

// loop is traffic that is limited by what was computed of it.
type loop struct {
	*rig
	random   *rand.Rand
	recorded *backtest.File
	at       time.Time // of the next hour

	offered, dropped float64   // requests, in normal minutes
	held             []float64 // limits of each hour, requests per second
	outcomes         map[grlv1.RunOutcome]int
	said             int                   // events that were told
	worst            map[time.Time]float64 // day → requests dropped in normal minutes
}

// tell has a person say of what happened a day ago that it does not teach.
func (l *loop) tell(kind string, start time.Time) {
	var ignore strings.Builder
	said := 0
	for _, e := range loopEvents {
		if from := start.Add(e.from); e.told && time.Since(from) > 24*time.Hour {
			fmt.Fprintf(&ignore, "  - {from: %s, to: %s, reason: %s}\n", from.Truncate(time.Hour).Format(time.RFC3339), from.Add(e.lasts).Format(time.RFC3339), e.what)
			said++
		}
	}
	if said != l.said {
		l.said = said
		l.policies(loopPolicy + kind + "ignore:\n" + ignore.String())
	}
}

// hour offers an hour of traffic, drops what is above the limit, and records it.
func (l *loop) hour(judged bool) {
	start := time.Now().UTC().Truncate(time.Hour)
	l.at = start.Add(time.Hour)
	b := l.bucket("shop/all").At(start)
	h := store.CellHour{Cell: limiter.CellID{Bucket: "shop/all"}, Zone: "zone"}
	for m := range h.Minutes {
		at := start.Add(time.Duration(m) * time.Minute)
		rps, normal := l.traffic(at)
		if rps < 0 {
			continue // nothing is recorded
		}
		requests := math.Max(0, 60*rps+math.Sqrt(60*rps)*l.random.NormFloat64())
		over := math.Max(0, requests-60*b.LimitRPS)
		h.Minutes[m] = store.Minute{
			Offered: uint64(requests), Dropped: uint64(over), Admitted: uint64(requests) - uint64(over), HighestSecond: uint64(requests/60 + 2*math.Sqrt(requests/60) + 1),
		}
		if judged && normal {
			l.offered += requests
			l.dropped += over
			l.worst[start.Truncate(24*time.Hour)] += over
		}
	}
	one := func(yield func(*store.CellHour) bool) { yield(&h) }
	if err := l.store.PutHours(l.t.Context(), start, one); err != nil {
		l.t.Fatal(err)
	}
	if judged {
		l.held = append(l.held, b.LimitRPS)
	}
}

// traffic returns what is offered at a time, in requests per second, and whether
// that is normal; below 0: the controller is away.
func (l *loop) traffic(at time.Time) (rps float64, normal bool) {
	s := l.recorded.Series
	since := at.Sub(loopEpoch(at))
	i := min(int(since/time.Hour), len(s.RPS)-2)
	part := float64(since%time.Hour) / float64(time.Hour)
	rps, normal = s.RPS[i]*(1-part)+s.RPS[i+1]*part, true
	if math.IsNaN(rps) {
		return 0, true
	}
	for _, e := range loopEvents {
		if since >= e.from && since < e.from+e.lasts {
			if e.factor < 0 {
				return -1, false
			}
			return e.factor * rps, false
		}
	}
	for _, w := range l.recorded.Anomalies {
		if t := s.Start.Add(since); !t.Before(w.From) && t.Before(w.To) {
			normal = false
		}
	}
	return rps, normal
}

// note keeps what became of the limit, and says what changed it.
func (l *loop) note(r *grlv1.RunResult) {
	l.outcomes[r.GetOutcome()]++
	if r.GetOutcome() != grlv1.RunOutcome_RUN_OUTCOME_UNCHANGED && r.GetKind() == "peak" {
		l.t.Logf("%s: %s", time.Now().UTC().Format("Mon 2 Jan"), r.GetReason())
	}
}

// loopEpoch is when the loop began.
func loopEpoch(time.Time) time.Time { return time.Date(2000, 1, 2, 0, 0, 0, 0, time.UTC) }

// judge makes sure that hardly anything normal was dropped, and that limits
// neither ran away nor stayed behind.
func (l *loop) judge() {
	l.t.Helper()
	share := l.dropped / l.offered
	first, last := l.held[0], l.held[len(l.held)-1]
	l.t.Logf("dropped %.4f %% of %.0f normal requests; limit %.0f rps at first, %.0f at last", 100*share, l.offered, first, last)
	days := slices.SortedFunc(maps.Keys(l.worst), func(a, b time.Time) int { return cmp.Compare(l.worst[b], l.worst[a]) })
	for _, day := range days[:min(3, len(days))] {
		l.t.Logf("%s: dropped %.0f", day.Format("Mon 2 Jan"), l.worst[day])
	}
	if share > 0.001 {
		l.t.Errorf("dropped %.3f %% of normal requests, want at most 0.1 %%", 100*share)
	}
}

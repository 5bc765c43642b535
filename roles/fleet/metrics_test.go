package fleet

import (
	"encoding/json"
	"math"
	"testing"
	"time"
)

// drawn is a plan with a series that is made by hand, in slots of 50 ms: the
// limit is 100,000, and each step holds for so many slots.
type drawnStep struct {
	slots             int
	offered, admitted float64 // in multiples of the limit
}

func drawn(steps ...drawnStep) (*Plan, *Series) {
	s := &Series{Slot: slot, Limit: 100_000}
	for _, step := range steps {
		for range step.slots {
			s.Offered = append(s.Offered, step.offered*s.Limit)
			s.Mean = append(s.Mean, step.offered*s.Limit)
			s.Admitted = append(s.Admitted, step.admitted*s.Limit)
		}
	}
	s.rate()
	return &Plan{Length: time.Duration(len(s.Offered)) * slot}, s
}

func near(got, want float64) bool { return math.Abs(got-want) < 1e-9 }

func TestOvershoot(t *testing.T) {
	p, s := drawn(drawnStep{20, 3, 3}, drawnStep{10, 3, 2}, drawnStep{20, 3, 0.9}, drawnStep{2, 3, 1.5})
	p.From = time.Second
	j := &judge{p, slot}
	// 0.5 s at 1 above, 0.1 s at 0.5 above; what is below does not count.
	if got := j.over(s) / s.Limit; !near(got, 0.55) {
		t.Errorf("overshoot %v s, want 0.55", got)
	}
}

func TestOvershootOfLowLimitsIsTakenInLongerSlots(t *testing.T) {
	p, s := drawn(drawnStep{400, 1, 1})
	s.Limit = 100 // 1,000 requests take 10 s
	for i := range s.Admitted {
		s.Admitted[i] = 0
		if i%10 == 0 {
			s.Admitted[i] = 1100
		}
	}
	j := &judge{p, slot}
	// Of 20 s each 10 s have 1,100 requests instead of 1,000.
	if got := j.over(s); !near(got, 200) {
		t.Errorf("%v requests above the limit, want 200", got)
	}
}

func TestSettle(t *testing.T) {
	tests := []struct {
		name  string
		after []drawnStep // the change at 1 s
		want  float64
	}{
		{"at once", []drawnStep{{40, 5, 1.04}}, 0},
		{"after a while", []drawnStep{{6, 5, 5}, {34, 5, 1}}, 0.3},
		{"leaves again", []drawnStep{{6, 5, 5}, {10, 5, 1}, {4, 5, 1.2}, {20, 5, 1}}, 1},
		{"never", []drawnStep{{40, 5, 1.2}}, math.Inf(1)},
		{"below the limit it is the load", []drawnStep{{8, 0.5, 0.4}, {32, 0.5, 0.49}}, 0.4},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, s := drawn(append([]drawnStep{{20, 0.5, 0.5}}, tt.after...)...)
			p.Change, p.Settled = time.Second, p.Length
			j := &judge{p, slot}
			if got := j.settle(s); got != tt.want && math.Abs(got-tt.want) > 1e-6 {
				t.Errorf("settles in %v s, want %v", got, tt.want)
			}
		})
	}
}

func TestFalseDropsAndRelease(t *testing.T) {
	p, s := drawn(drawnStep{20, 2, 1}, drawnStep{5, 0.5, 0.3}, drawnStep{5, 0.5, 0.5}, drawnStep{1, 0.5, 0.4}, drawnStep{20, 0.5, 0.5})
	p.Release = time.Second
	j := &judge{p, slot}
	dropped, offered := j.falseDrops(s)
	if got := dropped / s.Limit; !near(got, 0.2*0.25+0.1*0.05) {
		t.Errorf("false drops %v s, want 0.055", got)
	}
	if got := offered / s.Limit; !near(got, 0.5*31*0.05) {
		t.Errorf("offered %v s meanwhile, want 0.775", got)
	}
	if got := j.release(s); !near(got, 0.55) {
		t.Errorf("drops end in %v s, want 0.55", got)
	}
	_, s = drawn(drawnStep{20, 2, 1}, drawnStep{31, 0.5, 0.3})
	if got := j.release(s); !math.IsInf(got, 1) {
		t.Errorf("drops that do not end: release %v, want +Inf", got)
	}
}

func TestSteady(t *testing.T) {
	p, s := drawn(drawnStep{40, 2, 1}, drawnStep{20, 2, 1.02}, drawnStep{20, 2, 0.98}, drawnStep{20, 2, 1.03})
	p.Steady = []Span{{2 * time.Second, 5 * time.Second}}
	m := Metrics{}
	(&judge{p, slot}).steady(&m, &Result{Total: *s, Hosts: []HostInfo{
		{Steady: Counts{100, 50}}, {Steady: Counts{300, 150}}, {Steady: Counts{100, 100}}, {},
	}})
	if !near(m.MeanErrorPercent, 1) || !near(m.PeakToPeakPercent, 5) || !near(m.SteadySDPercent, math.Sqrt(7)) {
		t.Errorf("error %v, peak to peak %v, deviation %v; want 1, 5, 2.65", m.MeanErrorPercent, m.PeakToPeakPercent, m.SteadySDPercent)
	}
	// Two of three hosts with requests have all.
	if !near(m.JainHosts, 1./(3*0.5)) {
		t.Errorf("Jain's index %v, want 0.667", m.JainHosts)
	}
}

func TestMetricsAsJSON(t *testing.T) {
	m := Metrics{SettleSeconds: math.Inf(1), ReleaseSeconds: math.NaN(), JainHosts: 0.5}
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]*float64
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if v, ok := got["settle_seconds"]; !ok || v != nil {
		t.Errorf("settle_seconds in %s, want null", text)
	}
	if _, ok := got["release_seconds"]; ok {
		t.Errorf("release_seconds in %s, want none", text)
	}
	if v := got["jain_hosts"]; v == nil || *v != 0.5 {
		t.Errorf("jain_hosts in %s, want 0.5", text)
	}
}

// TestMetricsAreSane: each law has figures that can be, in each scenario, and
// those that the plan has a part for.
func TestMetricsAreSane(t *testing.T) {
	for _, s := range scenarios() {
		if s.Name == Replay {
			continue
		}
		for _, l := range Laws() {
			t.Run(s.Name+"/"+l.Name, func(t *testing.T) {
				o := Options{Law: l.Name, Scenario: s.Name, Seed: 2}
				if s.Name == Low {
					o.LimitRPS = 5
				}
				o = o.withDefaults()
				plan := s.plan(&o)
				m := ran(t, o).Metrics
				for _, line := range m.List() {
					if line.Value < 0 && line.Name != "mean_error_percent" {
						t.Errorf("%s = %v", line.Name, line.Value)
					}
				}
				has := func(name string, v float64, want bool) {
					if math.IsNaN(v) == want {
						t.Errorf("%s = %v, the plan has a part for it: %v", name, v, want)
					}
				}
				has("settle_seconds", m.SettleSeconds, plan.Change > 0)
				has("release_seconds", m.ReleaseSeconds, plan.Release > 0)
				has("steady_sd_percent", m.SteadySDPercent, len(plan.Steady) > 0)
				has("jain_hosts", m.JainHosts, true)
				if !(m.JainHosts <= 1+1e-12) || !(m.WorstBytesPerHostSecond >= m.BytesPerHostSecond && m.BytesPerHostSecond > 10) {
					t.Errorf("Jain's index %v, bytes %v, worst %v", m.JainHosts, m.BytesPerHostSecond, m.WorstBytesPerHostSecond)
				}
				if l.Name == GRL && s.Name != Pulse && s.Name != Low && !(m.OvershootSeconds < 1.5) {
					t.Errorf("overshoot %v s, want less than 1.5", m.OvershootSeconds)
				}
			})
		}
	}
}

package law

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"grl/limiter"
)

func TestDivide(t *testing.T) {
	five := func(ranks ...int) []Demand {
		out := make([]Demand, 5)
		for i, rate := range []float64{100, 100, 200, 400, 5000} {
			out[i] = Demand{Rate: rate, Weight: 1}
			if ranks != nil {
				out[i].Rank = ranks[i]
			}
		}
		return out
	}
	weighted := five()
	weighted[4].Weight = 4
	tests := []struct {
		name    string
		share   limiter.Share
		demands []Demand
		want    []float64 // admitted of a limit of 1000
	}{
		{"proportional", limiter.Proportional, five(), []float64{17.24, 17.24, 34.48, 68.97, 862.07}},
		{"max-min", limiter.MaxMin, five(), []float64{100, 100, 200, 300, 300}},
		{"weight 4 for the largest", limiter.MaxMin, weighted, []float64{100, 100, 133.33, 133.33, 533.33}},
		{"tiers", limiter.Proportional, five(0, 1, 0, 1, 2), []float64{100, 100, 200, 400, 200}},
		{"max-min in the tier that does not fit", limiter.MaxMin, five(0, 1, 1, 1, 1), []float64{100, 100, 200, 300, 300}},
		{"a tier for which nothing is left", limiter.Proportional, five(2, 1, 1, 1, 0), []float64{0, 0, 0, 0, 1000}},
		{"nobody", limiter.MaxMin, nil, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := Divide(nil, 1000, tt.share, tt.demands)
			for i, admit := range got {
				if rps := admit * tt.demands[i].Rate; math.Abs(rps-tt.want[i]) > 0.01 {
					t.Errorf("demand %d gets %.2f, want %.2f", i, rps, tt.want[i])
				}
				if admit <= 0 || Ratio(admit) >= 1 {
					t.Errorf("demand %d is dropped whole", i)
				}
			}
		})
	}
	if got := Divide(nil, 1000, limiter.MaxMin, five()[:4]); got[0] != 1.25 || got[3] != 1.25 {
		t.Errorf("demands that fit are admitted %v, want 1.25 each", got)
	}
}

// Max-min, for any demands: the limit is used up, nobody gets more than it
// wants, and who gets less than it wants gets no less for its weight than
// anyone else.
func TestDivideIsMaxMin(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	random := source(t, seed)
	for range 2000 {
		demands := someDemands(random)
		const limit = 100.0
		admits := Divide(nil, limit, limiter.MaxMin, demands)
		var wanted, got, highest float64
		for i, d := range demands {
			wanted += d.Rate
			got += d.Rate * min(admits[i], 1)
			highest = max(highest, d.Rate*min(admits[i], 1)/d.Weight)
		}
		if want := min(wanted, limit); math.Abs(got-want) > 1e-6*want+leastAdmit*wanted {
			t.Fatalf("admitted %v of %v, limit %v: %+v", got, wanted, limit, demands)
		}
		for i, d := range demands {
			if level := d.Rate * admits[i] / d.Weight; admits[i] < 1 && level < highest*(1-1e-9) {
				t.Fatalf("demand %d has level %v, another %v: %+v", i, level, highest, demands)
			}
		}
	}
}

func someDemands(r *rand.Rand) []Demand {
	out := make([]Demand, 1+r.IntN(12))
	for i := range out {
		out[i] = Demand{Rate: math.Exp(8*r.Float64() - 2), Weight: 0.1 + 3*r.Float64()}
		if r.IntN(5) == 0 {
			out[i].Rate = 0
		}
	}
	return out
}

// tier returns a bucket with two tiers and a limit of 1000, and its two cells.
func tier() (*limiter.Bucket, [2]limiter.CellID) {
	b := &limiter.Bucket{Service: "pay", Name: "all", LimitRPS: 1000, Tiers: []limiter.Tier{{Name: "high"}, {Name: "low"}}}
	return b, [2]limiter.CellID{{Bucket: "pay/all", Class: "high"}, {Bucket: "pay/all", Class: "low"}}
}

func TestDeciderDividesALimit(t *testing.T) {
	b, ids := tier()
	var d Decider
	for i, id := range ids {
		d.Use(i, b, id)
	}
	now := time.Unix(1e9, 0)
	decide := func(high, low float64) (float64, float64) {
		for range 100 {
			now = now.Add(T / 5)
			d.Offer(now, 0, high)
			d.Offer(now, 1, low)
			calls := 0
			d.Settle(now, func(int) { calls++ })
			if calls != 2 {
				t.Fatalf("%d cells decided, want both", calls)
			}
		}
		return d.Admit(0), d.Admit(1)
	}
	if high, low := decide(400, 400); high != 1.25 || low != 1.25 {
		t.Errorf("800 of 1000: admits %v and %v, want 1.25", high, low)
	}
	if high, low := decide(800, 400); high != 1 || math.Abs(low-0.5) > 1e-3 {
		t.Errorf("800 and 400 of 1000: admits %v and %v, want 1 and 0.5", high, low)
	}
	// One cell that moves moves the others.
	now = now.Add(T)
	d.Offer(now, 0, 400)
	moved := map[int]bool{}
	d.Settle(now, func(i int) { moved[i] = true })
	if !moved[1] || d.Admit(1) < 1 {
		t.Errorf("when the high tier leaves room, the low one admits %v, moved %v", d.Admit(1), moved)
	}
	d.Forget(0)
	d.Forget(1)
	d.Use(0, &limiter.Bucket{Service: "pay", Name: "alone", LimitRPS: 10}, limiter.CellID{Bucket: "pay/alone"})
	if d.Offer(now, 0, 20); math.Abs(d.Admit(0)-0.5) > 1e-9 {
		t.Errorf("an index that was freed admits %v of another cell, want 0.5", d.Admit(0))
	}
}

func TestDeciderOfAPart(t *testing.T) {
	now := time.Unix(1e9, 0)
	var d Decider
	d.Use(0, &limiter.Bucket{Service: "pay", Name: "all", LimitRPS: 1000}, limiter.CellID{Bucket: "pay/all"})
	d.Part(0, Part{Share: 0.25, Admitted: 4000})
	if d.Offer(now, 0, 500); math.Abs(d.Admit(0)-0.5) > 1e-9 {
		t.Errorf("a quarter of 1000 admits %v of 500, want 0.5", d.Admit(0))
	}
	// Of a limit that cells share the part is that of their sum.
	b, ids := tier()
	var s Decider
	for i, id := range ids {
		s.Use(i, b, id)
	}
	s.Part(0, Part{Share: 1, Admitted: 100})   // all of 100
	s.Part(1, Part{Share: 0.5, Admitted: 300}) // half of 300: together 250 of 400
	s.Offer(now, 0, 100)
	s.Offer(now, 1, 1050)
	s.Settle(now, func(int) {})
	if s.Admit(0) != 1 || math.Abs(s.Admit(1)-0.5) > 1e-9 {
		t.Errorf("625 of 1000 admits %v of 100 and %v of 1050, want 1 and 0.5", s.Admit(0), s.Admit(1))
	}
}

func TestDeciderGoesOnFromAnother(t *testing.T) {
	now := time.Unix(1e9, 0)
	b := &limiter.Bucket{Service: "pay", Name: "all", LimitRPS: 100}
	id := limiter.CellID{Bucket: "pay/all"}
	var d, anew Decider
	d.Use(0, b, id)
	anew.Use(0, b, id)
	d.Resume(0, 0.9)
	// 102 is above the limit, but not significantly: who drops goes on.
	d.Offer(now, 0, 102)
	anew.Offer(now, 0, 102)
	if d.Admit(0) >= 1 || anew.Admit(0) < 1 {
		t.Errorf("admits %v going on and %v anew, want below 1 and 1", d.Admit(0), anew.Admit(0))
	}
	d.Use(1, &limiter.Bucket{Service: "pay", Name: "none", Block: true}, limiter.CellID{Bucket: "pay/none"})
	if d.Offer(now, 1, 1e6); d.Admit(1) != 1 {
		t.Errorf("a bucket that blocks admits %v, want 1: hosts block by the configuration", d.Admit(1))
	}
}

// Trap 4: a hot cell is noisier, and must not keep itself hot by that.
func TestGateDoesNotKeepItselfHot(t *testing.T) {
	for _, tt := range []struct {
		name       string
		rps, limit float64
		hosts      int
	}{
		{"0.95 of 1,000", 950, 1000, 20},
		{"1.2 of 1,000", 1200, 1000, 50},
		{"0.95 of 100", 95, 100, 20},
		{"1.5 of 44,000", 66_000, 44_000, 200},
		{"twice 5", 10, 5, 20},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var hot, all int
			for seed := range uint64(4) {
				h := newHosts(source(t, seed), tt.hosts)
				for step := range int(2 * time.Minute / Delta) {
					h.offer(tt.rps, tt.limit)
					if step < 200 {
						continue // it moved: hot at first
					}
					if all++; h.mean.Hot() {
						hot++
					}
				}
			}
			if share := float64(hot) / float64(all); share > 0.01 {
				t.Errorf("hot for %.2f %% of the time, want at most 1 %%", 100*share)
			}
		})
	}
}

func TestGateIsHotWhenItMovesNearTheLimit(t *testing.T) {
	for _, tt := range []struct {
		name            string
		from, to, limit float64
		want            bool
	}{
		{"across the limit", 30_000, 60_000, 44_000, true},
		{"above it", 60_000, 90_000, 44_000, true},
		{"far below it", 10_000, 20_000, 44_000, false},
		{"by chance", 60_000, 60_300, 44_000, false},
		{"a small limit", 10, 300, 99, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g, now := start(tt.from, tt.limit)
			if g.Hot() {
				t.Fatal("hot after 100 s of the same")
			}
			g.Step(now.Add(T), tt.to, tt.limit)
			if g.Hot() != tt.want {
				t.Errorf("hot is %v, want %v", g.Hot(), tt.want)
			}
			for i := range 11 {
				g.Step(now.Add(T+HotFor*time.Duration(i)/10), tt.to, tt.limit)
			}
			if g.Hot() {
				t.Error("hot 2 s after it moved")
			}
		})
	}
}

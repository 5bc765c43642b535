package law

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// crowd is hosts of one cell, as a node judges them.
type crowd struct {
	Sum
	told  Verdict // of the cell
	hosts []*Child
}

// newCrowd returns hosts for which a rate is usual.
func newCrowd(hosts int, usual float64) *crowd {
	c := &crowd{}
	c.Grow(1)
	for range hosts {
		c.add(usual, true)
	}
	return c
}

// add has a host come, which says a rate.
func (c *crowd) add(rps float64, first bool) {
	h := &Child{}
	h.Name(0, Counts{})
	c.hosts = append(c.hosts, h)
	c.judge(len(c.hosts)-1, Claim{Offered: Micro(rps), Weight: Usual(T), First: first, Told: &c.told})
}

// says has a host report a rate, with counts.
func (c *crowd) says(host int, rps float64) {
	c.judge(host, Claim{Offered: Micro(rps), Weight: Usual(T), Told: &c.told})
}

func (c *crowd) judge(host int, claim Claim) {
	h := c.hosts[host]
	r := Rate{Offered: claim.Offered, Hosts: 1}
	if !h.Usually(0, claim.Offered, claim.Weight) {
		r = c.Judge(h, 0, claim)
	}
	c.FoldRate(h, 0, r)
}

// rps returns what counts of the crowd, and the excess.
func (c *crowd) rps() (offered, excess float64) {
	c.Settle(0, &c.told)
	r := c.Rate(0)
	return r.Offered.RPS(), r.Excess.RPS()
}

func (c *crowd) check(t *testing.T, what string, offered, excess, tolerance float64) {
	t.Helper()
	gotOffered, gotExcess := c.rps()
	if math.Abs(gotOffered-offered) > tolerance*offered || math.Abs(gotExcess-excess) > tolerance*excess {
		t.Errorf("%s: %.5g rps count and %.5g are excess, want %.5g and %.5g", what, gotOffered, gotExcess, offered, excess)
	}
}

func TestAHostCountsAtMostTwice(t *testing.T) {
	for _, claim := range []float64{1000, 1e6, MaxRPS} {
		c := newCrowd(20, 100)
		c.says(3, claim)
		most := 200 + plausibleShare*1900
		c.check(t, "one host claims more", 1900+most, claim-most, 0.01)
		c.says(3, 150)
		c.check(t, "and then what may be", 2050, 0, 1e-6)
	}
}

// Nobody is held in a surge on all, whoever says so first.
func TestASurgeIsBelieved(t *testing.T) {
	for _, hosts := range []int{2, 3, 20, 200} {
		c := newCrowd(hosts, 10)
		for i := range hosts {
			c.says(i, 150)
			if i == hosts/3 {
				c.rps() // some are judged before the others have spoken
			}
		}
		c.check(t, "15 times from all", 150*float64(hosts), 0, 1e-6)
	}
}

func TestAHostThatIsAloneIsBelieved(t *testing.T) {
	c := newCrowd(1, 10)
	c.says(0, 3000)
	c.check(t, "a host that is alone", 3000, 0, 1e-6)

	// The directive knows of others, elsewhere.
	c = newCrowd(1, 10)
	c.told = Verdict{Admit: 0.5, Offered: 200, Hosts: 20}
	c.says(0, 3000)
	most := 20 + 4*deviation(10, T)
	c.check(t, "alone in its zone", most, 3000-most, 0.01)

	// One that is alone gains no more by it once others come.
	c = newCrowd(1, 10)
	for range 10 {
		c.says(0, MaxRPS)
	}
	c.add(10, false)
	c.says(0, MaxRPS)
	if offered, _ := c.rps(); offered > 10+40 {
		t.Errorf("%.5g rps count of a host that claimed much while it was alone, and another one's 10", offered)
	}
}

// Two that lie do not vouch for each other.
func TestLiarsDoNotVouch(t *testing.T) {
	c := newCrowd(20, 100)
	for range 10 {
		c.says(3, MaxRPS)
		c.says(4, MaxRPS)
	}
	if offered, _ := c.rps(); offered > 1800+2*3.5*100 {
		t.Errorf("%.5g rps count of 18 hosts with 100 and two that lie", offered)
	}
}

func TestANewHostIsAMeanOne(t *testing.T) {
	c := newCrowd(19, 100)
	c.add(MaxRPS, false)
	most := 200 + plausibleShare*1900
	c.check(t, "a new host claims more", 1900+most, MaxRPS, 0.01)
	if got := float64(c.hosts[19].Usual(0)) / 1e6; math.Abs(got-100) > 2 {
		t.Errorf("%.4g rps are usual for it, want the others' mean of 100", got)
	}
	// A host that comes back on a new stream is who it was.
	again := &Child{}
	again.Name(0, Counts{})
	again.Resume(0, c.hosts[3].Usual(0))
	if !again.Usually(0, Micro(199), 0) || again.Usually(0, Micro(201), 0) {
		t.Error("what was usual on the last stream is not what is usual now")
	}
}

// What stays becomes usual, a factor of e each two minutes.
func TestWhatStaysBecomesUsual(t *testing.T) {
	c := newCrowd(20, 10)
	until := 0
	for ; until < 3600; until++ {
		for i := range 19 {
			c.says(i, 10)
		}
		c.says(19, 3000)
		if _, excess := c.rps(); excess == 0 {
			break
		}
	}
	if took := time.Duration(until) * T; took < 8*time.Minute || took > 12*time.Minute {
		t.Errorf("3,000 rps of a host with 10 are believed after %v, want about 10m", took)
	}
}

// However hosts come, go and say what they like, the sum is that of its parts.
func TestExcessAddsUp(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	c := newCrowd(5, 10)
	for range 20_000 {
		i := random.IntN(len(c.hosts))
		switch h := c.hosts[i]; random.IntN(6) {
		case 0:
			c.Leave(h)
		case 1:
			c.Return(h)
		case 2:
			c.Settle(0, &c.told)
		default:
			c.Return(h)
			c.says(i, math.Exp(20*random.Float64()-5))
		}
		var want Rate
		for _, h := range c.hosts {
			if r := h.Rate(0); !h.Out() {
				want.Offered += r.Offered
				want.Excess += r.Excess
				want.Hosts += r.Hosts
			}
		}
		if got := c.Rate(0); got != want {
			t.Fatalf("the sum is %+v, its parts %+v", got, want)
		}
	}
}

func TestHeldKnowsWhatTheDeciderKnows(t *testing.T) {
	h := HoldAt(10)
	for i, step := range []struct {
		offered, excess     MicroRPS
		received, contained uint64
		known               MicroRPS
	}{
		{20, 80, 5, 3, 10},  // it counts more since report 5
		{100, 0, 7, 4, 10},  // and more
		{100, 0, 9, 5, 20},  // the decider has the first of it
		{100, 0, 9, 8, 20},  // but not the second, which it is to hear with report 9
		{100, 0, 9, 9, 100}, // now it has all
		{30, 0, 12, 9, 30},  // what is gone needs nobody's word
	} {
		want := Rate{Offered: step.known, Excess: step.offered + step.excess - step.known, Hosts: 1}
		if got := h.Known(Rate{Offered: step.offered, Excess: step.excess, Hosts: 1}, step.received, step.contained); got != want {
			t.Errorf("step %d: %+v is known, want %+v", i, got, want)
		}
	}
}

func TestVerdictForAnOutlier(t *testing.T) {
	held := Rate{Offered: Micro(20), Excess: Micro(980), Hosts: 1}
	for _, tt := range []struct {
		name string
		told Verdict
		rate Rate
		here float64
		want Verdict
	}{
		{"nothing was decided", Verdict{}, held, 980, Verdict{}},
		{"without excess", Verdict{Admit: 0.5, Offered: 2000, Hosts: 10, Excess: 5}, Rate{Offered: Micro(20)}, 0, Verdict{Admit: 0.5, Offered: 2000, Hosts: 10}},
		{"the decider does not know yet", Verdict{Admit: 2, Offered: 500, Hosts: 10}, held, 980, Verdict{Admit: 2, Offered: 500, Hosts: 10}},
		{"no room", Verdict{Admit: 0.5, Offered: 2000, Hosts: 10, Excess: 980}, held, 980, Verdict{Admit: 0.01, Offered: 1000, Hosts: 1}},
		{"some room", Verdict{Admit: 2, Offered: 500, Hosts: 10, Excess: 980}, held, 980, Verdict{Admit: 0.52, Offered: 1000, Hosts: 1}},
		{"half of it is another one's", Verdict{Admit: 2, Offered: 500, Hosts: 10, Excess: 1960}, held, 980, Verdict{Admit: 0.27, Offered: 1000, Hosts: 1}},
		{"room for all", Verdict{Admit: 10, Offered: 100, Hosts: 10, Excess: 800}, Rate{Offered: Micro(20), Excess: Micro(700)}, 700, Verdict{Admit: 10, Offered: 100, Hosts: 10}},
		{"more was offered than in the mean", Verdict{Admit: 2, Offered: 600, Hosts: 10, Excess: 980}, held, 980, Verdict{Admit: 0.52, Offered: 1000, Hosts: 1}},
	} {
		got := tt.told.For(tt.rate, Micro(tt.here), 1000)
		if math.Abs(got.Admit-tt.want.Admit) > 1e-9 || got.Offered != tt.want.Offered || got.Hosts != tt.want.Hosts || got.Excess != 0 {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

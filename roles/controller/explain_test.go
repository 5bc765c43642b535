package controller

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"grl/limiter"
	"grl/limiter/law"
	grlv1 "grl/proto/grl/v1"
)

// explainConfiguration is of a fleet in which a request passes all kinds of cells.
func explainConfiguration(now time.Time) *limiter.Configuration {
	bucket := func(name string, m limiter.Match, rps float64, b limiter.Behavior) limiter.Bucket {
		return limiter.Bucket{Service: "pay", Name: name, Match: m, LimitRPS: rps, Behavior: b}
	}
	regional := bucket("regional", limiter.Match{Procedure: "Charge"}, 100, limiter.Deny)
	regional.Scope, regional.Regions = limiter.Region, map[string]float64{"r2": 50}
	each := bucket("each", limiter.Match{Caller: "*"}, 10, limiter.Allow)
	each.PerCaller = true
	tiers := bucket("all", limiter.Match{}, 1000, limiter.Deny)
	tiers.Tiers = []limiter.Tier{{Name: "gold", Callers: []limiter.Pattern{"web"}}, {Name: "rest"}}
	return &limiter.Configuration{
		Revision: 7,
		Services: []limiter.Service{
			{
				Name: "pay", Owner: "team-pay",
				Exempt:  []limiter.Match{{Caller: "health"}},
				Buckets: []limiter.Bucket{regional, each, tiers},
			},
			{Name: "closed", Buckets: []limiter.Bucket{{Service: "closed", Name: "gate", Block: true, Behavior: limiter.Deny}}},
			{Name: "off", Buckets: []limiter.Bucket{{Service: "off", Name: "gate", Block: true, Behavior: limiter.Deny}}},
		},
		Caps: []limiter.Cap{
			{ID: "1", Service: "pay", Match: limiter.Match{Caller: "web"}, LimitRPS: 30, Author: "ann", Reason: "storm", Ends: now.Add(29 * time.Minute)},
			{ID: "2", Service: "new", Block: true, Author: "ann", Reason: "leak", Ends: now.Add(90 * time.Second)},
			{ID: "3", Service: "old", Block: true, Author: "ann", Reason: "leak", Ends: now.Add(-30 * time.Second)},
		},
		Disabled: []string{"off"},
	}
}

// explainRig returns that fleet under load, in two regions.
func explainRig(t *testing.T) *rig {
	r := newRig(t, explainConfiguration(time.Unix(1_000_000_000, 0)))
	r.warm()
	a, b := newSpeaker("a", "z1", 1), newSpeaker("b", "z2", 2)
	b.hello.Region = "r2"
	a.join(r)
	b.join(r)
	a.report(
		said{limiter.CellID{Bucket: "pay/_cap-1"}, 120, law.Counts{}},
		said{limiter.CellID{Bucket: "pay/regional", Instance: "r1"}, 200, law.Counts{}},
		said{limiter.CellID{Bucket: "pay/each", Caller: "web"}, 40, law.Counts{}},
		said{limiter.CellID{Bucket: "pay/all", Class: "gold"}, 90, law.Counts{}},
	)
	b.report(said{limiter.CellID{Bucket: "pay/regional", Instance: "r2"}, 40, law.Counts{}})
	r.n.decide(r.now)
	r.n.renew(r.now)
	r.pass(400 * time.Millisecond)
	return r
}

func (r *rig) explain(m *grlv1.ExplainRequest) *grlv1.ExplainResponse {
	return r.n.explain(r.now, m, r.n.zones[m.GetZone()])
}

// summary is what a test looks at of a cell.
func summary(c *grlv1.ExplainCell) string {
	b := c.GetBucket()
	return strings.TrimSpace(fmt.Sprintf("%s %s%s%s: limit %v, offered %v, ratio %.2f, age %d, by %s: %s", b.GetBucket(), b.GetInstance(), b.GetCaller(), b.GetClass(),
		b.GetLimitRps(), b.GetOfferedRps(), b.GetDropRatio(), b.GetDirectiveAgeMs(), c.GetDecider(), c.GetVerdict()))
}

func TestExplainShowsTheCellsInOrder(t *testing.T) {
	r := explainRig(t)
	got := r.explain(&grlv1.ExplainRequest{Service: "pay", Caller: "web", Procedure: "Charge"})
	want := []string{
		"pay/_cap-1 : limit 30, offered 120, ratio 0.75, age 400, by global: drops 75 % of what reaches it",
		"pay/each web: limit 10, offered 40, ratio 0.75, age 400, by global: would drop 75 %, drops nothing",
		"pay/regional r1: limit 100, offered 200, ratio 0.50, age 400, by global: drops 50 % of what reaches it",
		"pay/regional r2: limit 50, offered 40, ratio 0.00, age 400, by global: drops nothing: within the limit",
		"pay/all gold: limit 1000, offered 90, ratio 0.00, age 400, by global: drops nothing: within the limit",
		"pay/all rest: limit 1000, offered 0, ratio 0.00, age -1, by global: drops nothing: nothing is offered to it",
	}
	for i, c := range got.GetCells() {
		if i >= len(want) || summary(c) != want[i] {
			t.Errorf("cell %d: %s", i, summary(c))
		}
	}
	if len(got.GetCells()) != len(want) {
		t.Errorf("%d cells, want %d", len(got.GetCells()), len(want))
	}
	c := got.GetCells()[0]
	if c.GetBucket().GetCapId() != "1" || c.GetAuthor() != "ann" || c.GetReason() != "storm" || c.GetRemainingMs() != (29*time.Minute-400*time.Millisecond).Milliseconds() {
		t.Errorf("cap %v", c)
	}
	if ratio := got.GetDropRatio(); ratio < 0.874 || ratio > 0.876 { // a quarter passes the cap, and half of that the region
		t.Errorf("drop ratio %v, want 0.875", ratio)
	}
	if !got.GetKnown() || got.GetOwner() != "team-pay" || got.GetRevision() != 7 || got.GetEnforce() != grlv1.Enforce_ENFORCE_INBOUND {
		t.Errorf("explained %v", got)
	}
	const advice = "wait at least as long as Retry-After says, with jitter, and longer after each drop; do not retry at once, retries count too; ask ann about the cap, which ends in 29 min"
	if got.GetAdvice() != advice {
		t.Errorf("advice %q, want %q", got.GetAdvice(), advice)
	}
}

func TestExplainInOneZone(t *testing.T) {
	r := explainRig(t)
	got := r.explain(&grlv1.ExplainRequest{Service: "pay", Caller: "shop", Procedure: "Charge", Zone: "z2"})
	if len(got.GetCells()) != 4 || got.GetDropRatio() != 0 || got.GetCells()[1].GetBucket().GetInstance() != "r2" {
		t.Errorf("in z2: %v", got)
	}
	got = r.explain(&grlv1.ExplainRequest{Service: "pay", Caller: "shop", Procedure: "Charge", Zone: "z1"})
	if got.GetDropRatio() != 0.5 || !strings.HasSuffix(got.GetAdvice(), "ask team-pay for a higher limit of pay/regional") {
		t.Errorf("in z1: %v", got)
	}
}

func TestExplainVerdicts(t *testing.T) {
	r := explainRig(t)
	tests := []struct {
		service, caller string
		ratio           float64
		verdict, advice string // of the first cell; parts
	}{
		{"pay", "health", 0, "", "never dropped"},
		{"nowhere", "web", 0, "", "no limits"},
		{"closed", "web", 1, "drops everything", "stop sending such requests: closed/gate blocks them until it is changed; ask the owner of closed"},
		{"off", "web", 0, "would drop 100 %, drops nothing", "nothing is dropped while the service is disabled"},
		{"new", "web", 1, "drops everything", "they are blocked for 90 s more; ask ann about the cap"},
		// A quarter of its ramp is over: what it admits has doubled twice.
		{"old", "web", 0.96, "ends: still drops 96 %", "ask ann about the cap"},
	}
	for _, tt := range tests {
		t.Run(tt.service+" "+tt.caller, func(t *testing.T) {
			got := r.explain(&grlv1.ExplainRequest{Service: tt.service, Caller: tt.caller, Procedure: "Any"})
			if d := got.GetDropRatio() - tt.ratio; d < -0.005 || d > 0.005 {
				t.Errorf("drop ratio %v, want %v", got.GetDropRatio(), tt.ratio)
			}
			if !strings.Contains(got.GetAdvice(), tt.advice) {
				t.Errorf("advice %q, want %q", got.GetAdvice(), tt.advice)
			}
			if verdict := ""; tt.verdict != "" {
				if verdict = got.GetCells()[0].GetVerdict(); verdict != tt.verdict {
					t.Errorf("verdict %q, want %q", verdict, tt.verdict)
				}
			} else if len(got.GetCells()) > 0 {
				t.Errorf("cells %v, want none", got.GetCells())
			}
		})
	}
	if got := r.explain(&grlv1.ExplainRequest{Service: "off"}); !got.GetDisabled() {
		t.Error("not disabled")
	}
}

func TestExplainRefusesWhatIsNoRequest(t *testing.T) {
	r := explainRig(t)
	v := view{&Controller{node: r.n}}
	for _, tt := range []struct {
		request *grlv1.ExplainRequest
		code    connect.Code
	}{
		{&grlv1.ExplainRequest{}, connect.CodeInvalidArgument},
		{&grlv1.ExplainRequest{Service: "pay pay"}, connect.CodeInvalidArgument},
		{&grlv1.ExplainRequest{Service: "pay", Caller: strings.Repeat("a", 257)}, connect.CodeInvalidArgument},
		{&grlv1.ExplainRequest{Service: "pay", Procedure: "\xff"}, connect.CodeInvalidArgument},
		{&grlv1.ExplainRequest{Service: "pay", Zone: "z9"}, connect.CodeNotFound},
	} {
		if got, err := v.Explain(t.Context(), tt.request); connect.CodeOf(err) != tt.code {
			t.Errorf("Explain(%v) = %v, %v; want %v", tt.request, got, err, tt.code)
		}
	}
}

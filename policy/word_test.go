package policy

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestEveryWordIsInItsList(t *testing.T) {
	for _, list := range [][]Word{Refusals(), Figures(), Rules()} {
		seen := map[string]bool{}
		for _, w := range list {
			if w.Name == "" || w.Text == "" || seen[w.Name] {
				t.Errorf("word %q: %q", w.Name, w.Text)
			}
			seen[w.Name] = true
		}
	}
}

func TestEveryKindKeepsToTheContract(t *testing.T) {
	named := func(list []Word, name string) bool {
		return slices.ContainsFunc(list, func(w Word) bool { return w.Name == name })
	}
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom(Kinds()).Draw(t, "kind")
		now := monday.Add(4*week + time.Duration(rapid.IntRange(0, 86400).Draw(t, "second"))*time.Second)
		step := rapid.SampledFrom([]time.Duration{5 * time.Minute, time.Hour, day}).Draw(t, "step")
		series := load(now.Add(day), 29, step, rapid.SampledFrom([]float64{0, 1e-4, 1, 1e5}).Draw(t, "rps"), rapid.Uint64().Draw(t, "seed"))
		for range rapid.IntRange(0, 20).Draw(t, "holes") {
			from := rapid.IntRange(0, len(series.RPS)-1).Draw(t, "from")
			for i := from; i < min(from+len(series.RPS)/10, len(series.RPS)); i++ {
				series.RPS[i] = Unknown
			}
		}
		spec := &Spec{
			Kind: kind.Name, History: max(kind.History, week), MaxStep: 0.2,
			Events: []Event{{"sale", now.Add(-time.Hour), now.Add(time.Hour), rapid.Float64Range(0.1, 100).Draw(t, "factor")}},
			Quota:  []Quota{{RPS: 7, To: now.Add(time.Hour)}},
		}
		r := kind.New(spec).Compute(Input{Now: now, Series: series, SecondOverMinute: rapid.Float64Range(1, 10).Draw(t, "second over minute")})
		switch {
		case r.Refused != "":
			if !named(Refusals(), r.Refused) || r.LimitRPS != 0 {
				t.Fatalf("refused by %q with a limit of %v", r.Refused, r.LimitRPS)
			}
			return
		case !(r.LimitRPS > 0) || math.IsInf(r.LimitRPS, 1) || r.MostRPS < r.LimitRPS:
			t.Fatalf("limit %v, at most %v", r.LimitRPS, r.MostRPS)
		case r.Reason == "":
			t.Fatal("no reason")
		case r.Hourly != nil && (len(r.Hourly) != 24 || r.Hourly[now.Hour()] != r.LimitRPS || slices.Max(r.Hourly) > r.MostRPS):
			t.Fatalf("limit %v, hourly %v, at most %v", r.LimitRPS, r.Hourly, r.MostRPS)
		}
		for _, n := range r.Numbers {
			if !named(Figures(), n.Name) || !slices.Contains([]string{"rps", "ratio", "days", ""}, n.Unit) || math.IsNaN(n.Value) {
				t.Fatalf("number %v", n)
			}
		}
	})
}

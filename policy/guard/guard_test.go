package guard

import (
	"math"
	"slices"
	"strings"
	"testing"

	"grl/limiter"
	"grl/policy"
	"pgregory.net/rapid"
)

// deny is an enforced bucket, shadow one that drops nothing.
func deny(rps float64) *limiter.Bucket {
	return &limiter.Bucket{Service: "s", Name: "b", LimitRPS: rps, Behavior: limiter.Deny}
}

func shadow(rps float64) *limiter.Bucket {
	b := deny(rps)
	b.Behavior = limiter.Allow
	return b
}

func block() *limiter.Bucket {
	return &limiter.Bucket{Service: "s", Name: "b", Block: true, Behavior: limiter.Deny}
}

func with(b *limiter.Bucket, change func(*limiter.Bucket)) *limiter.Bucket {
	change(b)
	return b
}

// minutes is a cell that was offered these rates.
func minutes(rates ...float64) Past {
	c := Cell{}
	for i, rps := range rates {
		c.Minutes = append(c.Minutes, Minute{Start: int64(i), Offered: rps, ShadowRPS: rps / 10})
	}
	return Past{Cells: []Cell{c}}
}

func forced(findings []Finding) []Rail {
	var rails []Rail
	for _, f := range findings {
		if f.NeedsForce {
			rails = append(rails, f.Rail)
		}
	}
	return rails
}

func TestJudge(t *testing.T) {
	constant := func(rps float64) Past { return minutes(rps, rps, rps, rps) }
	inRegions := func(eu float64) *limiter.Bucket {
		return with(deny(100), func(b *limiter.Bucket) { b.Scope, b.Regions = limiter.Region, map[string]float64{"eu": eu} })
	}
	europe := Past{Cells: []Cell{
		{ID: limiter.CellID{Instance: "eu"}, Minutes: []Minute{{0, 50, 0}}},
		{ID: limiter.CellID{Instance: "us"}, Minutes: []Minute{{0, 50, 0}}},
	}}
	each := func(rps float64) *limiter.Bucket {
		return with(deny(rps), func(b *limiter.Bucket) { b.PerCaller = true })
	}
	callers := Past{Cells: []Cell{
		{ID: limiter.CellID{Caller: "web"}, Minutes: []Minute{{0, 90, 0}}},
		{ID: limiter.CellID{Caller: "app"}, Minutes: []Minute{{0, 10, 0}}},
	}}
	tests := []struct {
		name          string
		before, after *limiter.Bucket
		past          Past // requests per second
		want          []Rail
		text          string // in one of the findings
	}{
		{"lowered to half of the peak", deny(100), deny(50), minutes(slices.Concat([]float64{100}, slices.Repeat([]float64{49}, 30))...), nil, "would have dropped 3.2 %"},
		{"lowered below half of the peak", deny(100), deny(49), minutes(1, 100, 1, 1, 1, 1, 1, 1, 1, 1, 900, 1), []Rail{BelowPeak, PredictedDrops}, "limit of 49 rps is below half of the highest minute of the last 7 days, 900 rps"},
		{"lowered, and idle", deny(100), deny(1), minutes(0, 0), nil, "would have dropped 0 % of what was offered in the last 7 days; as it is, 0 %"},
		{"lowered, without history", deny(100), deny(1), Past{}, nil, "cannot tell"},
		{"lowered, judged by now", deny(100), deny(45), Past{NowRPS: 90}, nil, "would drop 50 % of the 90 rps that are offered now"},
		{"low, and raised", deny(10), deny(20), constant(100), nil, ""},
		{"drops of 5 %", deny(200), deny(95), constant(100), nil, "would have dropped 5 %"},
		{"drops above 5 %", deny(200), deny(94), constant(100), []Rail{PredictedDrops}, "would have dropped 6 % of what was offered in the last 7 days; as it is, 0 %"},
		{"drops above 5 %, and no more than before", deny(80), with(deny(80), func(b *limiter.Bucket) { b.Coherent = true }), constant(100), nil, ""},
		{"three times", deny(100), deny(300), Past{}, nil, ""},
		{"above three times", deny(100), deny(301), Past{}, []Rail{AbovePresent}, "limit of 301 rps is above 3 times the present one, 100 rps"},
		{"shadow above three times", shadow(100), shadow(301), Past{}, nil, ""},
		{"shadow below half of the peak", shadow(100), shadow(1), constant(100), nil, ""},
		{"promoted", shadow(100), deny(100), constant(90), nil, "counted in shadow: 10 %"},
		{"promoted, drops", shadow(50), deny(50), constant(90), []Rail{PredictedDrops}, "would have dropped 44 %"},
		{"promoted, without history", shadow(50), deny(50), Past{}, nil, "cannot tell"},
		{"new", nil, deny(50), Past{}, nil, "cannot tell"},
		{"new, judged by now", nil, deny(50), Past{NowRPS: 100}, nil, "would drop 50 %"},
		{"new, for each caller", nil, each(50), Past{NowRPS: 100}, nil, "cannot tell"},
		{"new in shadow", nil, shadow(50), Past{NowRPS: 100}, nil, ""},
		{"new block", nil, block(), Past{}, nil, "would drop everything that it matches: cannot tell how much that is"},
		{"new block of some load", nil, block(), Past{NowRPS: 70}, []Rail{PredictedDrops}, "would drop everything that it matches, 70 rps now"},
		{"blocks what was idle", deny(50), block(), minutes(0, 0), nil, "which was nothing"},
		{"blocks", deny(50), block(), constant(100), []Rail{PredictedDrops}, "would drop everything that it matches, up to 100 rps"},
		{"blocks in shadow", deny(50), with(block(), func(b *limiter.Bucket) { b.Behavior = limiter.Allow }), constant(100), nil, ""},
		{"block ends", block(), deny(1), constant(100), nil, ""},
		{"removed, and was not needed", deny(100), nil, constant(100), nil, ""},
		{"removed, and was needed", deny(100), nil, constant(301), []Rail{AbovePresent}, "takes away a limit of 100 rps, and up to 301 rps were offered"},
		{"enforced no more, and was needed", deny(100), shadow(100), constant(301), []Rail{AbovePresent}, "takes away a limit"},
		{"removed, without history", deny(100), nil, Past{}, nil, ""},
		{"removed shadow", shadow(1), nil, constant(100), nil, ""},
		{"lowered in a region", inRegions(100), inRegions(20), europe, []Rail{BelowPeak, PredictedDrops}, "limit of 20 rps in eu is below half"},
		{"raised in a region", inRegions(10), inRegions(40), europe, []Rail{AbovePresent}, "limit of 40 rps in eu is above 3 times the present one, 10 rps"},
		{"lowered for each caller", each(100), each(40), callers, []Rail{BelowPeak, PredictedDrops}, "limit of 40 rps of web is below half of the highest minute of the last 7 days, 90 rps"},
		{"candidate", deny(100), with(deny(100), func(b *limiter.Bucket) { b.CandidateRPS = 1 }), constant(100), nil, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			findings := Judge([]Pair{{tt.before, tt.after}}, 100, func(Pair) Past { return tt.past })
			if got := forced(findings); !slices.Equal(got, tt.want) {
				t.Errorf("needs force because of %v, want %v: %+v", got, tt.want, findings)
			}
			if !slices.ContainsFunc(findings, func(f Finding) bool { return strings.Contains(f.Text, tt.text) }) && tt.text != "" {
				t.Errorf("no finding says %q: %+v", tt.text, findings)
			}
			if findings := Judge([]Pair{{tt.before, tt.after}}, 0, func(Pair) Past { return tt.past }); len(findings) != 0 {
				t.Errorf("first apply: %+v", findings)
			}
		})
	}
}

// hourly is an enforced bucket with a limit for the night, until 6:00, and one
// for the day.
func hourly(zone string, night, day float64) *limiter.Bucket {
	return with(deny(max(night, day)), func(b *limiter.Bucket) {
		b.TimeZone = zone
		b.Hourly = slices.Concat(slices.Repeat([]float64{night}, 6), slices.Repeat([]float64{day}, 18))
	})
}

// TestJudgeHourly is of limits by the hour, each of which is judged by its own
// hour.
func TestJudgeHourly(t *testing.T) {
	// A week of 10 rps until 6:00 and of 100 rps after it, in Berlin in winter.
	const winter = 1767222000 / 60 // 2026-01-01 00:00 there, in minutes since 1970
	week := Past{Cells: []Cell{{}}}
	for minute := range int64(7 * 24 * 60) {
		rps := 100.0
		if minute%(24*60) < 6*60 {
			rps = 10
		}
		week.Cells[0].Minutes = append(week.Cells[0].Minutes, Minute{Start: winter + minute, Offered: rps})
	}
	const berlin = "Europe/Berlin"
	inRegion := func(night, day float64) *limiter.Bucket {
		return with(deny(1000), func(b *limiter.Bucket) {
			b.Scope, b.Regions, b.TimeZone = limiter.Region, map[string]float64{"eu": day}, berlin
			b.RegionHourly = map[string][]float64{"eu": hourly("", night, day).Hourly}
		})
	}
	europe := Past{Cells: []Cell{{ID: limiter.CellID{Instance: "eu"}, Minutes: week.Cells[0].Minutes}}}
	tests := []struct {
		name          string
		before, after *limiter.Bucket
		past          Past // requests per second
		want          []Rail
		text          string // in one of the findings
	}{
		{"lower at night only", deny(120), hourly(berlin, 12, 120), week, nil, "would have dropped 0 %"},
		{"above half of that hour", hourly(berlin, 12, 120), hourly(berlin, 6, 120), week, nil, "would have dropped 1.3 %"},
		{"below half of that hour", hourly(berlin, 12, 120), hourly(berlin, 4, 120), week, []Rail{BelowPeak}, "limit of 4 rps at 0:00 Europe/Berlin is below half of the highest minute of that hour in the last 7 days, 10 rps"},
		{"in another zone it is another hour", hourly(berlin, 12, 120), hourly("Asia/Tokyo", 12, 120), week, []Rail{BelowPeak, AbovePresent, PredictedDrops}, "limit of 12 rps at 0:00 Asia/Tokyo"},
		{"another hour is low as it was", hourly(berlin, 2, 120), hourly(berlin, 2, 110), week, nil, "would have dropped 2.6 % of what was offered in the last 7 days; as it is, 2.6 %"},
		{"low as it was, but not enforced", with(hourly(berlin, 2, 120), func(b *limiter.Bucket) { b.Behavior = limiter.Allow }), hourly(berlin, 2, 120), week, []Rail{BelowPeak}, "at 0:00 Europe/Berlin"},
		{"one hour above three times", hourly(berlin, 12, 120), hourly(berlin, 37, 120), Past{}, []Rail{AbovePresent}, "limit of 37 rps at 0:00 Europe/Berlin is above 3 times the present one, 12 rps"},
		{"the most of all hours above three times", hourly(berlin, 12, 120), with(hourly(berlin, 12, 120), func(b *limiter.Bucket) { b.LimitRPS = 1000 }), Past{}, nil, ""},
		{"constant again", hourly(berlin, 12, 120), deny(120), week, []Rail{AbovePresent}, "limit of 120 rps at 0:00 Europe/Berlin is above 3 times the present one, 12 rps"},
		{"to the same hours in another zone", hourly("Europe/Paris", 12, 120), hourly(berlin, 12, 120), week, nil, ""},
		{"removed, and was needed", hourly(berlin, 3, 120), nil, week, []Rail{AbovePresent}, "takes away a limit of 3 rps at 0:00 Europe/Berlin, and up to 10 rps were offered"},
		{"without history", deny(120), hourly(berlin, 12, 120), Past{NowRPS: 100}, nil, "cannot tell"},
		{"below half of that hour in a region", inRegion(12, 120), inRegion(4, 120), europe, []Rail{BelowPeak}, "limit of 4 rps in eu at 0:00 Europe/Berlin is below half"},
		{"above three times in a region", inRegion(4, 120), inRegion(13, 120), europe, []Rail{AbovePresent}, "limit of 13 rps in eu at 0:00 Europe/Berlin is above 3 times the present one, 4 rps"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			findings := Judge([]Pair{{tt.before, tt.after}}, 100, func(Pair) Past { return tt.past })
			if got := forced(findings); !slices.Equal(got, tt.want) {
				t.Errorf("needs force because of %v, want %v: %+v", got, tt.want, findings)
			}
			if !slices.ContainsFunc(findings, func(f Finding) bool { return strings.Contains(f.Text, tt.text) }) && tt.text != "" {
				t.Errorf("no finding says %q: %+v", tt.text, findings)
			}
		})
	}
}

// Cells that share one limit are judged together.
func TestJudgeSharedLimit(t *testing.T) {
	past := Past{Cells: []Cell{
		{ID: limiter.CellID{Caller: "web"}, Minutes: []Minute{{0, 60, 0}, {1, 10, 0}}},
		{ID: limiter.CellID{Caller: "app"}, Minutes: []Minute{{0, 60, 0}, {2, 10, 0}}},
	}}
	shared := func(rps float64) *limiter.Bucket {
		return with(deny(rps), func(b *limiter.Bucket) { b.Share = limiter.MaxMin })
	}
	findings := Judge([]Pair{{shared(200), shared(59)}}, 100, func(Pair) Past { return past })
	if !slices.Equal(forced(findings), []Rail{BelowPeak, PredictedDrops}) || math.Abs(findings[1].DropShare-61./140) > 1e-9 {
		t.Errorf("findings = %+v, want a peak of 120 and 61 of 140 dropped", findings)
	}
}

func TestManyBuckets(t *testing.T) {
	tests := []struct {
		name             string
		changed, buckets int
		pair             Pair
		want             bool
	}{
		{"one of three", 1, 3, Pair{deny(1), deny(2)}, false},
		{"all of three", 3, 3, Pair{deny(1), deny(2)}, false},
		{"four of thirty-nine", 4, 39, Pair{deny(1), deny(2)}, true},
		{"four of forty", 4, 40, Pair{deny(1), deny(2)}, false},
		{"removed", 4, 39, Pair{deny(1), nil}, true},
		{"promoted", 4, 39, Pair{shadow(1), deny(1)}, true},
		{"new", 30, 39, Pair{nil, deny(1)}, false},
		{"in shadow", 30, 39, Pair{shadow(1), shadow(2)}, false},
	}
	for _, tt := range tests {
		findings := Judge(slices.Repeat([]Pair{tt.pair}, tt.changed), tt.buckets, func(Pair) Past { return Past{} })
		if got := slices.Equal(forced(findings), []Rail{ManyBuckets}); got != tt.want {
			t.Errorf("%s: %v, want %v: %+v", tt.name, got, tt.want, findings)
		}
	}
}

func TestPairs(t *testing.T) {
	web := limiter.Bucket{Service: "s", Name: "web", Match: limiter.Match{Caller: "web"}, LimitRPS: 1, Behavior: limiter.Deny}
	app := limiter.Bucket{Service: "s", Name: "app", Match: limiter.Match{Caller: "app"}, LimitRPS: 1}
	other := *with(&limiter.Bucket{}, func(b *limiter.Bucket) { *b = web; b.Name, b.LimitRPS = "web2", 9 })
	service := func(change func(*limiter.Service), buckets ...limiter.Bucket) []limiter.Service {
		s := limiter.Service{Name: "s", Buckets: buckets}
		if change != nil {
			change(&s)
		}
		return []limiter.Service{s}
	}
	exempt := func(m limiter.Match) func(*limiter.Service) {
		return func(s *limiter.Service) { s.Exempt = []limiter.Match{m} }
	}
	tests := []struct {
		name          string
		before, after []limiter.Service
		want          string // before>after of each
	}{
		{"the same", service(nil, web, app), service(nil, app, web), ""},
		{"added", nil, service(nil, web, app), ">app >web"},
		{"removed", service(nil, web, app), nil, "app> web>"},
		{"renamed and changed", service(nil, web, app), service(nil, other, app), "web>web2"},
		{"only renamed", service(nil, web), service(nil, *with(&limiter.Bucket{}, func(b *limiter.Bucket) { *b = web; b.Name = "w" })), ""},
		{"another owner", service(nil, web), service(func(s *limiter.Service) { s.Owner = "o" }, web), ""},
		{"other side", service(nil, web, app), service(func(s *limiter.Service) { s.Enforce = limiter.Outbound }, web, app), "app>app web>web"},
		{"exempts everything", service(nil, web, app), service(exempt(limiter.Match{Caller: "*"}), web, app), "web>"},
		{"exempts something", service(nil, web, app), service(exempt(limiter.Match{Caller: "x"}), web, app), ""},
	}
	for _, tt := range tests {
		var got []string
		for _, p := range Pairs(tt.before, tt.after) {
			text := ">"
			if p.Before != nil {
				text = p.Before.Name + text
			}
			if p.After != nil {
				text += p.After.Name
			}
			got = append(got, text)
		}
		if text := strings.Join(got, " "); text != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, text, tt.want)
		}
	}
}

func TestKey(t *testing.T) {
	moved := with(deny(1), func(b *limiter.Bucket) { b.Match.Caller = "web" })
	for _, tt := range []struct {
		pair Pair
		want string
	}{{Pair{deny(1), deny(2)}, "s/b"}, {Pair{nil, deny(1)}, ""}, {Pair{deny(1), nil}, "s/b"}, {Pair{deny(1), moved}, ""}} {
		if got := tt.pair.Key(); got != tt.want {
			t.Errorf("Key of %+v = %q, want %q", tt.pair, got, tt.want)
		}
	}
}

// Whatever was offered: shares are shares, and a rail is never in the way of
// what only raises a limit by less than three times.
func TestJudgeProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.Float64Range(0.001, 1e9)
		bucket := rapid.Custom(func(t *rapid.T) *limiter.Bucket {
			return with(deny(rate.Draw(t, "limit")), func(b *limiter.Bucket) {
				b.Behavior = limiter.Behavior(rapid.IntRange(0, 1).Draw(t, "behavior"))
				if rapid.IntRange(0, 5).Draw(t, "block") == 0 {
					b.Block, b.LimitRPS = true, 0
				}
			})
		})
		p := Pair{bucket.Draw(t, "before"), bucket.Draw(t, "after")}
		past := minutes(rapid.SliceOfN(rapid.Float64Range(0, 1e9), 0, 5).Draw(t, "minutes")...)
		for _, f := range Judge([]Pair{p}, 100, func(Pair) Past { return past }) {
			if !(f.DropShare >= 0 && f.DropShare <= 1) || f.Text == "" || f.Rail == 0 {
				t.Fatalf("finding %+v of %+v, %+v", f, p.Before, p.After)
			}
		}
		raised := *p.Before
		raised.LimitRPS *= rapid.Float64Range(1, 3).Draw(t, "factor")
		if rails := forced(Judge([]Pair{{p.Before, &raised}}, 100, func(Pair) Past { return past })); len(rails) > 0 {
			t.Fatalf("raised from %v to %v: %v", p.Before.LimitRPS, raised.LimitRPS, rails)
		}
	})
}

// Limits by the hour that are the same at all hours are judged as one limit is.
func TestJudgeConstantHours(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.Float64Range(0.001, 1e3)
		p := Pair{deny(rate.Draw(t, "before")), deny(rate.Draw(t, "after"))}
		zone := rapid.SampledFrom([]string{"", "Europe/Berlin", "Asia/Kathmandu"})
		by := func(b *limiter.Bucket) *limiter.Bucket {
			h := *b
			h.Hourly, h.TimeZone = slices.Repeat([]float64{b.LimitRPS}, limiter.Hours), zone.Draw(t, "zone")
			return &h
		}
		past := minutes(rapid.SliceOfN(rapid.Float64Range(0, 1e3), 0, 5).Draw(t, "minutes")...)
		judge := func(p Pair) []Rail { return forced(Judge([]Pair{p}, 100, func(Pair) Past { return past })) }
		want := judge(p)
		for _, q := range []Pair{{by(p.Before), by(p.After)}, {p.Before, by(p.After)}, {by(p.Before), p.After}} {
			if got := judge(q); !slices.Equal(got, want) {
				t.Fatalf("%v, and as one limit %v: %+v, %+v", got, want, *q.Before, *q.After)
			}
		}
	})
}

func TestFigures(t *testing.T) {
	for got, want := range map[string]string{
		policy.Rate(1239.6): "1,240", policy.Rate(0.5): "0.5", policy.Rate(99.95): "100", policy.Rate(1e9): "1,000,000,000", policy.Rate(12.345): "12.3",
		Percent(0.05): "5 %", Percent(0.0512): "5.1 %", Percent(0.3712): "37 %", Percent(0): "0 %", Percent(1): "100 %",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

package limiter

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

func TestValidate(t *testing.T) {
	with := func(change func(*Bucket)) Service {
		b := deny("b", "a", "x")
		change(&b)
		return Service{Name: "s", Buckets: []Bucket{b}}
	}
	long := strings.Repeat("n", maxNameBytes+1)
	tests := []struct {
		name    string
		service Service
		want    []string // all in the error; none: valid
	}{
		{"good", with(func(*Bucket) {}), nil},
		{"good block", with(func(b *Bucket) { b.Block, b.LimitRPS = true, 0 }), nil},
		{"good regions", with(func(b *Bucket) { b.Scope, b.Regions = Region, map[string]float64{"eu": 4} }), nil},
		{"smallest limit", with(func(b *Bucket) { b.LimitRPS = 0.001 }), nil},
		{"largest limit", with(func(b *Bucket) { b.LimitRPS = 1e9 }), nil},
		{"percent in a name", with(func(b *Bucket) { b.Name, b.LimitRPS = "50%d", -1 }), []string{`bucket "s/50%d": limit -1 is not in`}},
		{"no limit", with(func(b *Bucket) { b.LimitRPS = 0 }), []string{`bucket "s/b": limit missing`}},
		{"limit too small", with(func(b *Bucket) { b.LimitRPS = 0.0009 }), []string{"limit 0.0009 is not in [0.001, 1e+09]"}},
		{"limit too large", with(func(b *Bucket) { b.LimitRPS = 1.1e9 }), []string{"is not in"}},
		{"limit NaN", with(func(b *Bucket) { b.LimitRPS = math.NaN() }), []string{"limit NaN is not in"}},
		{"limit infinite", with(func(b *Bucket) { b.LimitRPS = math.Inf(1) }), []string{"limit +Inf is not in"}},
		{"block and limit", with(func(b *Bucket) { b.Block = true }), []string{"blocks and has a limit"}},
		{"regions of a global bucket", with(func(b *Bucket) { b.Regions = map[string]float64{"eu": 4} }), []string{"need scope region"}},
		{"good hours", with(func(b *Bucket) { b.LimitRPS, b.Hourly, b.TimeZone = 9, hours(9), "Europe/Berlin" }), nil},
		{"good hours of a region", with(func(b *Bucket) {
			b.Scope, b.Regions, b.RegionHourly = Region, map[string]float64{"eu": 4}, map[string][]float64{"eu": hours(3)}
		}), nil},
		{"23 hours", with(func(b *Bucket) { b.Hourly = hours(1)[1:] }), []string{"23 limits by the hour, not 24"}},
		{"hours above the limit", with(func(b *Bucket) { b.LimitRPS, b.Hourly = 9, hours(9.5) }), []string{"limit 9.5 of hour 0 is not in [0.001, 9]"}},
		{"bad hours", with(func(b *Bucket) { b.Hourly = append(hours(1)[2:], 0, math.NaN()) }), []string{"limit 0 of hour 22 is not", "limit NaN of hour 23 is not"}},
		{"hours of a region without a limit", with(func(b *Bucket) { b.RegionHourly = map[string][]float64{"eu": hours(1)} }), []string{`limits by the hour of region "eu", which has no limit`}},
		{"hours of a region above its limit", with(func(b *Bucket) {
			b.Scope, b.Regions, b.RegionHourly = Region, map[string]float64{"eu": 4}, map[string][]float64{"eu": hours(5)}
		}), []string{`limit 5 of hour 23 of region "eu" is not in [0.001, 4]`}},
		{"block with hours", with(func(b *Bucket) { b.Block, b.LimitRPS, b.Hourly = true, 0, hours(1) }), []string{"blocks and has limits by the hour"}},
		{"time zone alone", with(func(b *Bucket) { b.TimeZone = "UTC" }), []string{"time zone without limits by the hour"}},
		{"unknown time zone", with(func(b *Bucket) { b.Hourly, b.TimeZone = hours(1), "Mars/Olympus" }), []string{`unknown time zone "Mars/Olympus"`}},
		{"time zone of the host", with(func(b *Bucket) { b.Hourly, b.TimeZone = hours(1), "Local" }), []string{`unknown time zone "Local"`}},
		{"bad region", with(func(b *Bucket) { b.Scope, b.Regions = Region, map[string]float64{"": math.NaN()} }), []string{"region without a name", `limit NaN of region ""`}},
		{"unknown enums", with(func(b *Bucket) { b.Scope, b.Behavior = 9, 9 }), []string{"unknown scope 9", "unknown behavior 9"}},
		{"no name", with(func(b *Bucket) { b.Name = "" }), []string{`bucket "s/": name missing`}},
		{"long names", with(func(b *Bucket) { b.Name, b.Match.Caller = long, Pattern(long) }), []string{"name has 257 bytes", "caller pattern has 257 bytes"}},
		{"other service", with(func(b *Bucket) { b.Service = "t" }), []string{`belongs to service "t"`}},
		{"two costs", with(func(b *Bucket) { b.Cost = Cost{Fixed: 2, Header: "c"} }), []string{"both fixed and from a header"}},
		{"cost too large", with(func(b *Bucket) { b.Cost.Fixed = maxCost + 1 }), []string{"cost 1000001 is above 1000000"}},
		{"good max-min", with(func(b *Bucket) { b.Share, b.Weights = MaxMin, map[string]float64{"a": 0.001, "_unknown": 1000} }), nil},
		{"good tiers", with(func(b *Bucket) {
			b.Tiers = []Tier{{Name: "h-1", Callers: []Pattern{"a*"}, Header: "x-p", Values: []string{"high"}}, {Name: "Rest_"}}
			b.ShedRetriesFirst, b.Coherent, b.HoldOnSilence = true, true, true
		}), nil},
		{"max-min for each caller", with(func(b *Bucket) { b.Share, b.PerCaller = MaxMin, true }), []string{"shares max-min and has a limit for each caller"}},
		{"unknown share", with(func(b *Bucket) { b.Share = 9 }), []string{"unknown share 9"}},
		{"block with share", with(func(b *Bucket) { b.Block, b.LimitRPS, b.Share = true, 0, MaxMin }), []string{"blocks and has share"}},
		{"block with tiers", with(func(b *Bucket) { b.Block, b.LimitRPS, b.Tiers = true, 0, tiers("t", "u") }), []string{"blocks and has share, tiers"}},
		{"block with retries", with(func(b *Bucket) { b.Block, b.LimitRPS, b.ShedRetriesFirst = true, 0, true }), []string{"blocks and has"}},
		{"coherent block", with(func(b *Bucket) { b.Block, b.LimitRPS, b.Coherent = true, 0, true }), []string{"blocks and has"}},
		{"weights without max-min", with(func(b *Bucket) { b.Weights = map[string]float64{"a": 1} }), []string{"weights need share max-min"}},
		{"bad weights", with(func(b *Bucket) {
			b.Share, b.Weights = MaxMin, map[string]float64{"": 1, "a*": 1, "b": 0, "c": 1001, "d": math.NaN(), "e": -1, long: 1}
		}), []string{`weight of ""`, `weight of "a*", which is no name`, `weight 0 of "b" is not in [0.001, 1000]`, `1001 of "c"`, `NaN of "d"`, `-1 of "e"`, `weight of "nnn`}},
		{"too many weights", with(func(b *Bucket) {
			b.Share, b.Weights = MaxMin, map[string]float64{}
			for i := range maxWeights + 1 {
				b.Weights[fmt.Sprint(i)] = 1
			}
		}), []string{"1001 weights, at most 1000"}},
		{"one tier", with(func(b *Bucket) { b.Tiers = []Tier{{Name: "t"}} }), []string{"1 tiers, not 2 to 8"}},
		{"nine tiers", with(func(b *Bucket) { b.Tiers = tiers("a", "b", "c", "d", "e", "f", "g", "h", "i") }), []string{"9 tiers"}},
		{"reserved tiers", with(func(b *Bucket) { b.Tiers = tiers("retry", "first") }), []string{`tier name "retry" stands for attempts`, `tier name "first"`}},
		{"tier names", with(func(b *Bucket) { b.Tiers = tiers("", "a/b", long) }), []string{`tier name "" is no name`, `tier name "a/b" is no name`, `tier name "nnn`}},
		{"tiers twice", with(func(b *Bucket) { b.Tiers = tiers("t", "t") }), []string{`tier "t": twice`}},
		{"tier of nothing", with(func(b *Bucket) { b.Tiers = []Tier{{Name: "t"}, {Name: "u"}} }), []string{`tier "t" selects nothing`}},
		{"bad tier", with(func(b *Bucket) {
			b.Tiers = []Tier{{Name: "t", Callers: []Pattern{"", Pattern(long)}, Header: "x"}, {Name: "u", Values: []string{"", long}}}
		}), []string{`tier "t": caller pattern of 0 bytes`, "pattern of 257 bytes", `tier "t": a header needs values`, `tier "u": a header needs values`, "value of 0 bytes", "value of 257 bytes"}},
		{"two tier headers", Service{Name: "s", Buckets: []Bucket{
			{Name: "b1", LimitRPS: 1, Tiers: []Tier{{Name: "t", Header: "x-a", Values: []string{"1"}}, {Name: "u", Header: "X-A", Values: []string{"2"}}}},
			{Name: "b2", LimitRPS: 1, Match: Match{Caller: "a"}, Tiers: []Tier{{Name: "t", Header: "x-b", Values: []string{"1"}}, {Name: "u"}}},
		}}, []string{`tiers of bucket "b2" read the header "x-b", those of bucket "b1" "x-a"`}},
		{"too many tier values", with(func(b *Bucket) {
			b.Tiers = []Tier{{Name: "t", Header: "x", Values: make([]string, maxTierValues+1)}, {Name: "u"}}
			for i := range b.Tiers[0].Values {
				b.Tiers[0].Values[i] = fmt.Sprint(i)
			}
		}), []string{"65 header values apart, at most 64"}},
		{"too many tier callers", with(func(b *Bucket) {
			b.Tiers = []Tier{{Name: "t", Callers: make([]Pattern, maxTierCallers+1)}, {Name: "u"}}
		}), []string{"101 callers, at most 100"}},
		{"unknown enforce", Service{Name: "s", Enforce: 7}, []string{"unknown enforce 7"}},
		{"nameless service", Service{}, []string{"name missing"}},
		{"grl's own name", with(func(b *Bucket) { b.Name = "_cap-1" }), []string{`bucket "s/_cap-1": name begins with _`}},
		{"grl's own name behind a slash", with(func(b *Bucket) { b.Name = "b/_cap-1" }), []string{"name begins with _"}},
		{"good candidate", with(func(b *Bucket) { b.CandidateRPS = 5 }), nil},
		{"candidate NaN", with(func(b *Bucket) { b.CandidateRPS = math.NaN() }), []string{"candidate NaN is not in"}},
		{"candidate below 0", with(func(b *Bucket) { b.CandidateRPS = -1 }), []string{"candidate -1 is not in"}},
		{"candidate in shadow mode", with(func(b *Bucket) { b.Behavior, b.CandidateRPS = Allow, 5 }), []string{"candidate needs behavior deny"}},
		{"block with candidate", with(func(b *Bucket) { b.Block, b.LimitRPS, b.CandidateRPS = true, 0, 5 }), []string{"blocks and has a candidate"}},
		{"same name", Service{Name: "s", Buckets: []Bucket{deny("b", "a", ""), deny("b", "", "")}}, []string{`bucket "s/b": name used twice`}},
		{"same rule", Service{Name: "s", Buckets: []Bucket{deny("b1", "a", ""), allow("b2", "a", "")}}, []string{`buckets "b1" and "b2" have the same match, per and scope`}},
		{"too many", Service{Name: "s", Buckets: make([]Bucket, maxBuckets+1)}, []string{"100001 buckets, at most 100000"}},
	}
	for _, test := range tests {
		err := (&Configuration{Services: []Service{test.service}}).Validate()
		if (err == nil) != (len(test.want) == 0) {
			t.Errorf("%s: Validate = %.200v, want %q", test.name, err, test.want)
			continue
		}
		for _, want := range test.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: Validate = %.200v, want %q in it", test.name, err, want)
			}
		}
	}
}

// tiers returns tiers of those names, each of which selects the caller a.
func tiers(names ...string) []Tier {
	var list []Tier
	for _, name := range names {
		list = append(list, Tier{Name: name, Callers: []Pattern{"a"}})
	}
	return list
}

// TestValidateNamesAreUniqueEverywhere: a service may have a slash in its name,
// so names that differ in their parts can still be the same in full.
func TestValidateNamesAreUniqueEverywhere(t *testing.T) {
	c := Configuration{Services: []Service{
		{Name: "a", Buckets: []Bucket{deny("b/c", "", "")}},
		{Name: "a/b", Buckets: []Bucket{deny("c", "", "")}},
		{Name: "a"},
	}}
	err := c.Validate()
	for _, want := range []string{`bucket "a/b/c": name used twice`, `service "a": twice in the configuration`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Validate = %v, want %q in it", err, want)
		}
	}
}

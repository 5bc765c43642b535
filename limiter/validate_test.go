package limiter

import (
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
		{"bad region", with(func(b *Bucket) { b.Scope, b.Regions = Region, map[string]float64{"": math.NaN()} }), []string{"region without a name", `limit NaN of region ""`}},
		{"unknown enums", with(func(b *Bucket) { b.Scope, b.Behavior = 9, 9 }), []string{"unknown scope 9", "unknown behavior 9"}},
		{"no name", with(func(b *Bucket) { b.Name = "" }), []string{`bucket "s/": name missing`}},
		{"long names", with(func(b *Bucket) { b.Name, b.Match.Caller = long, Pattern(long) }), []string{"name has 257 bytes", "caller pattern has 257 bytes"}},
		{"other service", with(func(b *Bucket) { b.Service = "t" }), []string{`belongs to service "t"`}},
		{"two costs", with(func(b *Bucket) { b.Cost = Cost{Fixed: 2, Header: "c"} }), []string{"both fixed and from a header"}},
		{"cost too large", with(func(b *Bucket) { b.Cost.Fixed = maxCost + 1 }), []string{"cost 1000001 is above 1000000"}},
		{"unknown enforce", Service{Name: "s", Enforce: 7}, []string{"unknown enforce 7"}},
		{"nameless service", Service{}, []string{"name missing"}},
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

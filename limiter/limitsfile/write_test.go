package limitsfile_test

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"grl/limiter"
	"grl/limiter/limitsfile"
)

// TestNormalizeGivesTheServiceBack draws services, writes and reads them.
// rapid prints the seed of a failure.
func TestNormalizeGivesTheServiceBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		drawn := drawService(t)
		text := limitsfile.Normalize(drawn)
		services, err := limitsfile.Load([]limitsfile.Source{{Name: "drawn.yaml", Data: text}})
		if err != nil {
			t.Fatalf("Load(Normalize(s)) = %v\n%s", err, text)
		}
		if again := limitsfile.Normalize(services[0]); !bytes.Equal(text, again) {
			t.Fatalf("written twice:\n%s\nthen\n%s", text, again)
		}
		slices.SortFunc(drawn.Buckets, func(a, b limiter.Bucket) int { return bytes.Compare([]byte(a.Name), []byte(b.Name)) })
		if diff := cmp.Diff([]limiter.Service{drawn}, services); diff != "" {
			t.Fatalf("Load(Normalize(s)) (-want +got):\n%s", diff)
		}
		if err := (&limiter.Configuration{Services: services}).Validate(); err != nil {
			t.Fatalf("what holds as a file is refused by those who get it: %v\n%s", err, text)
		}
		if shuffled := limitsfile.Normalize(shuffle(t, drawn)); !bytes.Equal(text, shuffled) {
			t.Fatalf("the order of the lists shows:\n%s\nthen\n%s", text, shuffled)
		}
	})
}

func shuffle(t *rapid.T, s limiter.Service) limiter.Service {
	s.Buckets = rapid.Permutation(s.Buckets).Draw(t, "order")
	s.Exempt = rapid.Permutation(s.Exempt).Draw(t, "exempt order")
	for i := range s.Buckets {
		s.Buckets[i].Tiers = slices.Clone(s.Buckets[i].Tiers)
		for j := range s.Buckets[i].Tiers {
			tier := &s.Buckets[i].Tiers[j]
			tier.Callers, tier.Values = rapid.Permutation(tier.Callers).Draw(t, "callers order"), rapid.Permutation(tier.Values).Draw(t, "values order")
		}
	}
	return s
}

// drawService draws a service in canonical form but for the order of buckets.
func drawService(t *rapid.T) limiter.Service {
	s := limiter.Service{
		Name:    rapid.StringMatching(`[A-Za-z0-9]([A-Za-z0-9._-]{0,20}[A-Za-z0-9])?`).Draw(t, "service"),
		Owner:   rapid.StringMatching(`([A-Za-z0-9.:/-][A-Za-z0-9._:/-]{0,10})?`).Draw(t, "owner"),
		Enforce: rapid.SampledFrom([]limiter.Enforce{limiter.Inbound, limiter.Outbound}).Draw(t, "enforce"),
	}
	if rapid.Bool().Draw(t, "has routes") {
		s.Routes = []string{"GET /v1/{id}", "POST /v1/{id}/{$}", "host/p~%20/"}
	}
	for _, caller := range rapid.SliceOfNDistinct(names(), 0, 3, rapid.ID).Draw(t, "exempt") {
		s.Exempt = append(s.Exempt, limiter.Match{Caller: limiter.Pattern(caller)})
	}
	slices.SortFunc(s.Exempt, func(a, b limiter.Match) int { return bytes.Compare([]byte(a.Caller), []byte(b.Caller)) })
	header := rapid.SampledFrom([]string{"", "x-cost", "X-Cost"}).Draw(t, "header")
	callers := rapid.SliceOfNDistinct(names(), 0, 6, rapid.ID).Draw(t, "callers")
	buckets := rapid.SliceOfNDistinct(rapid.StringMatching(`[A-Za-z0-9]([A-Za-z0-9._-]{0,8}[A-Za-z0-9])?`), len(callers), len(callers), rapid.ID).Draw(t, "buckets")
	for i, caller := range callers {
		s.Buckets = append(s.Buckets, drawBucket(t, s.Name, buckets[i], caller, header))
	}
	return s
}

func names() *rapid.Generator[string] {
	return rapid.OneOf(rapid.StringMatching(`[A-Za-z0-9.:/-][A-Za-z0-9._:/-]{0,10}`),
		rapid.SampledFrom([]string{"true", "null", "no", "1", "1e3", "0x1", "-", ".inf", ".", "--", "---", "12:30", "2026-01-01", limiter.UnknownCaller}))
}

func drawBucket(t *rapid.T, service, name, caller, header string) limiter.Bucket {
	b := limiter.Bucket{
		Service: service, Name: name,
		Match: limiter.Match{
			Caller:    limiter.Pattern(caller),
			Procedure: rapid.SampledFrom([]limiter.Pattern{"", "*", "a.B/C", "a.B/*", "POST *", "GET /v1/{id}"}).Draw(t, "procedure"),
		},
		PerCaller: rapid.Bool().Draw(t, "per"),
		Scope:     rapid.SampledFrom([]limiter.Scope{limiter.Global, limiter.Region, limiter.Zone}).Draw(t, "scope"),
		Behavior:  rapid.SampledFrom([]limiter.Behavior{limiter.Allow, limiter.Deny}).Draw(t, "behavior"),
		Verified:  rapid.Bool().Draw(t, "verified"),
		Block:     rapid.Bool().Draw(t, "block"),
	}
	if !b.Block {
		b.LimitRPS = drawRPS(t)
		if b.Scope == limiter.Region && rapid.Bool().Draw(t, "has regions") {
			b.Regions = map[string]float64{}
			for _, region := range rapid.SliceOfNDistinct(names().Filter(notReserved), 1, 3, rapid.ID).Draw(t, "regions") {
				b.Regions[region] = drawRPS(t)
			}
		}
		drawHours(t, &b)
	}
	if !b.Block {
		drawShare(t, &b)
	}
	if !b.Block && b.Behavior == limiter.Deny && rapid.Bool().Draw(t, "has candidate") {
		b.CandidateRPS = drawRPS(t)
	}
	b.HoldOnSilence = rapid.Bool().Draw(t, "hold")
	switch rapid.IntRange(0, 2).Draw(t, "cost") {
	case 1:
		b.Cost.Header = header
	case 2:
		b.Cost.Fixed = rapid.Uint32Range(2, limitsfile.MaxCost).Draw(t, "fixed")
	}
	return b
}

// drawHours draws limits by the hour.
func drawHours(t *rapid.T, b *limiter.Bucket) {
	hours := func(most float64) []float64 {
		return rapid.SliceOfN(rapid.Float64Range(limitsfile.MinRPS, most), limiter.Hours, limiter.Hours).Draw(t, "hourly")
	}
	if rapid.Bool().Draw(t, "has hours") {
		b.Hourly = hours(b.LimitRPS)
	}
	for _, region := range slices.Sorted(maps.Keys(b.Regions)) {
		if rapid.Bool().Draw(t, "has hours of the region") {
			if b.RegionHourly == nil {
				b.RegionHourly = map[string][]float64{}
			}
			b.RegionHourly[region] = hours(b.Regions[region])
		}
	}
	if b.HasHours() {
		b.TimeZone = rapid.SampledFrom([]string{"", "Europe/Berlin", "Asia/Kathmandu", "Etc/GMT+5"}).Draw(t, "time zone")
	}
}

// drawShare draws how b divides its limit.
func drawShare(t *rapid.T, b *limiter.Bucket) {
	if !b.PerCaller && rapid.Bool().Draw(t, "max-min") {
		b.Share = limiter.MaxMin
		if rapid.Bool().Draw(t, "has weights") {
			b.Weights = map[string]float64{string(b.Match.Caller): rapid.Float64Range(limitsfile.MinWeight, limitsfile.MaxWeight).Draw(t, "weight")}
		}
	}
	b.ShedRetriesFirst, b.Coherent = rapid.Bool().Draw(t, "retries"), rapid.Bool().Draw(t, "coherent")
	if !rapid.Bool().Draw(t, "has tiers") {
		return
	}
	tierNames := rapid.SliceOfNDistinct(rapid.StringMatching(`[A-Za-z0-9_-]{1,9}`).Filter(notAttempts), limitsfile.MinTiers, limitsfile.MaxTiers, rapid.ID).Draw(t, "tiers")
	callers := rapid.SliceOfNDistinct(names(), 2*len(tierNames), 2*len(tierNames), rapid.ID).Draw(t, "tier callers")
	for i, name := range tierNames {
		tier := limiter.Tier{Name: name}
		if rapid.Bool().Draw(t, "by header") {
			tier.Header = rapid.SampledFrom([]string{"x-priority", "X-Priority"}).Draw(t, "tier header")
			tier.Values = []string{fmt.Sprint(i), rapid.SampledFrom([]string{"true", "{", "a:b", "*", "#"}).Draw(t, "value") + fmt.Sprint(i)}
		} else if i < len(tierNames)-1 || rapid.Bool().Draw(t, "last by caller") {
			tier.Callers = []limiter.Pattern{limiter.Pattern(callers[2*i]), limiter.Pattern(callers[2*i+1])}
			slices.Sort(tier.Callers)
		}
		slices.Sort(tier.Values)
		b.Tiers = append(b.Tiers, tier)
	}
}

func notAttempts(name string) bool { return name != limiter.First && name != limiter.Retry }

func notReserved(name string) bool { return name[0] != '_' }

// drawRPS draws a limit, its logarithm evenly.
func drawRPS(t *rapid.T) float64 {
	rps := math.Pow(10, rapid.Float64Range(-3, 9).Draw(t, "log10 rps"))
	return min(max(rps, limitsfile.MinRPS), limitsfile.MaxRPS)
}

func TestNormalizeLeavesItsArgumentAlone(t *testing.T) {
	s := limiter.Service{Name: "a", Routes: []string{"GET /b", "GET /a"}, Buckets: []limiter.Bucket{
		{Service: "a", Name: "z", LimitRPS: 1, Cost: limiter.Cost{Fixed: 1}, Tiers: []limiter.Tier{{Name: "t", Callers: []limiter.Pattern{"b", "a"}}, {Name: "u"}}},
		{Service: "a", Name: "b", Block: true},
	}}
	limitsfile.Normalize(s)
	if s.Routes[0] != "GET /b" || s.Buckets[0].Name != "z" || s.Buckets[0].Cost.Fixed != 1 || s.Buckets[0].Tiers[0].Callers[0] != "b" {
		t.Errorf("Normalize changed its argument to %+v", s)
	}
}

// FuzzParse checks that no file makes Parse panic, that what holds survives
// being written and read, and that what does not hold has a place.
func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"testdata/good/*.yaml", "testdata/bad/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, name := range files {
			data, err := os.ReadFile(name)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	for _, text := range poison() {
		if len(text) < 1<<12 {
			f.Add([]byte(text))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := limitsfile.Parse("fuzz.yaml", data)
		if err != nil {
			checkPlaced(t, err)
			return
		}
		services, err := limitsfile.Merge([]*limitsfile.File{file})
		if err != nil {
			t.Fatalf("Merge of a file that holds = %v", err)
		}
		if err := (&limiter.Configuration{Services: services}).Validate(); err != nil {
			t.Fatalf("what holds as a file is refused by those who get it: %v", err)
		}
		text := limitsfile.Normalize(services[0])
		if diff := cmp.Diff(services, load(t, limitsfile.Source{Name: "again.yaml", Data: text})); diff != "" {
			t.Fatalf("%s\nwritten and read (-want +got):\n%s", text, diff)
		}
	})
}

package limitsfile

import (
	"fmt"
	"strings"

	"grl/limiter"
	"grl/limiter/yamlfile"
)

// bucket reads an item of buckets; ok is false when it does not hold.
func (d *decoder) bucket(n *yamlfile.Node, path string) (b limiter.Bucket, ok bool) {
	before := len(d.Errs)
	if !d.IsMapping(n, path, "a bucket, such as \"name: writes\" with limit and behavior below it") {
		return b, false
	}
	seen := map[string]yamlfile.Place{}
	d.Keys(n, path, seen, yamlfile.Fields{
		"name":     func(v *yamlfile.Node, path string) { b.Name = d.Name(v, path, bucketName) },
		"match":    func(v *yamlfile.Node, path string) { b.Match, _ = d.match(v, path) },
		"per":      func(v *yamlfile.Node, path string) { b.PerCaller = d.Word(v, path, "caller") != "" },
		"scope":    func(v *yamlfile.Node, path string) { b.Scope = scopes[d.Word(v, path, "global", "region", "zone")] },
		"limit":    func(v *yamlfile.Node, path string) { d.limit(v, path, &b) },
		"block":    func(v *yamlfile.Node, path string) { b.Block = d.block(v, path) },
		"behavior": func(v *yamlfile.Node, path string) { b.Behavior = behaviors[d.Word(v, path, "allow", "deny")] },
		"identity": func(v *yamlfile.Node, path string) { b.Verified = d.Word(v, path, "verified") != "" },
		"cost":     func(v *yamlfile.Node, path string) { d.cost(v, path, &b.Cost) },

		"share":      func(v *yamlfile.Node, path string) { b.Share = shares[d.Word(v, path, "proportional", "max-min")] },
		"weights":    func(v *yamlfile.Node, path string) { b.Weights = d.weights(v, path) },
		"tiers":      func(v *yamlfile.Node, path string) { b.Tiers = d.tiers(v, path) },
		"retries":    func(v *yamlfile.Node, path string) { b.ShedRetriesFirst = d.Word(v, path, "first-shed") != "" },
		"coherent":   func(v *yamlfile.Node, path string) { b.Coherent = d.Word(v, path, "trace") != "" },
		"on_silence": func(v *yamlfile.Node, path string) { b.HoldOnSilence = d.Word(v, path, "open", "hold") == "hold" },

		"candidate": func(v *yamlfile.Node, path string) { b.CandidateRPS = d.candidate(v, path) },
	})
	d.bucketWhole(n.Place, path, seen, &b)
	if len(d.Errs) > before {
		return b, false
	}
	return b, d.fits(n.Place, path, &b)
}

// fits checks that the bucket can be read again when it is written in
// canonical form, with quotes and all digits.
func (d *decoder) fits(at yamlfile.Place, path string, b *limiter.Bucket) bool {
	var w writer
	w.bucket(b)
	if w.Len() > yamlfile.MaxPieceBytes {
		d.Fail(at, path, yamlfile.BytesText(w.Len())+" in canonical form", "at most 32 KiB")
		return false
	}
	// Many hours are many words, but few bytes.
	if len(b.RegionHourly) > 0 {
		if bad := yamlfile.CheckPiece(w.String()); bad != nil {
			d.Fail(at, path, bad.Found+" in canonical form", bad.Expected)
			return false
		}
	}
	return true
}

var (
	scopes    = map[string]limiter.Scope{"global": limiter.Global, "region": limiter.Region, "zone": limiter.Zone}
	behaviors = map[string]limiter.Behavior{"allow": limiter.Allow, "deny": limiter.Deny}
)

// bucketWhole checks what the keys of a bucket say about each other.
func (d *decoder) bucketWhole(at yamlfile.Place, path string, seen map[string]yamlfile.Place, b *limiter.Bucket) {
	_, hasLimit := seen["limit"]
	blockPlace, hasBlock := seen["block"]
	if _, ok := seen["name"]; !ok {
		d.Fail(at, path, "no name", "a name that no other bucket of the service has")
	}
	if _, ok := seen["behavior"]; !ok {
		d.Fail(at, path, "no behavior", `"deny" (enforced) or "allow" (counted only)`)
	}
	switch {
	case !hasLimit && !hasBlock:
		d.Fail(at, path, "no limit", `"limit: {rps: …}", or "block: true" to drop everything`)
	case hasLimit && hasBlock:
		d.Fail(blockPlace, path+".block", "both limit and block", "one of them")
	}
	d.candidateWhole(path, seen, b)
	d.shareWhole(path, seen, b)
	if b.Regions != nil && b.Scope != limiter.Region {
		d.Fail(seen["limit"], path+".limit.regions", "scope "+b.Scope.String(), `"scope: region" beside it`)
	}
}

// limit reads limit{rps, regions, hourly, hourly_regions, time_zone}.
func (d *decoder) limit(n *yamlfile.Node, path string, b *limiter.Bucket) {
	if !d.IsMapping(n, path, `a mapping such as {rps: 1200}`) {
		return
	}
	seen, places := map[string]yamlfile.Place{}, hourlyPlaces{}
	d.Keys(n, path, seen, yamlfile.Fields{
		"rps":     func(v *yamlfile.Node, path string) { b.LimitRPS = d.rps(v, path) },
		"regions": func(v *yamlfile.Node, path string) { b.Regions = d.regions(v, path) },
		"hourly": func(v *yamlfile.Node, path string) {
			b.Hourly, places.hourly = d.hourly(v, path), v
		},
		"hourly_regions": func(v *yamlfile.Node, path string) { b.RegionHourly = d.regionHourly(v, path, &places) },
		"time_zone":      func(v *yamlfile.Node, path string) { b.TimeZone = d.timeZone(v, path) },
	})
	if _, ok := seen["rps"]; !ok {
		d.Fail(n.Place, path, "no rps", "the limit in requests per second, as {rps: 1200}")
	}
	d.hourlyWhole(path, seen, b, &places)
}

func (d *decoder) regions(n *yamlfile.Node, path string) (regions map[string]float64) {
	d.Regions(n, path, "a mapping from region to requests per second, such as {eu: 400}", MaxRegions, func(region string, v *yamlfile.Node, path string) {
		if regions == nil {
			regions = map[string]float64{}
		}
		regions[region] = d.rps(v, path)
	})
	return regions
}

// block reads block: true. There is no block: false: a bucket that shall not
// block says its limit.
func (d *decoder) block(n *yamlfile.Node, path string) bool {
	if n.Kind == yamlfile.Bool && n.Text == "true" {
		return true
	}
	d.Fail(n.Place, path, n.Describe(), "true (a bucket that does not block has a limit instead)")
	return false
}

// cost reads cost{header | metadata | fixed}.
func (d *decoder) cost(n *yamlfile.Node, path string, c *limiter.Cost) {
	if !d.IsMapping(n, path, "one of {header: name}, {metadata: name}, {fixed: 5}") {
		return
	}
	seen := map[string]yamlfile.Place{}
	d.Keys(n, path, seen, yamlfile.Fields{
		"header":   func(v *yamlfile.Node, path string) { c.Header = d.header(v, path) },
		"metadata": func(v *yamlfile.Node, path string) { c.Header = d.metadata(v, path) },
		"fixed":    func(v *yamlfile.Node, path string) { c.Fixed = d.Whole(v, path, 1, MaxCost) },
	})
	if len(seen) != 1 {
		d.Fail(n.Place, path, fmt.Sprintf("%d kinds of cost", len(seen)), "one of header, metadata, fixed")
	}
}

// match reads {caller, procedure}, at least one of them.
func (d *decoder) match(n *yamlfile.Node, path string) (m limiter.Match, ok bool) {
	before := len(d.Errs)
	if !d.IsMapping(n, path, "a mapping such as {caller: checkout}") {
		return m, false
	}
	d.Keys(n, path, map[string]yamlfile.Place{}, yamlfile.Fields{
		"caller":    func(v *yamlfile.Node, path string) { m.Caller = d.Pattern(v, path, yamlfile.CallerName) },
		"procedure": func(v *yamlfile.Node, path string) { m.Procedure = d.Pattern(v, path, procedureName) },
	})
	if len(n.Pairs) == 0 {
		expected := "caller, procedure or both (leave match out to match everything)"
		if strings.HasPrefix(path, "exempt") {
			expected = "caller, procedure or both"
		}
		d.Fail(n.Place, path, "an empty mapping", expected)
	}
	return m, len(d.Errs) == before
}

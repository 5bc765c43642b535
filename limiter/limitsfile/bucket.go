package limitsfile

import (
	"fmt"
	"strings"

	"grl/limiter"
)

// bucket reads an item of buckets; ok is false when it does not hold.
func (d *decoder) bucket(n *node, path string) (b limiter.Bucket, ok bool) {
	before := len(d.errs)
	if !d.isMapping(n, path, "a bucket, such as \"name: writes\" with limit and behavior below it") {
		return b, false
	}
	seen := map[string]place{}
	d.keys(n, path, seen, fields{
		"name":     func(v *node, path string) { b.Name = d.name(v, path, bucketName) },
		"match":    func(v *node, path string) { b.Match, _ = d.match(v, path) },
		"per":      func(v *node, path string) { b.PerCaller = d.word(v, path, "caller") != "" },
		"scope":    func(v *node, path string) { b.Scope = scopes[d.word(v, path, "global", "region", "zone")] },
		"limit":    func(v *node, path string) { d.limit(v, path, &b) },
		"block":    func(v *node, path string) { b.Block = d.block(v, path) },
		"behavior": func(v *node, path string) { b.Behavior = behaviors[d.word(v, path, "allow", "deny")] },
		"identity": func(v *node, path string) { b.Verified = d.word(v, path, "verified") != "" },
		"cost":     func(v *node, path string) { d.cost(v, path, &b.Cost) },

		"share":      func(v *node, path string) { b.Share = shares[d.word(v, path, "proportional", "max-min")] },
		"weights":    func(v *node, path string) { b.Weights = d.weights(v, path) },
		"tiers":      func(v *node, path string) { b.Tiers = d.tiers(v, path) },
		"retries":    func(v *node, path string) { b.ShedRetriesFirst = d.word(v, path, "first-shed") != "" },
		"coherent":   func(v *node, path string) { b.Coherent = d.word(v, path, "trace") != "" },
		"on_silence": func(v *node, path string) { b.HoldOnSilence = d.word(v, path, "open", "hold") == "hold" },

		"candidate": func(v *node, path string) { b.CandidateRPS = d.candidate(v, path) },
	})
	d.bucketWhole(n.place, path, seen, &b)
	if len(d.errs) > before {
		return b, false
	}
	return b, d.fits(n.place, path, &b)
}

// fits checks that the bucket can be read again when it is written in
// canonical form, with quotes and all digits.
func (d *decoder) fits(at place, path string, b *limiter.Bucket) bool {
	var w writer
	w.bucket(b)
	if w.Len() <= maxPieceBytes {
		return true
	}
	d.fail(at, path, bytesText(w.Len())+" in canonical form", "at most 32 KiB")
	return false
}

var (
	scopes    = map[string]limiter.Scope{"global": limiter.Global, "region": limiter.Region, "zone": limiter.Zone}
	behaviors = map[string]limiter.Behavior{"allow": limiter.Allow, "deny": limiter.Deny}
)

// bucketWhole checks what the keys of a bucket say about each other.
func (d *decoder) bucketWhole(at place, path string, seen map[string]place, b *limiter.Bucket) {
	_, hasLimit := seen["limit"]
	blockPlace, hasBlock := seen["block"]
	if _, ok := seen["name"]; !ok {
		d.fail(at, path, "no name", "a name that no other bucket of the service has")
	}
	if _, ok := seen["behavior"]; !ok {
		d.fail(at, path, "no behavior", `"deny" (enforced) or "allow" (counted only)`)
	}
	switch {
	case !hasLimit && !hasBlock:
		d.fail(at, path, "no limit", `"limit: {rps: …}", or "block: true" to drop everything`)
	case hasLimit && hasBlock:
		d.fail(blockPlace, path+".block", "both limit and block", "one of them")
	}
	d.candidateWhole(path, seen, b)
	d.shareWhole(path, seen, b)
	if b.Regions != nil && b.Scope != limiter.Region {
		d.fail(seen["limit"], path+".limit.regions", "scope "+b.Scope.String(), `"scope: region" beside it`)
	}
}

// limit reads limit{rps, regions}.
func (d *decoder) limit(n *node, path string, b *limiter.Bucket) {
	if !d.isMapping(n, path, `a mapping such as {rps: 1200}`) {
		return
	}
	seen := map[string]place{}
	d.keys(n, path, seen, fields{
		"rps":     func(v *node, path string) { b.LimitRPS = d.rps(v, path) },
		"regions": func(v *node, path string) { b.Regions = d.regions(v, path) },
		"hourly":  nil,
	})
	if _, ok := seen["rps"]; !ok {
		d.fail(n.place, path, "no rps", "the limit in requests per second, as {rps: 1200}")
	}
}

func (d *decoder) regions(n *node, path string) map[string]float64 {
	if !d.isMapping(n, path, "a mapping from region to requests per second, such as {eu: 400}") {
		return nil
	}
	if len(n.pairs) == 0 || len(n.pairs) > MaxRegions {
		d.fail(n.place, path, fmt.Sprintf("%d regions", len(n.pairs)), fmt.Sprintf("1 to %d", MaxRegions))
		return nil
	}
	regions, seen := map[string]float64{}, map[string]place{}
	for _, p := range n.pairs {
		name := d.name(p.key, path, regionName)
		if first, again := seen[name]; again && name != "" {
			d.problem(p.key.place, join(path, name), fmt.Sprintf("given twice: first on line %d, column %d", first.line, first.column))
		}
		seen[name] = p.key.place
		regions[name] = d.rps(p.value, join(path, name))
	}
	return regions
}

// block reads block: true. There is no block: false: a bucket that shall not
// block says its limit.
func (d *decoder) block(n *node, path string) bool {
	if n.kind == boolNode && n.text == "true" {
		return true
	}
	d.fail(n.place, path, n.describe(), "true (a bucket that does not block has a limit instead)")
	return false
}

// cost reads cost{header | metadata | fixed}.
func (d *decoder) cost(n *node, path string, c *limiter.Cost) {
	if !d.isMapping(n, path, "one of {header: name}, {metadata: name}, {fixed: 5}") {
		return
	}
	seen := map[string]place{}
	d.keys(n, path, seen, fields{
		"header":   func(v *node, path string) { c.Header = d.header(v, path) },
		"metadata": func(v *node, path string) { c.Header = d.metadata(v, path) },
		"fixed":    func(v *node, path string) { c.Fixed = d.fixedCost(v, path) },
	})
	if len(seen) != 1 {
		d.fail(n.place, path, fmt.Sprintf("%d kinds of cost", len(seen)), "one of header, metadata, fixed")
	}
}

// match reads {caller, procedure}, at least one of them.
func (d *decoder) match(n *node, path string) (m limiter.Match, ok bool) {
	before := len(d.errs)
	if !d.isMapping(n, path, "a mapping such as {caller: checkout}") {
		return m, false
	}
	d.keys(n, path, map[string]place{}, fields{
		"caller":    func(v *node, path string) { m.Caller = d.pattern(v, path, callerName) },
		"procedure": func(v *node, path string) { m.Procedure = d.pattern(v, path, procedureName) },
	})
	if len(n.pairs) == 0 {
		expected := "caller, procedure or both (leave match out to match everything)"
		if strings.HasPrefix(path, "exempt") {
			expected = "caller, procedure or both"
		}
		d.fail(n.place, path, "an empty mapping", expected)
	}
	return m, len(d.errs) == before
}

package limitsfile

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"grl/limiter"
)

var shares = map[string]limiter.Share{"proportional": limiter.Proportional, "max-min": limiter.MaxMin}

// weights reads a mapping from caller to weight.
func (d *decoder) weights(n *node, path string) map[string]float64 {
	if !d.isMapping(n, path, "a mapping from caller to weight, such as {checkout: 2}") {
		return nil
	}
	if len(n.pairs) == 0 || len(n.pairs) > MaxWeights {
		d.fail(n.place, path, fmt.Sprintf("%d weights", len(n.pairs)), fmt.Sprintf("1 to %d", MaxWeights))
		return nil
	}
	weights, seen := map[string]float64{}, map[string]place{}
	for _, p := range n.pairs {
		caller := p.key.text
		if p.key.kind != plainNode && p.key.kind != quotedNode || caller != limiter.UnknownCaller {
			caller = d.name(p.key, path, callerName)
		}
		if first, again := seen[caller]; again && caller != "" {
			d.problem(p.key.place, join(path, caller), fmt.Sprintf("given twice: first on line %d, column %d", first.line, first.column))
		}
		seen[caller] = p.key.place
		weights[caller] = d.weight(p.value, join(path, caller))
	}
	return weights
}

// tiers reads the list of tiers, the one that is kept longest first.
func (d *decoder) tiers(n *node, path string) []limiter.Tier {
	if n.kind != listNode {
		d.fail(n.place, path, n.describe(), "a list of tiers, the one that is kept longest first")
		return nil
	}
	if len(n.items) < MinTiers || len(n.items) > MaxTiers {
		d.fail(n.place, path, fmt.Sprintf("a list of %d", len(n.items)), fmt.Sprintf("%d to %d", MinTiers, MaxTiers))
		return nil
	}
	var tiers []limiter.Tier
	taken := tierSelections{}
	for i, item := range n.items {
		at := fmt.Sprintf("%s[%d]", path, i)
		t := d.tier(item, at, i == len(n.items)-1)
		if _, again := taken["name "+t.Name]; again && t.Name != "" {
			d.fail(item.place, at+".name", quote(t.Name), "a name that no other tier of the bucket has")
		}
		d.takeTier(item.place, at, &t, taken)
		tiers = append(tiers, t)
	}
	return tiers
}

// tierSelections has what the tiers so far are named and select by → the
// tier's name.
type tierSelections map[string]string

// takeTier adds what t selects by to taken; what an earlier tier selects
// already is an error, since t would never see it.
func (d *decoder) takeTier(at place, path string, t *limiter.Tier, taken tierSelections) {
	taken["name "+t.Name] = t.Name
	take := func(kind, key, what string) {
		if first, again := taken[kind+what]; again {
			d.problem(at, path+key, fmt.Sprintf("%s stands in tier %s already, and the first tier that selects a request has it", quote(what), quote(first)))
		} else {
			taken[kind+what] = t.Name
		}
	}
	for _, p := range t.Callers {
		take("caller ", ".callers", string(p))
	}
	for _, v := range t.Values {
		take("value ", ".header.values", v)
	}
}

// tier reads {name, callers, header{name, values}}.
func (d *decoder) tier(n *node, path string, last bool) (t limiter.Tier) {
	if !d.isMapping(n, path, "a tier such as {name: high, callers: [checkout]}") {
		return t
	}
	seen := map[string]place{}
	d.keys(n, path, seen, fields{
		"name":    func(v *node, path string) { t.Name = d.tierName(v, path) },
		"callers": func(v *node, path string) { t.Callers = d.tierCallers(v, path) },
		"header":  func(v *node, path string) { d.tierHeader(v, path, &t) },
	})
	if _, ok := seen["name"]; !ok {
		d.fail(n.place, path, "no name", "a name that no other tier of the bucket has")
	}
	_, hasCallers := seen["callers"]
	_, hasHeader := seen["header"]
	if !hasCallers && !hasHeader && !last {
		d.fail(n.place, path, "neither callers nor header", "what selects the tier (only the last one, which has all the rest, may do without)")
	}
	return t
}

func (d *decoder) tierName(n *node, path string) string {
	name := d.name(n, path, tierName)
	if name == limiter.First || name == limiter.Retry {
		d.fail(n.place, path, quote(name), `another name ("first" and "retry" stand for attempts)`)
		return ""
	}
	return name
}

func (d *decoder) tierCallers(n *node, path string) (callers []limiter.Pattern) {
	for i, item := range d.atLeastOne(n, path, "a list of callers, such as [checkout, \"pay-*\"]", MaxTierCallers) {
		if p := d.pattern(item, fmt.Sprintf("%s[%d]", path, i), callerName); p != "" {
			callers = append(callers, p)
		}
	}
	return callers
}

func (d *decoder) tierHeader(n *node, path string, t *limiter.Tier) {
	const expected = "a header and its values, such as {name: x-priority, values: [high]}"
	if !d.isMapping(n, path, expected) {
		return
	}
	seen := map[string]place{}
	d.keys(n, path, seen, fields{
		"name": func(v *node, path string) { t.Header = d.header(v, path) },
		"values": func(v *node, path string) {
			for i, item := range d.atLeastOne(v, path, "a list of values, such as [high]", MaxTierValues) {
				if value := d.name(item, fmt.Sprintf("%s[%d]", path, i), headerValue); value != "" {
					t.Values = append(t.Values, value)
				}
			}
		},
	})
	if len(seen) != 2 {
		d.fail(n.place, path, fmt.Sprintf("%d of name and values", len(seen)), expected)
	}
}

// atLeastOne returns the items of a list of at least one and at most most.
func (d *decoder) atLeastOne(n *node, path, expected string, most int) []*node {
	switch {
	case n.kind != listNode:
		d.fail(n.place, path, n.describe(), expected)
		return nil
	case len(n.items) == 0 || len(n.items) > most:
		d.fail(n.place, path, fmt.Sprintf("a list of %d", len(n.items)), fmt.Sprintf("1 to %d", most))
		return nil
	default:
		return n.items
	}
}

// shareWhole checks what the keys of a bucket that divide its limit say about
// the others.
func (d *decoder) shareWhole(path string, seen map[string]place, b *limiter.Bucket) {
	if b.Share == limiter.MaxMin && b.PerCaller {
		d.fail(seen["share"], path+".share", `"max-min" beside "per: caller"`, "one of them: a limit that callers share, or one for each")
	}
	if at, ok := seen["weights"]; ok && b.Share != limiter.MaxMin {
		d.fail(at, path+".weights", "weights without max-min", `"share: max-min" beside them`)
	}
	for _, caller := range slices.Sorted(maps.Keys(b.Weights)) {
		if b.Share == limiter.MaxMin && caller != "" && !b.Match.Caller.Match(caller) {
			d.fail(seen["weights"], join(path+".weights", caller), "a caller that the bucket does not match", "one that "+quote(string(b.Match.Caller))+" selects")
		}
	}
	if !b.Block {
		return
	}
	for key, set := range map[string]bool{
		"share": b.Share == limiter.MaxMin, "tiers": len(b.Tiers) > 0, "retries": b.ShedRetriesFirst, "coherent": b.Coherent,
	} {
		if set {
			d.fail(seen[key], path+"."+key, key+" beside block", "a limit in place of block: where all is dropped nothing is left to choose")
		}
	}
}

// checkTierHeader reports b if its tiers do not read the header that those of
// first do, which it sets where there is none yet: a request has one tier
// header. values gathers the header values of all buckets.
func checkTierHeader(b placedBucket, first **placedBucket, values map[string]bool) (errs Errors) {
	before := len(values)
	for i := range b.bucket.Tiers {
		t := &b.bucket.Tiers[i]
		if t.Header == "" {
			continue
		}
		if *first == nil {
			*first = &b
		}
		if header := tierHeaderOf((*first).bucket); !strings.EqualFold(t.Header, header) {
			errs = append(errs, b.problem("reads its tiers from %q, but bucket %v from %q: a request has one tier header", t.Header, **first, header))
			break
		}
		for _, v := range t.Values {
			values[v] = true
		}
	}
	if len(values) > MaxTierValues && before <= MaxTierValues {
		errs = append(errs, b.problem("makes it %d header values that tiers of the service tell apart, at most %d", len(values), MaxTierValues))
	}
	return errs
}

func tierHeaderOf(b *limiter.Bucket) string {
	for i := range b.Tiers {
		if h := b.Tiers[i].Header; h != "" {
			return h
		}
	}
	return ""
}

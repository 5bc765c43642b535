package limitsfile

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"grl/limiter"
	"grl/limiter/yamlfile"
)

var shares = map[string]limiter.Share{"proportional": limiter.Proportional, "max-min": limiter.MaxMin}

// weights reads a mapping from caller to weight.
func (d *decoder) weights(n *yamlfile.Node, path string) map[string]float64 {
	if !d.IsMapping(n, path, "a mapping from caller to weight, such as {checkout: 2}") {
		return nil
	}
	if len(n.Pairs) == 0 || len(n.Pairs) > MaxWeights {
		d.Fail(n.Place, path, fmt.Sprintf("%d weights", len(n.Pairs)), fmt.Sprintf("1 to %d", MaxWeights))
		return nil
	}
	weights, seen := map[string]float64{}, map[string]yamlfile.Place{}
	for _, p := range n.Pairs {
		caller := p.Key.Text
		if p.Key.Kind != yamlfile.Plain && p.Key.Kind != yamlfile.Quoted || caller != limiter.UnknownCaller {
			caller = d.Name(p.Key, path, yamlfile.CallerName)
		}
		if first, again := seen[caller]; again && caller != "" {
			d.Problem(p.Key.Place, yamlfile.Join(path, caller), fmt.Sprintf("given twice: first on line %d, column %d", first.Line, first.Column))
		}
		seen[caller] = p.Key.Place
		weights[caller] = d.weight(p.Value, yamlfile.Join(path, caller))
	}
	return weights
}

// tiers reads the list of tiers, the one that is kept longest first.
func (d *decoder) tiers(n *yamlfile.Node, path string) []limiter.Tier {
	if n.Kind != yamlfile.List {
		d.Fail(n.Place, path, n.Describe(), "a list of tiers, the one that is kept longest first")
		return nil
	}
	if len(n.Items) < MinTiers || len(n.Items) > MaxTiers {
		d.Fail(n.Place, path, fmt.Sprintf("a list of %d", len(n.Items)), fmt.Sprintf("%d to %d", MinTiers, MaxTiers))
		return nil
	}
	var tiers []limiter.Tier
	taken := tierSelections{}
	for i, item := range n.Items {
		at := fmt.Sprintf("%s[%d]", path, i)
		t := d.tier(item, at, i == len(n.Items)-1)
		if _, again := taken["name "+t.Name]; again && t.Name != "" {
			d.Fail(item.Place, at+".name", yamlfile.Quote(t.Name), "a name that no other tier of the bucket has")
		}
		d.takeTier(item.Place, at, &t, taken)
		tiers = append(tiers, t)
	}
	return tiers
}

// tierSelections has what the tiers so far are named and select by → the
// tier's name.
type tierSelections map[string]string

// takeTier adds what t selects by to taken; what an earlier tier selects
// already is an error, since t would never see it.
func (d *decoder) takeTier(at yamlfile.Place, path string, t *limiter.Tier, taken tierSelections) {
	taken["name "+t.Name] = t.Name
	take := func(kind, key, what string) {
		if first, again := taken[kind+what]; again {
			d.Problem(at, path+key, fmt.Sprintf("%s stands in tier %s already, and the first tier that selects a request has it", yamlfile.Quote(what), yamlfile.Quote(first)))
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
func (d *decoder) tier(n *yamlfile.Node, path string, last bool) (t limiter.Tier) {
	if !d.IsMapping(n, path, "a tier such as {name: high, callers: [checkout]}") {
		return t
	}
	seen := map[string]yamlfile.Place{}
	d.Keys(n, path, seen, yamlfile.Fields{
		"name":    func(v *yamlfile.Node, path string) { t.Name = d.tierName(v, path) },
		"callers": func(v *yamlfile.Node, path string) { t.Callers = d.tierCallers(v, path) },
		"header":  func(v *yamlfile.Node, path string) { d.tierHeader(v, path, &t) },
	})
	if _, ok := seen["name"]; !ok {
		d.Fail(n.Place, path, "no name", "a name that no other tier of the bucket has")
	}
	_, hasCallers := seen["callers"]
	_, hasHeader := seen["header"]
	if !hasCallers && !hasHeader && !last {
		d.Fail(n.Place, path, "neither callers nor header", "what selects the tier (only the last one, which has all the rest, may do without)")
	}
	return t
}

func (d *decoder) tierName(n *yamlfile.Node, path string) string {
	name := d.Name(n, path, tierName)
	if name == limiter.First || name == limiter.Retry {
		d.Fail(n.Place, path, yamlfile.Quote(name), `another name ("first" and "retry" stand for attempts)`)
		return ""
	}
	return name
}

func (d *decoder) tierCallers(n *yamlfile.Node, path string) (callers []limiter.Pattern) {
	for i, item := range d.ItemsOf(n, path, "a list of callers, such as [checkout, \"pay-*\"]", MaxTierCallers) {
		if p := d.Pattern(item, fmt.Sprintf("%s[%d]", path, i), yamlfile.CallerName); p != "" {
			callers = append(callers, p)
		}
	}
	return callers
}

func (d *decoder) tierHeader(n *yamlfile.Node, path string, t *limiter.Tier) {
	const expected = "a header and its values, such as {name: x-priority, values: [high]}"
	if !d.IsMapping(n, path, expected) {
		return
	}
	seen := map[string]yamlfile.Place{}
	d.Keys(n, path, seen, yamlfile.Fields{
		"name": func(v *yamlfile.Node, path string) { t.Header = d.header(v, path) },
		"values": func(v *yamlfile.Node, path string) {
			for i, item := range d.ItemsOf(v, path, "a list of values, such as [high]", MaxTierValues) {
				if value := d.Name(item, fmt.Sprintf("%s[%d]", path, i), headerValue); value != "" {
					t.Values = append(t.Values, value)
				}
			}
		},
	})
	if len(seen) != 2 {
		d.Fail(n.Place, path, fmt.Sprintf("%d of name and values", len(seen)), expected)
	}
}

// shareWhole checks what the keys of a bucket that divide its limit say about
// the others.
func (d *decoder) shareWhole(path string, seen map[string]yamlfile.Place, b *limiter.Bucket) {
	if b.Share == limiter.MaxMin && b.PerCaller {
		d.Fail(seen["share"], path+".share", `"max-min" beside "per: caller"`, "one of them: a limit that callers share, or one for each")
	}
	if at, ok := seen["weights"]; ok && b.Share != limiter.MaxMin {
		d.Fail(at, path+".weights", "weights without max-min", `"share: max-min" beside them`)
	}
	for _, caller := range slices.Sorted(maps.Keys(b.Weights)) {
		if b.Share == limiter.MaxMin && caller != "" && !b.Match.Caller.Match(caller) {
			d.Fail(seen["weights"], yamlfile.Join(path+".weights", caller), "a caller that the bucket does not match", "one that "+yamlfile.Quote(string(b.Match.Caller))+" selects")
		}
	}
	if !b.Block {
		return
	}
	for key, set := range map[string]bool{
		"share": b.Share == limiter.MaxMin, "tiers": len(b.Tiers) > 0, "retries": b.ShedRetriesFirst, "coherent": b.Coherent,
	} {
		if set {
			d.Fail(seen[key], path+"."+key, key+" beside block", "a limit in place of block: where all is dropped nothing is left to choose")
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

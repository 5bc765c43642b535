package policyfile

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"grl/limiter/yamlfile"
	"grl/policy"
)

// Defaults of keys that are not given.
const (
	defaultDigits  = 2
	defaultMaxStep = 0.2
)

// unused has the keys that a kind does not use, with what to know about them.
var unused = map[string]map[string]string{
	"quota": {
		"history":  "a quota is agreed, and looks at no history",
		"floor":    "a quota is agreed as it is",
		"ceiling":  "a quota is agreed as it is",
		"round":    "a quota is agreed as it is",
		"max_step": "a quota holds from the day that it is agreed for",
		"events":   "a quota is agreed: give it as one more quota with from and to",
		"ignore":   "a quota looks at no history",
		"discover": "a quota is agreed for buckets that exist",
		"params":   "a quota looks at no history",
	},
}

// quotaOnly is the key that only the kind quota uses.
const quotaOnly = "quota"

// decode reads what one file says, as far as it can be read.
func decode(name string, data []byte) file {
	d := &decoder{Decoder: yamlfile.Decoder{File: name}, seen: map[string]yamlfile.Place{}}
	top := d.ReadFile(data, MaxFileBytes, "name: nightly")
	if len(top.Pairs) == 0 {
		if len(d.Errs) == 0 {
			d.Fail(yamlfile.Place{Line: 1, Column: 1}, "", "an empty file", `a policy, as "name: nightly" with kind and match below it`)
		}
		return file{source: name, errs: d.Errs}
	}
	d.spec = policy.Spec{Digits: defaultDigits, MaxStep: defaultMaxStep, Location: time.UTC}
	d.timeZone(top)
	d.Keys(top, "", d.seen, d.fields())
	if d.whole(); len(d.Errs) > 0 {
		d.Errs = d.Errs[:min(len(d.Errs), yamlfile.MaxErrors)]
	}
	f := file{source: name, spec: d.spec, errs: d.Errs}
	if d.spec.Name != "" {
		f.name = d.seen["name"]
	}
	if d.spec.Match != (policy.Match{}) && d.matchHolds {
		f.match = d.seen["match"]
	}
	return f
}

// decoder gathers what a file says, and what is wrong with it.
type decoder struct {
	yamlfile.Decoder
	spec       policy.Spec
	matchHolds bool
	seen       map[string]yamlfile.Place // keys of the file
}

func (d *decoder) fields() yamlfile.Fields {
	s := &d.spec
	return yamlfile.Fields{
		"name":          func(v *yamlfile.Node, path string) { s.Name = d.Name(v, path, yamlfile.ServiceName) },
		"kind":          func(v *yamlfile.Node, path string) { s.Kind = d.Word(v, path, kinds()...) },
		"mode":          func(v *yamlfile.Node, path string) { s.Mode = modes[d.Word(v, path, "propose", "shadow", "apply")] },
		"match":         d.match,
		"history":       func(v *yamlfile.Node, path string) { s.History = d.span(v, path, week, MaxHistory) },
		"cycle":         func(v *yamlfile.Node, path string) { s.Cycle = d.cycle(v, path) },
		"time_zone":     func(*yamlfile.Node, string) {}, // was read before all others
		"floor":         func(v *yamlfile.Node, path string) { s.Floor = d.rps(v, path, " (leave floor out for none)") },
		"ceiling":       func(v *yamlfile.Node, path string) { s.Ceiling = d.rps(v, path, " (leave ceiling out for none)") },
		"round":         func(v *yamlfile.Node, path string) { s.Digits = d.digits(v, path) },
		"max_step":      func(v *yamlfile.Node, path string) { s.MaxStep = d.maxStep(v, path) },
		"promote_after": func(v *yamlfile.Node, path string) { s.PromoteAfter = int(d.span(v, path, day, 365*day) / day) },
		"events":        func(v *yamlfile.Node, path string) { s.Events = each(d, v, path, d.event) },
		"capacity":      func(v *yamlfile.Node, path string) { s.Capacity = d.capacities(v, path) },
		"ignore":        func(v *yamlfile.Node, path string) { s.Ignore = each(d, v, path, d.ignore) },
		"quota":         func(v *yamlfile.Node, path string) { s.Quota = each(d, v, path, d.quota) },
		"discover":      func(v *yamlfile.Node, path string) { s.Discover = d.discover(v, path) },
		"params":        d.params,
	}
}

var modes = map[string]policy.Mode{"propose": policy.Propose, "shadow": policy.Shadow, "apply": policy.Apply}

func kinds() (names []string) {
	for _, k := range policy.Kinds() {
		names = append(names, k.Name)
	}
	return names
}

// match reads {service, caller, bucket}, at least one of them.
func (d *decoder) match(n *yamlfile.Node, path string) {
	before := len(d.Errs)
	if !d.IsMapping(n, path, "a mapping such as {service: payments}") {
		return
	}
	m := &d.spec.Match
	d.Keys(n, path, map[string]yamlfile.Place{}, yamlfile.Fields{
		"service": func(v *yamlfile.Node, path string) { m.Service = d.Pattern(v, path, yamlfile.ServiceName) },
		"caller":  func(v *yamlfile.Node, path string) { m.Caller = d.Pattern(v, path, yamlfile.CallerName) },
		"bucket":  func(v *yamlfile.Node, path string) { m.Bucket = d.Pattern(v, path, yamlfile.ServiceName) },
	})
	if len(n.Pairs) == 0 {
		d.Fail(n.Place, path, "an empty mapping", `service, caller or bucket (all buckets are {service: "*"})`)
	}
	d.matchHolds = len(d.Errs) == before
}

// whole checks what must be there, what the kind does not use, and what keys say
// about each other; and sets the defaults of the kind.
func (d *decoder) whole() {
	top := yamlfile.Place{Line: 1, Column: 1}
	for _, required := range []struct{ key, expected string }{
		{"name", "a name that no other policy has"},
		{"kind", either(kinds())},
		{"match", "which buckets it computes, as in match: {service: payments}"},
	} {
		if _, ok := d.seen[required.key]; !ok {
			d.Fail(top, "", "no "+required.key, required.expected)
		}
	}
	d.pair()
	i := slices.IndexFunc(policy.Kinds(), func(k policy.Kind) bool { return k.Name == d.spec.Kind })
	if i < 0 {
		return
	}
	d.ofKind(&policy.Kinds()[i])
}

// ofKind checks the keys against the kind, and sets what it has by default.
func (d *decoder) ofKind(k *policy.Kind) {
	for key, why := range unused[k.Name] {
		if at, ok := d.seen[key]; ok {
			d.Problem(at, key, "not used by kind "+k.Name+": "+why)
		}
	}
	at, hasQuota := d.seen[quotaOnly]
	switch {
	case hasQuota && k.Name != quotaOnly:
		d.Problem(at, quotaOnly, "not used by kind "+k.Name+", which computes its limits from history")
	case !hasQuota && k.Name == quotaOnly:
		d.Fail(yamlfile.Place{Line: 1, Column: 1}, "", "no quota", "what was agreed, as in quota: [{rps: 1200}]")
	}
	if k.Name == quotaOnly {
		d.spec.Digits, d.spec.MaxStep = 0, 1
	}
	if _, ok := d.seen["history"]; !ok {
		d.spec.History = k.History
	}
	if _, ok := d.seen["cycle"]; !ok {
		d.spec.Cycle = k.Cycle
	}
}

// pair checks keys that speak of the same.
func (d *decoder) pair() {
	s := &d.spec
	if s.Ceiling > 0 && s.Floor > s.Ceiling {
		d.Fail(d.seen["floor"], "floor", rateText(s.Floor), "at most the ceiling, "+rateText(s.Ceiling))
	}
	if at, ok := d.seen["promote_after"]; ok && s.Mode != policy.Shadow {
		d.Fail(at, "promote_after", `mode "`+s.Mode.String()+`"`, `"mode: shadow" beside it: a candidate is what is promoted`)
	}
	at, discovers := d.seen["discover"]
	switch {
	case discovers && s.Match.Bucket != "":
		d.Fail(at, "discover", "match.bucket beside it", "a match by service or caller: what is discovered has no name yet")
	case discovers && s.Match.Caller != "" && s.Discover != nil && s.Discover.By == policy.ByProcedure:
		d.Fail(at, "discover.by", `"procedure" and match.caller`, "caller or both: a bucket of a procedure has no caller")
	}
}

func either(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// label is what people call something.
var label = yamlfile.NameKind{
	Form: regexp.MustCompile(`^[\p{L}\p{M}\p{N}\p{P}\p{S}]+( [\p{L}\p{M}\p{N}\p{P}\p{S}]+)*$`),
	Rule: "words with single spaces between",
}

// each reads a list, of at least one item.
func each[T any](d *decoder, n *yamlfile.Node, path string, read func(n *yamlfile.Node, path string) T) []T {
	var all []T
	for i, item := range d.ItemsOf(n, path, "a list", MaxListItems) {
		all = append(all, read(item, fmt.Sprintf("%s[%d]", path, i)))
	}
	return all
}

// event reads {name, from, to, factor}.
func (d *decoder) event(n *yamlfile.Node, path string) (e policy.Event) {
	const example = "{name: sale, from: 2026-11-27, to: 2026-11-30, factor: 2.5}"
	d.item(n, path, example, yamlfile.Fields{
		"name": func(v *yamlfile.Node, path string) { e.Name = d.Name(v, path, label) },
		"from": func(v *yamlfile.Node, path string) { e.From = d.time(v, path) },
		"to":   func(v *yamlfile.Node, path string) { e.To = d.time(v, path) },
		"factor": func(v *yamlfile.Node, path string) {
			e.Factor = d.Decimal(v, path, yamlfile.DecimalRange{Expected: "a number from 0.1 to 100", Least: 0.1, Most: 100})
		},
	}, "name", "from", "to", "factor")
	d.order(n, path, e.From, e.To)
	return e
}

// capacity reads {from, rps}.
func (d *decoder) capacity(n *yamlfile.Node, path string) (c policy.Capacity) {
	d.item(n, path, "{from: 2026-11-27, rps: 40000}", yamlfile.Fields{
		"from": func(v *yamlfile.Node, path string) { c.From = d.time(v, path) },
		"rps":  func(v *yamlfile.Node, path string) { c.RPS = d.rps(v, path, "") },
	}, "from", "rps")
	return c
}

// capacities reads the list of planned capacity, in the order of time.
func (d *decoder) capacities(n *yamlfile.Node, path string) []policy.Capacity {
	all := each(d, n, path, d.capacity)
	for i := 1; i < len(all); i++ {
		if before := all[i-1].From; !all[i].From.IsZero() && !all[i].From.After(before) {
			d.Fail(n.Items[i].Place, fmt.Sprintf("%s[%d]", path, i), "from "+timeText(all[i].From), "a time after that of the one above, "+timeText(before))
		}
	}
	return all
}

// ignore reads {from, to, reason, service}.
func (d *decoder) ignore(n *yamlfile.Node, path string) (i policy.Ignore) {
	d.item(n, path, "{from: 2026-11-20 14:00, to: 2026-11-20 15:30, reason: INC-123}", yamlfile.Fields{
		"from":    func(v *yamlfile.Node, path string) { i.From = d.time(v, path) },
		"to":      func(v *yamlfile.Node, path string) { i.To = d.time(v, path) },
		"reason":  func(v *yamlfile.Node, path string) { i.Reason = d.Name(v, path, label) },
		"service": func(v *yamlfile.Node, path string) { i.Service = d.Pattern(v, path, yamlfile.ServiceName) },
	}, "from", "to", "reason")
	d.order(n, path, i.From, i.To)
	return i
}

// quota reads {rps, regions, from, to}.
func (d *decoder) quota(n *yamlfile.Node, path string) (q policy.Quota) {
	d.item(n, path, "{rps: 1200, from: 2027-01-01}", yamlfile.Fields{
		"rps":     func(v *yamlfile.Node, path string) { q.RPS = d.rps(v, path, "") },
		"regions": func(v *yamlfile.Node, path string) { q.Regions = d.regions(v, path) },
		"from":    func(v *yamlfile.Node, path string) { q.From = d.time(v, path) },
		"to":      func(v *yamlfile.Node, path string) { q.To = d.time(v, path) },
	}, "rps")
	d.order(n, path, q.From, q.To)
	return q
}

func (d *decoder) regions(n *yamlfile.Node, path string) (regions map[string]float64) {
	d.Regions(n, path, "a mapping from region to requests per second, such as {eu: 400}", MaxRegions, func(region string, v *yamlfile.Node, path string) {
		if regions == nil {
			regions = map[string]float64{}
		}
		regions[region] = d.rps(v, path, "")
	})
	return regions
}

// discover reads {by, min_rps}.
func (d *decoder) discover(n *yamlfile.Node, path string) *policy.Discover {
	var found policy.Discover
	words := map[string]policy.DiscoverBy{"caller": policy.ByCaller, "procedure": policy.ByProcedure, "both": policy.ByBoth}
	d.item(n, path, "{by: caller, min_rps: 10}", yamlfile.Fields{
		"by":      func(v *yamlfile.Node, path string) { found.By = words[d.Word(v, path, "caller", "procedure", "both")] },
		"min_rps": func(v *yamlfile.Node, path string) { found.MinRPS = d.rps(v, path, "") },
	}, "by", "min_rps")
	return &found
}

// params reads what histories cannot tell.
func (d *decoder) params(n *yamlfile.Node, path string) {
	d.item(n, path, "{second_over_minute: 1.4}", yamlfile.Fields{
		"second_over_minute": func(v *yamlfile.Node, path string) {
			d.spec.SecondOverMinute = d.Decimal(v, path, yamlfile.DecimalRange{Expected: "a number from 1 to 60", Least: 1, Most: 60})
		},
	}, "second_over_minute")
}

// item reads a mapping that must have some of its keys.
func (d *decoder) item(n *yamlfile.Node, path, example string, fields yamlfile.Fields, required ...string) {
	if !d.IsMapping(n, path, "a mapping such as "+example) {
		return
	}
	seen := map[string]yamlfile.Place{}
	d.Keys(n, path, seen, fields)
	for _, key := range required {
		if _, ok := seen[key]; !ok {
			d.Fail(n.Place, path, "no "+key, "it, as in "+example)
		}
	}
}

// order checks that a time ends after it begins, where both are known.
func (d *decoder) order(n *yamlfile.Node, path string, from, to time.Time) {
	if !from.IsZero() && !to.IsZero() && !from.Before(to) {
		d.Fail(n.Place, path, "to "+timeText(to), "a time after from, "+timeText(from))
	}
}

func timeText(t time.Time) string { return t.Format(time.RFC3339) }

package limitsfile

import (
	"bytes"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"grl/limiter"
)

// Normalize returns s as one limits file in canonical form: keys and lists in
// a fixed order, defaults left out. Services of equal meaning have equal
// bytes, so a hash of them names the content. For a service that Load
// returned, loading the result gives the service again.
func Normalize(s limiter.Service) []byte {
	s = canonical(s)
	var w writer
	w.line("service: ", scalar(s.Name))
	if s.Owner != "" {
		w.line("owner: ", scalar(s.Owner))
	}
	if s.Enforce != limiter.Inbound {
		w.line("enforce: ", s.Enforce.String())
	}
	if len(s.Routes) > 0 {
		w.line("routes:")
	}
	for _, route := range s.Routes {
		w.line("  - ", scalar(route))
	}
	if len(s.Exempt) > 0 {
		w.line("exempt:")
	}
	for _, m := range s.Exempt {
		w.line("  - ", matchText(m))
	}
	if len(s.Buckets) > 0 {
		w.line("buckets:")
	}
	for i := range s.Buckets {
		w.bucket(&s.Buckets[i])
	}
	return w.Bytes()
}

// BucketText returns a bucket as it stands in a limits file in canonical form, at
// the margin.
func BucketText(b *limiter.Bucket) string {
	file := string(Normalize(limiter.Service{Name: b.Service, Buckets: []limiter.Bucket{*b}}))
	_, item, _ := strings.Cut(file, "buckets:\n")
	lines := strings.SplitAfter(item, "\n")
	for i, line := range lines {
		lines[i] = line[min(len(line), len("  - ")):]
	}
	return strings.Join(lines, "")
}

// writer gathers lines.
type writer struct{ bytes.Buffer }

func (w *writer) line(parts ...string) {
	for _, part := range parts {
		w.WriteString(part)
	}
	w.WriteByte('\n')
}

func (w *writer) bucket(b *limiter.Bucket) {
	w.line("  - name: ", scalar(b.Name))
	if b.Match != (limiter.Match{}) {
		w.line("    match: ", matchText(b.Match))
	}
	if b.PerCaller {
		w.line("    per: caller")
	}
	if b.Scope != limiter.Global {
		w.line("    scope: ", b.Scope.String())
	}
	if b.Block {
		w.line("    block: true")
	} else {
		w.line("    limit: ", limitText(b))
	}
	if b.CandidateRPS != 0 {
		w.line("    candidate: {rps: ", numberText(b.CandidateRPS), "}")
	}
	w.line("    behavior: ", b.Behavior.String())
	if b.Verified {
		w.line("    identity: verified")
	}
	switch {
	case b.Cost.Header != "":
		w.line("    cost: {header: ", scalar(b.Cost.Header), "}")
	case b.Cost.Fixed != 0:
		w.line("    cost: {fixed: ", strconv.FormatUint(uint64(b.Cost.Fixed), 10), "}")
	}
	w.share(b)
}

// share writes how the limit is divided, and what happens without directives.
func (w *writer) share(b *limiter.Bucket) {
	if b.Share == limiter.MaxMin {
		w.line("    share: ", b.Share.String())
	}
	if len(b.Weights) > 0 {
		w.line("    weights: {", numbersText(b.Weights), "}")
	}
	if len(b.Tiers) > 0 {
		w.line("    tiers:")
	}
	for i := range b.Tiers {
		w.line("      - ", tierText(&b.Tiers[i]))
	}
	if b.ShedRetriesFirst {
		w.line("    retries: first-shed")
	}
	if b.Coherent {
		w.line("    coherent: trace")
	}
	if b.HoldOnSilence {
		w.line("    on_silence: hold")
	}
}

func tierText(t *limiter.Tier) string {
	text := "{name: " + scalar(t.Name)
	if len(t.Callers) > 0 {
		text += ", callers: " + listText(t.Callers)
	}
	if t.Header != "" {
		text += ", header: {name: " + scalar(t.Header) + ", values: " + listText(t.Values) + "}"
	}
	return text + "}"
}

func listText[S ~string](list []S) string {
	items := make([]string, len(list))
	for i, s := range list {
		items[i] = scalar(string(s))
	}
	return "[" + strings.Join(items, ", ") + "]"
}

func matchText(m limiter.Match) string {
	var parts []string
	if m.Caller != "" {
		parts = append(parts, "caller: "+scalar(string(m.Caller)))
	}
	if m.Procedure != "" {
		parts = append(parts, "procedure: "+scalar(string(m.Procedure)))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

func limitText(b *limiter.Bucket) string {
	text := "{rps: " + numberText(b.LimitRPS)
	if len(b.Regions) > 0 {
		text += ", regions: {" + numbersText(b.Regions) + "}"
	}
	if b.Hourly != nil {
		text += ", hourly: " + hourlyText(b.Hourly)
	}
	if len(b.RegionHourly) > 0 {
		text += ", hourly_regions: {" + regionHourlyText(b.RegionHourly) + "}"
	}
	if b.TimeZone != "" {
		text += ", time_zone: " + scalar(b.TimeZone)
	}
	return text + "}"
}

func hourlyText(hourly []float64) string {
	limits := make([]string, len(hourly))
	for hour, rps := range hourly {
		limits[hour] = numberText(rps)
	}
	return "[" + strings.Join(limits, ", ") + "]"
}

// regionHourlyText writes the pairs of a mapping, sorted by key.
func regionHourlyText(regions map[string][]float64) string {
	pairs := slices.Sorted(maps.Keys(regions))
	for i, region := range pairs {
		pairs[i] = scalar(region) + ": " + hourlyText(regions[region])
	}
	return strings.Join(pairs, ", ")
}

// numbersText writes the pairs of a mapping, sorted by key.
func numbersText(numbers map[string]float64) string {
	pairs := slices.Sorted(maps.Keys(numbers))
	for i, name := range pairs {
		pairs[i] = scalar(name) + ": " + numberText(numbers[name])
	}
	return strings.Join(pairs, ", ")
}

func numberText(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// plain are names that stand without quotes. Names hold no character that
// needs an escape in quotes.
var plain = regexp.MustCompile(`^[a-z][a-z0-9]*([./-][a-z0-9]+)*$`)

// scalar writes a name so that YAML, in any of its versions, reads a string.
func scalar(s string) string {
	switch s {
	case "true", "false", "yes", "no", "on", "off", "y", "n", "null", "nan", "inf":
		return strconv.Quote(s)
	}
	if plain.MatchString(s) {
		return s
	}
	return strconv.Quote(s)
}

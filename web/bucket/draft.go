package bucket

import (
	"fmt"
	"maps"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"grl/limiter"
	"grl/limiter/limitsfile"
	"grl/web/format"
	"grl/web/page"
)

// draft is a change of a bucket as it was typed.
type draft struct {
	base     uint64 // the revision that it was made from
	limit    string // "": as it is, where it is by the hour or a block
	regions  []regionLimit
	cand     string // "": none
	behavior string
	reason   string
	force    bool
}

// regionLimit is the limit of one region; "": that of all.
type regionLimit struct{ region, limit string }

const maxRegionFields = limitsfile.MaxRegions

// typedText returns a value of a form without what cannot be seen, and without
// the spaces around it.
func typedText(v url.Values, field string) string {
	return strings.TrimSpace(format.Printable(clip(v.Get(field))))
}

func readDraft(v url.Values) draft {
	d := draft{
		limit: typedText(v, "limit"), cand: typedText(v, "candidate"), behavior: typedText(v, "behavior"),
		reason: strings.TrimSpace(format.Printable(v.Get("reason"))), force: v.Get("force") == "yes",
	}
	d.base, _ = strconv.ParseUint(v.Get("base"), 10, 64)
	for i := range maxRegionFields {
		name := typedText(v, regionNameField(i))
		if name == "" {
			break
		}
		d.regions = append(d.regions, regionLimit{name, typedText(v, regionField(i))})
	}
	return d
}

// draftOf returns the draft that changes nothing of a bucket; regions are those
// that have cells.
func draftOf(b *limiter.Bucket, base uint64, regions []string) draft {
	d := draft{base: base, behavior: b.Behavior.String()}
	if !b.Block && b.Hourly == nil {
		d.limit = plain(b.LimitRPS)
	}
	if b.CandidateRPS > 0 {
		d.cand = plain(b.CandidateRPS)
	}
	for _, name := range regionsOf(b, regions) {
		r := regionLimit{region: name}
		if rps, ok := b.Regions[name]; ok && b.RegionHourly[name] == nil {
			r.limit = plain(rps)
		}
		d.regions = append(d.regions, r)
	}
	return d
}

// regionsOf returns the regions of a bucket of that scope: those with a limit,
// and those that have cells.
func regionsOf(b *limiter.Bucket, seen []string) []string {
	if b.Scope != limiter.Region {
		return nil
	}
	all := slices.Concat(slices.Collect(maps.Keys(b.Regions)), seen)
	slices.Sort(all)
	all = slices.DeleteFunc(slices.Compact(all), func(s string) bool { return s == "" })
	return all[:min(len(all), maxRegionFields)]
}

// plain prints a limit as it is typed: all digits, with commas.
func plain(rps float64) string {
	text := strconv.FormatFloat(rps, 'f', -1, 64)
	whole, rest, cut := strings.Cut(text, ".")
	n, err := strconv.Atoi(whole)
	if err != nil {
		return text
	}
	if text = format.Count(n); cut {
		text += "." + rest
	}
	return text
}

// readRPS reads a limit as people write one: 11000, 11,000 or 11 000.
func readRPS(text string) (float64, error) {
	v, err := strconv.ParseFloat(strings.NewReplacer(",", "", " ", "", "_", "").Replace(text), 64)
	switch {
	case err != nil || math.IsNaN(v):
		return 0, fmt.Errorf("write a number of requests per second, such as 1,200")
	case v == 0:
		return 0, fmt.Errorf("a limit of 0 is a block: place a cap")
	case v < limitsfile.MinRPS || v > limitsfile.MaxRPS:
		return 0, fmt.Errorf("write a number from 0.001 to 1,000,000,000")
	}
	return v, nil
}

// on returns the bucket with the change, and what is wrong with it.
func (d *draft) on(b limiter.Bucket) (limiter.Bucket, []page.Problem) {
	var wrong []page.Problem
	read := func(field, text string) float64 {
		v, err := readRPS(text)
		if err != nil {
			wrong = append(wrong, page.Problem{Field: field, Text: err.Error()})
		}
		return v
	}
	switch text := strings.TrimSpace(d.limit); {
	case text != "":
		if rps := read("limit", text); rps != b.LimitRPS || b.Hourly != nil || b.Block {
			b.LimitRPS, b.Hourly, b.Block = rps, nil, false
		}
	case b.Hourly == nil && !b.Block:
		wrong = append(wrong, page.Problem{Field: "limit", Text: "a bucket needs a limit"})
	}
	d.onRegions(&b, read)
	if !b.HasHours() {
		b.TimeZone = ""
	}
	switch d.behavior {
	case limiter.Deny.String():
		b.Behavior = limiter.Deny
	case limiter.Allow.String():
		b.Behavior = limiter.Allow
	default:
		wrong = append(wrong, page.Problem{Field: "behavior", Text: "choose deny or allow"})
	}
	b.CandidateRPS = 0
	if text := strings.TrimSpace(d.cand); text != "" {
		b.CandidateRPS = read("candidate", text)
		if b.Behavior != limiter.Deny {
			wrong = append(wrong, page.Problem{Field: "candidate", Text: "a candidate is judged beside a limit that is enforced: choose deny, or leave it empty"})
		}
	}
	return b, wrong
}

// onRegions sets the limits of single regions.
func (d *draft) onRegions(b *limiter.Bucket, read func(field, text string) float64) {
	if b.Scope != limiter.Region || len(d.regions) == 0 {
		return
	}
	b.Regions, b.RegionHourly = maps.Clone(b.Regions), maps.Clone(b.RegionHourly)
	for i, r := range d.regions {
		text := strings.TrimSpace(r.limit)
		switch {
		case text == "" && b.RegionHourly[r.region] != nil: // as it is
		case text == "":
			delete(b.Regions, r.region)
		default:
			if b.Regions == nil {
				b.Regions = make(map[string]float64)
			}
			b.Regions[r.region] = read(regionField(i), text)
			delete(b.RegionHourly, r.region)
		}
	}
	if len(b.Regions) == 0 {
		b.Regions = nil
	}
	if len(b.RegionHourly) == 0 {
		b.RegionHourly = nil
	}
}

func regionField(i int) string     { return fmt.Sprintf("region-%d", i) }
func regionNameField(i int) string { return fmt.Sprintf("region-name-%d", i) }

// with returns a service with one of its buckets replaced, or added.
func with(s limiter.Service, b limiter.Bucket) limiter.Service {
	s.Buckets = slices.Clone(s.Buckets)
	for i := range s.Buckets {
		if s.Buckets[i].Name == b.Name {
			s.Buckets[i] = b
			return s
		}
	}
	s.Buckets = append(s.Buckets, b)
	return s
}

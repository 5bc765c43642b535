package limiter

import (
	"slices"
	"strings"
)

// Tier is a class of requests within a bucket. A request is in the first tier
// of the bucket that selects it, by its caller or by its header, and in the
// last one if none does.
type Tier struct {
	Name string
	// Callers select by caller; nil: none.
	Callers []Pattern
	// Header and Values select by a request header, of which each value counts
	// as it is written; empty: none. All tiers of a service that name a header
	// name the same one.
	Header string
	Values []string
}

// Classes of requests in a bucket without tiers that sheds retries first.
const (
	First = "first" // first attempts
	Retry = "retry"
)

// Classes returns the classes of requests that have cells of their own, from
// the one that is kept longest to the one that is shed first; nil if the bucket
// has neither tiers nor sheds retries first. Retries of a tier are named
// "tier/retry", and all of them come after all first attempts.
func (b *Bucket) Classes() []string {
	var classes []string
	for i := range b.Tiers {
		classes = append(classes, b.Tiers[i].Name)
	}
	if !b.ShedRetriesFirst {
		return classes
	}
	if classes == nil {
		return []string{First, Retry}
	}
	for i := range b.Tiers {
		classes = append(classes, b.Tiers[i].Name+"/"+Retry)
	}
	return classes
}

// Rank returns the place of a class among Classes, 0 for the one that is kept
// longest, and for "".
func (b *Bucket) Rank(class string) int {
	return max(0, slices.Index(b.Classes(), class))
}

// HasClasses reports whether each class of requests has a cell of its own.
func (b *Bucket) HasClasses() bool { return len(b.Tiers) > 0 || b.ShedRetriesFirst }

func (b *Bucket) hasClass(class string) bool {
	if !b.HasClasses() {
		return class == ""
	}
	return slices.Contains(b.Classes(), class)
}

// classOf returns the place among Classes of requests of a variant whose
// caller is of that class of names.
func (b *Bucket) classOf(caller *class, v variant) int {
	place := b.tierOf(caller, v.value)
	if b.ShedRetriesFirst && v.retry {
		place += max(len(b.Tiers), 1)
	}
	return place
}

// tierOf returns the place of the tier that selects a caller and a header
// value, "" for none; 0 if b has no tiers.
func (b *Bucket) tierOf(caller *class, value string) int {
	for i := range b.Tiers {
		t := &b.Tiers[i]
		if value != "" && slices.Contains(t.Values, value) || slices.ContainsFunc(t.Callers, caller.in) {
			return i
		}
	}
	return max(len(b.Tiers)-1, 0)
}

// TierHeader returns the name of the request header by which tiers of s
// select; "" if none does.
func (s *Service) TierHeader() string {
	for i := range s.Buckets {
		for j := range s.Buckets[i].Tiers {
			if h := s.Buckets[i].Tiers[j].Header; h != "" {
				return h
			}
		}
	}
	return ""
}

// TierValues returns the values of TierHeader that select a tier, each once,
// in the order of buckets and tiers.
func (s *Service) TierValues() []string {
	var values []string
	for i := range s.Buckets {
		for j := range s.Buckets[i].Tiers {
			for _, v := range s.Buckets[i].Tiers[j].Values {
				if !slices.Contains(values, v) {
					values = append(values, v)
				}
			}
		}
	}
	return values
}

// Tier returns the Request.Tier of a request whose TierHeader has that value:
// 1 + its place in TierValues, 0 if it is not there.
func (s *Service) Tier(value string) uint32 {
	return uint32(1 + slices.Index(s.TierValues(), value))
}

// callerPatterns returns the patterns of callers that the tiers and weights of b
// tell apart.
func (b *Bucket) callerPatterns() []Pattern {
	var patterns []Pattern
	for i := range b.Tiers {
		patterns = append(patterns, b.Tiers[i].Callers...)
	}
	for caller := range b.Weights {
		patterns = append(patterns, Pattern(caller))
	}
	return patterns
}

// checkTierName returns what keeps name from being that of a tier, "" if
// nothing does. It is a part of names of cells, where Retry and First stand
// beside it.
func checkTierName(name string) string {
	switch {
	case name == First || name == Retry:
		return "stands for attempts"
	case name == "" || len(name) > maxNameBytes || strings.Trim(name, tierNameBytes) != "":
		return "is no name of letters, digits, - and _"
	default:
		return ""
	}
}

const tierNameBytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"

package limiter

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Bounds on how the requests of a bucket are divided.
const (
	minWeight      = 0.001
	maxWeight      = 1000
	maxWeights     = 1000
	minTiers       = 2
	maxTiers       = 8
	maxTierCallers = 100
	// maxTierValues bounds the header values that a service tells apart: each
	// may need a leaf for each caller and procedure.
	maxTierValues = 64
)

func (b *Bucket) validateShare(refuse func(format string, args ...any)) {
	switch {
	case b.Share > MaxMin:
		refuse("unknown share %d", b.Share)
	case b.Share == MaxMin && b.PerCaller:
		refuse("shares max-min and has a limit for each caller")
	case b.Share != MaxMin && len(b.Weights) > 0:
		refuse("weights need share max-min")
	}
	if b.Block && (b.Divides() || b.Coherent) {
		refuse("blocks and has share, tiers, retries or coherent: nothing is left to choose")
	}
	if len(b.Weights) > maxWeights {
		refuse("%d weights, at most %d", len(b.Weights), maxWeights)
		return
	}
	for _, caller := range slices.Sorted(maps.Keys(b.Weights)) {
		if caller == "" || len(caller) > maxNameBytes || strings.HasSuffix(caller, "*") {
			refuse("weight of %.300q, which is no name of a caller", caller)
		}
		// The negation is true for NaN.
		if w := b.Weights[caller]; !(w >= minWeight && w <= maxWeight) {
			refuse("weight %v of %.300q is not in [%v, %v]", w, caller, minWeight, maxWeight)
		}
	}
}

func (b *Bucket) validateTiers(refuse func(format string, args ...any)) {
	if n := len(b.Tiers); n != 0 && (n < minTiers || n > maxTiers) {
		refuse("%d tiers, not %d to %d", n, minTiers, maxTiers)
		return
	}
	names := map[string]bool{}
	for i := range b.Tiers {
		t := &b.Tiers[i]
		if fault := checkTierName(t.Name); fault != "" {
			refuse("tier name %.300q %s", t.Name, fault)
		}
		if names[t.Name] {
			refuse("tier %.300q: twice", t.Name)
		}
		names[t.Name] = true
		if i < len(b.Tiers)-1 && len(t.Callers) == 0 && t.Header == "" {
			refuse("tier %.300q selects nothing; only the last one may", t.Name)
		}
		t.validate(func(format string, args ...any) {
			refuse("tier %.300q: %s", t.Name, fmt.Sprintf(format, args...))
		})
	}
}

func (t *Tier) validate(refuse func(format string, args ...any)) {
	if len(t.Callers) > maxTierCallers {
		refuse("%d callers, at most %d", len(t.Callers), maxTierCallers)
	}
	for _, p := range t.Callers {
		if p == "" || len(p) > maxNameBytes {
			refuse("caller pattern of %d bytes, not 1 to %d", len(p), maxNameBytes)
		}
	}
	if (t.Header == "") != (len(t.Values) == 0) {
		refuse("a header needs values, and values a header")
	}
	for _, v := range t.Values {
		if v == "" || len(v) > maxNameBytes {
			refuse("header value of %d bytes, not 1 to %d", len(v), maxNameBytes)
		}
	}
}

// validateTierHeader checks what the tiers of all buckets must agree on, since
// a request has one header value.
func (s *Service) validateTierHeader() []error {
	var errs []error
	var header string
	var first *Bucket // that names it
	values := map[string]bool{}
	for i := range s.Buckets {
		b := &s.Buckets[i]
		for j := range b.Tiers {
			t := &b.Tiers[j]
			if t.Header != "" && first == nil {
				header, first = t.Header, b
			}
			if t.Header != "" && !strings.EqualFold(t.Header, header) {
				errs = append(errs, fmt.Errorf("service %q: tiers of bucket %q read the header %.300q, those of bucket %q %.300q; a request has one tier header", s.Name, b.Name, t.Header, first.Name, header))
			}
			for _, v := range t.Values {
				values[v] = true
			}
		}
	}
	if len(values) > maxTierValues {
		errs = append(errs, fmt.Errorf("service %q: tiers tell %d header values apart, at most %d", s.Name, len(values), maxTierValues))
	}
	return errs
}

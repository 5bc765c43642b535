// Package compute is the pure core of the configurator: which policy computes
// which bucket, and what becomes of what it computes. Time, history and memory
// are arguments.
package compute

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"grl/limiter"
	"grl/policy"
	"grl/policy/policyfile"
	"grl/roles/configurator/history"
)

// Work is one bucket that a policy computes.
type Work struct {
	Bucket *limiter.Bucket
	Spec   *policy.Spec
}

// Least returns how long a history must be for the policy to lower a limit.
func (w Work) Least() time.Duration { return kind(w.Spec).Least }

// WithoutHistory returns the units of a bucket whose policy looks at no history:
// each region that has a limit of its own, there or in the policy.
func (w Work) WithoutHistory() history.Bucket {
	h := history.Bucket{Name: w.Bucket.FullName()}
	nothing := policy.Series{Step: time.Minute}
	if w.Bucket.Scope != limiter.Region {
		h.Units = []history.Unit{{Series: nothing}}
		return h
	}
	regions := make(map[string]bool)
	for region := range w.Bucket.Regions {
		regions[region] = true
	}
	for _, q := range w.Spec.Quota {
		for region := range q.Regions {
			regions[region] = true
		}
	}
	for _, region := range slices.Sorted(maps.Keys(regions)) {
		h.Units = append(h.Units, history.Unit{Instance: region, Series: nothing})
	}
	if len(h.Units) == 0 {
		h.Units = []history.Unit{{Series: nothing}} // all regions have the same limit
	}
	return h
}

// Plan returns the buckets of services that specs compute, in the order of their
// names. A bucket that blocks has no limit to compute.
func Plan(services []limiter.Service, specs []policy.Spec) []Work {
	var all []Work
	for i := range services {
		for j := range services[i].Buckets {
			b := &services[i].Buckets[j]
			if b.Block {
				continue
			}
			w := Work{Bucket: b, Spec: policyfile.Choose(specs, *b)}
			if w.Spec != nil {
				all = append(all, w)
			}
		}
	}
	slices.SortFunc(all, func(a, b Work) int { return strings.Compare(a.Bucket.FullName(), b.Bucket.FullName()) })
	return all
}

// requestsOf names the requests that a bucket is offered: what is known of them
// says nothing about others.
func requestsOf(b *limiter.Bucket) string {
	return fmt.Sprintf("%q %q %v %v %v %v %v", b.Match.Caller, b.Match.Procedure, b.PerCaller, b.Scope, b.Verified, b.Cost, b.Share)
}

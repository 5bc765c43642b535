package history

import (
	"iter"
	"maps"
	"slices"
	"time"

	"grl/limiter"
	"grl/policy"
)

// instances returns the units that a bucket has, those found among them: of
// scope region at least the regions that have a limit of their own.
func (w *Wanted) instances(found iter.Seq[string]) []string {
	set := make(map[string]bool)
	for instance := range found {
		set[instance] = true
	}
	if w.Bucket.Scope == limiter.Region {
		for region := range w.Bucket.Regions {
			set[region] = true
		}
	}
	if len(set) == 0 {
		set[""] = true
	}
	return slices.Sorted(maps.Keys(set))
}

// claim returns what is said of one unit beside its steps.
func (w *Wanted) claim(q Query, instance, warning string) claim {
	c := claim{instance: instance, from: q.From, to: q.To, least: w.Least, warning: warning}
	for _, ig := range w.Ignore {
		if ig.Service.Match(w.Bucket.Service) {
			c.ignore = append(c.ignore, ig)
		}
	}
	return c
}

// none returns a bucket of which there is no history.
func (w *Wanted) none(q Query, step time.Duration) Bucket {
	b := Bucket{Name: w.Bucket.FullName()}
	for _, instance := range w.instances(maps.Keys(map[string]bool(nil))) {
		b.Units = append(b.Units, Unit{Instance: instance, Series: policy.Series{Start: q.From, Step: step}, Refused: noData})
	}
	return b
}

package history

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"
	"unicode/utf8"

	"grl/limiter"
	"grl/policy"
)

const (
	// maxRegions is how many regions of a bucket a limits file may have.
	maxRegions = 200
	// maxName bounds the name of a zone or caller, in bytes, as limits files do.
	maxName = 256
)

// checkInstance returns what keeps one more instance from being taken in beside
// those found so far. A region gets a limit, so a limits file must be able to
// have it; "" is none.
func (w *Wanted) checkInstance(name string, found iter.Seq[string]) error {
	if w.Bucket.Scope != limiter.Region {
		if len(name) > maxName || !utf8.ValidString(name) {
			return fmt.Errorf("instance %.80q of %d bytes: want at most %d bytes of UTF-8", name, len(name), maxName)
		}
		return nil
	}
	if _, configured := w.Bucket.Regions[name]; configured || name == "" {
		return nil
	}
	if err := limiter.CheckName(name); err != nil {
		return fmt.Errorf("region: %w", err)
	}
	if len(w.instances(found)) >= maxRegions {
		return fmt.Errorf("region %q: more than %d regions", name, maxRegions)
	}
	return nil
}

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
	c := claim{instance: instance, from: q.From, to: q.To, looks: q.From, least: w.Least, warning: warning}
	if w.LookBack > 0 {
		c.looks = q.To.Add(-w.LookBack)
	}
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

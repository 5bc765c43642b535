package limiter

import "iter"

// Reasons for which requests were admitted without regard to a limit.
const (
	NoLimits = "no_limits" // no bucket matches them
	Exempt   = "exempt"    // their service exempts them
	// FailOpen says that buckets were enforced, but none had a live directive.
	FailOpen = "fail_open"
	// Panicked says that the decision panicked; see CountPanic.
	Panicked = "panic"
)

// UnlimitedKey names a count of requests without a limit.
type UnlimitedKey struct {
	Service string
	Reason  string
}

// Unlimited yields how many requests were not limited, cumulative up to the
// last Collect, by service and reason. What never occurred is left out.
func (l *Limiter) Unlimited() iter.Seq2[UnlimitedKey, uint64] {
	return func(yield func(UnlimitedKey, uint64) bool) {
		for s := range l.callees() {
			for reason, n := range map[string]uint64{
				NoLimits: s.noLimits.Load(),
				Exempt:   s.exempt.Load(),
				FailOpen: s.failOpen.Load(),
				Panicked: s.panics.Load(),
			} {
				if n > 0 && !yield(UnlimitedKey{s.name, reason}, n) {
					return
				}
			}
		}
	}
}

// CountPanic counts a request to service that was admitted because deciding it
// panicked.
func (l *Limiter) CountPanic(service string) { l.Service(service).panics.Add(1) }

// countUnlimited counts n requests of f if they had no limit.
func (s *Callee) countUnlimited(f *leaf, n uint64) {
	switch {
	case f.exempt:
		s.exempt.Add(n)
	case len(f.steps) == 0:
		s.noLimits.Add(n)
	case f.enforced && f.failsOpen():
		s.failOpen.Add(n)
	}
}

// failsOpen reports whether f has enforced steps, none of them with a live
// directive.
func (f *leaf) failsOpen() bool {
	open := false
	for i := range f.steps {
		switch s := &f.steps[i]; {
		case s.shadow || s.cell.spent.Load():
		case s.cell.live.Load():
			return false
		default:
			open = true
		}
	}
	return open
}

package limiter

import "iter"

// Retries yields how many requests were no first attempts, whatever was
// decided of them, cumulative up to the last Collect, by service. Services
// without any are left out. Beyond all bounds on names, retries count as first
// attempts.
func (l *Limiter) Retries() iter.Seq2[string, uint64] {
	return func(yield func(string, uint64) bool) {
		for s := range l.callees() {
			if n := s.retries.Load(); n > 0 && !yield(s.name, n) {
				return
			}
		}
	}
}

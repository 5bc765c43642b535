package limiter

import "sync/atomic"

// Callee decides requests to one service. Limiter.Service makes it; the zero
// value is not usable. All methods may be called concurrently.
type Callee struct {
	own     [2]atomic.Pointer[index] // leaves for callers not verified and verified
	table   atomic.Pointer[table]
	limiter *Limiter
	name    string

	// Requests without a limit, by reason; written by Collect but for panics.
	noLimits, exempt, failOpen, panics atomic.Uint64

	cells map[CellID]*Cell // guarded by Limiter.mu
}

// Decide counts an unverified first attempt of cost 1 and says whether to
// admit it.
func (s *Callee) Decide(caller, procedure string) Decision {
	if caller == "" {
		caller = UnknownCaller
	}
	f := s.own[0].Load().find(caller, procedure)
	if f == nil {
		f = s.leaf(caller, procedure, false)
	}
	return f.decide(1)
}

// DecideRequest is Decide for a whole request; r.Service is ignored.
func (s *Callee) DecideRequest(r Request) Decision {
	if r.Caller == "" {
		r.Caller = UnknownCaller
	}
	// Most services do not tell verified callers apart, and then all share the
	// first index.
	verified := r.Verified && s.table.Load().matcher.verified
	own := &s.own[0]
	if verified {
		own = &s.own[1]
	}
	f := own.Load().find(r.Caller, r.Procedure)
	if f == nil {
		f = s.leaf(r.Caller, r.Procedure, verified)
	}
	return f.decide(r.Cost)
}

// leaf returns the leaf of a request that the index for the hot path lacks.
func (s *Callee) leaf(caller, procedure string, verified bool) *leaf {
	for {
		// A table that was replaced meanwhile has no answer; the next one does.
		if f := s.table.Load().leaf(caller, procedure, verified); f != nil {
			return f
		}
	}
}

// Configuration returns the installed configuration of the service, nil if it
// has none. Read only; a new one is a new pointer.
func (s *Callee) Configuration() *Service { return s.table.Load().config }

// use makes t the table of s; Limiter.mu is held.
func (s *Callee) use(t *table) {
	old := s.table.Swap(t)
	for i := range s.own {
		s.own[i].Store(newIndex(0))
	}
	if old == nil {
		return
	}
	for _, f := range old.leaves {
		f.retired.Store(true)
	}
	s.limiter.retire(old.leaves)
}

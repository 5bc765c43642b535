package limiter

import "sync/atomic"

// Callee decides requests to one service. Limiter.Service makes it; the zero
// value is not usable. All methods may be called concurrently.
type Callee struct {
	own     atomic.Pointer[index] // leaves of level own for requests of variant 0
	table   atomic.Pointer[table]
	limiter *Limiter
	name    string

	// Requests without a limit, by reason; written by Collect but for panics.
	noLimits, exempt, failOpen, panics atomic.Uint64
	retries                            atomic.Uint64 // requests; written by Collect

	cells map[CellID]*Cell // guarded by Limiter.mu
}

// Decide counts an unverified first attempt of cost 1 and says whether to
// admit it.
func (s *Callee) Decide(caller, procedure string) Decision {
	if caller == "" {
		caller = UnknownCaller
	}
	f := s.own.Load().find(caller, procedure)
	if f == nil {
		f = s.leaf(&Request{Caller: caller, Procedure: procedure})
	}
	return f.decide(1, nil)
}

// DecideRequest is Decide for a whole request; r.Service is ignored.
func (s *Callee) DecideRequest(r Request) Decision {
	if r.Caller == "" {
		r.Caller = UnknownCaller
	}
	own := &s.own
	if r.Verified || r.Attempt > 0 || r.Tier > 0 {
		t := s.table.Load()
		own = t.views[t.matcher.variantOf(&r)].own
	}
	f := own.Load().find(r.Caller, r.Procedure)
	if f == nil {
		f = s.leaf(&r)
	}
	return f.decide(r.Cost, &r.TraceID)
}

// leaf returns the leaf of a request that the index for the hot path lacks.
func (s *Callee) leaf(r *Request) *leaf {
	for {
		// A table that was replaced meanwhile has no answer; the next one does.
		if f := s.table.Load().leaf(r); f != nil {
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
	s.own.Store(noIndex())
	if old == nil {
		return
	}
	for _, f := range old.leaves {
		f.retired.Store(true)
	}
	s.limiter.retire(old.leaves)
}

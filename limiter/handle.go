package limiter

import "sync/atomic"

// Handle decides the requests of one caller to one procedure. It spares them
// the search by name. The zero value admits everything. Decide may be called
// concurrently.
type Handle struct {
	leaf              atomic.Pointer[leaf]
	callee            *Callee
	caller, procedure string
}

// Handle returns the short form for callers that resolve once: requests of one
// caller to one procedure. It stays valid across configurations.
func (l *Limiter) Handle(service, caller, procedure string) *Handle {
	if caller == "" {
		caller = UnknownCaller
	}
	return &Handle{callee: l.Service(service), caller: caller, procedure: procedure}
}

// Decide counts an unverified first attempt of cost 1 and says whether to
// admit it.
func (h *Handle) Decide() Decision {
	f := h.leaf.Load()
	if f == nil || f.retired.Load() {
		if f = h.resolve(); f == nil {
			return Decision{}
		}
	}
	return f.decide(1, nil)
}

// resolve finds the leaf anew; nil for the zero Handle.
func (h *Handle) resolve() *leaf {
	if h.callee == nil {
		return nil
	}
	f := h.callee.own.Load().find(h.caller, h.procedure)
	if f == nil {
		f = h.callee.leaf(&Request{Caller: h.caller, Procedure: h.procedure})
	}
	h.leaf.Store(f)
	return f
}

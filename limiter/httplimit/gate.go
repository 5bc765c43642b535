package httplimit

import (
	"net/http"
	"slices"
	"sync"
	"sync/atomic"

	"grl/limiter"
)

// Options say how the requests to one service are decided.
type Options struct {
	// Service is the callee. Required.
	Service string
	// Identity finds the caller; nil: every caller is unknown.
	Identity *Identity
	// Procedure names what a request asks for; nil: the function Procedure
	// with the routes of the service's limits files.
	Procedure func(*http.Request) string
	// AttemptHeaders count the attempts of a request from 1; nil:
	// x-envoy-attempt-count. grpc-previous-rpc-attempts is always read.
	AttemptHeaders []string
	// Side is the side this is on. Requests to a service that is enforced on
	// the other side pass uncounted. A service without configuration counts
	// as enforced inbound.
	Side limiter.Enforce
}

// Gate decides the HTTP requests to one service. Its methods may be called
// concurrently.
type Gate struct {
	limiter  *limiter.Limiter
	callee   *limiter.Callee
	opts     Options
	attempts []string // canonical AttemptHeaders
	compiled atomic.Pointer[compiled]
	mu       sync.Mutex // held while compiling
}

// compiled is what the requests of one configuration need.
type compiled struct {
	from    *limiter.Service // nil: no configuration
	routes  *Routes
	cost    []string // headers
	tiers   tiers
	traces  bool // a bucket draws for each trace
	outside bool // enforced on the other side
}

// NewGate returns a gate for the service of o.
func NewGate(l *limiter.Limiter, o Options) *Gate {
	return &Gate{limiter: l, callee: l.Service(o.Service), opts: o, attempts: attemptHeaders(o.AttemptHeaders)}
}

// Drop is a refusal: what WriteDrop tells the caller.
type Drop struct {
	limiter.Decision
	Caller    string // "" if unknown
	Procedure string
	PublicURL string // of the dashboard; empty: no link
}

// Decide counts r and says whether it is dropped; d is set only if it is. It
// neither waits nor fails: a panic on the way admits the request and is
// counted.
func (g *Gate) Decide(r *http.Request) (d Drop, dropped bool) {
	defer func() {
		if v := recover(); v != nil {
			g.limiter.CountPanic(g.opts.Service)
			d, dropped = Drop{}, false
		}
	}()
	c := g.current()
	if c.outside {
		return Drop{}, false
	}
	caller, verified := g.opts.Identity.Caller(r)
	var procedure string
	if g.opts.Procedure != nil {
		procedure = g.opts.Procedure(r)
	} else {
		procedure = Procedure(r, c.routes)
	}
	request := limiter.Request{
		Caller:    caller,
		Procedure: procedure,
		Cost:      cost(r.Header, c.cost),
		Attempt:   attempt(r.Header, g.attempts),
		Tier:      c.tiers.of(r.Header),
		Verified:  verified,
	}
	if c.traces {
		request.TraceID = traceID(r.Header)
	}
	decision := g.callee.DecideRequest(request)
	if !decision.Dropped {
		return Drop{}, false
	}
	return Drop{Decision: decision, Caller: caller, Procedure: procedure, PublicURL: g.limiter.PublicURL()}, true
}

// current returns what the installed configuration compiles to. While one
// request compiles a new configuration, the others go on with the old one
// rather than wait.
func (g *Gate) current() *compiled {
	s := g.callee.Configuration()
	old := g.compiled.Load()
	if old != nil && old.from == s {
		return old
	}
	if !g.mu.TryLock() {
		if old != nil {
			return old
		}
		// Nothing to go on with: the side must be right, the names may be
		// coarse for this moment.
		return &compiled{from: s, outside: g.outside(s)}
	}
	defer g.mu.Unlock()
	c := &compiled{from: s, outside: g.outside(s)}
	if s != nil {
		c.routes, c.cost, c.tiers = NewRoutes(s.Routes), costHeaders(s), newTiers(s)
		c.traces = slices.ContainsFunc(s.Buckets, func(b limiter.Bucket) bool { return b.Coherent })
	}
	g.compiled.Store(c)
	return c
}

func (g *Gate) outside(s *limiter.Service) bool {
	side := limiter.Inbound
	if s != nil {
		side = s.Enforce
	}
	return side != g.opts.Side
}

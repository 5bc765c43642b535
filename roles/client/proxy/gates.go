package proxy

import (
	"net/http"
	"strings"
	"sync"

	"grl/limiter"
	"grl/limiter/httplimit"
)

// gates are the gates of an outbound proxy, one for each callee that has or
// had a configuration; names that only requests know leave nothing here.
type gates struct {
	opts   Options
	byName sync.Map // callee → *httplimit.Gate
}

// decide is Gate.Decide for the callee of r.
func (g *gates) decide(r *http.Request) (d httplimit.Drop, dropped bool) {
	gate := g.gate(callee(r))
	if gate == nil {
		return httplimit.Drop{}, false
	}
	return gate.Decide(r)
}

// gate returns the gate of a callee; nil if it has no configuration, or the
// limiter panics over it.
func (g *gates) gate(name string) (gate *httplimit.Gate) {
	if known, ok := g.byName.Load(name); ok {
		return known.(*httplimit.Gate)
	}
	defer func() {
		if v := recover(); v != nil {
			g.opts.Limiter.CountPanic(name)
			gate = nil
		}
	}()
	if name == "" || g.opts.Limiter.Service(name).Configuration() == nil {
		return nil
	}
	name = strings.Clone(name) // or it would keep the request's header alive
	known, _ := g.byName.LoadOrStore(name, httplimit.NewGate(g.opts.Limiter, httplimit.Options{
		Service:        name,
		Identity:       g.opts.Identity,
		Procedure:      g.opts.Procedure,
		AttemptHeaders: g.opts.AttemptHeaders,
		Side:           limiter.Outbound,
	}))
	return known.(*httplimit.Gate)
}

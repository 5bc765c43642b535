package limiter

import "slices"

// Step is a cell on the way of a request.
type Step struct {
	Cell CellID
	// Bucket is that of the cell; see Bucket.Cap. Read only.
	Bucket *Bucket
	// Shadow says that the cell drops nothing: its bucket is in shadow mode, or
	// the service is disabled.
	Shadow bool
}

// Walk returns the cells that r passes at a node of zone and region, in the
// order of the cascade, or that r is exempt. There are none if nothing limits
// it. It finds them as a Limiter does, but compiles the service for it: it is
// for who asks, not for requests. Names count as told apart.
func (c *Configuration) Walk(r Request, zone, region string) (steps []Step, exempt bool) {
	if r.Caller == "" {
		r.Caller = UnknownCaller
	}
	m := c.content(r.Service).compile(zone, region)
	caller, procedure := m.callers.class(r.Caller), m.procedures.class(r.Procedure)
	if m.exempts(caller, procedure) {
		return nil, true
	}
	disabled := newStop(c.AllDisabled, c.Disabled).has(r.Service)
	v := m.variant(m.variantOf(&r))
	for _, rule := range m.match(caller, procedure, v.verified) {
		as, class := m.passes(rule, r.Caller, caller, v)
		steps = append(steps, Step{
			Cell:   rule.cellID(as, class),
			Bucket: rule.bucket,
			Shadow: disabled || rule.bucket.Behavior == Allow,
		})
	}
	return steps, false
}

// content returns what c says of one service, in copies.
func (c *Configuration) content(service string) content {
	one := Configuration{Caps: slices.DeleteFunc(slices.Clone(c.Caps), func(p Cap) bool { return p.Service != service })}
	if i := slices.IndexFunc(c.Services, func(s Service) bool { return s.Name == service }); i >= 0 {
		one.Services = c.Services[i : i+1]
	}
	return one.contents()[service]
}

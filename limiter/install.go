package limiter

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// Install replaces the configuration. Counts and ratios of cells that both
// configurations have stay. It returns an error, and keeps the old one, if c
// breaks a rule that Validate knows. It copies what it needs of c. Services
// are replaced one after the other; one that did not change keeps its
// Configuration and is not disturbed.
func (l *Limiter) Install(c Configuration) error {
	if err := c.Validate(); err != nil {
		return fmt.Errorf("install configuration r%d: %w", c.Revision, err)
	}
	l.installing.Lock()
	defer l.installing.Unlock()
	l.public.Store(&c.PublicURL)
	callees := l.prepare(&c)
	kept := make(map[string]bool, len(c.Services))
	for i := range c.Services {
		s := c.Services[i].clone()
		kept[s.Name] = true
		if callee := callees[s.Name]; !reflect.DeepEqual(callee.Configuration(), s) {
			l.replace(callee, s)
		}
	}
	for name, callee := range callees {
		if !kept[name] && callee.Configuration() != nil {
			l.replace(callee, nil)
		}
	}
	return nil
}

// PublicURL returns where people reach the dashboard, "" if the installed
// configuration does not say.
func (l *Limiter) PublicURL() string {
	if u := l.public.Load(); u != nil {
		return *u
	}
	return ""
}

// prepare makes the callees of c and returns all there are.
func (l *Limiter) prepare(c *Configuration) map[string]*Callee {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.setup()
	l.configured = len(c.Services)
	names := make([]string, len(c.Services))
	for i := range c.Services {
		names[i] = c.Services[i].Name
	}
	return l.addServices(names...)
}

// replace gives a service another configuration, nil for none. Compiling it
// needs no lock, so new names of other requests do not wait for it.
func (l *Limiter) replace(s *Callee, config *Service) {
	compiled := config
	if compiled == nil {
		compiled = &Service{}
	}
	m := newMatcher(compiled, l.opts.Zone, l.opts.Region)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range s.table.Load().matcher.all {
		delete(l.rules, r.id.Bucket)
	}
	for _, r := range m.all {
		l.rules[r.id.Bucket] = installed{s, r}
	}
	for id, c := range s.cells {
		if !l.keeps(s, id) {
			l.removeCell(s, c)
			continue
		}
		c.setBucket(l.rules[id.Bucket].rule.bucket)
	}
	for _, r := range m.all {
		if !r.bucket.HasCallers() {
			l.addClasses(s, r)
		}
	}
	s.use(newTable(s, config, m, l.maxNames()))
}

// keeps reports whether the rules of s have a cell of that name.
func (l *Limiter) keeps(s *Callee, id CellID) bool {
	in, ok := l.rules[id.Bucket]
	return ok && in.callee == s && in.rule.has(id)
}

// addClasses gives a rule whose callers share cells one for each class, or
// one; l.mu is held.
func (l *Limiter) addClasses(s *Callee, r *rule) {
	classes := r.bucket.Classes()
	if classes == nil {
		classes = []string{""}
	}
	r.cells = make([]*Cell, len(classes))
	for i, class := range classes {
		id := r.id
		id.Class = class
		r.cells[i] = s.cells[id]
		if r.cells[i] == nil {
			r.cells[i] = l.addCell(s, r, id)
		}
	}
}

// clone returns a copy that shares nothing with s, and names the service in
// each bucket.
func (s *Service) clone() *Service {
	c := *s
	c.Routes, c.Exempt, c.Buckets = slices.Clone(s.Routes), slices.Clone(s.Exempt), slices.Clone(s.Buckets)
	for i := range c.Buckets {
		b := &c.Buckets[i]
		b.Service = c.Name
		b.Regions, b.Weights = maps.Clone(b.Regions), maps.Clone(b.Weights)
		b.Tiers = slices.Clone(b.Tiers)
		for j := range b.Tiers {
			t := &b.Tiers[j]
			t.Callers, t.Values = slices.Clone(t.Callers), slices.Clone(t.Values)
		}
	}
	return &c
}

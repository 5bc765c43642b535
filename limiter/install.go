package limiter

import (
	"fmt"
	"maps"
	"slices"
)

// Install replaces the configuration. Counts and ratios of cells that both
// configurations have stay. It returns an error, and keeps the old one, if c
// breaks a rule that Validate knows. It copies what it needs of c. Services
// are replaced one after the other; one that did not change keeps its
// Configuration and is not disturbed. The end of a cap that moves by up to a
// second is no change.
func (l *Limiter) Install(c Configuration) error {
	if err := c.Validate(); err != nil {
		return fmt.Errorf("install configuration r%d: %w", c.Revision, err)
	}
	l.installing.Lock()
	defer l.installing.Unlock()
	l.public.Store(&c.PublicURL)
	l.configuredStop = newStop(c.AllDisabled, c.Disabled)
	contents := c.contents()
	for name, callee := range l.prepare(contents) {
		l.change(callee, contents[name])
	}
	return nil
}

// change gives a service another content, unless it is what it has; installing
// is held. What is disabled is not asked of next.
func (l *Limiter) change(s *Callee, next content) {
	next.disabled = next.any() && (l.configuredStop.has(s.name) || l.local.has(s.name))
	if next, changed := next.over(s.table.Load().content); changed {
		l.replace(s, next)
	}
}

// PublicURL returns where people reach the dashboard, "" if the installed
// configuration does not say.
func (l *Limiter) PublicURL() string {
	if u := l.public.Load(); u != nil {
		return *u
	}
	return ""
}

// prepare makes the callees of these services and returns all there are.
func (l *Limiter) prepare(contents map[string]content) map[string]*Callee {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.setup()
	l.configured = len(contents)
	return l.addServices(slices.Collect(maps.Keys(contents))...)
}

// replace gives a service another content. Compiling it needs no lock, so new
// names of other requests do not wait for it.
func (l *Limiter) replace(s *Callee, next content) {
	m := next.compile(l.opts.Zone, l.opts.Region)
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
	s.use(newTable(s, next, m, l.maxNames()))
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

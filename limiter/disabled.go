package limiter

// stop says which services drop nothing for now.
type stop struct {
	all      bool
	services map[string]bool
}

func newStop(all bool, services []string) stop {
	s := stop{all, make(map[string]bool, len(services))}
	for _, name := range services {
		s.services[name] = true
	}
	return s
}

func (s stop) has(service string) bool { return s.all || s.services[service] }

func (s stop) any() bool { return s.all || len(s.services) > 0 }

// SetDisabled stops all dropping of this process, or that of single services,
// beside what the configuration disables, until the next call says otherwise.
// Requests that would be dropped, by caps and blocks too, count as shadow
// drops meanwhile.
func (l *Limiter) SetDisabled(all bool, services ...string) {
	l.installing.Lock()
	defer l.installing.Unlock()
	l.local = newStop(all, services)
	for s := range l.callees() {
		l.change(s, s.table.Load().content)
	}
}

// Disabled reports whether the configuration or SetDisabled stops any dropping.
func (l *Limiter) Disabled() bool {
	l.installing.Lock()
	defer l.installing.Unlock()
	return l.configuredStop.any() || l.local.any()
}

package limiter

import (
	"sync/atomic"
	"unicode/utf8"
)

// names are the distinct callers, or procedures, of a service that are told
// apart although its configuration does not name them. The zero value has room
// for max names.
type names struct {
	max  int
	held map[string]int // name → leaves that have it; guarded by Limiter.mu
	// full is nil while there is room; then it holds all names, so that
	// strangers are recognised without a lock.
	full atomic.Pointer[map[string]struct{}]
}

// takes reports whether name is told apart, or will be once it is held.
func (n *names) takes(name string) bool {
	// What is not UTF-8 cannot travel in a report: no directive would find it.
	if len(name) > maxNameBytes || !utf8.ValidString(name) {
		return false
	}
	full := n.full.Load()
	if full == nil {
		return true
	}
	_, ok := (*full)[name]
	return ok
}

// hold counts one more leaf with name; Limiter.mu is held.
func (n *names) hold(name string) {
	if n.held == nil {
		n.held = map[string]int{}
	}
	n.held[name]++
	if len(n.held) >= n.max && n.full.Load() == nil {
		// Once for max new names, so it costs each of them little.
		full := make(map[string]struct{}, len(n.held))
		for name := range n.held {
			full[name] = struct{}{}
		}
		n.full.Store(&full)
	}
}

// drop counts one leaf with name less; Limiter.mu is held.
func (n *names) drop(name string) {
	if n.held[name]--; n.held[name] == 0 {
		delete(n.held, name)
	}
	if len(n.held) < n.max {
		n.full.Store(nil)
	}
}

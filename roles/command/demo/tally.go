package demo

import (
	"sync"
	"time"
)

// outcome is how a request ended, as its sender saw it.
type outcome uint8

const (
	admitted outcome = iota // answered by upstream
	dropped                 // by a sidecar
	failed                  // anything else
)

// request is one that was sent.
type request struct {
	sent    time.Duration // since the start
	zone    uint8         // index of zones
	outcome outcome
	late    bool // sent well after it was due
}

// window is what was sent in one second.
type window struct{ offered, admitted, dropped, failed int }

func (w *window) add(o outcome) {
	w.offered++
	switch o {
	case admitted:
		w.admitted++
	case dropped:
		w.dropped++
	case failed:
		w.failed++
	}
}

// tally is all that was sent, independent of what grl counts. A request belongs
// to the second in which it was sent. The methods may be called concurrently.
type tally struct {
	mu       sync.Mutex // guards all below
	requests []request  // in the order of their answers
	windows  [][len(zones)]window
}

func (t *tally) add(r request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.requests = append(t.requests, r)
	second := int(r.sent / time.Second)
	for len(t.windows) <= second {
		t.windows = append(t.windows, [len(zones)]window{})
	}
	t.windows[second][r.zone].add(r.outcome)
}

// second returns what was sent in the nth second, by zone.
func (t *tally) second(n int) [len(zones)]window {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n < 0 || n >= len(t.windows) {
		return [len(zones)]window{}
	}
	return t.windows[n]
}

// all returns what was sent. Call it after the load has ended.
func (t *tally) all() []request {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.requests
}

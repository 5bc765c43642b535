package access

import (
	"net/http"
	"sync"
	"time"
)

// Refusal is a request that was not let through, for the audit.
type Refusal struct {
	Identity
	Path   string // at most 256 bytes
	Reason string // as in grl_access_refused_total
	Text   string // as the peer was told
}

const (
	refusalQuiet = time.Minute // the same refusal is told once in it
	mostRefusals = 20          // told within it, of all together
	mostUnknown  = 10          // and of those whose proof does not hold
	maxPath      = 256
)

// refusals bounds what is told: who sends refused requests without end must not
// fill the audit.
type refusals struct {
	mu    sync.Mutex // guards all below
	since time.Time  // the minute began
	told  map[sameRefusal]bool
	// unknown counts those of them whose proof does not hold: anyone can cause
	// them, and what somebody who is known tried must not go unseen for that.
	unknown int
}

// sameRefusal is what makes two refusals the same.
type sameRefusal struct{ from, path, reason string }

// tell passes a refusal on, unless the same one was told within a minute. Those
// of who gave no proof at all are only counted: scanners and browsers cause
// them.
func (g *Gate) tell(r *http.Request, id Identity, no *denial) {
	if g.opts.Refused == nil || no.reason != refusedCredentials && no.reason != refusedRights && no.reason != refusedOrigin {
		return
	}
	path := r.URL.Path
	path = path[:min(len(path), maxPath)]
	if g.refusals.first(time.Now(), sameRefusal{id.From, path, no.reason}) {
		g.opts.Refused(r.Context(), Refusal{Identity: id, Path: path, Reason: no.reason, Text: no.text})
	}
}

// first reports whether a refusal is to be told.
func (s *refusals) first(now time.Time, same sameRefusal) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.told == nil || now.Sub(s.since) >= refusalQuiet {
		s.since, s.told, s.unknown = now, make(map[sameRefusal]bool), 0
	}
	unknown := same.reason == refusedCredentials
	if s.told[same] || len(s.told) >= mostRefusals || unknown && s.unknown >= mostUnknown {
		return false
	}
	s.told[same] = true
	if unknown {
		s.unknown++
	}
	return true
}

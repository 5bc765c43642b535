package people

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"grl/proto/access"
	"grl/store/ledger"
)

const (
	// refusalWindow is what one entry of the audit sums up.
	refusalWindow = time.Minute
	flushEach     = 10 * time.Second
	// MostRefusals is how many kinds of refusals are told apart in a window; the
	// rest is counted together.
	MostRefusals = 20

	// nobody is the actor of what happens before somebody has proved who they are.
	nobody = "nobody"
	others = "others"
)

// refused is what was refused, to whom. It is a key, and holds no secret.
type refused struct{ action, actor, subject, from string }

// refusals keeps an attack from filling the audit: the first refusal of a kind
// is an entry at once, those of the minute after it are one more.
type refusals struct {
	ledger *ledger.Ledger
	log    *slog.Logger

	mu   sync.Mutex
	open map[refused]*counted
}

// counted is a window of one kind.
type counted struct {
	since time.Time // of its last entry
	more  int       // refusals since
}

func newRefusals(l *ledger.Ledger, log *slog.Logger) *refusals {
	return &refusals{ledger: l, log: log, open: make(map[refused]*counted)}
}

// add counts a refusal.
func (r *refusals) add(ctx context.Context, now time.Time, what refused) {
	if first, what := r.count(now, what); first {
		r.note(ctx, now, what, 1)
	}
}

// count reports whether the refusal opens a window, and of what kind.
func (r *refusals) count(now time.Time, what refused) (bool, refused) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open[what] == nil && len(r.open) >= MostRefusals {
		what = refused{action: "access.refused", subject: others}
	}
	if c := r.open[what]; c != nil {
		c.more++
		return false, what
	}
	r.open[what] = &counted{since: now}
	return true, what
}

// flush writes what was counted since the last entry of each window that is at
// least as old as age, and closes the quiet ones.
func (r *refusals) flush(ctx context.Context, now time.Time, age time.Duration) {
	for what, times := range r.due(now, age) {
		r.note(ctx, now, what, times)
	}
}

func (r *refusals) due(now time.Time, age time.Duration) map[refused]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	due := make(map[refused]int)
	for what, c := range r.open {
		switch {
		case now.Sub(c.since) < age:
		case c.more == 0:
			delete(r.open, what)
		default:
			due[what] = c.more
			*c = counted{since: now}
		}
	}
	return due
}

func (r *refusals) note(ctx context.Context, now time.Time, what refused, times int) {
	a := ledger.Act{Actor: nobody, From: what.from, RequestID: access.From(ctx).RequestID, At: now}
	if what.actor != "" {
		a.Actor = what.actor
	}
	var subjects []string
	if what.subject != "" {
		subjects = []string{what.subject}
	}
	if err := r.ledger.Note(ctx, a, what.action, subjects, "", fmt.Sprintf("refused, times: %d", times)); err != nil {
		r.log.ErrorContext(ctx, "write refusal into the audit", "action", what.action, "from", what.from, "times", times, "err", err)
	}
}

package desk

import (
	"context"
	"errors"
	"time"
)

// askAgain is how long the refusal of what a place has holds, if the head stays.
// Who watches a place hands in the same files every other second.
const askAgain = 30 * time.Second

// refusal is why the files of a place were refused.
type refusal struct {
	hash string // of the files
	head uint64
	err  error
	at   time.Time
}

// settled reports whether it is known already what comes of the files of a
// place: they are what was applied last, or what was refused just now, or there
// are none and no limits either.
func (a *application) settled(ctx context.Context) (Outcome, bool, error) {
	if a.request.Source == "" || a.request.Base != nil {
		return Outcome{}, false, nil
	}
	d := a.desk
	head, err := d.opts.Ledger.Head(ctx)
	if err != nil {
		return Outcome{}, false, err
	}
	a.head = head.Number
	out := Outcome{Revision: head}
	if len(a.request.Files) == 0 {
		s, err := d.at(ctx, head)
		return out, err == nil && len(s.documents) == 0, err
	}
	if last, _, err := d.opts.Ledger.LastSource(ctx, a.source); err != nil || last == a.hash {
		return out, last == a.hash && !a.request.Kept, err
	}
	d.refusedMu.Lock()
	defer d.refusedMu.Unlock()
	if r := d.refused[a.source]; r.hash == a.hash && r.head == a.head && time.Since(r.at) < askAgain && !a.request.Force {
		return Outcome{}, true, r.err
	}
	return Outcome{}, false, nil
}

// remember keeps why the files of a place were refused.
func (a *application) remember(err error) {
	if a.request.Source == "" || a.request.Base != nil || a.request.Force || a.request.DryRun {
		return
	}
	d := a.desk
	d.refusedMu.Lock()
	defer d.refusedMu.Unlock()
	delete(d.refused, a.source)
	if errors.As(err, new(*InvalidError)) || errors.As(err, new(*ConflictError)) || errors.As(err, new(*GuardError)) {
		d.refused[a.source] = refusal{a.hash, a.head, err, time.Now()}
	}
}

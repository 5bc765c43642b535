package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"grl/store"
)

// Request is that of a person for a run now.
type Request struct {
	ID     string `json:"id"` // unique, by the caller
	Author string `json:"author"`
	DryRun bool   `json:"dry_run,omitempty"`
	// Only buckets of this policy, or of this service; "": all.
	Policy  string    `json:"policy,omitempty"`
	Service string    `json:"service,omitempty"`
	At      time.Time `json:"at"`
}

// MaxRequests bounds the requests that wait.
const MaxRequests = 20

const keyRequests = "rlc-requests"

func (r *Request) validate() error {
	if r.ID == "" {
		return errors.New("id missing")
	}
	return errors.Join(checkTexts(r.ID, r.Author, r.Policy, r.Service), checkTime("time", r.At))
}

// Requests returns the requests that wait, the oldest first.
func (l *Ledger) Requests(ctx context.Context) ([]Request, error) {
	records, err := l.engine.Get(ctx, keyRequests)
	var waiting []Request
	if err == nil {
		err = decode(records[0], &waiting)
	}
	if err != nil {
		return nil, fmt.Errorf("read requests: %w", err)
	}
	return waiting, nil
}

// AddRequest adds a request to those that wait, with an entry "rlc.request" in
// the audit; one whose id waits already changes nothing. ErrTooMany if
// MaxRequests wait.
func (l *Ledger) AddRequest(ctx context.Context, act Act, r Request) error {
	r.At = r.At.UTC().Truncate(time.Millisecond)
	err := errors.Join(act.validate(), r.validate())
	if err == nil {
		err = l.editRequests(ctx, func(waiting []Request) ([]Request, *Entry, error) {
			if slices.ContainsFunc(waiting, func(w Request) bool { return w.ID == r.ID }) {
				return nil, nil, nil
			}
			if len(waiting) >= MaxRequests {
				return nil, nil, fmt.Errorf("%w: %d requests wait", ErrTooMany, len(waiting))
			}
			return append(waiting, r), act.entry("rlc.request", []string{"request " + r.ID}, "", string(encode(r))), nil
		})
	}
	if err != nil {
		return fmt.Errorf("request run: %w", err)
	}
	return nil
}

// TakeRequest removes a request from those that wait and returns it.
// ErrNotFound if it does not wait.
func (l *Ledger) TakeRequest(ctx context.Context, id string) (Request, error) {
	var taken Request
	err := l.editRequests(ctx, func(waiting []Request) ([]Request, *Entry, error) {
		i := slices.IndexFunc(waiting, func(w Request) bool { return w.ID == id })
		if i < 0 {
			return nil, nil, ErrNotFound
		}
		taken = waiting[i]
		return slices.Delete(waiting, i, i+1), nil, nil
	})
	if err != nil {
		return Request{}, fmt.Errorf("take request %q: %w", id, err)
	}
	return taken, nil
}

// editRequests replaces the requests that wait by those that edit returns; nil
// changes nothing.
func (l *Ledger) editRequests(ctx context.Context, edit func(waiting []Request) ([]Request, *Entry, error)) error {
	return l.change(ctx, []string{keyRequests}, func(_ context.Context, records []store.Record) (*plan, error) {
		var waiting []Request
		if err := decode(records[0], &waiting); err != nil {
			return nil, err
		}
		next, entry, err := edit(waiting)
		if next == nil || err != nil {
			return nil, err
		}
		return &plan{writes: []store.Write{put(keyRequests, next)}, entry: entry}, nil
	})
}

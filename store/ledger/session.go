package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"grl/store"
)

// Session is a person who has signed in.
type Session struct {
	ID        string    `json:"id"`
	Account   string    `json:"account"`
	Hash      []byte    `json:"hash"` // SHA-256 of the secret
	From      string    `json:"from"`
	CreatedAt time.Time `json:"created_at"`
	UsedAt    time.Time `json:"used_at"` // to the minute
	ExpiresAt time.Time `json:"expires_at"`
}

// MaxSessions bounds the sessions of all accounts that have not expired.
const MaxSessions = 10_000

const keySession = "session/"

func (s *Session) validate() error {
	return errors.Join(
		checkTexts(s.Account, s.From, string(s.Hash)),
		checkTime("time of creation", s.CreatedAt), checkTime("expiry", s.ExpiresAt))
}

func (s *Session) subjects() []string { return []string{"account " + s.Account} }

// Sessions returns the sessions that have not ended, those that expired since
// AddSession was last called too, in the order of their keys.
func (l *Ledger) Sessions(ctx context.Context) ([]Session, error) {
	sessions, err := list[Session](ctx, l.engine, keySession)
	if err != nil {
		return nil, fmt.Errorf("list sessions: %w", err)
	}
	return sessions, nil
}

// Session returns the session of an id, even if it expired. ErrNotFound if there
// is none.
func (l *Ledger) Session(ctx context.Context, id string) (Session, error) {
	s, err := get[Session](ctx, l.engine, keySession, id)
	if err != nil {
		return Session{}, fmt.Errorf("read session: %w", err)
	}
	return s, nil
}

// AddSession adds a session, with an entry "login", and forgets those that
// expired by then. ErrNotFound if there is no such account, ErrConflict if the
// id is taken, ErrTooMany if there are MaxSessions.
func (l *Ledger) AddSession(ctx context.Context, act Act, s Session) error {
	if err := l.addSession(ctx, act, s); err != nil {
		return fmt.Errorf("add session of %q: %w", s.Account, err)
	}
	return nil
}

func (l *Ledger) addSession(ctx context.Context, act Act, s Session) error {
	k, err := key(keySession, s.ID)
	if err = errors.Join(err, act.validate(), s.validate()); err != nil {
		return err
	}
	s.UsedAt = s.CreatedAt.UTC().Truncate(time.Minute)
	return l.change(ctx, []string{k}, func(ctx context.Context, records []store.Record) (*plan, error) {
		if records[0].Version > 0 {
			return nil, fmt.Errorf("%w: there is one of this id", ErrConflict)
		}
		if _, err := get[Account](ctx, l.engine, keyAccount, s.Account); err != nil {
			return nil, fmt.Errorf("account %q: %w", s.Account, err)
		}
		left, err := l.forgetSessions(ctx, act.At)
		if err != nil {
			return nil, err
		}
		if left >= MaxSessions {
			return nil, fmt.Errorf("%w: there are %d sessions", ErrTooMany, left)
		}
		return &plan{writes: []store.Write{put(k, s)}, entry: act.entry("login", s.subjects(), "", "")}, nil
	})
}

// forgetSessions deletes the sessions that expired and returns how many are left.
func (l *Ledger) forgetSessions(ctx context.Context, now time.Time) (left int, err error) {
	records, err := l.engine.List(ctx, keySession, "", 0)
	if err != nil {
		return 0, err
	}
	var expired []store.Write
	for _, r := range records {
		var s Session
		if err := decode(r, &s); err != nil {
			return 0, err
		}
		if !s.ExpiresAt.After(now) {
			expired = append(expired, store.Write{Key: r.Key, Delete: true})
		}
	}
	return len(records) - len(expired), l.write(ctx, expired)
}

// UseSession remembers when a session was used, to the minute: it writes at most
// once in each. ErrNotFound if there is none.
func (l *Ledger) UseSession(ctx context.Context, id string, at time.Time) error {
	err := use(ctx, l, keySession, id, at, func(s *Session) *time.Time { return &s.UsedAt })
	if err != nil {
		return fmt.Errorf("use session: %w", err)
	}
	return nil
}

// EndSession deletes a session. ErrNotFound if there is none.
func (l *Ledger) EndSession(ctx context.Context, act Act, id string) error {
	err := remove(ctx, l, act, keySession, id, func(s Session) *Entry {
		return act.entry("session.end", s.subjects(), "", "")
	})
	if err != nil {
		return fmt.Errorf("end session: %w", err)
	}
	return nil
}

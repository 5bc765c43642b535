package people

import (
	"context"
	"errors"
	"time"

	"grl/proto/access"
	"grl/store/ledger"
)

// Life of a session.
const (
	// SessionIdle ends one that is not used; use is known to the minute.
	SessionIdle = 30 * time.Minute
	// SessionLife ends each one.
	SessionLife = 12 * time.Hour
)

// ended reports whether s is over at now.
func ended(s ledger.Session, now time.Time) bool {
	return !now.Before(s.ExpiresAt) || now.Sub(s.UsedAt) >= SessionIdle
}

// begin opens a session of an account, whose owner has proved to be that, and
// ends the one that the call came with.
func (p *People) begin(ctx context.Context, account string) (bearer string, s ledger.Session, err error) {
	now, c := time.Now(), newCredential(true)
	s = ledger.Session{
		ID: c.id, Account: account, Hash: c.hash(), From: access.From(ctx).From,
		CreatedAt: now, UsedAt: now, ExpiresAt: now.Add(SessionLife),
	}
	a := act(ctx, "")
	a.Actor = account
	if err := p.ledger.AddSession(ctx, a, s); err != nil {
		return "", ledger.Session{}, err
	}
	if who := access.From(ctx).Person; who != nil && who.Session != "" {
		if err := p.end(ctx, a, who.Session); err != nil {
			return "", ledger.Session{}, err
		}
	}
	return c.bearer(), s, nil
}

// end ends a session; one that is gone is no error.
func (p *People) end(ctx context.Context, a ledger.Act, id string) error {
	err := p.ledger.EndSession(ctx, a, id)
	p.cache.forget()
	if errors.Is(err, ledger.ErrNotFound) {
		return nil
	}
	return err
}

// endAll ends the sessions of an account but for the one with the id except.
func (p *People) endAll(ctx context.Context, a ledger.Act, account, except string) error {
	sessions, err := p.ledger.Sessions(ctx)
	if err != nil {
		return err
	}
	for _, s := range sessions {
		if s.Account != account || s.ID == except {
			continue
		}
		if err := p.end(ctx, a, s.ID); err != nil {
			return err
		}
	}
	return nil
}

// Logout ends the session of the call, if it has one.
func (p *People) Logout(ctx context.Context) error {
	who := access.From(ctx).Person
	if who == nil || who.Session == "" {
		return nil
	}
	return p.refuse(ctx, p.end(ctx, act(ctx, ""), who.Session))
}

// Sessions returns those that have not ended: all for an admin, else one's own.
func (p *People) Sessions(ctx context.Context) ([]ledger.Session, error) {
	who, err := caller(ctx)
	if err != nil {
		return nil, err
	}
	sessions, err := p.ledger.Sessions(ctx)
	if err != nil {
		return nil, p.refuse(ctx, err)
	}
	var live []ledger.Session
	for _, s := range sessions {
		if !ended(s, time.Now()) && (who.Level == access.Admin || s.Account == who.Name) {
			live = append(live, s)
		}
	}
	return live, nil
}

// EndSession ends a session: any for an admin, else one's own.
func (p *People) EndSession(ctx context.Context, id string) error {
	who, err := manager(ctx)
	if err != nil {
		return err
	}
	if !isHex(id, idBytes) {
		return invalid("a session's id has %d hexadecimal digits", 2*idBytes)
	}
	s, err := p.ledger.Session(ctx, id)
	if err == nil && who.Level != access.Admin && s.Account != who.Name {
		err = ledger.ErrNotFound // what others have is not told
	}
	if errors.Is(err, ledger.ErrNotFound) {
		return notFound("there is no session %q", id)
	}
	if err == nil {
		err = p.end(ctx, act(ctx, ""), id)
	}
	return p.refuse(ctx, err)
}

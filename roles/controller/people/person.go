package people

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"grl/proto/access"
	"grl/store"
	"grl/store/ledger"
)

// How a person proved who they are, as access.Person.By says it.
const (
	byToken   = "token"
	bySession = "session"
	byOpen    = "open"
)

// Roles of an account, as the ledger keeps them.
const (
	roleViewer = "viewer"
	roleEditor = "editor"
	roleAdmin  = "admin"
)

// Person returns whom a bearer, an API token or a session, belongs to and what
// they may do: at most what their account may at this moment, give or take a
// second where another controller changed it. While the store does not answer,
// whom it knew last may read, for an hour. from is the address of the peer. The
// error is access.ErrUnknown, or a Refusal where the store does not answer.
func (p *People) Person(ctx context.Context, bearer, from string) (access.Person, error) {
	c, ok := parseCredential(bearer)
	if !ok {
		return access.Person{}, access.ErrUnknown
	}
	if person, ok := p.cache.get(time.Now(), bearer); ok {
		return person, nil
	}
	generation, at := p.cache.begin()
	person, until, err := p.find(ctx, c, at)
	if errors.Is(err, store.ErrUnavailable) {
		if person, ok := p.cache.last(at, bearer); ok {
			return person, nil
		}
	}
	if errors.Is(err, ledger.ErrNotFound) || errors.Is(err, access.ErrUnknown) {
		return access.Person{}, access.ErrUnknown
	}
	if err != nil {
		return access.Person{}, asRefusal(ctx, p.log, err)
	}
	p.cache.keep(generation, at, bearer, person, until)
	return person, nil
}

// find asks the store, unless it did not answer a moment ago, who somebody is and
// until when.
func (p *People) find(ctx context.Context, c credential, now time.Time) (access.Person, time.Time, error) {
	if p.cache.away(now) {
		return access.Person{}, time.Time{}, fmt.Errorf("%w: it did not answer a moment ago", store.ErrUnavailable)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, storeWithin, store.ErrUnavailable)
	defer cancel()
	find := p.byToken
	if c.session {
		find = p.bySession
	}
	person, until, err := find(ctx, c, now)
	if err != nil && context.Cause(ctx) == store.ErrUnavailable {
		err = fmt.Errorf("%w: no answer within %v", store.ErrUnavailable, storeWithin)
	}
	if errors.Is(err, store.ErrUnavailable) {
		p.cache.answered(time.Now(), err)
	} else {
		p.cache.answered(time.Now(), nil)
	}
	return person, until, err
}

func (p *People) byToken(ctx context.Context, c credential, now time.Time) (access.Person, time.Time, error) {
	t, err := p.ledger.Token(ctx, c.id)
	if err != nil {
		return access.Person{}, time.Time{}, err
	}
	if !c.matches(t.Hash) || !now.Before(t.ExpiresAt) {
		return access.Person{}, time.Time{}, access.ErrUnknown
	}
	a, err := p.account(ctx, t.Account)
	if err != nil {
		return access.Person{}, time.Time{}, err
	}
	if !now.Truncate(time.Minute).Equal(t.UsedAt.Truncate(time.Minute)) {
		p.used(ctx, "token", t.ID, p.ledger.UseToken(ctx, t.ID, now))
	}
	return narrow(a, t), t.ExpiresAt, nil
}

func (p *People) bySession(ctx context.Context, c credential, now time.Time) (access.Person, time.Time, error) {
	s, err := p.ledger.Session(ctx, c.id)
	if err != nil {
		return access.Person{}, time.Time{}, err
	}
	if !c.matches(s.Hash) || ended(s, now) {
		return access.Person{}, time.Time{}, access.ErrUnknown
	}
	a, err := p.account(ctx, s.Account)
	if err != nil {
		return access.Person{}, time.Time{}, err
	}
	if !now.Truncate(time.Minute).Equal(s.UsedAt.Truncate(time.Minute)) {
		p.used(ctx, "session", s.ID, p.ledger.UseSession(ctx, s.ID, now))
	}
	person := personOf(a, bySession)
	person.Session = s.ID
	return person, s.ExpiresAt, nil
}

// account returns one that may still come in: that of a provider only while
// there is a provider.
func (p *People) account(ctx context.Context, name string) (ledger.Account, error) {
	a, err := p.ledger.Account(ctx, name)
	if err == nil && a.Password == "" && p.provider == nil {
		return ledger.Account{}, access.ErrUnknown
	}
	return a, err
}

// used logs that a use could not be written down. The call goes on: who comes in
// has been told, and a store that cannot be written still can be read.
func (p *People) used(ctx context.Context, kind, id string, err error) {
	if err != nil {
		p.log.WarnContext(ctx, "write down the last use", "kind", kind, "id", id, "err", err)
	}
}

// personOf is what an account may do.
func personOf(a ledger.Account, by string) access.Person {
	person := access.Person{Name: a.Name, Level: levelOf(a.Role), By: by}
	if person.Level == access.Editor {
		person.Services, person.Owners = slices.Clone(a.Services), slices.Clone(a.Owners)
	}
	return person
}

// narrow is what a token may do: at most what both it and its account may.
func narrow(a ledger.Account, t ledger.Token) access.Person {
	person := personOf(a, byToken)
	account := person.Level
	person.Level = min(account, levelOf(t.Role))
	if person.Level != access.Editor {
		person.Services, person.Owners = nil, nil
		return person
	}
	if len(t.Services) == 0 {
		return person
	}
	person.Owners = nil
	if account == access.Admin {
		person.Services = slices.Clone(t.Services)
		return person
	}
	person.Services = slices.DeleteFunc(person.Services, func(s string) bool { return !slices.Contains(t.Services, s) })
	return person
}

// levelOf returns the level of a role; Nobody for one that is not known, which a
// newer version may have written.
func levelOf(role string) access.Level {
	switch role {
	case roleViewer:
		return access.Viewer
	case roleEditor:
		return access.Editor
	case roleAdmin:
		return access.Admin
	default:
		return access.Nobody
	}
}

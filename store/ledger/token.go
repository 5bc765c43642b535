package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"grl/store"
)

// Token is an API token.
type Token struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	Account   string    `json:"account"`
	Role      string    `json:"role"`
	Services  []string  `json:"services,omitempty"`
	Hash      []byte    `json:"hash"` // SHA-256 of the secret
	CreatedAt time.Time `json:"created_at"`
	ExpiresAt time.Time `json:"expires_at"`
	UsedAt    time.Time `json:"used_at"` // to the minute; zero: never
}

// MaxTokens bounds the tokens of all accounts.
const MaxTokens = 10_000

const keyToken = "token/"

func (t *Token) validate() error {
	return errors.Join(
		checkTexts(t.Name, t.Account, t.Role, string(t.Hash)), checkTexts(t.Services...),
		checkTime("time of creation", t.CreatedAt), checkTime("expiry", t.ExpiresAt))
}

func (t *Token) subjects() []string { return []string{"token " + t.ID, "account " + t.Account} }

// Tokens returns all tokens, those that expired too, in the order of their keys.
func (l *Ledger) Tokens(ctx context.Context) ([]Token, error) {
	tokens, err := list[Token](ctx, l.engine, keyToken)
	if err != nil {
		return nil, fmt.Errorf("list tokens: %w", err)
	}
	return tokens, nil
}

// Token returns the token of an id, even if it expired. ErrNotFound if there is
// none.
func (l *Ledger) Token(ctx context.Context, id string) (Token, error) {
	t, err := get[Token](ctx, l.engine, keyToken, id)
	if err != nil {
		return Token{}, fmt.Errorf("read token %q: %w", id, err)
	}
	return t, nil
}

// AddToken adds a token. ErrNotFound if there is no such account, ErrConflict if
// the id is taken, ErrTooMany if there are MaxTokens.
func (l *Ledger) AddToken(ctx context.Context, act Act, t Token) error {
	if err := l.addToken(ctx, act, t); err != nil {
		return fmt.Errorf("add token %q: %w", t.ID, err)
	}
	return nil
}

func (l *Ledger) addToken(ctx context.Context, act Act, t Token) error {
	k, err := key(keyToken, t.ID)
	if err = errors.Join(err, act.validate(), t.validate()); err != nil {
		return err
	}
	t.UsedAt = time.Time{}
	return l.change(ctx, []string{k}, func(ctx context.Context, records []store.Record) (*plan, error) {
		if records[0].Version > 0 {
			return nil, fmt.Errorf("%w: there is one of this id", ErrConflict)
		}
		if _, err := get[Account](ctx, l.engine, keyAccount, t.Account); err != nil {
			return nil, fmt.Errorf("account %q: %w", t.Account, err)
		}
		have, err := l.engine.List(ctx, keyToken, "", 0)
		if err != nil {
			return nil, err
		}
		if len(have) >= MaxTokens {
			return nil, fmt.Errorf("%w: there are %d tokens", ErrTooMany, len(have))
		}
		after := encode(shown{Name: t.Name, Account: t.Account, Role: t.Role, Services: t.Services, ExpiresAt: t.ExpiresAt})
		return &plan{
			writes: []store.Write{put(k, t)},
			entry:  act.entry("token.create", t.subjects(), "", string(after)),
		}, nil
	})
}

// RevokeToken deletes a token. ErrNotFound if there is none.
func (l *Ledger) RevokeToken(ctx context.Context, act Act, id string) error {
	err := remove(ctx, l, act, keyToken, id, func(t Token) *Entry {
		return act.entry("token.revoke", t.subjects(), "", "")
	})
	if err != nil {
		return fmt.Errorf("revoke token %q: %w", id, err)
	}
	return nil
}

// remove deletes what has a name below prefix, with the entry that there is to
// be about it.
func remove[T any](ctx context.Context, l *Ledger, act Act, prefix, name string, entry func(T) *Entry) error {
	if err := act.validate(); err != nil {
		return err
	}
	k, err := key(prefix, name)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotFound, err)
	}
	return l.change(ctx, []string{k}, func(_ context.Context, records []store.Record) (*plan, error) {
		if records[0].Version == 0 {
			return nil, ErrNotFound
		}
		var value T
		if err := decode(records[0], &value); err != nil {
			return nil, err
		}
		return &plan{writes: []store.Write{{Key: k, Delete: true}}, entry: entry(value)}, nil
	})
}

// UseToken remembers when a token was used, to the minute: it writes at most
// once in each. ErrNotFound if there is none.
func (l *Ledger) UseToken(ctx context.Context, id string, at time.Time) error {
	err := use(ctx, l, keyToken, id, at, func(t *Token) *time.Time { return &t.UsedAt })
	if err != nil {
		return fmt.Errorf("use token %q: %w", id, err)
	}
	return nil
}

// use moves the time at which what has a name below prefix was used.
func use[T any](ctx context.Context, l *Ledger, prefix, name string, at time.Time, used func(*T) *time.Time) error {
	k, err := key(prefix, name)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotFound, err)
	}
	if err := checkTime("time", at); err != nil {
		return err
	}
	minute := at.UTC().Truncate(time.Minute)
	return l.change(ctx, []string{k}, func(_ context.Context, records []store.Record) (*plan, error) {
		if records[0].Version == 0 {
			return nil, ErrNotFound
		}
		var value T
		if err := decode(records[0], &value); err != nil {
			return nil, err
		}
		last := used(&value)
		if !last.Before(minute) {
			return nil, nil
		}
		*last = minute
		return &plan{writes: []store.Write{put(k, value)}}, nil
	})
}

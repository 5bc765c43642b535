package people

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"grl/proto/access"
	"grl/store/ledger"
)

// Life of an API token.
const (
	MinTokenLife     = time.Minute
	MaxTokenLife     = 366 * 24 * time.Hour
	DefaultTokenLife = 90 * 24 * time.Hour
)

// CreateToken makes an API token of an account, "" for one's own, and returns it
// with the secret, which is not kept. t tells Name, Account, Role and Services;
// life 0 is DefaultTokenLife. It may at most what its account may, also when that
// changes. Only admins make one for somebody else.
func (p *People) CreateToken(ctx context.Context, t ledger.Token, life time.Duration) (ledger.Token, string, error) {
	who, err := manager(ctx)
	if err != nil {
		return ledger.Token{}, "", err
	}
	if t.Account == "" {
		t.Account = who.Name
	}
	if who.Level != access.Admin && t.Account != who.Name {
		return ledger.Token{}, "", denied("only an admin makes a token for somebody else")
	}
	if life == 0 {
		life = DefaultTokenLife
	}
	if err := checkToken(t, life); err != nil {
		return ledger.Token{}, "", err
	}
	a, err := p.ledger.Account(ctx, t.Account)
	if errors.Is(err, ledger.ErrNotFound) {
		return ledger.Token{}, "", notFound("there is no account %q; a token belongs to one", short(t.Account))
	}
	if err == nil {
		err = checkScope(a, t)
	}
	if err != nil {
		return ledger.Token{}, "", p.refuse(ctx, err)
	}
	now, c := time.Now(), newCredential(false)
	t.ID, t.Hash, t.CreatedAt, t.ExpiresAt, t.UsedAt = c.id, c.hash(), now, now.Add(life), time.Time{}
	if err := p.ledger.AddToken(ctx, act(ctx, ""), t); err != nil {
		return ledger.Token{}, "", p.refuse(ctx, err)
	}
	return t, c.bearer(), nil
}

func checkToken(t ledger.Token, life time.Duration) error {
	if t.Name == "" || len(t.Name) > maxName || !utf8.ValidString(t.Name) || strings.ContainsFunc(t.Name, unicode.IsControl) {
		return invalid("the name of a token, what it is for, has 1 to %d bytes without control characters", maxName)
	}
	if life < MinTokenLife || life > MaxTokenLife {
		return errTokenLife
	}
	if levelOf(t.Role) == access.Nobody {
		return invalid("the role is missing: viewer, editor or admin")
	}
	if t.Role != roleEditor && len(t.Services) > 0 {
		return invalid("services restrict an editor; a %s has none", t.Role)
	}
	return checkServices(t.Services)
}

// checkScope refuses a token that would promise more than its account may.
func checkScope(a ledger.Account, t ledger.Token) error {
	if levelOf(t.Role) > levelOf(a.Role) {
		return denied("%q is %s; its token cannot be %s", a.Name, a.Role, t.Role)
	}
	if t.Role != roleEditor {
		return nil
	}
	if a.Role == roleAdmin {
		if len(t.Services) == 0 {
			return invalid("an editor's token of an admin lists the services that it may change")
		}
		return nil
	}
	for _, s := range t.Services {
		if !slices.Contains(a.Services, s) {
			return denied("service %q is not one that %q lists", s, a.Name)
		}
	}
	return nil
}

// Tokens returns all for an admin, else one's own, expired ones too, without
// their hashes.
func (p *People) Tokens(ctx context.Context) ([]ledger.Token, error) {
	who, err := caller(ctx)
	if err != nil {
		return nil, err
	}
	tokens, err := p.ledger.Tokens(ctx)
	if err != nil {
		return nil, p.refuse(ctx, err)
	}
	var visible []ledger.Token
	for _, t := range tokens {
		if who.Level == access.Admin || t.Account == who.Name {
			t.Hash = nil
			visible = append(visible, t)
		}
	}
	return visible, nil
}

// RevokeToken ends a token at once: any for an admin, else one's own.
func (p *People) RevokeToken(ctx context.Context, id string) error {
	who, err := manager(ctx)
	if err != nil {
		return err
	}
	if !isHex(id, idBytes) {
		return invalid("a token's id has %d hexadecimal digits", 2*idBytes)
	}
	t, err := p.ledger.Token(ctx, id)
	if err == nil && who.Level != access.Admin && t.Account != who.Name {
		err = ledger.ErrNotFound // what others have is not told
	}
	if err == nil {
		err = p.ledger.RevokeToken(ctx, act(ctx, ""), id)
		p.cache.forget()
	}
	if errors.Is(err, ledger.ErrNotFound) {
		return notFound("there is no token %q", id)
	}
	return p.refuse(ctx, err)
}

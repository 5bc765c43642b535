package people

import (
	"context"
	"crypto/subtle"
	"sync"
	"time"

	"grl/proto/access"
	"grl/store/ledger"
)

// FirstLinkLife is how long the link for the first admin holds.
const FirstLinkLife = time.Hour

// firstLink is the secret of that link, of which there is one at a time, in
// memory alone. The zero value is none.
type firstLink struct {
	mu    sync.Mutex
	hash  []byte
	until time.Time
}

// Bootstrap returns the path, with its query, of the page on which the first
// admin is made, or "" if there is an account already. It holds for an hour,
// until it is used, and until the next call. Whoever has it becomes admin: show
// it to nobody but the person who starts the controller.
func (p *People) Bootstrap(ctx context.Context) (path string, err error) {
	accounts, err := p.ledger.Accounts(ctx)
	if err != nil || len(accounts) > 0 {
		return "", err
	}
	secret := random(secretBytes)
	p.first.mu.Lock()
	defer p.first.mu.Unlock()
	p.first.hash, p.first.until = hashOf(secret), time.Now().Add(FirstLinkLife)
	return "/first?token=" + secret, nil
}

// MayCreateFirst reports whether the first admin may be made by the call of ctx:
// with the token of the link, or where nobody needs to sign in.
func (p *People) MayCreateFirst(ctx context.Context, token string) bool {
	accounts, err := p.ledger.Accounts(ctx)
	if err != nil || len(accounts) > 0 {
		return false
	}
	return p.invited(ctx, token)
}

func (p *People) invited(ctx context.Context, token string) bool {
	if who := access.From(ctx).Person; who != nil && who.By == byOpen && who.Level == access.Admin && p.Open(ctx) {
		return true
	}
	p.first.mu.Lock()
	defer p.first.mu.Unlock()
	return p.first.hash != nil && time.Now().Before(p.first.until) &&
		subtle.ConstantTimeCompare(hashOf(token), p.first.hash) == 1
}

// CreateFirst makes the first admin and signs them in; see MayCreateFirst.
func (p *People) CreateFirst(ctx context.Context, token, account, password string) (bearer string, err error) {
	from := hostOf(access.From(ctx).From)
	if !p.attempts.take(time.Now(), addressBounds(from)...) {
		return "", errTooMany
	}
	done, err := p.change(ctx)
	if err != nil {
		return "", p.refuse(ctx, err)
	}
	defer done()
	if !p.MayCreateFirst(ctx, token) {
		p.refusals.add(ctx, time.Now(), refused{action: "first.refused", from: from})
		return "", denied("this link is not valid any more: it holds for an hour, once, and only while there is no account")
	}
	by := act(ctx, "first account")
	if by.Actor == nobody {
		by.Actor = account // checked below, before anything is written
	}
	if _, err := p.putAccount(ctx, by, ledger.Account{Name: account, Role: roleAdmin}, password); err != nil {
		return "", p.refuse(ctx, err)
	}
	p.first.mu.Lock()
	p.first.hash = nil
	p.first.mu.Unlock()
	bearer, _, err = p.begin(ctx, account)
	return bearer, p.refuse(ctx, err)
}

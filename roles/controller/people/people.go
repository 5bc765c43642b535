// Package people is about the persons who use grl: their accounts, passwords,
// sessions and API tokens, the way in through an OpenID provider, and the
// AccessService, by which they are managed. It tells the gate in front of all
// procedures whom a secret belongs to; what a person may do is decided there and
// in the services.
package people

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"grl/proto/access"
	"grl/store/ledger"
)

// Options is what People needs to know.
type Options struct {
	// Ledger keeps accounts, sessions, tokens and the audit. Required; it stays
	// the caller's.
	Ledger *ledger.Ledger
	// Log receives what a person should look into; nil discards it. No secret is
	// ever in it.
	Log *slog.Logger
	// OIDC is the provider that also signs people in; nil: there is none.
	OIDC *OIDC
	// Lost says that there may have been accounts which were lost: until there is
	// one again nobody may do anything without the link for the first one.
	Lost bool
}

// People knows who may come in. Create it with New, call Run. All methods may be
// called concurrently.
type People struct {
	ledger   *ledger.Ledger
	log      *slog.Logger
	hasher   *hasher
	attempts *attempts
	refusals *refusals
	first    firstLink
	cache    cache
	provider *provider // nil: none
	lost     bool

	// begun says that there is an account. It stays so: the last admin cannot be
	// deleted.
	begun atomic.Bool
	// changing holds a value while an account changes, so that of two changes at
	// the same time neither is lost.
	changing chan struct{}
}

// New returns People. Its error says what is wrong with the provider's settings.
func New(o Options) (*People, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	p := &People{
		ledger:   o.Ledger,
		log:      o.Log,
		hasher:   newHasher(),
		attempts: newAttempts(),
		refusals: newRefusals(o.Ledger, o.Log),
		changing: make(chan struct{}, 1),
		lost:     o.Lost,
	}
	if o.OIDC != nil {
		provider, err := newProvider(*o.OIDC)
		if err != nil {
			return nil, err
		}
		p.provider = provider
	}
	return p, nil
}

// Run writes counted refusals into the audit until ctx ends, and then the rest.
func (p *People) Run(ctx context.Context) error {
	tick := time.NewTicker(flushEach)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			p.refusals.flush(ctx, time.Now(), refusalWindow)
		case <-ctx.Done():
			rest, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushEach)
			defer cancel()
			p.refusals.flush(rest, time.Now(), 0)
			return nil
		}
	}
}

// Open reports whether nobody needs to sign in: there is no account, none was
// lost, and no provider would make one. While the store does not answer, what it said
// last stands for an hour; nothing can be changed then.
func (p *People) Open(ctx context.Context) bool {
	if p.provider != nil || p.lost || p.begun.Load() {
		return false
	}
	if open, ok := p.cache.isOpen(time.Now()); ok {
		return open
	}
	generation, at := p.cache.begin()
	if p.cache.away(at) {
		return p.cache.lastOpen(at)
	}
	ctx, cancel := context.WithTimeout(ctx, storeWithin)
	defer cancel()
	accounts, err := p.ledger.Accounts(ctx)
	p.cache.answered(time.Now(), err)
	if err != nil {
		return p.cache.lastOpen(at)
	}
	if len(accounts) > 0 {
		p.begun.Store(true)
		return false
	}
	p.cache.keepOpen(generation, at)
	return true
}

// change waits until no other change of accounts is under way. The caller calls
// done.
func (p *People) change(ctx context.Context) (done func(), err error) {
	select {
	case p.changing <- struct{}{}:
		return func() { <-p.changing }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// act says who makes the call of ctx, for the audit.
func act(ctx context.Context, reason string) ledger.Act {
	id := access.From(ctx)
	a := ledger.Act{Actor: nobody, From: id.From, Reason: reason, RequestID: id.RequestID, At: time.Now()}
	if id.Person != nil {
		a.Actor = id.Person.Name
	}
	return a
}

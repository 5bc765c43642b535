package people

import (
	"context"
	"crypto/subtle"
	"errors"
	"net/url"
	"slices"
	"sync"
	"time"

	"connectrpc.com/connect"
	"golang.org/x/oauth2"

	"grl/proto/access"
	"grl/store/ledger"
)

const (
	// FlowLife is how long a person may take at the provider.
	FlowLife = 10 * time.Minute
	// MostFlows is how many logins may be under way there; beyond it the oldest is
	// forgotten.
	MostFlows = 1000

	maxCode = 4 << 10
)

// flow is a login that is under way at the provider.
type flow struct {
	state, nonce, verifier string
	next                   string
	until                  time.Time
}

// flows are those under way, in memory alone. The zero value is none.
type flows struct {
	mu    sync.Mutex
	byID  map[string]flow
	order []string // ids, the oldest first
}

func (f *flows) add(id string, one flow, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.byID == nil {
		f.byID = make(map[string]flow)
	}
	for len(f.order) > 0 {
		oldest, ok := f.byID[f.order[0]]
		if ok && now.Before(oldest.until) && len(f.order) < MostFlows {
			break
		}
		delete(f.byID, f.order[0])
		f.order = f.order[1:]
	}
	f.byID[id], f.order = one, append(f.order, id)
}

// take returns a flow once.
func (f *flows) take(id string, now time.Time) (flow, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	one, ok := f.byID[id]
	if !ok {
		return flow{}, false
	}
	delete(f.byID, id)
	f.order = slices.DeleteFunc(f.order, func(o string) bool { return o == id })
	return one, now.Before(one.until)
}

// Provider reports whether people can sign in through a provider.
func (p *People) Provider() bool { return p.provider != nil }

var (
	errNoProvider = &Refusal{connect.CodeUnimplemented, "no provider is set up here"}
	errProvider   = &Refusal{connect.CodeUnauthenticated, "the provider did not say who you are: see the log of the controller, or try again"}
	errFlow       = &Refusal{connect.CodeUnauthenticated, "this login was not begun here, or took longer than 10 minutes: begin again"}
)

// StartProvider returns where the browser goes to sign in, and what it keeps
// meanwhile in a cookie. next is where it ends up afterwards, a path here that
// the caller has checked.
func (p *People) StartProvider(ctx context.Context, next string) (address, cookie string, err error) {
	if p.provider == nil {
		return "", "", errNoProvider
	}
	now := time.Now()
	if !p.attempts.take(now, addressBounds(hostOf(access.From(ctx).From))...) {
		return "", "", errTooMany
	}
	found, err := p.provider.discover(ctx)
	if err != nil {
		return "", "", p.providerFailed(ctx, err)
	}
	client, err := p.provider.client(found)
	if err != nil {
		return "", "", p.providerFailed(ctx, err)
	}
	id := random(secretBytes)
	f := flow{
		state: random(secretBytes), nonce: random(secretBytes), verifier: oauth2.GenerateVerifier(),
		next: next, until: now.Add(FlowLife),
	}
	p.provider.flows.add(id, f, now)
	address = client.AuthCodeURL(f.state, oauth2.S256ChallengeOption(f.verifier), oauth2.SetAuthURLParam("nonce", f.nonce))
	return address, id, nil
}

// FinishProvider takes the browser back with the provider's answer, the query of
// the callback, and opens a session. cookie is that of StartProvider; it counts
// once. A person without a role is refused.
func (p *People) FinishProvider(ctx context.Context, cookie string, answer url.Values) (bearer, next string, err error) {
	if p.provider == nil {
		return "", "", errNoProvider
	}
	now, from := time.Now(), hostOf(access.From(ctx).From)
	if !p.attempts.take(now, addressBounds(from)...) {
		return "", "", errTooMany
	}
	c, f, err := p.answered(ctx, cookie, answer, now)
	if err != nil {
		p.refusals.add(ctx, now, refused{action: loginRefused, subject: "provider", from: from})
		return "", "", err
	}
	role := c.role(p.provider.settings)
	if role == "" {
		p.refusals.add(ctx, now, refused{action: loginRefused, subject: c.account(), from: from})
		return "", "", denied("the provider knows you as %s, but none of your groups has a role here: ask an admin", c.account())
	}
	if err := p.adopt(ctx, c, role); err != nil {
		return "", "", p.refuse(ctx, err)
	}
	bearer, _, err = p.begin(ctx, c.account())
	return bearer, f.next, p.refuse(ctx, err)
}

// answered checks the answer of the provider and returns who it says came.
func (p *People) answered(ctx context.Context, cookie string, answer url.Values, now time.Time) (claims, flow, error) {
	f, ok := p.provider.flows.take(cookie, now)
	if !ok || subtle.ConstantTimeCompare([]byte(answer.Get("state")), []byte(f.state)) != 1 {
		return claims{}, flow{}, errFlow
	}
	if iss := answer.Get("iss"); iss != "" && iss != p.provider.settings.Issuer {
		return claims{}, flow{}, p.providerFailed(ctx, errors.New("the answer is of another issuer"))
	}
	code := answer.Get("code")
	if answer.Has("error") || code == "" || len(code) > maxCode {
		return claims{}, flow{}, p.providerFailed(ctx, errors.New("the provider refused, or sent no code"))
	}
	c, err := p.provider.identify(ctx, code, f)
	if err != nil {
		return claims{}, flow{}, p.providerFailed(ctx, err)
	}
	return c, f, nil
}

// providerFailed logs why, for who runs the controller; the person is told less.
func (p *People) providerFailed(ctx context.Context, err error) error {
	p.log.WarnContext(ctx, "sign in through the provider", "err", err, "issuer", p.provider.settings.Issuer)
	return errProvider
}

// adopt makes the account of a person from the provider, or gives it the role
// that it has now. Where no admin would be left they do not come in.
func (p *People) adopt(ctx context.Context, c claims, role string) error {
	done, err := p.change(ctx)
	if err != nil {
		return err
	}
	defer done()
	a, err := p.ledger.Account(ctx, c.account())
	if err != nil && !errors.Is(err, ledger.ErrNotFound) {
		return err
	}
	exists := err == nil
	owners, services := []string(nil), a.Services
	if role == roleEditor {
		owners = c.owners()
	} else {
		services = nil
	}
	if exists && a.Role == role && slices.Equal(a.Owners, owners) && slices.Equal(a.Services, services) {
		return nil
	}
	if !exists {
		a.CreatedAt = time.Now()
	}
	a.Name, a.Role, a.Services, a.Owners = c.account(), role, services, owners
	by := act(ctx, "groups at the provider")
	by.Actor = a.Name
	return p.write(ctx, by, a)
}

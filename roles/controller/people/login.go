package people

import (
	"context"
	"errors"
	"time"

	"grl/proto/access"
	"grl/store/ledger"
)

// The action under which refused attempts to come in are in the audit.
const loginRefused = "login.refused"

// Login opens a session for who knows the password of an account, and returns
// the bearer for it and when it ends at the latest. Whether there is such an
// account shows neither in the error nor in the time it takes.
func (p *People) Login(ctx context.Context, account, password string) (bearer string, ends time.Time, err error) {
	from := hostOf(access.From(ctx).From)
	key := accountKey(account, from)
	if len(account) > maxName {
		key = accountKey("", from) // no account has such a name, and it is not kept
	}
	if !p.attempts.take(time.Now(), append([]bound{{key, AttemptsPerAccount}}, addressBounds(from)...)...) {
		p.refusals.add(ctx, time.Now(), refused{action: loginRefused, subject: "too many attempts", from: from})
		return "", time.Time{}, errTooMany
	}
	found, err := p.authenticate(ctx, account, password)
	if err != nil {
		return "", time.Time{}, p.refuse(ctx, err)
	}
	if found == "" {
		return "", time.Time{}, errLogin
	}
	p.attempts.forgive(key)
	bearer, s, err := p.begin(ctx, found)
	if err != nil {
		return "", time.Time{}, p.refuse(ctx, err)
	}
	return bearer, s.ExpiresAt, nil
}

// authenticate returns the account if the password is its own, else "".
func (p *People) authenticate(ctx context.Context, account, password string) (string, error) {
	stored, subject := nobodysHash, ""
	if checkName(account) == nil && len(password) <= maxPasswordBytes {
		a, err := p.ledger.Account(ctx, account)
		if err != nil && !errors.Is(err, ledger.ErrNotFound) {
			return "", err
		}
		// A name that is none may be a password in the wrong field: only one that
		// exists is written into the audit.
		subject = a.Name
		if a.Password != "" {
			stored = a.Password
		}
	} else {
		password = ""
	}
	right, err := p.hasher.verify(ctx, stored, password)
	if err != nil {
		return "", err
	}
	if !right || subject == "" {
		p.refusals.add(ctx, time.Now(), refused{action: loginRefused, subject: subject, from: hostOf(access.From(ctx).From)})
		return "", nil
	}
	return subject, nil
}

// refuse is asRefusal for errors that may be nil.
func (p *People) refuse(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	return asRefusal(ctx, p.log, err)
}

// caller returns the person who makes the call.
func caller(ctx context.Context) (access.Person, error) {
	who := access.From(ctx).Person
	if who == nil || who.Level == access.Nobody {
		return access.Person{}, errAnon
	}
	return *who, nil
}

// manager is caller for who changes accounts, tokens or sessions: a token that
// leaked must not be able to make itself another one.
func manager(ctx context.Context) (access.Person, error) {
	who, err := caller(ctx)
	if err == nil && who.By == byToken && who.Level != access.Admin {
		return access.Person{}, denied("an API token may do this only as admin: sign in")
	}
	return who, err
}

// admin is caller for what only admins do.
func admin(ctx context.Context) (access.Person, error) {
	who, err := caller(ctx)
	if err == nil && who.Level != access.Admin {
		return access.Person{}, denied("only an admin may do this")
	}
	return who, err
}

package page

import (
	"context"
	"net/url"
	"strings"
	"time"

	"grl/proto/access"
	"grl/proto/grl/v1/grlv1connect"
	"grl/web/format"
)

// People signs people in and out. Whose request it is, and from where, is in the
// context as an access.Identity. An error with a method Refusal, which returns a
// text and an HTTP status, is shown to the person; any other one is logged.
type People interface {
	// Login returns the session of who knows the password of an account.
	Login(ctx context.Context, account, password string) (session string, ends time.Time, err error)
	// Logout ends the session of the request.
	Logout(ctx context.Context) error
	// MayCreateFirst reports whether the request may make the first account,
	// with the token of the link that it came by, if any.
	MayCreateFirst(ctx context.Context, token string) bool
	// CreateFirst makes that account, an admin, and returns a session of it.
	CreateFirst(ctx context.Context, token, account, password string) (session string, err error)
	// Provider reports whether one can sign in through an OpenID provider.
	Provider() bool
	// StartProvider returns where the browser signs in there, and the value of a
	// cookie until it is back; next is where it goes then.
	StartProvider(ctx context.Context, next string) (address, cookie string, err error)
	// FinishProvider takes the browser back with the provider's answer.
	FinishProvider(ctx context.Context, cookie string, answer url.Values) (session, next string, err error)
	// Service is what the pages of accounts call; it decides who may do what.
	Service() grlv1connect.AccessServiceHandler
}

// Who is the person at the top of a page; the zero value is not shown.
type Who struct {
	Name, Level string
	MayLeave    bool // has a session to end
	Open        bool // nobody needs to sign in
}

func whoOf(ctx context.Context) Who {
	p := access.From(ctx).Person
	if p == nil {
		return Who{}
	}
	return Who{
		Name: format.Printable(p.Name), Level: p.Level.String(),
		MayLeave: p.Session != "", Open: p.By == "open",
	}
}

// May reports whether who looks at a page may call a procedure at all: for what
// is not shown to those who may not. The service decides again.
func May(ctx context.Context, procedure string) bool {
	rule, ok := access.RuleOf(procedure)
	return ok && (rule.Anyone || rule.People != access.Nobody && level(ctx) >= rule.People)
}

// MayEdit reports whether who looks at a page may change a service of an owner.
func MayEdit(ctx context.Context, service, owner string) bool {
	p := access.From(ctx).Person
	return p != nil && (p.Level == access.Admin || p.MayEdit(service, owner))
}

// MayForce reports whether who looks at a page may pass the guard rails.
func MayForce(ctx context.Context) bool { return level(ctx) >= access.Admin }

func level(ctx context.Context) access.Level {
	if p := access.From(ctx).Person; p != nil {
		return p.Level
	}
	return access.Nobody
}

// AtParent reports whether a procedure is one that a regional controller leaves
// to its parent.
func AtParent(procedure string) bool {
	service, _, _ := strings.Cut(strings.TrimPrefix(procedure, "/"), "/")
	switch service {
	case "", grlv1connect.ViewServiceName, grlv1connect.AccessServiceName:
		return false
	}
	return true
}

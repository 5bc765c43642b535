package access

import (
	"context"
	"errors"
)

// ErrUnknown says that a token or session is none, or has ended. People return
// it, wrapped or not; any other error says that they cannot tell now.
var ErrUnknown = errors.New("token or session is unknown or has ended")

// People knows who may sign in. All methods may be called concurrently.
type People interface {
	// Person returns who holds a bearer: an API token, or the secret of a
	// session. from is the address of the peer, without port. The error is
	// ErrUnknown for what proves nothing.
	Person(ctx context.Context, bearer, from string) (Person, error)
	// Open reports whether there is no account yet. When it cannot tell, there
	// is one.
	Open(ctx context.Context) bool
	// Bootstrap returns the path and query of a page that creates the first
	// admin, once and for an hour; "" if there is an account.
	Bootstrap(ctx context.Context) (path string, err error)
}

// local is who everyone is while there is no account.
func local(level Level) *Person { return &Person{Name: "local", Level: level, By: "open"} }

// String returns the word for a level, as in accounts.
func (l Level) String() string {
	switch l {
	case Viewer:
		return "viewer"
	case Editor:
		return "editor"
	case Admin:
		return "admin"
	default:
		return "nobody"
	}
}

// Package access says who may call what: the identity of a caller, the table of
// procedures and roles, and the interceptor that refuses what the table does not
// allow.
package access

import (
	"context"
	"slices"
)

// Level is what a person may do. The zero value is nobody.
type Level uint8

const (
	Nobody Level = iota
	Viewer       // reads
	Editor       // changes limits and places caps of own services
	Admin        // everything
)

// Person is who makes a call of the public API.
type Person struct {
	Name  string
	Level Level
	// Services and Owners are what an editor may change. A token may narrow
	// Services: then Owners is empty.
	Services []string
	Owners   []string
	// By says how the call proved it: "token", "session", "oidc", or "open"
	// while there is no account.
	By string
	// Session is the session's id; "" if there is none.
	Session string
}

// MayEdit reports whether p may change the limits of a service of that owner.
func (p Person) MayEdit(service, owner string) bool {
	switch p.Level {
	case Admin:
		return true
	case Editor:
		return slices.Contains(p.Services, service) || owner != "" && slices.Contains(p.Owners, owner)
	default:
		return false
	}
}

// Node is a grl process as its certificate names it.
type Node struct {
	Role    string // controller, aggregator, client, configurator
	Zone    string // region of a controller
	Service string // of a client: the workload; else ""
}

// Identity is who makes a call: a node, a person, or, over plain text on
// loopback, neither.
type Identity struct {
	Node   *Node
	Person *Person
	From   string // address of the peer
	// RequestID is in logs and the audit.
	RequestID string
}

type key struct{}

// With returns ctx with an identity.
func With(ctx context.Context, id Identity) context.Context { return context.WithValue(ctx, key{}, id) }

// From returns the identity of a call; zero if there is none.
func From(ctx context.Context) Identity {
	id, _ := ctx.Value(key{}).(Identity)
	return id
}

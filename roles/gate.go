package roles

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"grl/proto/access"
)

// newGate returns the gate of a control port. People who prove nothing are, as
// long as there is no account, admins where only this machine reaches the port;
// where others do in plain text they may read. With TLS they may nothing, and
// the first account is made by a link.
func (p *process) newGate(node *running, l listener, registry prometheus.Registerer) *access.Gate {
	o := access.Options{Role: node.name, People: node.people, Own: p.own, Registry: registry, Refused: node.refused}
	switch {
	case p.tls != nil:
		o.Domain = p.config.TLS.Domain
	case reachable(l.address):
		o.Anonymous = access.Viewer
	default:
		o.Anonymous = access.Admin
	}
	return access.NewGate(o)
}

// printLinks prints, for each node whose people cannot begin without, a link with
// which one of them makes the first account.
func (p *process) printLinks(ctx context.Context) error {
	out := p.opts.Out
	if out == nil {
		out = io.Discard
	}
	for _, n := range p.nodes {
		for _, s := range n.servers {
			if n.people == nil || !s.control || n.people.Open(ctx) && p.tls == nil && !reachable(s.address) {
				continue
			}
			path, err := n.people.Bootstrap(ctx)
			if err != nil {
				return fmt.Errorf("make the link for the first account: %w", err)
			}
			if path == "" {
				continue
			}
			fmt.Fprintf(out, "There is no account yet. Create the first admin within an hour, with this link, once:\n\n    %s%s\n\n", p.baseURL(s), path)
		}
	}
	return nil
}

// baseURL returns the URL under which people reach a server: public_url, if it is
// set, else the address, as this machine reaches it.
func (p *process) baseURL(s *server) string {
	if u := p.config.Controller.PublicURL; u != "" {
		return strings.TrimSuffix(u, "/")
	}
	address, _ := reachedAt(s.open.Addr().String(), p.tls != nil) // it is open: its port is known
	return address
}

// guard puts the gate in front of everything that a control port serves.
func (p *process) guard(node *running, l listener, registry *prometheus.Registry) http.Handler {
	return p.newGate(node, l, registry).Handler(p.controlHandler(node, node.handlers[l.key], registry))
}

package desk

import (
	"context"
	"fmt"
	"slices"

	"grl/proto/access"
	"grl/store/ledger"
)

// SwitchRequest asks for dropping to stop, or to go on.
type SwitchRequest struct {
	By
	// Service is the one meant; "" only with All.
	Service string
	All     bool
	Reason  string
}

// Disable stops all dropping, of one service or of everything, which needs the
// level admin, and a reason. It returns when that is active here. The error is
// an *InvalidError, *DeniedError or *PendingError, ErrNotFound for a service
// that nothing is known of, or one of the ledger.
func (d *Desk) Disable(ctx context.Context, r SwitchRequest) (ledger.Incident, error) {
	if err := requireReason(r.Reason); err != nil {
		return ledger.Incident{}, err
	}
	return d.turnTo(ctx, r, "disable", d.opts.Ledger.Disable)
}

// Enable undoes Disable. What is disabled with everything else, and by itself
// too, stays so until both are undone.
func (d *Desk) Enable(ctx context.Context, r SwitchRequest) (ledger.Incident, error) {
	if what := checkReason(r.Reason); what != "" {
		return ledger.Incident{}, invalid("reason", "%s", what)
	}
	return d.turnTo(ctx, r, "enable", d.opts.Ledger.Enable)
}

func (d *Desk) turnTo(ctx context.Context, r SwitchRequest, action string, do func(context.Context, ledger.Act, string) (ledger.Incident, error)) (ledger.Incident, error) {
	if r.All == (r.Service != "") {
		return ledger.Incident{}, invalid("service", "name one, or say that all are meant")
	}
	if r.All {
		if r.Person.Level < access.Admin {
			return ledger.Incident{}, d.deny(ctx, r.By, action, nil, "to %s everything needs the role admin", action)
		}
	} else if err := d.mayTouch(ctx, r.By, action, r.Service, false); err != nil {
		return ledger.Incident{}, err
	} else if err := d.known(ctx, r.Service); err != nil {
		return ledger.Incident{}, err
	}
	incident, err := do(ctx, r.act(r.Reason, false), r.Service)
	if err != nil {
		return ledger.Incident{}, err
	}
	return incident, d.active(ctx, 0, incident.Serial)
}

// known makes sure that there is such a service: a misspelt one would stay
// enforced.
func (d *Desk) known(ctx context.Context, service string) error {
	state, err := d.opts.Ledger.State(ctx)
	if err != nil {
		return err
	}
	if slices.Contains(state.Incident.Disabled, service) || slices.ContainsFunc(state.Incident.Caps, func(c ledger.Cap) bool { return c.Service == service }) {
		return nil
	}
	head, err := d.readHead(ctx, state.Head)
	if err != nil {
		return err
	}
	if head.documents[service] == nil {
		return fmt.Errorf("service %q: %w", clip(service), ErrNotFound)
	}
	return nil
}

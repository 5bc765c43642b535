package desk

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"time"

	"grl/proto/access"
	"grl/store/ledger"
)

// RunRequest asks the configurator for a cycle now.
type RunRequest struct {
	By
	// DryRun computes and records, and changes nothing.
	DryRun bool
	// Only buckets of this policy, or of this service; "": all.
	Policy, Service string
}

// RequestRun asks the configurator for a cycle, and returns the id of the
// request. One that may change limits needs the right to change the service or
// the policy that it names or, where it names none, the level admin. The error is
// an *InvalidError or *DeniedError, ErrNotFound for a service or policy that is
// not there, or one of the ledger.
func (d *Desk) RequestRun(ctx context.Context, r RunRequest) (string, error) {
	const action = "rlc.request"
	if r.Person.Level < access.Editor {
		return "", d.deny(ctx, r.By, action, nil, "asking for a run needs the role editor")
	}
	if r.Policy != "" && r.Service != "" {
		return "", invalid("service", "is given beside a policy: name one of them")
	}
	revision, err := d.opts.Ledger.Head(ctx)
	if err != nil {
		return "", err
	}
	head, err := d.readHead(ctx, revision)
	if err != nil {
		return "", err
	}
	may := r.Person.Level == access.Admin
	switch {
	case r.Service != "":
		if head.documents[r.Service] == nil {
			return "", fmt.Errorf("service %q: %w", clip(r.Service), ErrNotFound)
		}
		may = mayEdit(r.Person, r.Service, head)
	case r.Policy != "":
		set, err := d.opts.Ledger.Policies(ctx, 0)
		if err != nil {
			return "", err
		}
		text, ok := set.Texts[r.Policy]
		if !ok {
			return "", fmt.Errorf("policy %q: %w", clip(r.Policy), ErrNotFound)
		}
		may = mayEditPolicy(r.Person, text, head)
	}
	if !may && !r.DryRun {
		return "", d.deny(ctx, r.By, action, nil, "%s may not run this, which may change limits: name a service that may be changed, or make it a dry run", r.Person.Name)
	}
	act := r.act("", false)
	request := ledger.Request{ID: rand.Text(), Author: act.Actor, DryRun: r.DryRun, Policy: r.Policy, Service: r.Service, At: time.Now()}
	return request.ID, d.opts.Ledger.AddRequest(ctx, act, request)
}

// MayChange makes sure that a person may change these services; else it returns
// a *DeniedError.
func (d *Desk) MayChange(ctx context.Context, by By, action string, services []string) error {
	revision, err := d.opts.Ledger.Head(ctx)
	if err != nil {
		return err
	}
	head, err := d.readHead(ctx, revision)
	if err != nil {
		return err
	}
	foreign := slices.DeleteFunc(slices.Clone(services), func(service string) bool {
		// A service that is not there yet has no owner who could say no.
		return by.Person.Level >= access.Editor && head.documents[service] != nil && mayEdit(by.Person, service, head) ||
			by.Person.MayEdit(service, "")
	})
	if len(foreign) == 0 {
		return nil
	}
	return d.deny(ctx, by, action, foreign[:min(len(foreign), maxSubjects)], "%s may not change the limits of %s", by.Person.Name, listed(foreign))
}

// Act returns who does something, now, for the ledger.
func (b By) Act(reason string, forced bool) ledger.Act { return b.act(reason, forced) }

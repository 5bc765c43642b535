package desk

import (
	"context"
	"errors"
	"fmt"
	"time"

	"grl/limiter"
	"grl/limiter/limitsfile"
	"grl/policy"
	"grl/policy/guard"
	"grl/proto/access"
	"grl/store/ledger"
)

// maxRequestID bounds the id of a request for a cap, in bytes.
const maxRequestID = 64

// Bounds on how long a cap holds.
const (
	minCap = time.Second
	maxCap = 24 * time.Hour
)

// CapRequest asks for a cap.
type CapRequest struct {
	By
	// ID of the request, which places one cap however often it comes: at most
	// maxRequestID bytes. "": each time one.
	ID      string
	Service string
	// Patterns; "": any.
	Caller, Procedure string
	// LimitRPS is in requests per second, in [0.001, 1e9]; 0 only with Block.
	LimitRPS float64
	Block    bool
	For      time.Duration // from 1 s to 24 h
	Reason   string        // required
	// Force is needed for a cap over all of a service. It needs the level admin.
	Force  bool
	DryRun bool
}

// Effect is what a cap is expected to do at the present load.
type Effect struct {
	// OfferedRPS is what it would be tried on now; only if Known.
	OfferedRPS float64
	Known      bool
	DropShare  float64 // of it, in [0, 1]
	Text       string  // a sentence
}

// PlaceCap places a cap and returns it when it is active here, or, in a dry run,
// only says what it would do. A request with an id that placed a cap is answered
// with that one. The error is an *InvalidError, *DeniedError,
// *GuardError or *PendingError, or one of the ledger.
func (d *Desk) PlaceCap(ctx context.Context, r CapRequest) (ledger.Cap, Effect, error) {
	if err := r.check(); err != nil {
		return ledger.Cap{}, Effect{}, err
	}
	if err := d.mayTouch(ctx, r.By, "cap.place", r.Service, r.Force); err != nil {
		return ledger.Cap{}, Effect{}, err
	}
	effect := d.effect(r)
	if r.DryRun {
		return ledger.Cap{}, effect, nil
	}
	if r.everything() && !r.Force {
		return ledger.Cap{}, effect, &GuardError{[]guard.Finding{{
			Rail: guard.PredictedDrops, NeedsForce: true, DropShare: effect.DropShare, Predicted: effect.Known,
			Text: fmt.Sprintf("is a cap over all of %s: it %s", r.Service, effect.Text),
		}}}
	}
	act := r.act(r.Reason, r.Force)
	placed, err := d.opts.Ledger.PlaceCap(ctx, act, ledger.Cap{
		Request: r.ID, Service: r.Service, Caller: r.Caller, Procedure: r.Procedure, RPS: r.LimitRPS, Block: r.Block,
		Author: act.Actor, Reason: r.Reason, PlacedAt: act.At, EndsAt: act.At.Add(r.For),
	})
	switch {
	case errors.Is(err, ledger.ErrCapEnded):
		return ledger.Cap{}, effect, invalid("request_id", "this request placed its cap already, which is over")
	case errors.Is(err, ledger.ErrRequestUsed):
		return ledger.Cap{}, effect, invalid("request_id", "this request placed another cap already")
	case err != nil:
		return ledger.Cap{}, effect, err
	}
	return placed, effect, d.incidentActive(ctx)
}

// check reports all faults of a request.
func (r *CapRequest) check() error {
	var problems []Problem
	refuse := func(where, format string, args ...any) {
		problems = append(problems, Problem{Where: where, Text: fmt.Sprintf(format, args...)})
	}
	switch limit := r.LimitRPS; {
	case r.Block && limit != 0:
		refuse("rps", "a cap either blocks or has a limit")
	case r.Block:
	case !(limit >= limitsfile.MinRPS && limit <= limitsfile.MaxRPS): // also for NaN
		refuse("rps", "%v is not from %v to %v; to drop everything, block", limit, limitsfile.MinRPS, policy.Rate(limitsfile.MaxRPS))
	}
	if what := checkSpan(r.For); what != "" {
		refuse("duration", "%s", what)
	}
	if r.Reason == "" {
		refuse("reason", "is empty")
	} else if what := checkReason(r.Reason); what != "" {
		refuse("reason", "%s", what)
	}
	if len(r.ID) > maxRequestID {
		refuse("request_id", "has %d bytes, at most %d", len(r.ID), maxRequestID)
	} else if what := checkText(r.ID); what != "" {
		refuse("request_id", "%s", what)
	}
	problems = append(problems, r.checkNames()...)
	if len(problems) > 0 {
		return &InvalidError{problems}
	}
	return nil
}

// checkSpan says what is wrong with how long a cap shall hold; "": nothing.
func checkSpan(span time.Duration) string {
	if span < minCap || span > maxCap {
		return fmt.Sprintf("%v is not from %v to %v", span, minCap, maxCap)
	}
	return ""
}

// checkNames lets the reader of limits files judge service and patterns: a cap
// names what a bucket may name.
func (r *CapRequest) checkNames() []Problem {
	for _, f := range []struct{ where, value string }{{"service", r.Service}, {"caller", r.Caller}, {"procedure", r.Procedure}} {
		if len(f.value) > limitsfile.MaxNameBytes {
			return []Problem{{Where: f.where, Text: fmt.Sprintf("has %d bytes, at most %d", len(f.value), limitsfile.MaxNameBytes)}}
		}
		if what := checkText(f.value); what != "" {
			return []Problem{{Where: f.where, Text: what}}
		}
	}
	text := limitsfile.Normalize(limiter.Service{Name: r.Service, Buckets: []limiter.Bucket{{Name: "cap", Match: r.match(), LimitRPS: 1, Behavior: limiter.Deny}}})
	_, err := limitsfile.Parse("cap", text)
	return capProblems(err)
}

func (r *CapRequest) match() limiter.Match {
	return limiter.Match{Caller: limiter.Pattern(r.Caller), Procedure: limiter.Pattern(r.Procedure)}
}

// everything reports whether the cap is over all of its service.
func (r *CapRequest) everything() bool {
	return (r.Caller == "" || r.Caller == "*") && (r.Procedure == "" || r.Procedure == "*")
}

// effect predicts from what is offered now.
func (d *Desk) effect(r CapRequest) Effect {
	offered, known := d.opts.Traffic.Offered(r.Service, r.match())
	switch {
	case !known:
		return Effect{Text: "cannot tell what it would drop: no bucket counts just these requests"}
	case offered <= 0:
		return Effect{Known: true, Text: "would drop nothing: nothing that it selects is offered now"}
	}
	e := Effect{OfferedRPS: offered, Known: true}
	if r.Block {
		e.DropShare = 1
	} else {
		e.DropShare = max(0, (offered-r.LimitRPS)/offered)
	}
	whose := r.Service + "'s"
	if r.Caller != "" && r.Caller != "*" {
		whose = r.Caller + "'s"
	}
	if e.DropShare == 0 {
		e.Text = fmt.Sprintf("would drop nothing of %s %s rps now", whose, policy.Rate(offered))
	} else {
		e.Text = fmt.Sprintf("would drop %s of %s %s rps now", guard.Percent(e.DropShare), whose, policy.Rate(offered))
	}
	return e
}

// LiftCap ends a cap at once. Errors are those of PlaceCap, and ErrNotFound.
func (d *Desk) LiftCap(ctx context.Context, by By, id, reason string) (ledger.Cap, error) {
	if what := checkReason(reason); what != "" {
		return ledger.Cap{}, invalid("reason", "%s", what)
	}
	if _, err := d.capToTouch(ctx, by, "cap.lift", id); err != nil {
		return ledger.Cap{}, err
	}
	lifted, err := d.opts.Ledger.LiftCap(ctx, by.act(reason, false), id)
	if err != nil {
		return ledger.Cap{}, err
	}
	return lifted, d.incidentActive(ctx)
}

// ExtendCap moves the end of a cap that is in force to a time from now on, which
// must be later than its end, and returns it when that is active here. Errors
// are those of LiftCap; an *InvalidError also for a cap that has ended.
func (d *Desk) ExtendCap(ctx context.Context, by By, id string, span time.Duration, reason string) (ledger.Cap, error) {
	var problems []Problem
	if what := checkSpan(span); what != "" {
		problems = append(problems, Problem{Where: "duration", Text: what})
	}
	if what := checkReason(reason); what != "" {
		problems = append(problems, Problem{Where: "reason", Text: what})
	}
	if len(problems) > 0 {
		return ledger.Cap{}, &InvalidError{problems}
	}
	c, err := d.capToTouch(ctx, by, "cap.extend", id)
	if err != nil {
		return ledger.Cap{}, err
	}
	act := by.act(reason, false)
	longer, err := d.opts.Ledger.ExtendCap(ctx, act, id, act.At.Add(span))
	switch {
	case errors.Is(err, ledger.ErrCapEnded):
		return ledger.Cap{}, invalid("id", "cap %s ended at %s and ramps out: place a new one", id, clock(c.EndsAt))
	case errors.Is(err, ledger.ErrCapLonger):
		return ledger.Cap{}, invalid("duration", "cap %s holds until %s already, which is later: lift it to end it", id, clock(c.EndsAt))
	case err != nil:
		return ledger.Cap{}, err
	}
	return longer, d.incidentActive(ctx)
}

// clock prints a time for an error.
func clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// capToTouch returns a cap that a person may act on.
func (d *Desk) capToTouch(ctx context.Context, by By, action, id string) (ledger.Cap, error) {
	state, err := d.opts.Ledger.State(ctx)
	if err != nil {
		return ledger.Cap{}, err
	}
	for _, c := range state.Incident.Caps {
		if c.ID == id {
			return c, d.mayTouch(ctx, by, action, c.Service, false)
		}
	}
	return ledger.Cap{}, fmt.Errorf("cap %q: %w", clip(id), ErrNotFound)
}

// Caps returns the caps of a service, those of all for "", the newest first.
func (d *Desk) Caps(ctx context.Context, service string) ([]ledger.Cap, error) {
	state, err := d.opts.Ledger.State(ctx)
	if err != nil {
		return nil, err
	}
	var caps []ledger.Cap
	for _, c := range state.Incident.Caps {
		if service == "" || c.Service == service {
			caps = append(caps, c)
		}
	}
	return caps, nil
}

// CapLoad returns what a cap does now.
func (d *Desk) CapLoad(c ledger.Cap) CapLoad { return d.opts.Traffic.Cap(c.Service, c.ID) }

// mayTouch makes sure that a person may act on a service in an incident.
func (d *Desk) mayTouch(ctx context.Context, by By, action, service string, force bool) error {
	if by.Person.Level == access.Admin {
		return nil // also while the configuration cannot be read
	}
	if force {
		return d.deny(ctx, by, action, []string{service}, "force needs the role admin")
	}
	owner, err := d.ownerOf(ctx, service)
	if err != nil {
		return err
	}
	if !by.Person.MayEdit(service, owner) {
		return d.deny(ctx, by, action, []string{service}, "%s may not act on %s", by.Person.Name, service)
	}
	return nil
}

// ownerOf returns the present owner of a service, "" if it has none.
func (d *Desk) ownerOf(ctx context.Context, service string) (string, error) {
	revision, err := d.opts.Ledger.Head(ctx)
	if err != nil {
		return "", err
	}
	head, err := d.readHead(ctx, revision)
	if err != nil {
		return "", err
	}
	return head.owner(service), nil
}

// incidentActive waits until what was changed beside the revisions is installed
// here.
func (d *Desk) incidentActive(ctx context.Context) error {
	state, err := d.opts.Ledger.State(ctx)
	if err != nil {
		return &PendingError{}
	}
	return d.active(ctx, 0, state.Incident.Serial)
}

// Package ledger keeps what a group of controllers must not forget, over any
// store.Engine: the configuration as numbered revisions, caps and what is
// disabled, the rollout under way, accounts, and the audit of all changes. Each
// change is one commit together with its audit entry, or none.
//
// Keys: state/head, state/incident and state/rollout are what a controller
// installs; rev/N has the revisions, manifest/HASH and doc/HASH/PART what they
// consist of, each under its SHA-256; audit/N and audit-head the audit;
// source/NAME, account/NAME, token/ID, session/ID, epoch and alert-mutes the
// rest. Of the policies that compute limits, policy-head and policy/N have the
// revisions, policy-text/N the texts; rlc-run/N, rlc-result/N/PART and
// rlc-decision/N/PART have the last runs of the configurator, rlc-memory/HASH
// what it learnt of buckets, rlc-lease and rlc-requests who is at work and what
// waits. Values are JSON, documents YAML, what can be large is compressed. Why it
// is laid out so: docs/decisions/0018-store-engines.md.
package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"grl/store"
)

var (
	// ErrConflict says that the head, or the record, is not the one that a change
	// was made for.
	ErrConflict = store.ErrConflict
	// ErrNotFound says that there is no such revision, cap, account, token,
	// session, run or request.
	ErrNotFound = errors.New("not found")
	// ErrTooMany says that a bound on how many of something there may be is
	// reached.
	ErrTooMany = errors.New("too many")
)

// Ledger is a view of an engine. Create it with New. All methods may be called
// concurrently, and by several processes on one engine. Beside the errors that
// each names, all return store.ErrUnavailable if the engine cannot answer, its
// case store.ErrDamaged if a record is not as it was written, and
// store.ErrFull if there is no space; after such an error a change may or may
// not have been made.
type Ledger struct {
	engine store.Engine
}

// New returns the ledger of an engine, which stays the caller's to close.
func New(engine store.Engine) *Ledger { return &Ledger{engine: engine} }

// Act says who does something, for the audit.
type Act struct {
	Actor     string // required: an account, "limits directory", a node
	From      string // address or directory it came from
	Reason    string
	RequestID string
	Forced    bool
	At        time.Time // required; kept in milliseconds
}

func (a *Act) validate() error {
	var errs []error
	if a.Actor == "" {
		errs = append(errs, errors.New("actor missing"))
	}
	return errors.Join(append(errs, checkTime("time", a.At))...)
}

// checkTime returns an error if at is zero, or too far off to be written.
func checkTime(name string, at time.Time) error {
	if at.IsZero() {
		return fmt.Errorf("%s missing", name)
	}
	if year := at.UTC().Year(); year < 1970 || year > 9999 {
		return fmt.Errorf("%s in the year %d", name, year)
	}
	return nil
}

// State is all that a controller installs from, read at one moment.
type State struct {
	Head     Revision
	Incident Incident
	Rollout  Rollout // zero: there was none
}

const (
	keyState    = "state/"
	keyHead     = "state/head"
	keyIncident = "state/incident"
	keyRollout  = "state/rollout"
)

// State returns what a controller installs from.
func (l *Ledger) State(ctx context.Context) (State, error) {
	state, err := l.state(ctx)
	if err != nil {
		return State{}, fmt.Errorf("read state: %w", err)
	}
	return state, nil
}

func (l *Ledger) state(ctx context.Context) (State, error) {
	records, err := l.engine.Get(ctx, keyHead, keyIncident, keyRollout)
	if err != nil {
		return State{}, err
	}
	var state State
	if state.Head, err = decodeRevision(records[0]); err != nil {
		return State{}, err
	}
	var kept incident
	if err := decode(records[1], &kept); err != nil {
		return State{}, err
	}
	state.Incident = kept.Incident
	return state, decode(records[2], &state.Rollout)
}

// Changed returns a channel on which a value arrives after the State changed,
// by whichever process, and one at the start; see store.Engine.Changed. It
// closes when ctx ends.
func (l *Ledger) Changed(ctx context.Context) <-chan struct{} {
	return l.engine.Changed(ctx, keyState)
}

// Package desk is where changes are handed in, whichever way they come: it
// checks them, merges them with what was changed meanwhile, asks the guard
// rails, and commits each as one revision together with its audit entry, or
// refuses it with all its reasons. docs/decisions/0019-guard-rails.md says what
// a base is, and what needs force.
package desk

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"grl/limiter"
	"grl/policy/guard"
	"grl/proto/access"
	"grl/store/ledger"
)

// activeWithin is how long a change may take, once it is committed, to be
// installed at this controller.
const activeWithin = 20 * time.Second

// Traffic is what the controller knows besides the configuration. Methods may
// be called concurrently.
type Traffic interface {
	// Offered returns the requests per second that are offered now to a service
	// by callers and procedures that match; false: cannot tell.
	Offered(service string, match limiter.Match) (rps float64, known bool)
	// History returns what the cells of a bucket were offered in the minutes
	// that start in [from, to), as far as there is any.
	History(ctx context.Context, bucket string, from, to time.Time) ([]guard.Cell, error)
	// Cap returns what a cap does now; zero if it is not known yet.
	Cap(service, id string) CapLoad
	// Zones returns the names of the zones that live, in the order in which a
	// rollout reaches them.
	Zones() []string
	// Regions returns the same zones by their region, in the order in which a
	// rollout that goes region by region reaches them.
	Regions() [][]string
	// Active returns once this controller has installed a revision and serial,
	// or later ones.
	Active(ctx context.Context, revision, serial uint64) error
}

// CapLoad is what a cap does now.
type CapLoad struct {
	OfferedRPS, DroppedRPS float64 // requests per second
	// Holding of Clients that could hold the cap have it.
	Holding, Clients int
	// Unheard is how many more there were in zones that are silent now.
	Unheard int
}

// Options says what a desk works with. All fields are required.
type Options struct {
	Ledger  *ledger.Ledger
	Traffic Traffic
	Log     *slog.Logger
}

// Desk takes changes. Create it with New. All methods may be called
// concurrently; within a process changes go one after another, and between the
// controllers of a group the ledger lets only one of two through, after which
// the other is merged anew.
type Desk struct {
	opts Options
	turn chan struct{} // holds one token: whoever has it may make a revision
	// head is what was read or written last, nil before; it saves reading what
	// did not change. It may be older than the head.
	head    atomic.Pointer[snapshot]
	denials denials
	judged  atomic.Pointer[judgement] // the last one; nil: none

	refusedMu sync.Mutex         // guards refused
	refused   map[string]refusal // source → why what it has was refused last
}

// New returns a desk.
func New(o Options) *Desk {
	d := &Desk{opts: o, turn: make(chan struct{}, 1), refused: make(map[string]refusal)}
	d.turn <- struct{}{}
	return d
}

// By is who hands something in.
type By struct {
	Person access.Person
	// From is the address or directory it came from, RequestID that of the call.
	From      string
	RequestID string
}

// active waits until what was committed is installed here.
func (d *Desk) active(ctx context.Context, revision, serial uint64) error {
	ctx, cancel := context.WithTimeout(ctx, activeWithin)
	defer cancel()
	if err := d.opts.Traffic.Active(ctx, revision, serial); err != nil {
		d.opts.Log.WarnContext(ctx, "a change is saved and not active here", "revision", revision, "serial", serial, "err", err)
		return &PendingError{Revision: revision}
	}
	return nil
}

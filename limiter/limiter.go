// Package limiter decides in-process, without a lock, an allocation, a clock
// or an RPC, whether a request is admitted: it finds the cells of the request,
// counts it, and samples it against their drop ratios.
//
// The ratios come from outside: a client (package grl/roles/client) writes
// them with Cell.SetRatio and reads the counts with Collect. A Limiter that
// nobody feeds admits everything: fail open is the zero value.
package limiter

import (
	"iter"
	"time"
)

// Request is one request as the decision sees it. Zero values mean cost 1,
// first attempt, no tier, no trace, not verified.
type Request struct {
	Service   string // the callee
	Caller    string // the service that sends it; "" counts as UnknownCaller
	Procedure string // pkg.Service/Method, or METHOD /route/{template}
	// Cost counts in buckets whose cost comes from a header; 0 means 1.
	Cost uint32
	// Attempt is 0 for the first attempt.
	Attempt uint32
	// Tier is the request's priority tier; 0: none.
	Tier uint32
	// TraceID identifies the user's journey; the zero value: none.
	TraceID [16]byte
	// Verified says that the caller's identity was proved, not claimed.
	Verified bool
}

// Decision is what to do with a request. The zero value admits it.
type Decision struct {
	// Dropped says that the request must be answered at once with a refusal.
	Dropped bool
	// Bucket is the bucket that dropped it; nil when admitted. Read only.
	Bucket *Bucket
	// Service is the configuration Bucket belongs to; nil when admitted.
	Service *Service
}

// Options says where a limiter runs. The zero value works.
type Options struct {
	Zone   string
	Region string
	// MaxNames bounds the distinct callers, and the distinct procedures, of a
	// service that are told apart; 0 means 10,000.
	MaxNames int
}

// Limiter holds the configuration, the ratios and the counts of one process.
// All methods may be called concurrently.
type Limiter struct{ opts Options }

// New returns a limiter that admits everything until it is fed.
func New(opts Options) *Limiter { return &Limiter{opts: opts} }

// Decide counts the request and says whether to admit it.
func (l *Limiter) Decide(r Request) Decision { return Decision{} }

// Service returns the short form for requests to one service. The result stays
// valid across configurations; keep it.
func (l *Limiter) Service(name string) *Callee { return &Callee{name: name} }

// Callee decides requests to one service.
type Callee struct{ name string }

// Decide counts an unverified first attempt of cost 1 and says whether to
// admit it.
func (s *Callee) Decide(caller, procedure string) Decision { return Decision{} }

// DecideRequest is Decide for a whole request; r.Service is ignored.
func (s *Callee) DecideRequest(r Request) Decision { return Decision{} }

// Configuration returns the installed configuration of the service, nil if it
// has none. Read only; a new one is a new pointer.
func (s *Callee) Configuration() *Service { return nil }

// Handle returns the short form for callers that resolve once: requests of one
// caller to one procedure. It stays valid across configurations.
func (l *Limiter) Handle(service, caller, procedure string) *Handle { return &Handle{} }

// Handle decides the requests of one caller to one procedure.
type Handle struct{}

// Decide counts an unverified first attempt of cost 1 and says whether to
// admit it.
func (h *Handle) Decide() Decision { return Decision{} }

// Install replaces the configuration. Counts and ratios of cells that both
// configurations have stay. It returns an error, and keeps the old one, if c
// breaks a rule that Validate knows.
func (l *Limiter) Install(c Configuration) error { return nil }

// Counts are cumulative since the cell came to be.
type Counts struct {
	Offered       uint64 // requests that reached the cell, dropped ones included
	Dropped       uint64
	ShadowDropped uint64 // admitted ones that enforcement would have dropped
}

// Cell is one cell of the installed configuration as this process sees it.
type Cell struct{}

// ID names the cell.
func (c *Cell) ID() CellID { return CellID{} }

// Bucket returns the cell's bucket in the configuration that was current at
// the last Install or Collect. Read only.
func (c *Cell) Bucket() *Bucket { return nil }

// Counts returns what the last Collect found.
func (c *Cell) Counts() Counts { return Counts{} }

// SetRatio sets the share of requests to drop, in [0, 1]; anything else, NaN
// too, counts as 0. A live directive may say 0; see SetOpen.
func (c *Cell) SetRatio(p float64) {}

// SetOpen sets the ratio to 0 because there is no live directive: requests
// count as not limited for the reason "fail_open".
func (c *Cell) SetOpen() {}

// Cell returns the cell of that name, nil if no bucket of the installed
// configuration has it or the bound on names is reached.
func (l *Limiter) Cell(id CellID) *Cell { return nil }

// Cells yields the live cells in no order.
func (l *Limiter) Cells() iter.Seq[*Cell] { return func(func(*Cell) bool) {} }

// Collect forms the counts of all cells from what was counted since the last
// call, and forgets names idle for ten minutes. One caller at a time; now is
// on the monotonic clock.
func (l *Limiter) Collect(now time.Time) {}

// Package ledger keeps what a group of controllers must not forget, over any
// store.Engine: the configuration as numbered revisions, caps and what is
// disabled, the rollout under way, accounts, and the audit of all changes. Each
// change is one commit together with its audit entry, or none.
package ledger

import (
	"context"
	"errors"
	"time"

	"grl/store"
)

var (
	// ErrConflict says that the head, or the record, is not the one that a change
	// was made for.
	ErrConflict = store.ErrConflict
	// ErrNotFound says that there is no such revision, cap, account or token.
	ErrNotFound = errors.New("not found")
)

// Ledger is a view of an engine. Create it with New. All methods may be called
// concurrently, and by several processes on one engine.
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
	At        time.Time // required
}

// Revision is one state of the configuration. Number 0 is the empty one before
// the first change.
type Revision struct {
	Number     uint64
	Author     string
	Reason     string
	Source     string
	SourceHash string
	At         time.Time // in milliseconds; zero for number 0
	// Changed is set by Apply only: the change made this revision.
	Changed bool

	manifest []byte // SHA-256 over services and hashes; nil for number 0
}

// Change is the configuration as it shall be.
type Change struct {
	Act
	// Action, Subjects, Before and After are for the audit entry: "apply",
	// "rollback", "promote"; full names of buckets; what they were and are.
	Action        string
	Subjects      []string
	Before, After string
	// Documents holds the normalised YAML of every service by the service's
	// name: the whole configuration, not a difference.
	Documents map[string][]byte
	// Sources are remembered with the revision that is head afterwards, each
	// with the hash of its content, even if the configuration is the same; see
	// LastSource. The first one names the revision's source. nil: none.
	Sources []Source
	// Rollout is written with the revision; nil: it goes everywhere at once, and
	// a rollout under way ends.
	Rollout *Rollout
}

// Source is where limits files came from, such as "limits directory", and the
// hash of their content.
type Source struct{ Name, Hash string }

// Rollout is a revision on its way through the zones.
type Rollout struct {
	Revision  uint64    `json:"revision"`
	From      uint64    `json:"from"`    // what zones hold that it has not reached
	State     string    `json:"state"`   // RolloutRunning, RolloutDone, RolloutStopped
	Reached   []string  `json:"reached"` // zones, and regions as "region NAME", in order
	StartedAt time.Time `json:"started_at"`
	StepAt    time.Time `json:"step_at"` // the last one was reached
	Reason    string    `json:"reason,omitempty"`
}

// States of a Rollout.
const (
	RolloutRunning = "running"
	RolloutDone    = "done"
	RolloutStopped = "stopped"
)

// Cap is a cap as placed.
type Cap struct {
	ID        string    `json:"id"`
	Service   string    `json:"service"`
	Caller    string    `json:"caller,omitempty"`
	Procedure string    `json:"procedure,omitempty"`
	RPS       float64   `json:"rps,omitempty"`
	Block     bool      `json:"block,omitempty"`
	Author    string    `json:"author"`
	Reason    string    `json:"reason"`
	PlacedAt  time.Time `json:"placed_at"`
	EndsAt    time.Time `json:"ends_at"`
}

// Incident is what holds beside the revisions.
type Incident struct {
	Serial      uint64   `json:"serial"` // counts its changes
	Caps        []Cap    `json:"caps"`   // the newest first
	AllDisabled bool     `json:"all_disabled"`
	Disabled    []string `json:"disabled"` // services, sorted
}

// Entry is one entry of the audit.
type Entry struct {
	Number    uint64    `json:"number"`
	At        time.Time `json:"at"`
	Actor     string    `json:"actor"`
	From      string    `json:"from"`
	Action    string    `json:"action"`
	Subjects  []string  `json:"subjects"`
	Before    string    `json:"before"`
	After     string    `json:"after"`
	Reason    string    `json:"reason"`
	RequestID string    `json:"request_id"`
	Forced    bool      `json:"forced"`
	Revision  uint64    `json:"revision"`
	Hash      []byte    `json:"hash"`
}

// State is all that a controller installs from, read at one moment.
type State struct {
	Head     Revision
	Incident Incident
	Rollout  Rollout // zero: there was none
}

// Filter selects entries; its zero value all.
type Filter struct{ Actor, Action, Subject string }

// Verification is what VerifyAudit found.
type Verification struct {
	Entries uint64
	Hash    []byte // of the newest entry
	Broken  uint64 // first entry that does not hold; 0: all hold
	Reason  string
}

// Account is a person who may sign in.
type Account struct {
	Name      string    `json:"name"`
	Role      string    `json:"role"` // viewer, editor, admin
	Services  []string  `json:"services,omitempty"`
	Owners    []string  `json:"owners,omitempty"`
	Password  string    `json:"password,omitempty"` // argon2id in PHC form; "" with OIDC
	CreatedAt time.Time `json:"created_at"`
}

// Token is an API token.
type Token struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	Account   string    `json:"account"`
	Role      string    `json:"role"`
	Services  []string  `json:"services,omitempty"`
	Hash      []byte    `json:"hash"` // SHA-256 of the secret
	CreatedAt time.Time `json:"created_at"`
	ExpiresAt time.Time `json:"expires_at"`
	UsedAt    time.Time `json:"used_at"` // to the minute; zero: never
}

// Session is a person who has signed in.
type Session struct {
	ID        string    `json:"id"`
	Account   string    `json:"account"`
	Hash      []byte    `json:"hash"` // SHA-256 of the secret
	From      string    `json:"from"`
	CreatedAt time.Time `json:"created_at"`
	UsedAt    time.Time `json:"used_at"` // to the minute
	ExpiresAt time.Time `json:"expires_at"`
}

// The methods; see the files of the package.
type _ interface {
	State(ctx context.Context) (State, error)
	Head(ctx context.Context) (Revision, error)
	Revision(ctx context.Context, number uint64) (Revision, error)
	Revisions(ctx context.Context, before uint64, limit int) ([]Revision, error)
	Documents(ctx context.Context, revision uint64) (map[string][]byte, error)
	Apply(ctx context.Context, base uint64, c Change) (Revision, error)
	LastSource(ctx context.Context, name string) (hash string, revision uint64, err error)
	SetRollout(ctx context.Context, act Act, action string, was, next Rollout) error
	Changed(ctx context.Context) <-chan struct{}

	NextEpoch(ctx context.Context, heard uint64) (uint64, error)

	PlaceCap(ctx context.Context, act Act, c Cap) (Cap, error)
	LiftCap(ctx context.Context, act Act, id string) (Cap, error)
	ForgetCaps(ctx context.Context, endedBefore time.Time) error
	Disable(ctx context.Context, act Act, service string) (Incident, error) // "" is everything
	Enable(ctx context.Context, act Act, service string) (Incident, error)

	Note(ctx context.Context, act Act, action string, subjects []string, before, after string) error
	Audit(ctx context.Context, before uint64, limit int, f Filter) ([]Entry, error)
	VerifyAudit(ctx context.Context) (Verification, error)

	Accounts(ctx context.Context) ([]Account, error)
	Account(ctx context.Context, name string) (Account, error)
	PutAccount(ctx context.Context, act Act, a Account) error
	DeleteAccount(ctx context.Context, act Act, name string) error
	Tokens(ctx context.Context) ([]Token, error)
	Token(ctx context.Context, id string) (Token, error)
	AddToken(ctx context.Context, act Act, t Token) error
	RevokeToken(ctx context.Context, act Act, id string) error
	UseToken(ctx context.Context, id string, at time.Time) error
	Sessions(ctx context.Context) ([]Session, error)
	Session(ctx context.Context, id string) (Session, error)
	AddSession(ctx context.Context, act Act, s Session) error
	UseSession(ctx context.Context, id string, at time.Time) error
	EndSession(ctx context.Context, act Act, id string) error
}

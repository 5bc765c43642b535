package store

import "context"

// Engine keeps records under keys, as SQLite and etcd both can. What is written
// together is there together or not at all, and survives a kill or a power cut
// once Commit has returned. All methods may be called concurrently. Errors are
// ErrUnavailable, ErrFull or ErrConflict where callers must tell them apart.
//
// A key is at most 512 bytes of printable ASCII, a value at most MaxValue, a
// commit at most MaxWrites writes and conditions of MaxCommit bytes in all:
// what etcd takes by default.
type Engine interface {
	// Get returns the records of keys at one moment, in their order. One that is
	// missing has Version 0 and no value.
	Get(ctx context.Context, keys ...string) ([]Record, error)
	// List returns the records whose keys begin with prefix and, unless after is
	// "", lie beyond after, in the order of keys, or the other way with
	// descending; limit at most, 0: all.
	List(ctx context.Context, prefix, after string, limit int, descending bool) ([]Record, error)
	// Commit makes the writes if all conditions hold, else it returns
	// ErrConflict. After another error it may or may not have been done.
	Commit(ctx context.Context, conditions []Condition, writes []Write) error
	// Changed returns a channel on which a value arrives, at the latest a moment
	// later, after records below prefix changed, by whichever process; several
	// changes may share one. One arrives at the start. The channel closes when
	// ctx ends.
	Changed(ctx context.Context, prefix string) <-chan struct{}
	// Campaign waits until this process leads, by name, or ctx ends. who is shown
	// to people.
	Campaign(ctx context.Context, name, who string) (Leadership, error)
	// Warnings is what a person should hear about, such as damage; see Store.
	Warnings() []string
	Close() error
}

// Record is one key with its value.
type Record struct {
	Key   string
	Value []byte
	// Version changes, upwards, each time the record is written; 0: there is none.
	Version uint64
}

// Condition holds if the record of a key has that version, 0 for none.
type Condition struct {
	Key     string
	Version uint64
}

// Write sets the value of a key, or deletes it if Delete is set.
type Write struct {
	Key    string
	Value  []byte
	Delete bool
}

// Bounds of an Engine.
const (
	MaxValue  = 1 << 20
	MaxWrites = 100
	MaxCommit = 1 << 20
)

// Leadership is that of this process, for as long as it has it.
type Leadership interface {
	// Lost closes when the leadership is lost, or may be: another process may
	// lead from then on, never before.
	Lost() <-chan struct{}
	// Resign gives it up, so that another one need not wait.
	Resign(ctx context.Context) error
}

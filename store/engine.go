package store

import (
	"context"
	"fmt"
)

// Engine keeps records under keys, as SQLite and etcd both can. What is written
// together is there together or not at all, and survives a kill or a power cut
// once Commit has returned. All methods may be called concurrently. Errors are
// ErrUnavailable, ErrFull or ErrConflict where callers must tell them apart.
//
// A key is 1 to MaxKey bytes of printable ASCII without spaces, a value at most
// MaxValue bytes, a commit at most MaxWrites conditions and writes, together, of
// MaxCommit bytes in all, and no two writes of one key: what etcd takes by
// default. CheckCommit tells.
type Engine interface {
	// Get returns the records of keys at one moment, in their order. One that is
	// missing has Version 0 and no value.
	Get(ctx context.Context, keys ...string) ([]Record, error)
	// List returns the records whose keys begin with prefix and lie beyond after,
	// in the order of keys; limit at most, 0: all.
	List(ctx context.Context, prefix, after string, limit int) ([]Record, error)
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

// Bounds of an Engine, in bytes and in conditions and writes together.
const (
	MaxKey    = 512
	MaxValue  = 1 << 20
	MaxWrites = 100
	MaxCommit = 1 << 20
)

// ErrDamaged is the ErrUnavailable of a record that is not as it was written.
var ErrDamaged = fmt.Errorf("%w: %w", ErrUnavailable, errDamaged)

// CheckKey returns an error if key is none that an Engine takes.
func CheckKey(key string) error {
	if key == "" || len(key) > MaxKey {
		return fmt.Errorf("key of %d bytes, want 1 to %d", len(key), MaxKey)
	}
	return checkPrefix(key)
}

// checkPrefix is CheckKey of the beginning of a key, which may be empty.
func checkPrefix(prefix string) error {
	for i := range len(prefix) {
		if c := prefix[i]; c <= ' ' || c > '~' {
			return fmt.Errorf("key %q: only printable ASCII without spaces", prefix)
		}
	}
	return nil
}

// CheckCommit returns an error if a commit breaks the bounds of an Engine.
func CheckCommit(conditions []Condition, writes []Write) error {
	if n := len(conditions) + len(writes); n > MaxWrites {
		return fmt.Errorf("commit of %d conditions and writes, at most %d", n, MaxWrites)
	}
	size := 0
	for _, c := range conditions {
		if err := CheckKey(c.Key); err != nil {
			return err
		}
		size += len(c.Key)
	}
	written := make(map[string]bool, len(writes))
	for _, w := range writes {
		if err := CheckKey(w.Key); err != nil {
			return err
		}
		if written[w.Key] {
			return fmt.Errorf("key %q: written twice in a commit", w.Key)
		}
		written[w.Key] = true
		if len(w.Value) > MaxValue {
			return fmt.Errorf("key %q: value of %d bytes, at most %d", w.Key, len(w.Value), MaxValue)
		}
		size += len(w.Key) + len(w.Value)
	}
	if size > MaxCommit {
		return fmt.Errorf("commit of %d bytes, at most %d", size, MaxCommit)
	}
	return nil
}

// Leadership is that of this process, for as long as it has it.
type Leadership interface {
	// Lost closes when the leadership is lost, or may be: another process may
	// lead from then on, never before.
	Lost() <-chan struct{}
	// Resign gives it up, so that another one need not wait.
	Resign(ctx context.Context) error
}

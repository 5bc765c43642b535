package ledger

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"grl/store"
)

// Lease says which configurator is at work.
type Lease struct {
	Holder string    `json:"holder"` // "": nobody
	At     time.Time `json:"at"`     // it was last written
	Until  time.Time `json:"until"`
	Status []byte    `json:"status,omitempty"` // what the holder says of itself
}

const (
	keyLease = "rlc-lease"
	// statusEvery is how often a status that changes is written.
	statusEvery = 10 * time.Second
	// maxStatus bounds a status, in bytes.
	maxStatus = 512 << 10
)

// Lease returns the lease, whether it is over or not; a zero one if nobody has
// it.
func (l *Ledger) Lease(ctx context.Context) (Lease, error) {
	records, err := l.engine.Get(ctx, keyLease)
	var lease Lease
	if err == nil {
		err = decode(records[0], &lease)
	}
	if err != nil {
		return Lease{}, fmt.Errorf("read lease: %w", err)
	}
	return lease, nil
}

// TakeLease gives the lease to holder until ttl, above 0, after now, unless
// another one has it, and returns the one that holds then. It writes only if the
// holder changes, a third of ttl is over, or the status changed and was not
// written for 10 s, so that a holder may call it often.
func (l *Ledger) TakeLease(ctx context.Context, holder string, ttl time.Duration, now time.Time, status []byte) (Lease, error) {
	err := checkLease(holder, ttl, now, status)
	var lease Lease
	if err == nil {
		err = l.change(ctx, []string{keyLease}, func(_ context.Context, records []store.Record) (*plan, error) {
			lease = Lease{}
			if err := decode(records[0], &lease); err != nil {
				return nil, err
			}
			if !lease.due(holder, ttl, now, status) {
				return nil, nil
			}
			lease = Lease{
				Holder: holder, At: now.UTC().Truncate(time.Millisecond), Until: now.Add(ttl).UTC().Truncate(time.Millisecond),
				Status: append([]byte(nil), status...),
			}
			return &plan{writes: []store.Write{put(keyLease, lease)}}, nil
		})
	}
	if err != nil {
		return Lease{}, fmt.Errorf("take lease: %w", err)
	}
	return lease, nil
}

func checkLease(holder string, ttl time.Duration, now time.Time, status []byte) error {
	if holder == "" || len(holder) > maxName {
		return fmt.Errorf("holder of %d bytes, want 1 to %d", len(holder), maxName)
	}
	if ttl <= 0 {
		return errors.New("it lasts no time")
	}
	if len(status) > maxStatus {
		return fmt.Errorf("%w: status of %d bytes, at most %d", ErrTooMany, len(status), maxStatus)
	}
	return checkTime("time", now)
}

// due reports whether the lease is to be written for holder.
func (l *Lease) due(holder string, ttl time.Duration, now time.Time, status []byte) bool {
	if l.Holder != holder {
		// An end beyond any that could be asked for now is that of a clock which
		// was wrong.
		return !now.Before(l.Until) || l.Until.Sub(now) > 2*ttl
	}
	age := now.Sub(l.At)
	return age < 0 || age >= ttl/3 || age >= statusEvery && !bytes.Equal(status, l.Status)
}

// LeaveLease gives the lease up, if holder has it.
func (l *Ledger) LeaveLease(ctx context.Context, holder string) error {
	err := l.change(ctx, []string{keyLease}, func(_ context.Context, records []store.Record) (*plan, error) {
		var lease Lease
		if err := decode(records[0], &lease); err != nil {
			return nil, err
		}
		if records[0].Version == 0 || lease.Holder != holder {
			return nil, nil
		}
		return &plan{writes: []store.Write{{Key: keyLease, Delete: true}}}, nil
	})
	if err != nil {
		return fmt.Errorf("leave lease: %w", err)
	}
	return nil
}

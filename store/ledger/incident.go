package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"grl/store"
)

// Incident is what holds beside the revisions.
type Incident struct {
	Serial      uint64   `json:"serial"` // counts its changes
	Caps        []Cap    `json:"caps"`   // the newest first
	AllDisabled bool     `json:"all_disabled"`
	Disabled    []string `json:"disabled"` // services, sorted
	// Hour is the start of the quarter of an hour whose hourly limits hold; zero:
	// none was set.
	Hour time.Time `json:"hour,omitzero"`
}

// MaxDisabled bounds the services disabled one by one.
const MaxDisabled = 1000

// HourAhead is how far what SetHour has said may be ahead of what it says next,
// for clocks that differ.
const HourAhead = time.Hour

// maxIncident bounds the record of the Incident, in bytes.
const maxIncident = store.MaxValue * 3 / 4

// incident is the record of the Incident.
type incident struct {
	Incident
	LastCap uint64 `json:"last_cap"` // id that was given out last
	// Requests are those that placed a cap, the newest first: maxRemembered at
	// most.
	Requests []capRequest `json:"cap_requests,omitempty"`
}

// editIncident lets edit change what holds beside the revisions, and commits it with
// the next serial and the entry that edit returns. nil: it is as it shall be.
func (l *Ledger) editIncident(ctx context.Context, act Act, edit func(*incident) (*Entry, error)) (Incident, error) {
	if err := act.validate(); err != nil {
		return Incident{}, err
	}
	var i incident
	err := l.change(ctx, []string{keyIncident}, func(_ context.Context, records []store.Record) (*plan, error) {
		i = incident{}
		if err := decode(records[0], &i); err != nil {
			return nil, err
		}
		entry, err := edit(&i)
		if entry == nil || err != nil {
			return nil, err
		}
		i.Serial++
		write := put(keyIncident, i)
		if len(write.Value) > maxIncident {
			return nil, fmt.Errorf("%w: caps and disabled services of %d bytes, at most %d", ErrTooMany, len(write.Value), maxIncident)
		}
		return &plan{writes: []store.Write{write}, entry: entry}, nil
	})
	return i.Incident, err
}

// Disable stops all dropping of a service, "": of everything, and returns what
// holds then. What is disabled stays so, without another entry. ErrTooMany if
// MaxDisabled services are.
func (l *Ledger) Disable(ctx context.Context, act Act, service string) (Incident, error) {
	return l.toggle(ctx, act, "disable", service, true)
}

// Enable undoes Disable of the same service, "": of everything.
func (l *Ledger) Enable(ctx context.Context, act Act, service string) (Incident, error) {
	return l.toggle(ctx, act, "enable", service, false)
}

func (l *Ledger) toggle(ctx context.Context, act Act, action, service string, off bool) (Incident, error) {
	subject := service
	if service == "" {
		subject = "everything"
	}
	i, err := l.editIncident(ctx, act, func(i *incident) (*Entry, error) {
		changed, err := i.set(service, off)
		if !changed || err != nil {
			return nil, err
		}
		return act.entry(action, []string{subject}, "", ""), nil
	})
	if err != nil {
		return Incident{}, fmt.Errorf("%s %s: %w", action, subject, err)
	}
	return i, nil
}

// set says whether a service, "": everything, is disabled.
func (i *Incident) set(service string, off bool) (changed bool, err error) {
	if service == "" {
		changed = i.AllDisabled != off
		i.AllDisabled = off
		return changed, nil
	}
	at, is := slices.BinarySearch(i.Disabled, service)
	switch {
	case is == off:
		return false, nil
	case !off:
		i.Disabled = slices.Delete(i.Disabled, at, at+1)
	case len(service) > maxService:
		return false, errors.New("name of the service too long")
	case len(i.Disabled) >= MaxDisabled:
		return false, fmt.Errorf("%w: %d services are disabled", ErrTooMany, len(i.Disabled))
	default:
		i.Disabled = slices.Insert(i.Disabled, at, service)
	}
	return true, nil
}

// SetHour says which quarter of an hour it is, by its start, so that all
// controllers go over to the limits of an hour together. One that is not after
// what holds changes nothing, unless it is HourAhead or more before it: then a
// clock was wrong. That is no act of anybody, and not in the audit.
func (l *Ledger) SetHour(ctx context.Context, hour time.Time) error {
	err := checkTime("hour", hour)
	if err == nil {
		err = l.change(ctx, []string{keyIncident}, func(_ context.Context, records []store.Record) (*plan, error) {
			var i incident
			if err := decode(records[0], &i); err != nil {
				return nil, err
			}
			if !hour.After(i.Hour) && i.Hour.Sub(hour) < HourAhead {
				return nil, nil
			}
			i.Hour = hour.UTC()
			i.Serial++
			return &plan{writes: []store.Write{put(keyIncident, i)}}, nil
		})
	}
	if err != nil {
		return fmt.Errorf("set hour: %w", err)
	}
	return nil
}

package ledger

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"grl/store"
)

// Cap is a cap as placed: an incident limit of the callers and procedures that
// match, or a block of them. PlaceCap sets ID, Author, Reason and PlacedAt.
type Cap struct {
	// Request is the id of the request that places it, for PlaceCap alone.
	Request string `json:"-"`

	ID        string    `json:"id"` // unique for ever
	Service   string    `json:"service"`
	Caller    string    `json:"caller,omitempty"`
	Procedure string    `json:"procedure,omitempty"`
	RPS       float64   `json:"rps,omitempty"` // requests per second; 0 only with Block
	Block     bool      `json:"block,omitempty"`
	Author    string    `json:"author"`
	Reason    string    `json:"reason"`
	PlacedAt  time.Time `json:"placed_at"`
	EndsAt    time.Time `json:"ends_at"`
}

// Bounds of caps.
const (
	MaxCaps    = 1000           // placed, ramping out or not forgotten yet
	MaxCapLife = 24 * time.Hour // from placing or extending to the end
)

func (c *Cap) validate() error {
	var errs []error
	for what, name := range map[string]string{"service": c.Service, "caller": c.Caller, "procedure": c.Procedure} {
		if len(name) > maxService {
			errs = append(errs, fmt.Errorf("%s of %d bytes, at most %d", what, len(name), maxService))
		}
	}
	if c.Service == "" {
		errs = append(errs, errors.New("service missing"))
	}
	if c.Block == (c.RPS != 0) || c.RPS < 0 || math.IsNaN(c.RPS) || math.IsInf(c.RPS, 0) {
		errs = append(errs, fmt.Errorf("want a limit above 0 or a block, not %v rps and %v", c.RPS, c.Block))
	}
	if life := c.EndsAt.Sub(c.PlacedAt); life <= 0 || life > MaxCapLife {
		errs = append(errs, fmt.Errorf("lasts %v, want more than 0 and at most %v", life, MaxCapLife))
	}
	return errors.Join(errs...)
}

// capRequest is a request that placed a cap.
type capRequest struct {
	ID  string `json:"id"`
	Cap string `json:"cap"` // its id
}

// maxRemembered is how many of the latest requests that placed a cap are known,
// so that none of them places a second one.
const maxRemembered = 500

// ErrRequestUsed says that a request placed a cap that selects or admits
// something else.
var ErrRequestUsed = errors.New("the request placed another cap")

// PlaceCap places a cap, in the name and for the reason of act, and returns it
// with its id. A request that placed one places no second one: it is answered
// with the first, whose end and reason are its own. ErrCapEnded if that was lifted
// or is forgotten, ErrRequestUsed if it selects or admits something else. A cap
// without a request is always placed. ErrTooMany if there are MaxCaps.
func (l *Ledger) PlaceCap(ctx context.Context, act Act, c Cap) (Cap, error) {
	c.Author, c.Reason = bounded(act.Actor, maxCapText), bounded(act.Reason, maxCapText)
	c.PlacedAt, c.EndsAt = act.At.UTC().Truncate(time.Millisecond), c.EndsAt.UTC().Truncate(time.Millisecond)
	err := errors.Join(c.validate(), checkTexts(c.Request))
	var placed Cap
	if err == nil {
		_, err = l.editIncident(ctx, act, func(i *incident) (*Entry, error) {
			first, found, err := i.placedBy(c)
			if placed = first; found || err != nil {
				return nil, err
			}
			if len(i.Caps) >= MaxCaps {
				return nil, fmt.Errorf("%w: there are %d caps", ErrTooMany, len(i.Caps))
			}
			placed = i.place(c)
			return act.entry("cap.place", placed.subjects(), "", string(encode(placed))), nil
		})
	}
	if err != nil {
		return Cap{}, fmt.Errorf("place cap on %q: %w", c.Service, err)
	}
	return placed, nil
}

// place adds a cap and returns it with its id.
func (i *incident) place(c Cap) Cap {
	request := c.Request
	c.Request = ""
	i.LastCap++
	c.ID = strconv.FormatUint(i.LastCap, 10)
	i.Caps = slices.Insert(i.Caps, 0, c)
	if request != "" {
		i.Requests = slices.Insert(i.Requests, 0, capRequest{request, c.ID})
		i.Requests = i.Requests[:min(len(i.Requests), maxRemembered)]
	}
	return c
}

// placedBy returns the cap that the request of a cap placed, if it did.
func (i *incident) placedBy(like Cap) (c Cap, found bool, err error) {
	at := slices.IndexFunc(i.Requests, func(r capRequest) bool { return r.ID == like.Request })
	if like.Request == "" || at < 0 {
		return Cap{}, false, nil
	}
	first := slices.IndexFunc(i.Caps, func(c Cap) bool { return c.ID == i.Requests[at].Cap })
	if first < 0 {
		return Cap{}, false, ErrCapEnded
	}
	if c = i.Caps[first]; !c.same(like) {
		return Cap{}, false, ErrRequestUsed
	}
	return c, true, nil
}

// same reports whether two caps select the same requests and admit as many.
func (c *Cap) same(d Cap) bool {
	return c.Service == d.Service && c.Caller == d.Caller && c.Procedure == d.Procedure && c.RPS == d.RPS && c.Block == d.Block
}

// maxCapText bounds author and reason of a cap, in bytes of its JSON: all caps
// are in one record.
const maxCapText = 300

// subjects are what an audit entry about the cap names.
func (c *Cap) subjects() []string { return []string{c.Service, "cap " + c.ID} }

// LiftCap removes a cap at once and returns it. ErrNotFound if there is none.
func (l *Ledger) LiftCap(ctx context.Context, act Act, id string) (Cap, error) {
	var lifted Cap
	_, err := l.editIncident(ctx, act, func(i *incident) (*Entry, error) {
		at := slices.IndexFunc(i.Caps, func(c Cap) bool { return c.ID == id })
		if at < 0 {
			return nil, ErrNotFound
		}
		lifted = i.Caps[at]
		i.Caps = slices.Delete(i.Caps, at, at+1)
		return act.entry("cap.lift", lifted.subjects(), string(encode(lifted)), ""), nil
	})
	if err != nil {
		return Cap{}, fmt.Errorf("lift cap %q: %w", id, err)
	}
	return lifted, nil
}

// Errors of ExtendCap, and the first also of PlaceCap.
var (
	// ErrCapEnded says that a cap has ended: it ramps out or did, or was lifted.
	ErrCapEnded = errors.New("the cap has ended")
	// ErrCapLonger says that a cap holds as long already.
	ErrCapLonger = errors.New("the cap holds as long already")
)

// ExtendCap moves the end of a cap that holds at act.At to a later time, at most
// MaxCapLife after act.At, and returns it as it is then. ErrNotFound if there is
// none, ErrCapEnded or ErrCapLonger. Who placed it, when and why stays as it was.
func (l *Ledger) ExtendCap(ctx context.Context, act Act, id string, ends time.Time) (Cap, error) {
	ends = ends.UTC().Truncate(time.Millisecond)
	var longer Cap
	var err error
	if ahead := ends.Sub(act.At); ahead > MaxCapLife {
		err = fmt.Errorf("ends in %v, want at most %v", ahead, MaxCapLife)
	}
	if err == nil {
		_, err = l.editIncident(ctx, act, func(i *incident) (*Entry, error) {
			at := slices.IndexFunc(i.Caps, func(c Cap) bool { return c.ID == id })
			if at < 0 {
				return nil, ErrNotFound
			}
			c := &i.Caps[at]
			switch before := string(encode(c)); {
			case !c.EndsAt.After(act.At):
				return nil, ErrCapEnded
			case !ends.After(c.EndsAt):
				return nil, ErrCapLonger
			default:
				c.EndsAt = ends
				longer = *c
				return act.entry("cap.extend", c.subjects(), before, string(encode(c))), nil
			}
		})
	}
	if err != nil {
		return Cap{}, fmt.Errorf("extend cap %q: %w", id, err)
	}
	return longer, nil
}

// ForgetCaps removes the caps that ended before a time, so long ago that they
// ramped out. That is no act of anybody, and not in the audit.
func (l *Ledger) ForgetCaps(ctx context.Context, endedBefore time.Time) error {
	err := l.change(ctx, []string{keyIncident}, func(_ context.Context, records []store.Record) (*plan, error) {
		var i incident
		if err := decode(records[0], &i); err != nil {
			return nil, err
		}
		before := len(i.Caps)
		i.Caps = slices.DeleteFunc(i.Caps, func(c Cap) bool { return c.EndsAt.Before(endedBefore) })
		if len(i.Caps) == before {
			return nil, nil
		}
		i.Serial++
		return &plan{writes: []store.Write{put(keyIncident, i)}}, nil
	})
	if err != nil {
		return fmt.Errorf("forget caps: %w", err)
	}
	return nil
}

package people

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"connectrpc.com/connect"

	"grl/store"
	"grl/store/ledger"
)

// Refusal is an error whose text the person may read. It never holds a secret,
// nor says more than that person may know.
type Refusal struct {
	Code connect.Code
	Text string
}

// Error returns the text.
func (r *Refusal) Error() string { return r.Text }

// Refusal returns the text with the HTTP status for it.
func (r *Refusal) Refusal() (text string, status int) {
	switch r.Code {
	case connect.CodeInvalidArgument:
		return r.Text, http.StatusUnprocessableEntity
	case connect.CodeResourceExhausted:
		return r.Text, http.StatusTooManyRequests
	case connect.CodeUnavailable:
		return r.Text, http.StatusServiceUnavailable
	default:
		return r.Text, http.StatusForbidden
	}
}

var (
	errLogin     = &Refusal{connect.CodeUnauthenticated, "account or password is wrong"}
	errTooMany   = &Refusal{connect.CodeResourceExhausted, "too many attempts: try again in a minute"}
	errBusy      = &Refusal{connect.CodeResourceExhausted, "too many people sign in at this moment: try again"}
	errTokenLife = &Refusal{connect.CodeInvalidArgument, "a token lasts from 1 minute to 366 days"}
	errAnon      = &Refusal{connect.CodeUnauthenticated, "sign in first"}
)

func invalid(format string, values ...any) error {
	return &Refusal{connect.CodeInvalidArgument, fmt.Sprintf(format, values...)}
}

func denied(format string, values ...any) error {
	return &Refusal{connect.CodePermissionDenied, fmt.Sprintf(format, values...)}
}

func precondition(format string, values ...any) error {
	return &Refusal{connect.CodeFailedPrecondition, fmt.Sprintf(format, values...)}
}

func notFound(format string, values ...any) error {
	return &Refusal{connect.CodeNotFound, fmt.Sprintf(format, values...)}
}

// asRefusal turns what the store says into what a person may read; what is
// neither is logged, and only its kind is told.
func asRefusal(ctx context.Context, log *slog.Logger, err error) *Refusal {
	var r *Refusal
	switch {
	case errors.As(err, &r):
		return r
	case errors.Is(err, ledger.ErrNotFound):
		return &Refusal{connect.CodeNotFound, "there is no such account, token or session"}
	case errors.Is(err, ledger.ErrConflict):
		return &Refusal{connect.CodeAborted, "somebody else changed the same at the same time: try again"}
	case errors.Is(err, ledger.ErrLastAdmin):
		return &Refusal{connect.CodeFailedPrecondition, "no admin would be left: the first account must be one, and the last one stays"}
	case errors.Is(err, ledger.ErrTooMany):
		return &Refusal{connect.CodeResourceExhausted, "there are too many accounts, tokens or sessions already"}
	case errors.Is(err, store.ErrFull):
		return &Refusal{connect.CodeResourceExhausted, "the store is full"}
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return &Refusal{connect.CodeUnavailable, "the request was given up"}
	case errors.Is(err, store.ErrUnavailable):
		return &Refusal{connect.CodeUnavailable, "the store does not answer"}
	}
	log.ErrorContext(ctx, "access of people", "err", err)
	return &Refusal{connect.CodeInternal, "internal error: see the log of the controller"}
}

package api

import (
	"context"
	"errors"
	"fmt"

	"connectrpc.com/connect"

	"grl/proto/access"
	grlv1 "grl/proto/grl/v1"
	"grl/roles/controller/desk"
	"grl/store"
	"grl/store/ledger"
)

// by returns who makes a call.
func by(ctx context.Context) (desk.By, error) {
	id := access.From(ctx)
	if id.Person == nil {
		return desk.By{}, connect.NewError(connect.CodeUnauthenticated, errors.New("sign in, or give an API token"))
	}
	return desk.By{Person: *id.Person, From: id.From, RequestID: id.RequestID}, nil
}

// reader makes sure that a call is of a person, or of a configurator, which
// reads what people do.
func reader(ctx context.Context) error {
	if id := access.From(ctx); id.Node != nil && id.Node.Role == access.Configurator {
		return nil
	}
	_, err := by(ctx)
	return err
}

// rpcError is what a caller is told of an error. Errors that are not about the
// call itself are logged here, since their texts stay here.
func (o *Options) rpcError(ctx context.Context, err error) error {
	if code, refusal, ours := refusalOf(err); ours {
		out := connect.NewError(code, err)
		if refusal != nil {
			if detail, err := connect.NewErrorDetail(refusal); err == nil {
				out.AddDetail(detail)
			}
		}
		return out
	}
	code, text := outside(err)
	o.Log.ErrorContext(ctx, "API call failed", "code", code, "err", err)
	return connect.NewError(code, errors.New(text))
}

// refusalOf returns code and details of errors whose text is for the caller.
func refusalOf(err error) (code connect.Code, refusal *grlv1.Refusal, ours bool) {
	var invalid *desk.InvalidError
	var guarded *desk.GuardError
	var conflict *desk.ConflictError
	var denied *desk.DeniedError
	var rollout *desk.RolloutError
	var pending *desk.PendingError
	var state *stateError
	switch {
	case errors.As(err, &invalid):
		return connect.CodeInvalidArgument, &grlv1.Refusal{Problems: fromProblems(invalid.Problems)}, true
	case errors.As(err, &guarded):
		return connect.CodeFailedPrecondition, &grlv1.Refusal{Findings: fromFindings(guarded.Findings)}, true
	case errors.As(err, &conflict):
		return connect.CodeAborted, &grlv1.Refusal{Conflicts: fromConflicts(conflict.Conflicts)}, true
	case errors.As(err, &denied):
		return connect.CodePermissionDenied, nil, true
	case errors.As(err, &rollout), errors.As(err, &state), errors.Is(err, ledger.ErrNotRunning):
		return connect.CodeFailedPrecondition, nil, true
	case errors.As(err, &pending):
		return connect.CodeUnavailable, nil, true
	case errors.Is(err, ledger.ErrNotFound):
		return connect.CodeNotFound, nil, true
	case errors.Is(err, ledger.ErrTooMany):
		return connect.CodeResourceExhausted, nil, true
	default:
		return 0, nil, false
	}
}

// outside returns what is told of errors that come from below.
func outside(err error) (connect.Code, string) {
	switch {
	case errors.Is(err, store.ErrFull):
		return connect.CodeResourceExhausted, "the store is full: nothing was changed"
	case errors.Is(err, store.ErrUnavailable):
		return connect.CodeUnavailable, "the store cannot be reached: before a change is tried again ask for the present state, it may have been made"
	case errors.Is(err, ledger.ErrConflict):
		return connect.CodeAborted, "others changed the same at the same time: try again"
	case errors.Is(err, context.DeadlineExceeded):
		return connect.CodeDeadlineExceeded, "took too long"
	case errors.Is(err, context.Canceled):
		return connect.CodeCanceled, "canceled"
	default:
		return connect.CodeInternal, "failed; the log of the controller says why"
	}
}

// stateError says that something cannot be done as things are.
type stateError struct{ text string }

func (e *stateError) Error() string { return e.text }

func invalid(field, format string, args ...any) error {
	return &desk.InvalidError{Problems: []desk.Problem{{Where: field, Text: fmt.Sprintf(format, args...)}}}
}

// Package downlink receives on a parent's end of the streams of its children.
package downlink

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"

	"connectrpc.com/connect"

	grlv1 "grl/proto/grl/v1"
)

// Stream is the parent's end of a stream to a child.
type Stream = connect.BidiStream[grlv1.JoinRequest, grlv1.JoinResponse]

var errPanicked = errors.New("internal error")

// Receive passes what a child sends to take until the stream fails, or take
// returns an error or panics; then it sends why, once. A panic is logged and
// ends this stream alone: it is on a goroutine that net/http does not guard.
func Receive(s *Stream, log *slog.Logger, take func(*grlv1.JoinRequest) error) <-chan error {
	ended := make(chan error, 1)
	go func() { ended <- receive(s.Receive, log, take) }()
	return ended
}

func receive(next func() (*grlv1.JoinRequest, error), log *slog.Logger, take func(*grlv1.JoinRequest) error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			log.Error("panic in a stream", "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
			err = connect.NewError(connect.CodeInternal, errPanicked)
		}
	}()
	for {
		m, err := next()
		if err != nil {
			return err
		}
		if err := take(m); err != nil {
			return err
		}
	}
}

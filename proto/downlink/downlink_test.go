package downlink

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"connectrpc.com/connect"

	grlv1 "grl/proto/grl/v1"
)

func TestReceiveEndsWithTheStreamOrAnError(t *testing.T) {
	gone, refused := errors.New("gone"), errors.New("refused")
	messages := 3
	next := func() (*grlv1.JoinRequest, error) {
		if messages--; messages < 0 {
			return nil, gone
		}
		return &grlv1.JoinRequest{}, nil
	}
	took := 0
	if err := receive(next, slog.New(slog.DiscardHandler), func(*grlv1.JoinRequest) error { took++; return nil }); !errors.Is(err, gone) || took != 3 {
		t.Errorf("ended with %v after %d messages, want %v after 3", err, took, gone)
	}
	messages = 3
	if err := receive(next, slog.New(slog.DiscardHandler), func(*grlv1.JoinRequest) error { return refused }); !errors.Is(err, refused) {
		t.Errorf("ended with %v, want %v", err, refused)
	}
}

// A panic over one child's message ends its stream, not the process.
func TestReceiveSurvivesAPanic(t *testing.T) {
	var logged bytes.Buffer
	next := func() (*grlv1.JoinRequest, error) { return &grlv1.JoinRequest{}, nil }
	err := receive(next, slog.New(slog.NewTextHandler(&logged, nil)), func(*grlv1.JoinRequest) error {
		panic("index out of range")
	})
	if connect.CodeOf(err) != connect.CodeInternal || strings.Contains(err.Error(), "index") {
		t.Errorf("ended with %v, want an internal error that does not tell the cause", err)
	}
	if !strings.Contains(logged.String(), "index out of range") {
		t.Errorf("logged %q, without the cause", logged.String())
	}
}

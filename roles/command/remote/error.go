package remote

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"syscall"
	"time"

	"connectrpc.com/connect"

	grlv1 "grl/proto/grl/v1"
	"grl/roles/command/terminal"
)

// Error is a call that failed. Its text says what to do.
type Error struct {
	URL     string // of the controller
	Timeout time.Duration
	Err     error // of connect
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// Code returns connect's code of err, 0 if err comes from no call.
func Code(err error) connect.Code {
	var e *Error
	if !errors.As(err, &e) {
		return 0
	}
	return connect.CodeOf(e.Err)
}

// Refusal returns why a change was refused, nil if err does not say.
func Refusal(err error) *grlv1.Refusal {
	var e *connect.Error
	if !errors.As(err, &e) {
		return nil
	}
	for _, d := range e.Details() {
		if m, err := d.Value(); err == nil {
			if r, ok := m.(*grlv1.Refusal); ok {
				return r
			}
		}
	}
	return nil
}

// Error says in one line what went wrong and what to do; where a change was
// refused, more lines say why. It is safe for a terminal.
func (e *Error) Error() string { return terminal.Printable(e.text()) }

func (e *Error) text() string {
	said := e.said()
	if e.notServed() {
		return fmt.Sprintf("what is at %s does not know this call: it is a controller of another version or of a region, or none", e.URL)
	}
	switch connect.CodeOf(e.Err) {
	case connect.CodeUnauthenticated:
		said, _, _ = strings.Cut(said, ": sign in") // what the API advises is meant
		said, _, _ = strings.Cut(said, "; sign in") // for those who send headers
		return said + ": sign in with grl login, or give a token with --token-file or " + VariableToken
	case connect.CodeInternal:
		if e.plain() {
			return fmt.Sprintf("what is at %s answers %s: if it speaks TLS, its address begins with https", e.URL, said)
		}
	case connect.CodeUnavailable, connect.CodeDeadlineExceeded, connect.CodeCanceled, connect.CodeUnknown:
		return e.unreached(said)
	}
	if r := Refusal(e.Err); r != nil {
		if text := refusalText(r); text != "" {
			return "refused, nothing was changed\n" + text // said has the same, for those who have no details
		}
	}
	return said
}

// NotServed reports whether err says that what was called has no such call.
func NotServed(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.notServed()
}

func (e *Error) notServed() bool {
	switch connect.CodeOf(e.Err) {
	case connect.CodeUnimplemented:
		return true
	case connect.CodeUnknown: // an answer that is none of this protocol, such as 405
		var connectErr *connect.Error
		var dial *url.Error
		return errors.As(e.Err, &connectErr) && !connect.IsWireError(connectErr) && !errors.As(e.Err, &dial)
	default:
		return false
	}
}

// plain reports whether what answered is no controller, and was spoken to in
// plain text.
func (e *Error) plain() bool {
	var c *connect.Error
	return strings.HasPrefix(e.URL, "http://") && errors.As(e.Err, &c) && !connect.IsWireError(c)
}

// unreached says why there is no answer of the controller.
func (e *Error) unreached(said string) string {
	var connectErr *connect.Error
	if errors.As(e.Err, &connectErr) && connect.IsWireError(connectErr) {
		return fmt.Sprintf("the controller at %s says: %s", e.URL, said)
	}
	switch {
	case errors.Is(e.Err, context.Canceled):
		return "interrupted: what was asked for may have been done"
	case errors.Is(e.Err, context.DeadlineExceeded):
		return fmt.Sprintf("no answer of the controller at %s within %v: what was asked for may have been done", e.URL, e.Timeout)
	}
	var authority x509.UnknownAuthorityError
	if errors.As(e.Err, &authority) {
		return fmt.Sprintf("the certificate of the controller at %s is of a CA that is not trusted here: --ca or %s names the file with that CA", e.URL, VariableCA)
	}
	return fmt.Sprintf("cannot reach a controller at %s (%s): is it running? --controller or %s names another one", e.URL, e.cause(), VariableURL)
}

// cause returns why a controller cannot be reached, without the address.
func (e *Error) cause() string {
	var address *net.DNSError
	var number syscall.Errno
	var dial *url.Error
	switch {
	case errors.As(e.Err, &address):
		return "no such host"
	case errors.As(e.Err, &number):
		return number.Error()
	case errors.As(e.Err, &dial):
		return dial.Err.Error()
	}
	return e.said()
}

// said returns the text of the error, without its code.
func (e *Error) said() string {
	var c *connect.Error
	if errors.As(e.Err, &c) {
		return strings.TrimSpace(c.Message())
	}
	return e.Err.Error()
}

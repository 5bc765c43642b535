// Package uplink keeps one stream from a node to its parent: it dials the
// addresses in turn and opens a new stream, with full jitter, for as long as
// the node runs.
package uplink

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"time"

	"connectrpc.com/connect"

	grlv1 "grl/proto/grl/v1"
	"grl/proto/grl/v1/grlv1connect"
)

const (
	firstRedial = 100 * time.Millisecond // the longest wait after a stream that worked
	mostRedial  = 5 * time.Second        // the longest wait ever
	settled     = 3 * time.Second        // a stream that lived so long worked
	dialLimit   = 3 * time.Second
	maxMessage  = 16 << 20 // a whole configuration
)

// Stream is the child's end of a stream to its parent.
type Stream = connect.BidiStreamForClientSimple[grlv1.JoinRequest, grlv1.JoinResponse]

// Options says whom to dial and what to do with a stream.
type Options struct {
	// Addresses of the parents, as URLs; one at a time is used, the next one
	// when it fails. Empty: Run waits for ctx.
	Addresses []string
	// HTTP dials them; it must speak HTTP/2, without TLS too. See HTTPClient.
	HTTP *http.Client
	Log  *slog.Logger
	// Serve runs one stream, from the hello on, until it fails or ctx ends. It
	// returns what ended the stream.
	Serve func(ctx context.Context, address string, s *Stream) error
}

// HTTPClient returns a client for streams between nodes: HTTP/2, also without
// TLS, with pings that find a silent peer within 3 s.
func HTTPClient() *http.Client {
	t := &http.Transport{
		Protocols:           new(http.Protocols),
		HTTP2:               Pings(),
		DialContext:         (&net.Dialer{Timeout: dialLimit}).DialContext,
		TLSHandshakeTimeout: dialLimit,
	}
	t.Protocols.SetHTTP2(true)
	t.Protocols.SetUnencryptedHTTP2(true)
	return &http.Client{Transport: t}
}

// Pings returns the settings by which both ends of a stream find out that the
// other one is gone although nothing closed the connection.
func Pings() *http.HTTP2Config {
	return &http.HTTP2Config{SendPingTimeout: 2 * time.Second, PingTimeout: time.Second}
}

// Run keeps a stream open until ctx ends.
func Run(ctx context.Context, o Options) {
	if len(o.Addresses) == 0 {
		<-ctx.Done()
		return
	}
	wait := backoff{}
	for i := 0; ctx.Err() == nil; i++ {
		address := o.Addresses[i%len(o.Addresses)]
		began := time.Now()
		err := once(ctx, address, o)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > settled {
			wait = backoff{}
		}
		o.Log.WarnContext(ctx, "lost parent", "address", address, "after_seconds", time.Since(began).Seconds(), "err", err)
		select {
		case <-ctx.Done():
		case <-time.After(wait.next()):
		}
	}
}

func once(ctx context.Context, address string, o Options) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	client := grlv1connect.NewTreeServiceClient(o.HTTP, address,
		connect.WithReadMaxBytes(maxMessage),
		connect.WithAcceptCompression("gzip", nil, nil), // small messages, many of them
	)
	s, err := client.Join(ctx)
	if err != nil {
		return err
	}
	err = o.Serve(ctx, address, s)
	cancel() // before closing: a peer that is gone must not hold us up
	return errors.Join(err, ignoreCanceled(s.CloseRequest()), ignoreCanceled(s.CloseResponse()))
}

// Cause returns why the peer closed a stream on which a send failed: its own
// error if it gave one.
func Cause(s *Stream, sendErr error) error {
	if _, err := s.Receive(); err != nil {
		return err
	}
	return sendErr
}

func ignoreCanceled(err error) error {
	if connect.CodeOf(err) == connect.CodeCanceled || errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// backoff waits a random time up to a bound that doubles: full jitter spreads
// the children of a parent that came back.
type backoff struct{ tries int }

func (b *backoff) next() time.Duration {
	bound := min(firstRedial<<b.tries, mostRedial)
	if b.tries < 10 {
		b.tries++
	}
	return rand.N(bound)
}

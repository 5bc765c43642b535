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
	"sync/atomic"
	"time"

	"connectrpc.com/connect"

	grlv1 "grl/proto/grl/v1"
	"grl/proto/grl/v1/grlv1connect"
)

const (
	firstRedial = 100 * time.Millisecond // the longest wait after a stream that worked
	settled     = 3 * time.Second        // a stream that lived so long worked
	dialLimit   = 3 * time.Second
	sayAgain    = time.Minute
	lastWord    = time.Second // the parent may take so long to say why it closed
	maxMessage  = 16 << 20    // a whole configuration
)

// Options says whom to dial and what to do with a stream.
type Options struct {
	// Addresses of the parents, as URLs; one at a time is used, at first any,
	// then the next one when it fails. Empty: Run waits for ctx.
	Addresses []string
	// HTTP dials them; it must speak HTTP/2, without TLS too. See HTTPClient.
	HTTP *http.Client
	Log  *slog.Logger
	// MostRedial is the longest wait before a parent is dialled again, at least
	// 0.1 s: what is long spreads many children, what is short brings few back
	// soon.
	MostRedial time.Duration
	// Hello returns the first message of a new stream, of which Run fills in the
	// number. What the caller keeps of the stream before must be gone when it
	// returns.
	Hello func() *grlv1.Hello
	// Take takes in one message from the parent. An error ends the stream.
	Take func(context.Context, *grlv1.JoinResponse) error
	// Feed sends messages to the parent, from one goroutine, until ctx ends or
	// send returns an error. What it returns ends the stream.
	Feed func(ctx context.Context, send func(*grlv1.JoinRequest) error) error
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

// TLSClient returns a client as HTTPClient does, which opens connections to
// https addresses with dial. dial negotiates HTTP/2.
func TLSClient(dial func(ctx context.Context, network, address string) (net.Conn, error)) *http.Client {
	c := HTTPClient()
	c.Transport.(*http.Transport).DialTLSContext = dial
	return c
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
	wait := backoff{most: max(o.MostRedial, firstRedial)}
	var said time.Time // that there is no parent
	// Children begin at different parents, so that these share the load.
	for i := rand.IntN(len(o.Addresses)); ctx.Err() == nil; i++ {
		address := o.Addresses[i%len(o.Addresses)]
		began := time.Now()
		err := once(ctx, address, o)
		if ctx.Err() != nil {
			return
		}
		level := slog.LevelDebug // unless it has not been said lately
		if time.Since(began) > settled {
			wait.tries = 0
			said = time.Time{}
		}
		if time.Since(said) >= sayAgain {
			level, said = slog.LevelWarn, time.Now()
		}
		o.Log.Log(ctx, level, "no parent", "address", address, "after_seconds", time.Since(began).Seconds(), "err", err)
		select {
		case <-ctx.Done():
		case <-time.After(wait.next()):
		}
	}
}

// once runs one stream until it fails, and returns why.
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
	fed := make(chan error, 1)
	go func() { fed <- feed(ctx, s, o) }()
	taken := make(chan error, 1)
	go func() { taken <- take(ctx, s, o) }()
	// end unblocks both: a Receive does not end with ctx while the request is
	// still open.
	end := func() {
		cancel()
		_ = s.CloseRequest()
	}
	select {
	case err = <-taken:
		end()
		<-fed
	case err = <-fed:
		if ctx.Err() == nil {
			// The parent's own error, if it closed the stream, says more.
			select {
			case word := <-taken:
				end()
				return errors.Join(word, ignoreCanceled(s.CloseResponse()))
			case <-time.After(lastWord):
			}
		}
		end()
		<-taken
	}
	return errors.Join(err, ignoreCanceled(s.CloseResponse()))
}

// opened counts the streams of this process, so that no two of a node, to whichever
// parent, have the same number.
var opened atomic.Uint64

type stream = connect.BidiStreamForClientSimple[grlv1.JoinRequest, grlv1.JoinResponse]

func feed(ctx context.Context, s *stream, o Options) error {
	hello := o.Hello()
	hello.Stream = opened.Add(1)
	if err := s.Send(&grlv1.JoinRequest{Message: &grlv1.JoinRequest_Hello{Hello: hello}}); err != nil {
		return err
	}
	return o.Feed(ctx, s.Send)
}

func take(ctx context.Context, s *stream, o Options) error {
	for first := true; ; first = false {
		m, err := s.Receive()
		if err != nil {
			return err
		}
		if first {
			o.Log.InfoContext(ctx, "joined parent", "address", s.Peer().Addr)
		}
		if err := o.Take(ctx, m); err != nil {
			return err
		}
	}
}

func ignoreCanceled(err error) error {
	if connect.CodeOf(err) == connect.CodeCanceled || errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// backoff waits a random time up to a bound that doubles: full jitter spreads
// the children of a parent that came back.
type backoff struct {
	most  time.Duration
	tries int
}

func (b *backoff) next() time.Duration {
	bound := min(firstRedial<<b.tries, b.most)
	if b.tries < 10 {
		b.tries++
	}
	return rand.N(bound)
}

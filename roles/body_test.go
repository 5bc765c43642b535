package roles

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"grl/proto/grl/v1/grlv1connect"
	"grl/proto/uplink"
)

// port is a control port without sockets, so that its time is virtual.
type port struct {
	conns  chan net.Conn
	closed chan struct{}
}

// servePort serves h as a control port does, until the end of the test.
func servePort(t *testing.T, h http.HandlerFunc) *port {
	t.Helper()
	p := &port{make(chan net.Conn), make(chan struct{})}
	srv := controlServer(h, slog.New(slog.DiscardHandler))
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(p) }()
	t.Cleanup(func() { _ = srv.Close(); <-ended })
	return p
}

func (p *port) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *port) Close() error   { close(p.closed); return nil }
func (p *port) Addr() net.Addr { return &net.TCPAddr{} }

func (p *port) dial(context.Context, string, string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	p.conns <- theirs
	return ours, nil
}

// client speaks HTTP/1 or 2 to the port.
func (p *port) client(t *testing.T, version int) *http.Client {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(version == 1)
	protocols.SetUnencryptedHTTP2(version == 2)
	transport := &http.Transport{DialContext: p.dial, Protocols: protocols, HTTP2: uplink.Pings()}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// drips is a body of 20 bytes, each after a pause, until its context ends.
type drips struct {
	ctx   context.Context
	pause time.Duration
	read  int
}

func (d *drips) Read(p []byte) (int, error) {
	if d.read == 20 {
		return 0, io.EOF
	}
	select {
	case <-time.After(d.pause):
	case <-d.ctx.Done():
		return 0, d.ctx.Err()
	}
	d.read++
	p[0] = 'x'
	return 1, nil
}

// send posts a body to a path, in HTTP/1 or 2, and hears the answer, if any.
func (p *port) send(t *testing.T, version int, path string, body io.Reader) {
	t.Helper()
	if version == 2 {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://port"+path, body)
		if err != nil {
			t.Fatal(err)
		}
		client := p.client(t, version)
		go func() {
			if res, err := client.Do(r); err == nil {
				_ = res.Body.Close()
			}
		}()
		return
	}
	conn := p.post(t, path)
	go func() { _, _ = io.Copy(conn, body) }() // until it is cut
	go func() { _, _ = io.Copy(io.Discard, conn) }()
}

// post begins a request of HTTP/1 with a body of 20 bytes, none of them sent.
func (p *port) post(t *testing.T, path string) net.Conn {
	t.Helper()
	conn, _ := p.dial(t.Context(), "", "") // never fails
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: port\r\nContent-Length: 20\r\n\r\n", path); err != nil {
		t.Fatal(err)
	}
	return conn
}

// A body that does not come is given up; one that does, and a stream, are not.
func TestSlowBodies(t *testing.T) {
	const form, message, stream = "/caps", grlv1connect.ConfigServiceApplyProcedure, grlv1connect.TreeServiceJoinProcedure
	for _, tt := range []struct {
		name    string
		version int
		path    string
		pause   time.Duration
		want    time.Duration // until it is given up; 0: never
	}{
		{"a form over HTTP/1", 1, form, time.Hour, bodyTime},
		{"a form over HTTP/2", 2, form, time.Hour, bodyTime},
		{"a form that drips over HTTP/1", 1, form, time.Second, bodyTime},
		{"a form that drips over HTTP/2", 2, form, time.Second, bodyTime},
		{"a form in time over HTTP/1", 1, form, 100 * time.Millisecond, 0},
		{"a form in time over HTTP/2", 2, form, 100 * time.Millisecond, 0},
		{"a message over HTTP/1", 1, message, time.Hour, messageTime},
		{"a message over HTTP/2", 2, message, time.Hour, messageTime},
		{"what cannot be a stream", 1, stream, time.Hour, messageTime},
		{"a stream", 2, stream, time.Minute, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				read := make(chan error, 1)
				p := servePort(t, func(_ http.ResponseWriter, r *http.Request) {
					_, err := io.Copy(io.Discard, r.Body)
					read <- err
				})
				began := time.Now()
				p.send(t, tt.version, tt.path, &drips{ctx: t.Context(), pause: tt.pause})
				err := <-read
				switch took := time.Since(began); {
				case tt.want == 0 && err != nil:
					t.Errorf("given up after %v: %v", took, err)
				case tt.want > 0 && (!errors.Is(err, os.ErrDeadlineExceeded) || took != tt.want):
					t.Errorf("ended after %v with %v, want it given up after %v", took, err, tt.want)
				}
			})
		})
	}
}

// A body that nobody reads does not hold its connection either.
func TestUnreadBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := servePort(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusForbidden) })
		began := time.Now()
		conn := p.post(t, "/caps")
		if _, err := io.ReadAll(conn); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took < bodyTime || took > bodyTime+time.Second {
			t.Errorf("the connection was held for %v, want %v", took, bodyTime)
		}
	})
}

// An answer may take longer than the body of its request, over a connection that
// is used again.
func TestLongAnswers(t *testing.T) {
	for _, version := range []int{1, 2} {
		t.Run(fmt.Sprintf("over HTTP/%d", version), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := servePort(t, func(w http.ResponseWriter, r *http.Request) {
					if _, err := io.Copy(io.Discard, r.Body); err != nil {
						t.Error(err)
					}
					select {
					case <-time.After(time.Hour):
						_, _ = io.WriteString(w, "late")
					case <-r.Context().Done():
						t.Errorf("cut: %v", context.Cause(r.Context()))
					}
				})
				client := p.client(t, version)
				for range 2 {
					res, err := client.Post("http://port/caps", "text/plain", strings.NewReader("x"))
					if err != nil {
						t.Fatal(err)
					}
					if text, err := io.ReadAll(res.Body); err != nil || string(text) != "late" || res.ProtoMajor != version {
						t.Errorf("%s %q, %v", res.Proto, text, err)
					}
					_ = res.Body.Close()
				}
			})
		})
	}
}

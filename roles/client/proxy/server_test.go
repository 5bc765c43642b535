package proxy_test

import (
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"grl/roles/client/proxy"
)

// oneConn is a listener that accepts one connection.
type oneConn struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (l *oneConn) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *oneConn) Close() error   { close(l.closed); return nil }
func (l *oneConn) Addr() net.Addr { return &net.IPAddr{} }

// untilClosed returns how long after the last of sent the server closes a
// connection.
func untilClosed(t *testing.T, sent ...string) time.Duration {
	t.Helper()
	client, server := net.Pipe()
	l := &oneConn{make(chan net.Conn, 1), make(chan struct{})}
	l.conns <- server
	srv := proxy.Server(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), nil)
	done := make(chan error)
	go func() { done <- srv.Serve(l) }()
	read := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, client)
		close(read)
	}()
	for _, s := range sent {
		if _, err := io.WriteString(client, s); err != nil {
			t.Fatal(err)
		}
	}
	synctest.Wait()
	begin := time.Now()
	<-read
	took := time.Since(begin)
	_ = client.Close()
	_ = srv.Close()
	<-done
	return took
}

func TestServerEndsSlowAndIdleConnections(t *testing.T) {
	for _, tt := range []struct {
		name string
		sent []string
		want time.Duration
	}{
		{"nothing sent", nil, 10 * time.Second},
		{"half a head", []string{"GET / HTTP/1.1\r\nHo"}, 10 * time.Second},
		{"idle after a request", []string{"GET / HTTP/1.1\r\nHost: x\r\n\r\n"}, 120 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				// net/http may linger for a moment so that an answer is read.
				if took := untilClosed(t, tt.sent...); took < tt.want || took > tt.want+time.Second {
					t.Errorf("closed after %v, want %v", took, tt.want)
				}
			})
		})
	}
}

func TestServerLetsBodiesTakeTheirTime(t *testing.T) {
	srv := proxy.Server(http.NotFoundHandler(), nil)
	if srv.ReadTimeout != 0 || srv.WriteTimeout != 0 {
		t.Errorf("read timeout %v, write timeout %v: streams would end", srv.ReadTimeout, srv.WriteTimeout)
	}
	if srv.MaxHeaderBytes != 32<<10 {
		t.Errorf("headers up to %d bytes, want 32 KiB", srv.MaxHeaderBytes)
	}
	p := srv.Protocols
	if !p.HTTP1() || !p.HTTP2() || !p.UnencryptedHTTP2() {
		t.Errorf("protocols %v", p)
	}
}

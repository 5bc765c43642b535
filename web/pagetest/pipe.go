package pagetest

import (
	"net"
	"net/http"
	"sync"
	"testing"
)

// Pipe serves h over one connection without buffers, and returns the other end
// of it: in a bubble of synctest the time of both is virtual. The server ends
// with the test.
func Pipe(t testing.TB, h http.Handler) net.Conn {
	t.Helper()
	ours, theirs := net.Pipe()
	l := &single{conns: make(chan net.Conn, 1), closed: make(chan struct{})}
	l.conns <- theirs
	srv := &http.Server{Handler: h, Protocols: new(http.Protocols)}
	srv.Protocols.SetHTTP1(true)
	srv.Protocols.SetUnencryptedHTTP2(true)
	var serving sync.WaitGroup
	serving.Go(func() { _ = srv.Serve(l) }) // always ErrServerClosed
	t.Cleanup(func() {
		_ = ours.Close()
		_ = srv.Close()
		serving.Wait()
	})
	return ours
}

// single is a listener with one connection.
type single struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// Accept implements net.Listener.
func (l *single) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *single) Close() error { l.once.Do(func() { close(l.closed) }); return nil }

// Addr implements net.Listener.
func (l *single) Addr() net.Addr { return &net.TCPAddr{} }

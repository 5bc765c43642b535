// Package rolestest runs whole control planes in one process, over an in-memory
// network, for tests in virtual time.
package rolestest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"testing"

	"grl/proto/uplink"
)

// Network is a set of named hosts that can reach each other without sockets. It
// blocks only on channels, so virtual time advances. The zero value is empty.
type Network struct {
	mu    sync.Mutex
	hosts map[string]*host // host name → its server
}

type host struct {
	server   *http.Server
	listener *listener
}

// Serve answers requests to http://name/ with h until the test ends or Cut.
func (n *Network) Serve(t testing.TB, name string, h http.Handler) {
	t.Helper()
	l := &listener{name: name, conns: make(chan net.Conn), closed: make(chan struct{})}
	srv := &http.Server{Handler: h, Protocols: protocols(), HTTP2: uplink.Pings()}
	n.mu.Lock()
	if n.hosts == nil {
		n.hosts = make(map[string]*host)
	}
	n.hosts[name] = &host{srv, l}
	n.mu.Unlock()

	var wg sync.WaitGroup
	wg.Go(func() { _ = srv.Serve(l) }) // always ErrServerClosed
	t.Cleanup(func() { _ = srv.Close(); wg.Wait() })
}

// Cut drops every connection to name and refuses new ones, as a dead host would.
func (n *Network) Cut(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if h := n.hosts[name]; h != nil {
		_ = h.server.Close()
		delete(n.hosts, name)
	}
}

// Break drops every connection to name, which goes on serving new ones.
func (n *Network) Break(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.hosts[name].listener.drop()
}

// Client returns an HTTP client that reaches the hosts of n and nothing else.
func (n *Network) Client(t testing.TB) *http.Client {
	tr := &http.Transport{DialContext: n.dial, Protocols: protocols(), HTTP2: uplink.Pings()}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

func (n *Network) dial(ctx context.Context, _, address string) (net.Conn, error) {
	name, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	h := n.hosts[name]
	n.mu.Unlock()
	if h == nil {
		return nil, fmt.Errorf("dial %s: connection refused", name)
	}
	ours, theirs := net.Pipe()
	select {
	case h.listener.conns <- theirs:
		return ours, nil
	case <-h.listener.closed:
		return nil, fmt.Errorf("dial %s: connection refused", name)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// protocols are those of streams between roles: HTTP/2 without TLS.
func protocols() *http.Protocols {
	p := new(http.Protocols)
	p.SetUnencryptedHTTP2(true)
	return p
}

// listener accepts what dial pipes to it.
type listener struct {
	name   string
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once

	mu   sync.Mutex // guards open
	open []net.Conn
}

var errClosed = errors.New("listener closed")

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		l.mu.Lock()
		defer l.mu.Unlock()
		l.open = append(l.open, c)
		return c, nil
	case <-l.closed:
		return nil, errClosed
	}
}

func (l *listener) drop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.open {
		_ = c.Close()
	}
	l.open = nil
}

func (l *listener) Close() error   { l.once.Do(func() { close(l.closed) }); return nil }
func (l *listener) Addr() net.Addr { return address(l.name) }

type address string

func (a address) Network() string { return "memory" }
func (a address) String() string  { return string(a) }

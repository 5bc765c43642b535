package main

import (
	"io"
	"net"
	"sync"
	"testing"
)

// A relay stands in the way of connections to one process. It can be cut as a
// network is: connections stay open, and nothing comes through in either
// direction until it is mended.
type relay struct {
	target string
	port   net.Listener

	mu   sync.Mutex
	open chan struct{} // closed while it is not cut
}

// newRelay returns a relay to an address, which ends with the test.
func newRelay(t *testing.T, target string) *relay {
	t.Helper()
	port, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{target: target, port: port, open: make(chan struct{})}
	close(r.open)
	var running sync.WaitGroup
	t.Cleanup(func() {
		port.Close()
		running.Wait()
	})
	running.Go(func() {
		for {
			near, err := port.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { near.Close() })
			running.Go(func() { r.carry(near) })
		}
	})
	return r
}

// carry passes on what comes over one connection, until either side closes it.
func (r *relay) carry(near net.Conn) {
	defer near.Close()
	r.wait()
	far, err := net.Dial("tcp", r.target)
	if err != nil {
		return
	}
	defer far.Close()
	var back sync.WaitGroup
	back.Go(func() {
		defer near.Close()
		r.copy(near, far)
	})
	r.copy(far, near)
	far.Close()
	back.Wait()
}

func (r *relay) copy(to io.Writer, from io.Reader) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		r.wait()
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// wait returns once the relay is not cut.
func (r *relay) wait() {
	r.mu.Lock()
	open := r.open
	r.mu.Unlock()
	<-open
}

func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open = make(chan struct{})
}

func (r *relay) mend() {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.open)
}

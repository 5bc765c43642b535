package demo

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

const (
	connections   = 32               // to each sidecar, a request at a time on each
	queued        = 4096             // requests that wait for a connection of a sidecar
	answerTimeout = 10 * time.Second // a request without an answer by then has failed
	lateAfter     = 100 * time.Millisecond
)

// shares say how much of the load each sidecar gets: the hosts of a fleet are
// not alike.
var shares = [len(zones) * sidecarsPerZone]int{24, 18, 12, 20, 16, 10}

// load sends the requests of a plan to sidecars when they are due, whether or
// not earlier ones have been answered.
type load struct {
	plan  plan
	tally *tally
	start time.Time
	wire  map[kind][]byte // each kind of request as it is sent
	lanes []lane
}

// lane leads to one sidecar.
type lane struct {
	zone    int
	address string
	due     chan shot
}

type shot struct {
	due     time.Duration
	request []byte
}

func newLoad(p plan, sidecars []*sidecar, t *tally) *load {
	l := &load{plan: p, tally: t, wire: make(map[kind][]byte)}
	for _, c := range p.calls {
		if l.wire[c.kind] == nil {
			l.wire[c.kind] = c.kind.request()
		}
	}
	for _, s := range sidecars {
		l.lanes = append(l.lanes, lane{s.zone, s.address, make(chan shot, queued)})
	}
	return l
}

// request returns a unary Connect call over HTTP/1.1. The generator shares two
// cores with all that it loads, so it writes bytes instead of using a client.
func (k kind) request() []byte {
	const body = "{}"
	return fmt.Appendf(nil, "POST /%s HTTP/1.1\r\nHost: %s\r\nRpc-Caller: %s\r\nConnect-Protocol-Version: 1\r\n"+
		"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", k.procedure, service, k.caller, len(body), body)
}

// run sends until the plan's end or that of ctx, and returns when all that was
// sent is answered.
func (l *load) run(ctx context.Context) {
	var senders sync.WaitGroup
	for i := range l.lanes {
		for range connections {
			senders.Go(func() { l.send(ctx, &l.lanes[i]) })
		}
	}
	l.dispatch(ctx)
	for _, lane := range l.lanes {
		close(lane.due)
	}
	senders.Wait()
}

// dispatch hands each request to a lane when it is due.
func (l *load) dispatch(ctx context.Context) {
	split := newSplit()
	for due, k := range l.plan.schedule() {
		if wait := due - time.Since(l.start); wait > 0 {
			select {
			case <-ctx.Done():
			case <-time.After(wait):
			}
		}
		if ctx.Err() != nil {
			return
		}
		l.lanes[split.next()].due <- shot{due, l.wire[k]}
	}
}

// split deals requests to lanes by their shares, evenly mixed, as a load
// balancer with weights does: each time the lane furthest behind its share.
type split struct {
	behind [len(shares)]int
	total  int
}

func newSplit() *split {
	s := &split{}
	for _, share := range shares {
		s.total += share
	}
	return s
}

// next returns the lane of the next request.
func (s *split) next() int {
	most := 0
	for i, share := range shares {
		s.behind[i] += share
		if s.behind[i] > s.behind[most] {
			most = i
		}
	}
	s.behind[most] -= s.total
	return most
}

// send sends what is due on one lane, over one connection.
func (l *load) send(ctx context.Context, lane *lane) {
	c := connection{address: lane.address}
	defer c.close()
	for s := range lane.due {
		if ctx.Err() != nil {
			continue // Ctrl-C: what was not sent is not missed
		}
		sent := time.Since(l.start)
		l.tally.add(request{
			sent:    sent,
			zone:    uint8(lane.zone),
			late:    sent-s.due > lateAfter,
			outcome: c.exchange(s.request),
		})
	}
}

// connection is a persistent connection to one address. The zero value with an
// address dials when it is needed.
type connection struct {
	address string
	conn    net.Conn // nil: closed
	answers *bufio.Reader
}

func (c *connection) close() {
	if c.conn != nil {
		_ = c.conn.Close() // nothing is in flight
		c.conn = nil
	}
}

// exchange sends a request and reads its answer.
func (c *connection) exchange(request []byte) outcome {
	status, err := c.try(request)
	if err != nil {
		c.close()
		return failed
	}
	switch {
	case status >= 200 && status < 300:
		return admitted
	case status == http.StatusTooManyRequests: // upstream never says so
		return dropped
	default:
		return failed
	}
}

func (c *connection) try(request []byte) (status int, err error) {
	if c.conn == nil {
		if c.conn, err = net.DialTimeout("tcp", c.address, answerTimeout); err != nil {
			c.conn = nil
			return 0, err
		}
		c.answers = bufio.NewReader(c.conn)
	}
	if err := c.conn.SetDeadline(time.Now().Add(answerTimeout)); err != nil {
		return 0, err
	}
	if _, err := c.conn.Write(request); err != nil {
		return 0, err
	}
	answer, err := http.ReadResponse(c.answers, nil)
	if err != nil {
		return 0, err
	}
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		return 0, err
	}
	if answer.Close {
		c.close()
	}
	return answer.StatusCode, answer.Body.Close()
}

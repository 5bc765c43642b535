package uplink_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"
	"go.uber.org/goleak"

	grlv1 "grl/proto/grl/v1"
	"grl/proto/grl/v1/grlv1connect"
	"grl/proto/uplink"
	"grl/roles/rolestest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type serverStream = connect.BidiStream[grlv1.JoinRequest, grlv1.JoinResponse]

// parent serves streams with a function.
type parent func(context.Context, *serverStream) error

func (p parent) Join(ctx context.Context, s *serverStream) error { return p(ctx, s) }

func (p parent) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle(grlv1connect.NewTreeServiceHandler(p))
	return mux
}

// greet takes the hello, answers once, and holds the stream.
func greet(ctx context.Context, s *serverStream) error {
	if _, err := s.Receive(); err != nil {
		return err
	}
	if err := s.Send(&grlv1.JoinResponse{Message: &grlv1.JoinResponse_Directive{Directive: &grlv1.Directive{}}}); err != nil {
		return err
	}
	_, err := s.Receive() // ends with the stream
	return err
}

// log collects what Run says of lost parents.
type log struct {
	mu    sync.Mutex // guards lines
	lines []string
}

func (l *log) Enabled(context.Context, slog.Level) bool { return true }
func (l *log) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *log) WithGroup(string) slog.Handler            { return l }
func (l *log) Handle(_ context.Context, r slog.Record) error {
	line := r.Message
	r.Attrs(func(a slog.Attr) bool { line += " " + a.String(); return true })
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
	return nil
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "\n")
}

// child runs an uplink until stopped, and tells of each message it takes.
type child struct {
	options uplink.Options
	log     log
	took    chan time.Time
	cancel  context.CancelFunc
	ended   chan struct{}
}

func newChild(t testing.TB, n *rolestest.Network, addresses ...string) *child {
	c := &child{took: make(chan time.Time, 1000), ended: make(chan struct{})}
	c.options = uplink.Options{
		Addresses:  addresses,
		HTTP:       n.Client(t),
		Log:        slog.New(&c.log),
		MostRedial: 5 * time.Second,
		Hello:      func() *grlv1.Hello { return &grlv1.Hello{Node: "child"} },
		Take:       func(context.Context, *grlv1.JoinResponse) error { c.took <- time.Now(); return nil },
		Feed: func(ctx context.Context, _ func(*grlv1.JoinRequest) error) error {
			<-ctx.Done()
			return ctx.Err()
		},
	}
	return c
}

func (c *child) start() {
	ctx, cancel := context.WithCancel(context.Background())
	c.cancel = cancel
	go func() {
		defer close(c.ended)
		uplink.Run(ctx, c.options)
	}()
}

// stop ends the child and returns how long that took.
func (c *child) stop() time.Duration {
	began := time.Now()
	c.cancel()
	<-c.ended
	return time.Since(began)
}

func TestSaysHelloFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n rolestest.Network
		hello := make(chan *grlv1.JoinRequest, 1)
		n.Serve(t, "p", parent(func(_ context.Context, s *serverStream) error {
			m, err := s.Receive()
			if err != nil {
				return err
			}
			hello <- m
			_, err = s.Receive()
			return err
		}).handler())
		c := newChild(t, &n, "http://p")
		c.start()
		if got := (<-hello).GetHello().GetNode(); got != "child" {
			t.Errorf("first message is of %q, want the child's hello", got)
		}
		if took := c.stop(); took > 100*time.Millisecond {
			t.Errorf("ended %v after it should, on a stream that is silent", took)
		}
	})
}

func TestGoesToTheNextParent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n rolestest.Network
		n.Serve(t, "b", parent(greet).handler())
		c := newChild(t, &n, "http://a", "http://b", "http://c")
		c.start()
		began := time.Now()
		if at := <-c.took; at.Sub(began) > time.Second {
			t.Errorf("found the one parent of three that lives after %v", at.Sub(began))
		}
		time.Sleep(10 * time.Second) // the stream has worked
		n.Serve(t, "c", parent(greet).handler())
		n.Cut("b")
		began = time.Now()
		if at := <-c.took; at.Sub(began) > 500*time.Millisecond {
			t.Errorf("went to the next parent after %v", at.Sub(began))
		}
		c.stop()
	})
}

func TestParentComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n rolestest.Network
		c := newChild(t, &n, "http://p")
		c.start()
		time.Sleep(time.Hour)
		began := time.Now()
		n.Serve(t, "p", parent(greet).handler())
		if at := <-c.took; at.Sub(began) > c.options.MostRedial {
			t.Errorf("found a parent that was away for an hour after %v, want within %v", at.Sub(began), c.options.MostRedial)
		}
		c.stop()
	})
}

// dials counts the requests of a client.
type dials struct {
	http.RoundTripper
	mu    sync.Mutex // guards times
	times []time.Time
}

func (d *dials) RoundTrip(r *http.Request) (*http.Response, error) {
	d.mu.Lock()
	d.times = append(d.times, time.Now())
	d.mu.Unlock()
	return d.RoundTripper.RoundTrip(r)
}

// Fault 41: the waits grow to their bound and stay random.
func TestRedialsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n rolestest.Network
		c := newChild(t, &n, "http://p")
		d := &dials{RoundTripper: c.options.HTTP.Transport}
		c.options.HTTP = &http.Client{Transport: d}
		c.start()
		time.Sleep(20 * time.Minute)
		c.stop()
		var longest time.Duration
		for i := 1; i < len(d.times); i++ {
			gap := d.times[i].Sub(d.times[i-1])
			longest = max(longest, gap)
			if bound := min(100*time.Millisecond<<min(i-1, 20), c.options.MostRedial); gap > bound {
				t.Errorf("redial %d after %v, want at most %v", i, gap, bound)
			}
		}
		// Uniform in 5 s: 480 expected in 20 minutes, 20 of them a deviation.
		if len(d.times) < 350 || len(d.times) > 620 || longest < 4*time.Second {
			t.Errorf("%d dials in 20 minutes, longest wait %v", len(d.times), longest)
		}
	})
}

// A parent that accepts and refuses at once is no parent that worked.
func TestRefusedChildBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n rolestest.Network
		refusals := 0
		n.Serve(t, "p", parent(func(context.Context, *serverStream) error {
			refusals++
			return connect.NewError(connect.CodeFailedPrecondition, errors.New("wrong zone"))
		}).handler())
		c := newChild(t, &n, "http://p")
		c.start()
		time.Sleep(10 * time.Minute)
		c.stop()
		if refusals < 100 || refusals > 400 {
			t.Errorf("refused %d times in 10 minutes, want about 240", refusals)
		}
		if !strings.Contains(c.log.String(), "wrong zone") {
			t.Errorf("the log does not say why:\n%.500s", c.log.String())
		}
	})
}

func TestBadMessageEndsTheStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n rolestest.Network
		n.Serve(t, "p", parent(greet).handler())
		c := newChild(t, &n, "http://p")
		takes := 0
		c.options.Take = func(context.Context, *grlv1.JoinResponse) error {
			takes++
			c.took <- time.Now()
			return errors.New("cell 7 of 3 named ones")
		}
		c.start()
		<-c.took
		<-c.took // of the next stream
		c.stop()
		if !strings.Contains(c.log.String(), "cell 7 of 3") {
			t.Errorf("the log does not say why:\n%s", c.log.String())
		}
	})
}

func TestFailedSendEndsTheStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n rolestest.Network
		n.Serve(t, "p", parent(greet).handler())
		c := newChild(t, &n, "http://p")
		c.options.Feed = func(ctx context.Context, _ func(*grlv1.JoinRequest) error) error {
			select {
			case <-time.After(time.Second):
				return errors.New("nothing left to say")
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		c.start()
		first := <-c.took
		if second := <-c.took; second.Sub(first) > 5*time.Second {
			t.Errorf("next stream %v after the first", second.Sub(first))
		}
		c.stop()
	})
}

func TestEndsAtOnce(t *testing.T) {
	stages := map[string]struct {
		addresses []string
		serve     http.Handler
		wait      time.Duration
	}{
		"no addresses":          {nil, nil, time.Second},
		"nobody there":          {[]string{"http://p"}, nil, time.Minute},
		"a stream that works":   {[]string{"http://p"}, parent(greet).handler(), time.Minute},
		"a parent that is deaf": {[]string{"http://p"}, parent(func(ctx context.Context, _ *serverStream) error { <-ctx.Done(); return ctx.Err() }).handler(), time.Minute},
		"at the first instant":  {[]string{"http://p"}, parent(greet).handler(), 0},
	}
	for name, s := range stages {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var n rolestest.Network
				if s.serve != nil {
					n.Serve(t, "p", s.serve)
				}
				c := newChild(t, &n, s.addresses...)
				c.start()
				time.Sleep(s.wait)
				if took := c.stop(); took > 100*time.Millisecond {
					t.Errorf("ended after %v", took)
				}
			})
		})
	}
}

func TestHTTPClientSpeaksHTTP2WithoutTLS(t *testing.T) {
	tr := uplink.HTTPClient().Transport.(*http.Transport)
	if !tr.Protocols.HTTP2() || !tr.Protocols.UnencryptedHTTP2() || tr.Protocols.HTTP1() {
		t.Errorf("protocols %v, want HTTP/2 only, with and without TLS", tr.Protocols)
	}
	if p := uplink.Pings(); p.SendPingTimeout+p.PingTimeout > 3*time.Second || p.SendPingTimeout == 0 || p.PingTimeout == 0 {
		t.Errorf("a silent peer is found after %v", p.SendPingTimeout+p.PingTimeout)
	}
}

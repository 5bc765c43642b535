package proxy_test

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"grl/limiter"
	"grl/limiter/httplimit"
	"grl/roles/client/proxy"
)

// outbound runs the sidecar of the caller checkout.
func outbound(t testing.TB, l *limiter.Limiter) string {
	t.Helper()
	return serve(t, proxy.NewOutbound(proxy.Options{
		Limiter:  l,
		Identity: identity(t, httplimit.IdentityConfig{Fixed: "checkout"}),
	}))
}

// via returns a client whose requests to any http:// address go to a proxy.
func via(t testing.TB, addr string, h2 bool) *http.Client {
	t.Helper()
	c := client(t, h2)
	dialer := new(net.Dialer)
	c.Transport.(*http.Transport).DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return dialer.DialContext(ctx, network, addr)
	}
	return c
}

func TestOutboundForwardsToTheAuthority(t *testing.T) {
	up := origin(t, echo)
	authority := strings.Replace(strings.TrimPrefix(up.URL, "http://"), "127.0.0.1", "localhost", 1)
	addr := outbound(t, limiter.New(limiter.Options{}))
	for _, h2 := range []bool{false, true} {
		r := request(t, "POST", "http://"+authority+"/a//b?x", "hello")
		r.Header.Set("X-Forwarded-For", "203.0.113.9")
		res, body := get(t, via(t, addr, h2), r)
		a := decodeArrived(t, body)
		if res.StatusCode != 200 || a.Host != authority || a.URI != "/a//b?x" || a.Body != "hello" {
			t.Errorf("h2 %v: status %d, arrived %+v", h2, res.StatusCode, a)
		}
		if a.Header.Get("X-Grl-Caller") != "checkout" || a.Header.Get("X-Forwarded-For") != "203.0.113.9" {
			t.Errorf("h2 %v: header %v", h2, a.Header)
		}
	}
}

func TestOutboundTakesAbsoluteTargets(t *testing.T) {
	up := origin(t, echo)
	addr := outbound(t, limiter.New(limiter.Options{}))
	host := strings.TrimPrefix(up.URL, "http://")
	status, body := raw(t, addr, "GET http://"+host+"/x HTTP/1.1\r\nHost: elsewhere.example\r\nConnection: close\r\n\r\n")
	if a := decodeArrived(t, body); status != 200 || a.Host != host || a.URI != "/x" {
		t.Errorf("status %d, arrived %+v", status, a)
	}
}

func TestOutboundDecidesByCallee(t *testing.T) {
	arrived := make(chan struct{}, 100)
	up := origin(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { arrived <- struct{}{} }))
	port := up.URL[strings.LastIndexByte(up.URL, ':'):]
	local := "127.0.0.1" + port
	for _, tt := range []struct {
		name       string
		enforce    limiter.Enforce
		host       string
		rpcService string
		caller     limiter.Pattern
		want       int // status
	}{
		{"by the first label", limiter.Outbound, "Payments.prod.example" + port, "", "checkout", 429},
		{"by rpc-service", limiter.Outbound, local, "payments", "checkout", 429},
		{"rpc-service before the label", limiter.Outbound, "payments.invalid" + port, "ledger", "checkout", 502},
		{"another service", limiter.Outbound, local, "ledger", "", 200},
		{"an address names no service", limiter.Outbound, local, "", "", 200},
		{"another caller", limiter.Outbound, local, "payments", "web", 200},
		{"enforced inbound", limiter.Inbound, local, "payments", "", 200},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := limited(t, tt.enforce, limiter.Bucket{Match: limiter.Match{Caller: tt.caller}})
			addr := outbound(t, l)
			for range 2 { // the second finds the gate of the first
				r := request(t, "GET", "http://"+addr, "")
				r.Host = tt.host
				if tt.rpcService != "" {
					r.Header.Set("Rpc-Service", tt.rpcService)
				}
				if res, _ := get(t, client(t, false), r); res.StatusCode != tt.want {
					t.Errorf("status %d, want %d", res.StatusCode, tt.want)
				}
			}
			l.Collect(time.Now())
			if n := l.Cell(limiter.CellID{Bucket: "payments/all"}).Counts().Offered; (n == 2) != (tt.want == 429) {
				t.Errorf("%d offered with status %d", n, tt.want)
			}
		})
	}
}

func TestOutboundLearnsConfigurationLater(t *testing.T) {
	up := origin(t, echo)
	l := limiter.New(limiter.Options{})
	addr := outbound(t, l)
	send := func() int {
		r := request(t, "GET", "http://"+addr, "")
		r.Host = strings.TrimPrefix(up.URL, "http://")
		r.Header.Set("Rpc-Service", "payments")
		res, _ := get(t, client(t, false), r)
		return res.StatusCode
	}
	if got := send(); got != 200 {
		t.Errorf("without configuration: status %d", got)
	}
	service := limiter.Service{Name: "payments", Enforce: limiter.Outbound, Buckets: []limiter.Bucket{{Name: "all", LimitRPS: 1, Behavior: limiter.Deny}}}
	for revision, services := range [][]limiter.Service{{service}, nil} {
		if err := l.Install(limiter.Configuration{Revision: uint64(revision) + 1, Services: services}); err != nil {
			t.Fatal(err)
		}
		want := 200
		if services != nil {
			want = 429
			l.Cell(limiter.CellID{Bucket: "payments/all"}).SetRatio(1)
		}
		if got := send(); got != want {
			t.Errorf("with %d services: status %d, want %d", len(services), got, want)
		}
	}
}

func TestOutboundRefuses(t *testing.T) {
	addr := outbound(t, limiter.New(limiter.Options{}))
	for _, tt := range []struct {
		name, request string
		want          int
	}{
		{"CONNECT", "CONNECT pay.example:443 HTTP/1.1\r\nHost: pay.example:443\r\n\r\n", 405},
		{"itself", "GET / HTTP/1.1\r\nHost: " + addr + "\r\nConnection: close\r\n\r\n", 508},
		{"itself, hiding the mark", "GET / HTTP/1.1\r\nHost: " + addr + "\r\nConnection: close, X-Grl-Hop\r\n\r\n", 508},
		{"itself by an absolute target", "GET http://" + addr + "/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", 508},
		{"no host", "GET / HTTP/1.0\r\n\r\n", 400},
		{"empty host", "GET / HTTP/1.1\r\nHost:\r\nConnection: close\r\n\r\n", 400},
		{"port alone", "GET / HTTP/1.1\r\nHost: :80\r\nConnection: close\r\n\r\n", 400},
		{"user in the host", "GET / HTTP/1.1\r\nHost: user@pay.example\r\nConnection: close\r\n\r\n", 400},
		{"path in the host", "GET / HTTP/1.1\r\nHost: pay.example/x\r\nConnection: close\r\n\r\n", 400},
		{"another scheme", "GET ftp://pay.example/x HTTP/1.1\r\nHost: pay.example\r\nConnection: close\r\n\r\n", 400},
		{"target without a host", "GET http:x HTTP/1.1\r\nHost: pay.example\r\nConnection: close\r\n\r\n", 400},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if status, body := raw(t, addr, tt.request); status != tt.want {
				t.Errorf("status %d, want %d: %s", status, tt.want, body)
			}
		})
	}
}

// TestNoFalseLoop sends a request through two sidecars of other processes and
// back to the first one's inbound side: a workload that copies headers is not
// a loop.
func TestNoFalseLoop(t *testing.T) {
	up := origin(t, echo)
	first := outbound(t, limiter.New(limiter.Options{}))
	inner := inbound(t, up.URL, proxy.Options{})
	r := request(t, "GET", "http://"+first, "")
	r.Host = inner
	_, body := get(t, client(t, false), r)
	copied := decodeArrived(t, body).Header
	again := request(t, "GET", "http://"+first, "")
	again.Host, again.Header = inner, copied
	if res, body := get(t, client(t, false), again); res.StatusCode != 200 {
		t.Errorf("status %d: %s", res.StatusCode, body)
	}
}

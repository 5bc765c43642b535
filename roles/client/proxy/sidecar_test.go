package proxy_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"grl/limiter"
	"grl/limiter/httplimit"
	"grl/roles/client/proxy"
)

// origin serves h as a workload would: HTTP/1.1 and unencrypted HTTP/2.
func origin(t testing.TB, h http.Handler) *httptest.Server {
	t.Helper()
	srv := httptest.NewUnstartedServer(h)
	srv.Config.Protocols = new(http.Protocols)
	srv.Config.Protocols.SetHTTP1(true)
	srv.Config.Protocols.SetUnencryptedHTTP2(true)
	srv.Start()
	t.Cleanup(srv.Close)
	return srv
}

// serve runs a sidecar on loopback and returns its address.
func serve(t testing.TB, p *proxy.Proxy) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := proxy.Server(p, nil)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = srv.Serve(l) // always ErrServerClosed
	}()
	t.Cleanup(func() {
		_ = srv.Close()
		<-done
		p.CloseIdleConnections()
	})
	return l.Addr().String()
}

// inbound runs a sidecar in front of the service payments at upstream.
func inbound(t testing.TB, upstream string, o proxy.Options) string {
	t.Helper()
	if o.Limiter == nil {
		o.Limiter = limiter.New(limiter.Options{})
	}
	p, err := proxy.NewInbound("payments", upstream, o)
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, p)
}

// client returns an HTTP client that keeps its own connections, over HTTP/1.1
// or unencrypted HTTP/2.
func client(t testing.TB, h2 bool) *http.Client {
	t.Helper()
	tr := &http.Transport{Protocols: new(http.Protocols), DisableCompression: true}
	if h2 {
		tr.Protocols.SetUnencryptedHTTP2(true)
	} else {
		tr.Protocols.SetHTTP1(true)
	}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: time.Minute}
}

// get returns the status and the body of an answer.
func get(t testing.TB, c *http.Client, r *http.Request) (*http.Response, string) {
	t.Helper()
	res, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(body)
}

func request(t testing.TB, method, url, body string) *http.Request {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	var reader io.Reader
	if body != "" {
		reader = strings.NewReader(body)
	}
	r, err := http.NewRequestWithContext(ctx, method, url, reader)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func identity(t testing.TB, c httplimit.IdentityConfig) *httplimit.Identity {
	t.Helper()
	id, err := httplimit.NewIdentity(c)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// limited returns a limiter that drops all requests to payments in one bucket,
// enforced on the given side.
func limited(t testing.TB, enforce limiter.Enforce, b limiter.Bucket) *limiter.Limiter {
	t.Helper()
	l := limiter.New(limiter.Options{})
	b.Name, b.LimitRPS, b.Behavior = "all", 1, limiter.Deny
	err := l.Install(limiter.Configuration{Revision: 1, PublicURL: "https://grl.example", Services: []limiter.Service{{
		Name: "payments", Owner: "team-payments", Enforce: enforce,
		Routes:  []string{"GET /v1/charges/{id}"},
		Buckets: []limiter.Bucket{b},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	l.Cell(limiter.CellID{Bucket: "payments/all"}).SetRatio(1)
	return l
}

func contextWithCancel(t testing.TB) (context.Context, context.CancelFunc) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	return ctx, cancel
}

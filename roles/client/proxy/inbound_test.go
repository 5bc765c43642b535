package proxy_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"grl/limiter"
	"grl/limiter/httplimit"
	"grl/roles/client/proxy"
)

// echo answers with what arrived.
var echo = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	_ = json.NewEncoder(w).Encode(arrived{r.Proto, r.Method, r.RequestURI, r.Host, r.Header, string(body), r.Trailer})
})

type arrived struct {
	Proto, Method, URI, Host string
	Header                   http.Header
	Body                     string
	Trailer                  http.Header
}

func decodeArrived(t testing.TB, body string) arrived {
	t.Helper()
	var a arrived
	if err := json.Unmarshal([]byte(body), &a); err != nil {
		t.Fatalf("decode %q: %v", body, err)
	}
	return a
}

func TestInboundPassesRequestsAsTheyCame(t *testing.T) {
	up := origin(t, echo)
	for _, h2 := range []bool{false, true} {
		for _, upstream := range []string{up.URL, strings.Replace(up.URL, "http", "h2c", 1)} {
			t.Run(fmt.Sprintf("h2 %v, %s", h2, upstream[:4]), func(t *testing.T) {
				addr := inbound(t, upstream, proxy.Options{})
				r := request(t, "PUT", "http://"+addr+"/a%2Fb//c?x=1;y&z=%zz&", "hello")
				r.Host = "payments.example:8080"
				r.Header.Set("Rpc-Caller", "checkout")
				r.Header.Set("Connection", "X-Secret")
				r.Header.Set("X-Secret", "1")
				r.Header.Set("X-Grl-Hop", "foreign")
				if h2 {
					r.Header.Del("Connection")
				}
				res, body := get(t, client(t, h2), r)
				a := decodeArrived(t, body)
				if res.StatusCode != 200 || a.Method != "PUT" || a.URI != "/a%2Fb//c?x=1;y&z=%zz&" || a.Host != "payments.example:8080" || a.Body != "hello" {
					t.Errorf("status %d, arrived %+v", res.StatusCode, a)
				}
				if wantProto := map[bool]string{true: "HTTP/2.0", false: "HTTP/1.1"}[upstream[:3] == "h2c"]; a.Proto != wantProto {
					t.Errorf("arrived by %s, want %s", a.Proto, wantProto)
				}
				if a.Header.Get("Rpc-Caller") != "checkout" || a.Header.Get("X-Forwarded-For") != "127.0.0.1" || a.Header.Get("X-Forwarded-Host") != "payments.example:8080" || a.Header.Get("X-Forwarded-Proto") != "http" {
					t.Errorf("header %v", a.Header)
				}
				for _, name := range []string{"Connection", "X-Grl-Hop", "Accept-Encoding"} {
					if v, ok := a.Header[name]; ok {
						t.Errorf("%s: %q arrived", name, v)
					}
				}
				if _, ok := a.Header["X-Secret"]; ok && !h2 {
					t.Error("a header named by Connection arrived")
				}
			})
		}
	}
}

func TestForwardedHeaders(t *testing.T) {
	up := origin(t, echo)
	sent := http.Header{"X-Forwarded-For": {"203.0.113.9"}, "X-Forwarded-Proto": {"https"}, "X-Forwarded-Host": {"shop.example"}, "Forwarded": {"for=203.0.113.9"}}
	for _, tt := range []struct {
		name    string
		trusted []netip.Prefix
		want    map[string]string
	}{
		{"from anybody they begin anew", nil, map[string]string{"X-Forwarded-For": "127.0.0.1", "X-Forwarded-Proto": "http", "X-Forwarded-Host": "payments", "Forwarded": ""}},
		{"from a trusted proxy they go on", []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, map[string]string{"X-Forwarded-For": "203.0.113.9, 127.0.0.1", "X-Forwarded-Proto": "https", "X-Forwarded-Host": "shop.example", "Forwarded": "for=203.0.113.9"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			addr := inbound(t, up.URL, proxy.Options{Identity: identity(t, httplimit.IdentityConfig{TrustedProxies: tt.trusted})})
			r := request(t, "GET", "http://"+addr, "")
			r.Header, r.Host = sent.Clone(), "payments"
			_, body := get(t, client(t, false), r)
			for name, want := range tt.want {
				if got := decodeArrived(t, body).Header.Get(name); got != want {
					t.Errorf("%s: %q, want %q", name, got, want)
				}
			}
		})
	}
}

func TestInboundDrops(t *testing.T) {
	arrivals := make(chan string, 10)
	up := origin(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { arrivals <- r.URL.Path }))
	l := limited(t, limiter.Inbound, limiter.Bucket{Match: limiter.Match{Caller: "checkout", Procedure: "GET /v1/charges/{id}"}})
	addr := inbound(t, up.URL, proxy.Options{
		Limiter:  l,
		Identity: identity(t, httplimit.IdentityConfig{Headers: []string{"rpc-caller"}}),
	})
	for _, h2 := range []bool{false, true} {
		for _, method := range []string{"GET", "HEAD"} {
			r := request(t, method, "http://"+addr+"/v1/charges/7", "")
			r.Header.Set("Rpc-Caller", "checkout")
			res, body := get(t, client(t, h2), r)
			if res.StatusCode != 429 || res.Header.Get("Retry-After") == "" {
				t.Errorf("%s, h2 %v: status %d, Retry-After %q", method, h2, res.StatusCode, res.Header.Get("Retry-After"))
			}
			wantBody := `"explain":"https://grl.example/explain?service=payments&caller=checkout&procedure=GET+%2Fv1%2Fcharges%2F%7Bid%7D"`
			if strings.Contains(body, wantBody) != (method == "GET") {
				t.Errorf("%s, h2 %v: body %s", method, h2, body)
			}
		}
	}
	if len(arrivals) != 0 {
		t.Errorf("%d dropped requests arrived", len(arrivals))
	}
	r := request(t, "GET", "http://"+addr+"/v1/charges/7", "")
	r.Header.Set("Rpc-Caller", "web")
	if res, _ := get(t, client(t, false), r); res.StatusCode != 200 || len(arrivals) != 1 {
		t.Errorf("another caller: status %d, %d arrived", res.StatusCode, len(arrivals))
	}
}

func TestInboundForwardsWhatIsEnforcedOutbound(t *testing.T) {
	up := origin(t, echo)
	l := limited(t, limiter.Outbound, limiter.Bucket{})
	addr := inbound(t, up.URL, proxy.Options{Limiter: l})
	if res, _ := get(t, client(t, false), request(t, "GET", "http://"+addr, "")); res.StatusCode != 200 {
		t.Errorf("status %d", res.StatusCode)
	}
	l.Collect(time.Now())
	if c := l.Cell(limiter.CellID{Bucket: "payments/all"}).Counts(); c.Offered != 0 {
		t.Errorf("%d counted on the wrong side", c.Offered)
	}
}

func TestPanicInTheLimiterForwards(t *testing.T) {
	up := origin(t, echo)
	l := limited(t, limiter.Inbound, limiter.Bucket{})
	addr := inbound(t, up.URL, proxy.Options{Limiter: l, Procedure: func(*http.Request) string { panic("broken") }})
	for range 10 {
		if res, _ := get(t, client(t, false), request(t, "GET", "http://"+addr, "")); res.StatusCode != 200 {
			t.Errorf("status %d", res.StatusCode)
		}
	}
	l.Collect(time.Now())
	var panics uint64
	for key, n := range l.Unlimited() {
		if key.Reason == limiter.Panicked {
			panics += n
		}
	}
	if panics != 10 {
		t.Errorf("%d panics counted, want 10", panics)
	}
}

func TestTrailersPassBothWays(t *testing.T) {
	up := origin(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "X-Sum")
		body, _ := io.ReadAll(r.Body)
		_, _ = fmt.Fprintf(w, "%s %s", body, r.Trailer.Get("X-Check"))
		w.Header().Set("X-Sum", "42")
		w.Header().Set(http.TrailerPrefix+"X-Late", "unannounced")
	}))
	for _, h2 := range []bool{false, true} {
		for _, upstream := range []string{up.URL, strings.Replace(up.URL, "http", "h2c", 1)} {
			t.Run(fmt.Sprintf("h2 %v, %s", h2, upstream[:4]), func(t *testing.T) {
				r := request(t, "POST", "http://"+inbound(t, upstream, proxy.Options{}), "")
				r.Trailer = http.Header{"X-Check": nil}
				r.Body = io.NopCloser(&atEnd{strings.NewReader("body"), func() { r.Trailer.Set("X-Check", "sent") }})
				res, body := get(t, client(t, h2), r)
				if body != "body sent" {
					t.Errorf("upstream read %q, want body and trailer", body)
				}
				if res.Trailer.Get("X-Sum") != "42" || res.Trailer.Get("X-Late") != "unannounced" {
					t.Errorf("trailers %v", res.Trailer)
				}
			})
		}
	}
}

// atEnd calls f before it reports the end.
type atEnd struct {
	io.Reader
	f func()
}

func (a *atEnd) Read(p []byte) (int, error) {
	n, err := a.Reader.Read(p)
	if err == io.EOF {
		a.f()
	}
	return n, err
}

func TestTLSUpstream(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		up := httptest.NewUnstartedServer(echo)
		up.EnableHTTP2 = h2
		up.Config.ErrorLog = log.New(io.Discard, "", 0) // refused handshakes are part of this
		up.StartTLS()
		t.Cleanup(up.Close)
		roots := x509.NewCertPool()
		roots.AddCert(up.Certificate())

		addr := inbound(t, up.URL, proxy.Options{TLS: &tls.Config{RootCAs: roots}})
		_, body := get(t, client(t, false), request(t, "POST", "http://"+addr, "hello"))
		a := decodeArrived(t, body)
		if want := map[bool]string{true: "HTTP/2.0", false: "HTTP/1.1"}[h2]; a.Proto != want || a.Body != "hello" {
			t.Errorf("arrived by %s with %q, want %s", a.Proto, a.Body, want)
		}

		addr = inbound(t, up.URL, proxy.Options{})
		res, body := get(t, client(t, false), request(t, "GET", "http://"+addr, ""))
		if res.StatusCode != 502 || !strings.Contains(body, "not trusted") {
			t.Errorf("unknown certificate: status %d, %s", res.StatusCode, body)
		}
	}
}

func TestDeadUpstreamIs502(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dead := l.Addr().String()
	_ = l.Close()
	p, err := proxy.NewInbound("payments", "http://"+dead, proxy.Options{Limiter: limiter.New(limiter.Options{})})
	if err != nil {
		t.Fatal(err)
	}
	addr := serve(t, p)
	res, body := get(t, client(t, false), request(t, "GET", "http://"+addr, ""))
	if res.StatusCode != 502 || res.Header.Get("Content-Type") != "application/problem+json" || !json.Valid([]byte(body)) {
		t.Errorf("status %d, %q", res.StatusCode, body)
	}
	if strings.Contains(body, dead) {
		t.Errorf("%s tells the caller where the workload listens", body)
	}
	if p.UpstreamErrors() != 1 {
		t.Errorf("%d upstream errors, want 1", p.UpstreamErrors())
	}
}

func TestUpstreamThatClosesMidBodyCutsTheAnswer(t *testing.T) {
	up := origin(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, "half")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}))
	for _, h2 := range []bool{false, true} {
		res, err := client(t, h2).Do(request(t, "GET", "http://"+inbound(t, up.URL, proxy.Options{}), ""))
		if err != nil {
			continue // not even the head was through
		}
		body, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err == nil {
			t.Errorf("h2 %v: the client took %q for a whole answer", h2, body)
		}
	}
}

func TestSlowUpstreamIsWaitedFor(t *testing.T) {
	release := make(chan struct{})
	up := origin(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			<-release
		}
	}))
	addr := inbound(t, up.URL, proxy.Options{})
	c := client(t, false)
	slow := make(chan int)
	go func() {
		res, err := c.Get("http://" + addr + "/slow")
		if err != nil {
			slow <- 0
			return
		}
		_ = res.Body.Close()
		slow <- res.StatusCode
	}()
	for range 20 { // others pass meanwhile
		if res, _ := get(t, c, request(t, "GET", "http://"+addr, "")); res.StatusCode != 200 {
			t.Errorf("status %d", res.StatusCode)
		}
	}
	close(release)
	if status := <-slow; status != 200 {
		t.Errorf("slow request: status %d", status)
	}
}

func TestCancellationReachesUpstream(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		began, ended := make(chan struct{}), make(chan struct{})
		up := origin(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			close(began)
			<-r.Context().Done()
			close(ended)
		}))
		p, err := proxy.NewInbound("payments", up.URL, proxy.Options{Limiter: limiter.New(limiter.Options{})})
		if err != nil {
			t.Fatal(err)
		}
		r := request(t, "GET", "http://"+serve(t, p), "")
		ctx, cancel := contextWithCancel(t)
		failed := make(chan error)
		go func() {
			_, err := client(t, h2).Do(r.WithContext(ctx))
			failed <- err
		}()
		<-began
		cancel()
		<-ended
		if err := <-failed; err == nil {
			t.Error("the cancelled request succeeded")
		}
		if n := p.UpstreamErrors(); n != 0 {
			t.Errorf("h2 %v: %d upstream errors for a client that left", h2, n)
		}
	}
}

func TestBigBodies(t *testing.T) {
	up := origin(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex()
		_, _ = io.Copy(w, r.Body)
	}))
	sent := bytes.Repeat([]byte("0123456789abcdef"), 1<<18) // 4 MiB
	for _, h2 := range []bool{false, true} {
		upstream := up.URL
		if h2 {
			upstream = strings.Replace(upstream, "http", "h2c", 1)
		}
		r := request(t, "POST", "http://"+inbound(t, upstream, proxy.Options{}), "")
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(sent)), int64(len(sent))
		if !h2 {
			// HTTP/1.1 servers of net/http read all before they answer.
			up.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				all, _ := io.ReadAll(r.Body)
				_, _ = w.Write(all)
			})
		}
		_, body := get(t, client(t, h2), r)
		if body != string(sent) {
			t.Errorf("h2 %v: %d bytes came back, not the %d sent", h2, len(body), len(sent))
		}
	}
}

func TestUpstreamAddress(t *testing.T) {
	for _, s := range []string{"", "localhost:80", "ftp://a", "http://", "http://a/path", "http://a?q", "http://u@a", "http://a#f", "http://a b", "unix:///x"} {
		if _, err := proxy.NewInbound("payments", s, proxy.Options{Limiter: limiter.New(limiter.Options{})}); err == nil {
			t.Errorf("upstream %q: no error", s)
		}
	}
	for _, s := range []string{"http://a", "https://a:1/", "h2c://[::1]:80"} {
		if _, err := proxy.NewInbound("payments", s, proxy.Options{Limiter: limiter.New(limiter.Options{})}); err != nil {
			t.Errorf("upstream %q: %v", s, err)
		}
	}
}

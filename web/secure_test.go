package web

import (
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"grl/web/pagetest"
)

// Every answer carries the security headers, errors too.
func TestSecurityHeadersOnEveryRoute(t *testing.T) {
	a := testAssets(t, true)
	h := newHandler(Options{Backend: pagetest.Memory{Rows: pagetest.Cells()}}, a)
	requests := []struct {
		method, target string
		want           int
	}{
		{"GET", "/", 200},
		{"HEAD", "/", 200},
		{"GET", "/buckets", 200},
		{"GET", "/fleet", 200},
		{"GET", a.paths.Style, 200},
		{"GET", a.paths.Script, 200},
		{"GET", a.paths.Icon, 200},
		{"GET", a.paths.HTMX, 200},
		{"GET", "/favicon.ico", 302},
		{"GET", "/assets/grl.css", 404},
		{"GET", "/assets/", 404},
		{"GET", "/assets/../web.go", 307}, // to the clean path
		{"GET", "/nothing", 404},
		{"GET", "/buckets/", 404},
		{"POST", "/", 405},
		{"POST", "/nothing", 405},
		{"DELETE", "/buckets", 405},
		{"PUT", a.paths.Style, 405},
		{"OPTIONS", "/", 405},
		{"TRACE", "/", 405},
	}
	want := map[string]string{
		"Content-Security-Policy":    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
		"X-Content-Type-Options":     "nosniff",
		"X-Frame-Options":            "DENY",
		"Cross-Origin-Opener-Policy": "same-origin",
		"Referrer-Policy":            "same-origin",
		"Strict-Transport-Security":  "",
	}
	for _, rq := range requests {
		t.Run(rq.method+" "+rq.target, func(t *testing.T) {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(rq.method, "http://localhost:7070"+rq.target, nil))
			if w.Code != rq.want {
				t.Errorf("status %d, want %d: %s", w.Code, rq.want, w.Body)
			}
			for name, value := range want {
				if got := w.Header().Get(name); got != value {
					t.Errorf("%s: %q, want %q", name, got, value)
				}
			}
			if rq.want == 405 && !strings.HasPrefix(w.Header().Get("Allow"), "GET, HEAD") {
				t.Errorf("Allow: %q", w.Header().Get("Allow"))
			}
			if rq.want == 200 && w.Header().Get("Content-Type") == "" {
				t.Error("no Content-Type")
			}
		})
	}
	t.Run("over TLS", func(t *testing.T) {
		r := httptest.NewRequest("GET", "https://localhost/", nil)
		r.TLS = &tls.ConnectionState{}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if got := w.Header().Get("Strict-Transport-Security"); got != "max-age=31536000" {
			t.Errorf("Strict-Transport-Security: %q", got)
		}
	})
}

func TestHostAllowList(t *testing.T) {
	h := testHandler(t, pagetest.Memory{})
	for _, host := range []string{
		"localhost", "localhost:7070", "LOCALHOST:7070", "localhost.:7070", "127.0.0.1", "127.0.0.1:7070", "127.8.9.1:80",
		"[::1]", "[::1]:7070", "grl.example.com", "GRL.example.com:443",
	} {
		if code, _ := statusFor(h, host); code != http.StatusOK {
			t.Errorf("Host %q: status %d, want 200", host, code)
		}
	}
	for _, host := range []string{
		"", ":7070", "evil.example", "evil.example:7070", "localhost.evil.example", "127.0.0.1.evil.example", "evil.grl.example.com",
		"10.0.0.1:7070", "[::2]:7070", "[::1", "0.0.0.0:7070", "localhost:7070:1", "2130706433",
	} {
		code, body := statusFor(h, host)
		if code != http.StatusMisdirectedRequest || !strings.Contains(body, "public_url") {
			t.Errorf("Host %q: status %d %.60q, want 421 with what to do", host, code, body)
		}
	}
	open := newHandler(Options{Backend: pagetest.Memory{}, AnyHost: true}, testAssets(t, true))
	if code, _ := statusFor(open, "grl.internal:7070"); code != http.StatusOK {
		t.Errorf("with AnyHost: status %d, want 200", code)
	}
}

func TestCheckHost(t *testing.T) {
	next := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	h := CheckHost(Options{Hosts: []string{"grl.example.com"}}, next)
	for host, want := range map[string]int{
		"127.0.0.1:7070": http.StatusOK, "grl.example.com": http.StatusOK, "evil.example:7070": http.StatusMisdirectedRequest,
	} {
		if code, _ := statusFor(h, host); code != want {
			t.Errorf("Host %q: status %d, want %d", host, code, want)
		}
	}
}

func statusFor(h http.Handler, host string) (code int, body string) {
	r := httptest.NewRequest("GET", "/", nil)
	r.Host = host
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// A form of another site is refused before it is looked at.
func TestCrossOriginRequestsAreRefused(t *testing.T) {
	r := httptest.NewRequest("POST", "http://localhost:7070/buckets", strings.NewReader("q=x"))
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	r.Header.Set("Origin", "https://evil.example")
	w := httptest.NewRecorder()
	testHandler(t, pagetest.Memory{}).ServeHTTP(w, r)
	if w.Code != http.StatusForbidden {
		t.Errorf("status %d, want 403", w.Code)
	}
}

// What is neither a page nor a stream does not wait for its reader for long
// either.
func TestIdleReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHandler(Options{Backend: pagetest.Memory{}}, testAssets(t, true))
		held := make(chan time.Duration, 1)
		conn := pagetest.Pipe(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			began := time.Now()
			h.ServeHTTP(w, r)
			_ = http.NewResponseController(w).Flush() // as the server does after it
			held <- time.Since(began)
		}))
		if _, err := io.WriteString(conn, "PUT / HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if got := <-held; got != time.Minute {
			t.Errorf("held for %v, want a minute", got)
		}
	})
}
